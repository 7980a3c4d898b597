"""The tests on the oldest and on the newest versions of what accel stands on, for each Python: `make test-matrix`.

Each combination has an environment under build/nox, which the next run uses again. FULL=1 runs all tests;
`nox -- tests/backend/test_cache.py` these; `nox --list` names the combinations, and `nox -s 'tests-3.11(oldest)'` runs
one.
"""

import os
from pathlib import Path

import nox

nox.options.sessions = ["tests"]
nox.options.envdir = "build/nox"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True  # a combination that was not tried is none that passed

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
SUBSET = """
    tests/rules/test_conformance.py tests/rules/test_signatures.py tests/record tests/dispatch
    tests/platform/test_versions.py tests/entry/hook/test_hook.py tests/tools/cli/test_run.py
    tests/backend/test_cache.py tests/test_second_process.py tests/benchmarks/test_kernels.py
    """.split()
"""What NumPy, SciPy, JAX, wrapt and Python have a say in."""

FULL = bool(os.environ.get("FULL"))
OLDEST = [each.replace(">=", "==") for each in nox.project.load_toml("pyproject.toml")["project"]["dependencies"]]
NEWEST = ["--upgrade", "--upgrade-strategy", "eager"]


@nox.session(python=PYTHONS)
@nox.parametrize("versions", ["oldest", "newest"], ids=["oldest", "newest"])
def tests(session: nox.Session, versions: str) -> None:
    """Install the project beside the versions asked for, say which those are, and test it.

    The extra `peers` is left out: numba would choose NumPy's version.
    """
    session.install("--editable", ".[demo,test]" if FULL else ".[test]", *(OLDEST if versions == "oldest" else NEWEST))
    session.run("python", "-m", "pip", "list", "--format=freeze", "--exclude-editable")
    chosen = session.posargs or ([] if FULL else SUBSET)
    session.run("python", "-m", "pytest", "-n", "auto", "-q", "-p", "no:cacheprovider", *chosen)


@nox.session(python=[PYTHONS[0], PYTHONS[-1]])
def dist(session: nox.Session) -> None:
    """Install the wheel that is in build/dist, which was made from the source distribution, and try it elsewhere."""
    wheels = sorted(Path("build/dist").glob("*.whl"))
    assert len(wheels) == 1, f"{wheels}: make dist-test builds one"
    trial = Path("tests/wheel/trial.py").resolve()
    session.install(f"{wheels[0]}[demo]", "--force-reinstall", "--no-deps")
    session.install(f"{wheels[0]}[demo]")
    session.chdir(session.create_tmp())
    session.run("python", str(trial), env={"PYTHONPATH": ""})
