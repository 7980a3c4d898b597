"""`accel enable`: QD_USE_JAX=1 starts accel in every Python of an environment, and nothing else changes there."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from accel.tools.cli import enable, starting
from tests.processes import Done, without_settings

ROOT = Path(__file__).resolve().parents[3]

MODEL = "import numpy as np\n\ndef warm(t):\n    return t + 1.0\n"
CATALOGUE = """
from accel.catalogue import Catalogue, Hold, Row
HOLDS = (Hold("model", "is_off", True, "the model says that it is off"),)
CATALOGUE = Catalogue("test", (Row("model", "warm", "a test"),), HOLDS)
"""
SCRIPT = """
import multiprocessing, os, sys

def loaded(number):
    import numpy
    return "accel.entry.hook.patching" in sys.modules

if __name__ == "__main__":
    import model
    ways = ("spawn", "forkserver", "fork") if "children" in sys.argv else ()
    seen = [multiprocessing.get_context(way).Pool(1).map(loaded, [1]) for way in ways]
    print(__name__, sys.argv, sys.path[0], sys.flags.utf8_mode, float(model.warm(1.0)), loaded(0), seen)
    print([name for name in os.environ if name.startswith("ACCEL")])
    print([name for name in sys.modules if name == "accel"])
"""


class Environment:
    """A virtual environment that sees the packages of this one, and accel if it is in `accel`'s folder."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "env", symlinks=True)
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        self.packages = folder / "env" / "lib" / version / "site-packages"
        self.python_file = folder / "env" / "bin" / "python"
        self.work = folder / "work"
        self.work.mkdir()
        self.paths = self.packages / "a_paths.pth"
        self.see(str(ROOT), sysconfig.get_path("purelib"))
        for name, text in (("model.py", MODEL), ("script.py", SCRIPT), ("rows.py", CATALOGUE)):
            (self.work / name).write_text(text)
        table = '[tool.accel]\ncatalogue = "rows.py"\n'
        (self.work / "pyproject.toml").write_text(table)

    def see(self, *paths: str) -> None:
        self.paths.write_text("\n".join([*paths, ""]))

    def run(self, *args: str, **env: str) -> Done:
        inherited = {name: value for name, value in without_settings().items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [str(self.python_file), *args],
            cwd=self.work,
            env={**inherited, "QD_JAX_CACHE_DIR": "off", **env},
            capture_output=True,
            text=True,
            timeout=300,
        )
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("enabled"))
    told = made.run("-m", "accel", "enable")
    assert told.code == 0 and "QD_USE_JAX=1 now starts accel in every Python of " in told.out, told
    return made


@pytest.mark.parametrize(
    "start", [["script.py"], ["-m", "script"], ["-X", "utf8", "-Bm", "script"], ["-E", "-s", "./script.py"]]
)
def test_a_program_of_ones_own_runs_as_under_accel_run(environment: Environment, start: list[str]) -> None:
    plain = environment.run(*start, "-x", "a b")
    done = environment.run(*start, "-x", "a b", QD_USE_JAX="1")
    assert plain.out.splitlines()[0].endswith(" 2.0 False []") and plain.out.splitlines()[1:] == ["[]", "[]"]
    assert (done.code, done.out) == (0, plain.out.replace("False []", "True []")[:-3] + "['accel']\n")
    assert "No calls compiled" in done.err


def test_a_program_without_numpy_says_nothing_and_leaves_the_last_report(
    environment: Environment, tmp_path: Path
) -> None:
    (environment.work / "tool.py").write_text("print('done')\n")
    kept = {"QD_JAX_CACHE_DIR": str(tmp_path / "cache")}
    assert environment.run("script.py", QD_USE_JAX="1", **kept).code == 0
    report = environment.run("-m", "accel", "report", **kept).out
    assert report.startswith("script.py, in ")
    assert environment.run("tool.py", QD_USE_JAX="1", **kept) == Done(0, "done\n", "")
    assert environment.run("-m", "accel", "report", **kept).out == report
    assert "no accelerated function was called" in environment.run("-m", "accel", "run", "tool.py", **kept).err


def test_children_are_accelerated_and_say_nothing(environment: Environment) -> None:
    done = environment.run("script.py", "children", QD_USE_JAX="1")
    assert done.out.splitlines()[0].endswith(" True [[True], [True], [True]]"), done
    assert done.err.count(" calls compiled") == 1


@pytest.mark.parametrize(
    ("code", "is_own"),
    [
        ("import accel; accel.install()", True),
        ("import os\nfrom accel.tools import x", True),
        ("main(5, sys_path=['/home/x/accel', 'accel'])", False),
        ("import accelerated", False),
    ],
)
def test_code_that_imports_accel_starts_it_itself(code: str, is_own: bool) -> None:
    assert starting._is_of_accel(["-c", code]) is is_own


def test_ranks_and_workers_of_joblib_are_accelerated(environment: Environment) -> None:
    done = environment.run("script.py", QD_USE_JAX="1", OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2")
    assert done.out.splitlines()[0].endswith(" 2.0 True []") and done.err == "", "rank 0 alone tells"
    pytest.importorskip("joblib")
    (environment.work / "jobs.py").write_text(
        "import joblib, script\nprint(joblib.Parallel(n_jobs=2)(joblib.delayed(script.loaded)(i) for i in range(2)))\n"
    )
    assert environment.run("jobs.py", QD_USE_JAX="1").out == "[True, True]\n"
    assert environment.run("jobs.py").out == "[False, False]\n"


def test_code_and_sessions_are_accelerated_in_the_process_itself(environment: Environment) -> None:
    waiting = "while type(model.warm).__name__ == 'function': time.sleep(0.01)"
    code = f"import model, sys, time\n{waiting}\nprint(model.warm(1.0), sys.argv)"
    done = environment.run("-c", code, "x", QD_USE_JAX="1")
    assert done.out == "2.0 ['-c', 'x']\n" and "No calls compiled" in done.err, "model imports NumPy itself"
    quiet = environment.run(
        "-c", "import sys; print([n for n in sys.modules if n.startswith('numpy')])", QD_USE_JAX="1"
    )
    assert quiet == Done(0, "[]\n", "")


@pytest.mark.parametrize("value", ["0", "", "off", "nonsense"])
def test_without_the_variable_nothing_of_accel_is_imported(environment: Environment, value: str) -> None:
    code = "import sys, model; print([n for n in sys.modules if n.partition('.')[0] in ('accel', 'wrapt', 'jax')])"
    assert environment.run("-c", code, QD_USE_JAX=value) == Done(0, "[]\n", "")


AUDITED = """
import sys
line, seen = compile(sys.argv[1], "<line>", "exec"), []
sys.addaudithook(lambda event, _: seen.append(event))
exec(line, {})
print(sorted(set(seen)))
"""


def test_the_line_imports_and_opens_nothing_without_the_variable(environment: Environment) -> None:
    assert (environment.packages / enable.NAME).read_text() == enable.LINE and enable.LINE.count("\n") == 1
    assert environment.run("-c", AUDITED, enable.LINE) == Done(0, "['exec']\n", "")
    assert "'compile'" in environment.run("-c", AUDITED, enable.LINE, QD_USE_JAX="1").out, "it does its work"


BROKEN = {
    "gone": "",
    "an error in the package": "raise RuntimeError('broken')",
    "no syntax": "def f(:",
    "an older one": "__version__ = '0.0'",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_python_starts_where_accel_is_gone_or_broken(environment: Environment, tmp_path: Path, text: str) -> None:
    if text:
        (tmp_path / "accel").mkdir()
        (tmp_path / "accel" / "__init__.py").write_text(text)
    environment.see(str(tmp_path), sysconfig.get_path("purelib"))
    try:
        for args in (["script.py"], ["-c", "print(1)"], ["-S", "-c", "print(2)"]):
            plain, done = environment.run(*args), environment.run(*args, QD_USE_JAX="1")
            # an older accel that is imported stays in sys.modules, which the script prints at last
            assert (done.code, done.out.splitlines()[:2]) == (plain.code, plain.out.splitlines()[:2])
    finally:
        environment.see(str(ROOT), sysconfig.get_path("purelib"))


@pytest.mark.parametrize("lacks", ["argparse", "wrapt"])  # what the start imports, and what is imported after it
def test_a_program_runs_plainly_where_accel_cannot_be_imported_as_a_whole(environment: Environment, lacks: str) -> None:
    module = environment.work / f"{lacks}.py"
    module.write_text("raise ImportError('not here')\n")
    try:
        done = environment.run("script.py", QD_USE_JAX="1")
    finally:
        module.unlink()
    assert done.code == 0 and done.out.startswith("__main__ ['script.py'] ")
    hidden = "argparse.py hides Python's module argparse, which accel needs: rename it"
    why = {"argparse": hidden, "wrapt": "not here"}[lacks]
    assert done.err == f"accel: cannot be imported (ImportError: {why}): this run uses NumPy only\n"


def test_info_shows_it_and_disable_takes_it_back(environment: Environment) -> None:
    file = environment.packages / enable.NAME
    assert str(file) in environment.run("-m", "accel", "info").out
    assert environment.run("-m", "accel", "disable").code == 0 and not file.exists()
    alone = r"enabled +no: QD_USE_JAX=1 alone starts nothing \(see accel enable\)"
    assert re.search(alone, environment.run("-m", "accel", "info").out)
    assert environment.run("-c", "import sys; print('accel' in sys.modules)", QD_USE_JAX="1").out == "False\n"
    assert environment.run("-m", "accel", "enable").code == 0


def test_a_folder_that_cannot_be_written_to_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(enable, "place", lambda: tmp_path / "nowhere" / enable.NAME)
    assert enable.enable([]) == 1
    assert "cannot be written (No such file or directory); a virtual environment" in capsys.readouterr().err
    assert enable.disable([]) == 0


@pytest.mark.parametrize(
    ("words", "options", "program"),
    [
        ("python script.py -c x", [], ["script.py", "-c", "x"]),
        ("python -Wignore -X dev -m a.b -m c", ["-Wignore", "-X", "dev"], ["-m", "a.b", "-m", "c"]),
        ("python -IBc code arg", ["-IB"], ["-c", "code", "arg"]),
        ("python -mmodel x", [], ["-m", "model", "x"]),
        ("python --check-hash-based-pycs always -", ["--check-hash-based-pycs", "always"], ["-"]),
        ("python -i", ["-i"], []),
    ],
)
def test_the_words_of_python_are_split_as_python_does(words: str, options: list[str], program: list[str]) -> None:
    assert starting.split(words.split()) == (options, program)


def test_what_is_installed_is_no_program_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("")
    (tmp_path / "space").mkdir()
    own = [["own.py", "x"], ["-m", "own"], ["-m", "space.own"]]
    others = [["-m", "pytest"], ["-m", "json.tool"], ["-c", "1"], ["-"], [], [sys.executable], ["-m", "gone"], ["-m"]]
    assert all(map(starting.is_own, own)) and not any(map(starting.is_own, others))
