"""`python -m accel.run`: the program finds itself as Python would start it, and bad input is one line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What a program can see of how it was started; run plainly and under accel, the output must be the same.
MIRROR = """
import json, os, sys
names = {key: repr(globals().get(key, "missing")) for key in ("__name__", "__package__", "__file__", "__doc__")}
main = sys.modules["__main__"]
print(json.dumps({
    **names,
    "spec": getattr(__spec__, "name", None),
    "loader": type(__loader__).__name__,
    "cached": globals().get("__cached__"),
    "argv": sys.argv,
    "path0": sys.path[0],
    "cwd": os.getcwd(),
    "main": main.__dict__ is globals(),
    "annotations": globals().get("__annotations__", {}),
}))
"""
MODEL = """
import numpy as np

def warm(t):
    return t + 1.0

def fail(t):
    return {"a": t}["b"]
"""
CATALOGUE = """
from pathlib import Path
from accel.catalogue import Catalogue, Row
rows = (Row("model", "warm", "a test"), Row("model", "fail", "a test"), Row("gone", "f", "a test"))
CATALOGUE = Catalogue("test", rows, (), Path(__file__).parent / "demo", "scripts.main")
"""
FILES = {
    "catalogue_of_the_test.py": CATALOGUE,
    "catalogue_of_the_test-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: catalogue-of-the-test\nVersion: 1\n",
    "catalogue_of_the_test-1.dist-info/entry_points.txt": "[accel.catalogues]\na = catalogue_of_the_test:CATALOGUE\n",
    "demo/scripts/__init__.py": "",
    "demo/scripts/main.py": "import sys\nprint('demo', sys.argv[1:])\n",
    "work/model.py": MODEL,
    "work/mirror.py": MIRROR,
    "work/pack/__init__.py": "",
    "work/pack/mirror.py": MIRROR,
    "work/pack/__main__.py": MIRROR,
    "work/empty/__init__.py": "",
    "work/scripts/__init__.py": "",
    "work/scripts/go.py": "import model\nprint(float(model.warm(1.0)))\n",
    "work/scripts/fails.py": "import model\n\ndef main():\n    model.fail(1.0)\n\nmain()\n",
    "work/scripts/exits.py": "import sys\nfrom model import warm\nwarm(1.0)\nsys.exit(7)\n",
    "work/scripts/says.py": "import sys\nsys.exit('the planet froze')\n",
    "work/scripts/stops.py": "raise KeyboardInterrupt\n",
    "work/scripts/broken.py": "def f(:\n",
    "work/scripts/chained.py": "try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError('w') from e\n",
    "work/scripts/hooked.py": "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0\n",
    "work/scripts/ends.py": "import atexit\natexit.register(print, 'goodbye', flush=True)\nprint('hello')\n",
    "work/scripts/moves.py": "import os, tempfile\nos.chdir(tempfile.gettempdir())\n",
    "work/scripts/forks.py": "import os, sys\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nsys.exit(0)\n",
    "work/scripts/installs.py": "import accel\naccel.install(only=['nothing'])\n",
    "work/scripts/warns.py": "import warnings\nwarnings.warn('look')\n",
    "checkout/pygcm/__init__.py": "",
    "checkout/scripts/__init__.py": "",
    "checkout/scripts/where.py": MIRROR,
}


class Done(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


class Bench:
    """A folder with programs and a catalogue of its own, and a way to start them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")

    def python(self, *args: str, cwd: str = "work", env: Mapping[str, str] | None = None) -> Done:
        """Run Python with `args` and return how it ended."""
        paths = [str(ROOT), str(self.folder), os.environ.get("PYTHONPATH", "")]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("QD_")}
        environment = {**inherited, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "QD_JAX_CACHE_DIR": "off"}
        done = subprocess.run(
            [sys.executable, "-W", "error", *args],
            cwd=self.folder / cwd,
            env={**environment, **(env or {})},
            capture_output=True,
            text=True,
            timeout=300,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def accel(self, *args: str, cwd: str = "work", env: Mapping[str, str] | None = None) -> Done:
        """Run `python -m accel.run` with `args`."""
        return self.python("-m", "accel.run", *args, cwd=cwd, env=env)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The folder, made once: programs do not write into it."""
    return Bench(tmp_path_factory.mktemp("bench"))


# -- the program finds itself as ever ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plain", "target"),
    [
        (["-m", "mirror"], "mirror"),
        (["-m", "pack.mirror"], "pack.mirror"),
        (["-m", "pack"], "pack"),
        (["mirror.py"], "mirror.py"),
        (["pack/mirror.py"], "pack/mirror.py"),
        (["./pack/../mirror.py"], "./pack/../mirror.py"),
    ],
)
def test_a_program_sees_what_plain_python_shows_it(bench: Bench, plain: list[str], target: str) -> None:
    args = ["--mode", "fast", "-x", "--", "a b", "--demo"]
    expected = bench.python(*plain, *args)
    done = bench.accel("--quiet", target, *args)
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == json.loads(expected.out)


def test_a_checkout_elsewhere_is_run_in_the_folder_where_the_user_is(bench: Bench) -> None:
    checkout = bench.folder / "checkout"
    done = bench.accel("--pygcm", "../checkout", "--quiet", "scripts.where")
    seen = json.loads(done.out)
    assert seen["path0"] == str(checkout)
    assert seen["cwd"] == str(bench.work)
    assert seen["argv"] == [str(checkout / "scripts" / "where.py")]
    script = json.loads(bench.accel("--pygcm", str(checkout), "--quiet", "scripts/where.py").out)
    assert script["path0"] == str(checkout / "scripts")


def test_the_demo_has_a_default_target_and_ends_with_the_report(bench: Bench) -> None:
    done = bench.accel("--demo", "scripts.main", "--days", "5")
    assert (done.code, done.out) == (0, "demo ['--days', '5']\n")
    assert "not in this revision of the program" in done.err
    assert "  gone (1), model (2)" in done.err
    assert bench.accel("--demo", "--quiet") == Done(0, "demo []\n", "")


# -- how it ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["exits", "says", "stops", "chained", "hooked", "fails", "warns"])
def test_a_program_that_fails_does_so_as_under_plain_python(bench: Bench, name: str) -> None:
    plain = bench.python("-m", f"scripts.{name}")
    done = bench.accel("--quiet", f"scripts.{name}")
    launcher = re.compile(r'  File "<frozen runpy>".*\n')
    assert done == plain._replace(err=launcher.sub("", plain.err))


@pytest.mark.parametrize("name", ["says", "stops", "broken", "chained", "hooked", "warns"])
def test_a_script_that_fails_does_so_as_under_plain_python(bench: Bench, name: str) -> None:
    assert bench.accel("--quiet", f"scripts/{name}.py") == bench.python(f"scripts/{name}.py")


def test_exit_codes(bench: Bench) -> None:
    codes = {name: bench.accel(f"scripts.{name}").code for name in ("go", "exits", "says", "fails")}
    assert codes == {"go": 0, "exits": 7, "says": 1, "fails": 1}


def test_a_traceback_is_the_users_own_and_the_report_comes_after_it(bench: Bench) -> None:
    err = bench.accel("scripts.fails").err
    files = [Path(name).name for name in re.findall(r'File "([^"]+)"', err)]
    assert files == ["fails.py", "fails.py", "model.py"]
    assert err.index("KeyError: 'b'") < err.index("accel: ")


def test_the_last_word_is_accels_even_after_the_programs_own_exit_handlers(bench: Bench) -> None:
    done = bench.python("-c", "import accel.run as r, sys; sys.stderr = sys.stdout; r.main(['scripts.ends'])")
    lines = done.out.splitlines()
    assert lines[:2] == ["hello", "goodbye"]
    assert lines[2].startswith("accel: no accelerated function was called")


def test_a_forked_child_leaves_the_report_to_its_parent(bench: Bench) -> None:
    assert bench.accel("scripts.forks").err.count("accel:") == 1


def test_an_error_in_the_users_own_use_of_accel_is_no_bad_input(bench: Bench) -> None:
    done = bench.accel("--quiet", "scripts.installs")
    assert done.code == 1
    assert "Traceback" in done.err
    assert "SettingError: --only='nothing' selects no function" in done.err


# -- what is reported ------------------------------------------------------------------------------------------------


def test_by_default_one_line_on_standard_error(bench: Bench) -> None:
    done = bench.accel("scripts.go")
    assert done.out == "2.0\n"
    assert re.fullmatch(r"accel: this run (took|lost) about .*; \d of 1 call compiled.*\n", done.err)


@pytest.mark.parametrize("name", ["go", "exits", "fails"])
def test_the_report_is_written_however_the_program_ends(bench: Bench, tmp_path: Path, name: str) -> None:
    path = tmp_path / "report.json"
    bench.accel("--report", str(path), f"scripts.{name}")
    account = json.loads(path.read_text(encoding="utf-8"))
    assert account["schema"] == 2
    books = {each["target"]: each for each in account["functions"]}
    assert books["gone.f"]["state"] == "absent"
    assert books["model.fail" if name == "fails" else "model.warm"]["calls"] == 1


@pytest.mark.parametrize(
    ("name", "start"), [("r.json", "{"), ("r.md", "# accel report"), ("r.txt", "accel: "), ("r", "accel: ")]
)
def test_the_suffix_chooses_the_format(bench: Bench, tmp_path: Path, name: str, start: str) -> None:
    bench.accel("--quiet", "--report", str(tmp_path / name), "scripts.go")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_a_relative_report_path_is_meant_from_where_the_user_is(bench: Bench, tmp_path: Path) -> None:
    name = os.path.relpath(tmp_path / "r.json", bench.work)
    assert bench.accel("--quiet", "--report", name, "scripts.moves").err == ""
    assert (tmp_path / "r.json").is_file()


def test_a_dash_is_the_full_report_on_standard_error(bench: Bench) -> None:
    done = bench.accel("--report", "-", "scripts.go")
    assert done.out == "2.0\n"
    assert "versions: " in done.err
    assert "model.warm" in done.err


def test_a_profile_is_written_and_says_what_ran(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "p.html"
    assert bench.accel("--quiet", "--profile", str(path), "scripts.go").err == ""
    page = path.read_text(encoding="utf-8")
    assert "<h1>scripts.go</h1>" in page
    assert "<code>model.warm</code>" in page


def test_quiet_by_the_environment(bench: Bench) -> None:
    assert bench.accel("scripts.go", env={"QD_JAX_QUIET": "1"}).err == ""


def test_only_and_exclude(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    bench.accel("--exclude", "warm", "--exclude", "fail", "--report", str(path), "scripts.go")
    account = json.loads(path.read_text(encoding="utf-8"))
    reasons = {each["target"]: [reason["id"] for reason in each["reasons"]] for each in account["functions"]}
    assert (reasons["model.fail"], reasons["model.warm"]) == (["choice.excluded"], ["choice.excluded"])
    assert reasons["gone.f"] == []


def test_a_catalogue_of_ones_own(bench: Bench, tmp_path: Path) -> None:
    rows = tmp_path / "my_rows.py"
    text = "from accel.catalogue import Catalogue, Row\nCATALOGUE = Catalogue('mine', (Row('model', 'warm', 'why'),))\n"
    rows.write_text(text, encoding="utf-8")
    path = tmp_path / "r.json"
    done = bench.accel("--catalogue", str(rows), "--report", str(path), "scripts.go")
    assert (done.code, done.out) == (0, "2.0\n")
    account = json.loads(path.read_text(encoding="utf-8"))
    assert [each["target"] for each in account["functions"]] == ["model.warm"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot be read (FileNotFoundError: "),
        ("1 / 0", "cannot be read (ZeroDivisionError: division by zero); "),
        ("CATALOGUE = 1", "holds no catalogue; "),
    ],
)
def test_a_catalogue_that_cannot_be_used(bench: Bench, tmp_path: Path, text: str | None, problem: str) -> None:
    rows = tmp_path / "my_rows.py"
    if text is not None:
        rows.write_text(text, encoding="utf-8")
    done = bench.accel("--catalogue", str(rows), "scripts.go")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"accel: --catalogue={str(rows)!r} {problem}")
    assert done.err.endswith("expected: a Python file that defines CATALOGUE, such as accel doctor writes\n")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(("args", "env"), [(["--mode", "off"], {}), ([], {"QD_USE_JAX": "0"})])
def test_switched_off_is_a_plain_run_that_says_so(bench: Bench, args: list[str], env: dict[str, str]) -> None:
    done = bench.accel(*args, "--report", "-", "scripts.go", env=env)
    assert (done.code, done.out) == (0, "2.0\n")
    assert "this run used NumPy only" in done.err
    loud = bench.accel(*args, "--quiet", "scripts.go", env={**env, "QD_JAX_LOG": "info"})
    assert loud.err.startswith("accel: not installed: acceleration is switched off by QD_")


# -- bad input: one line, exit code 2, before the program starts -------------------------------------------------------

_MODULE_OR_SCRIPT = "expected: a dotted module such as scripts.run_simulation, or a script file"


@pytest.mark.parametrize(
    ("args", "env", "line"),
    [
        ([], {}, f"accel: TARGET='' is missing; {_MODULE_OR_SCRIPT}"),
        (["scripts.nope"], {}, f"accel: TARGET='scripts.nope' does not exist; {_MODULE_OR_SCRIPT}"),
        (["nope.py"], {}, f"accel: TARGET='nope.py' does not exist; {_MODULE_OR_SCRIPT}"),
        (["model.nope"], {}, f"accel: TARGET='model.nope' does not exist; {_MODULE_OR_SCRIPT}"),
        (["no such.thing"], {}, f"accel: TARGET='no such.thing' does not exist; {_MODULE_OR_SCRIPT}"),
        (["empty"], {}, f"accel: TARGET='empty.__main__' holds no Python code to run; {_MODULE_OR_SCRIPT}"),
        (
            ["--pygcm", "pack", "scripts.go"],
            {},
            "accel: --pygcm='pack' has no pygcm/; expected: a checkout with the folder pygcm in it",
        ),
        (
            ["--pygcm", "../checkout"],
            {},
            f"accel: TARGET='' is missing; {_MODULE_OR_SCRIPT}",
        ),
        (
            ["--fast", "scripts.go"],
            {},
            "accel: unrecognized arguments: --fast; expected: --pygcm, --demo, --platform, --mode, --catalogue, "
            "--only, --exclude, --report, --profile, --compare, --out, --auto, --chosen, --quiet (see --help)",
        ),
        (["--mode"], {}, "accel: argument --mode: expected one argument (see --help)"),
        (
            ["--demo", "--pygcm", "../checkout"],
            {},
            "accel: argument --pygcm: not allowed with argument --demo (see --help)",
        ),
        (
            ["--only", "nope", "scripts.go"],
            {},
            "accel: --only='nope' selects no function; expected: patterns such as model.warm",
        ),
        (
            ["--report", "nowhere/r.json", "scripts.go"],
            {},
            "accel: --report='nowhere/r.json' cannot be written (No such file or directory); "
            "expected: a file in a folder that exists and is writable",
        ),
        (
            ["--report", "r.html", "scripts.go"],
            {},
            "accel: --report='r.html' has an unknown suffix; expected: names that end in .json, .md or .txt",
        ),
        (
            ["--profile", "p.svg", "scripts.go"],
            {},
            "accel: --profile='p.svg' has an unknown suffix; expected: names that end in .html or .htm",
        ),
        (
            ["--out", "found", "scripts.go"],
            {},
            "accel: --out='found' has no effect on its own; expected: --compare as well",
        ),
        (
            ["--compare", "--report", "r.json", "scripts.go"],
            {},
            "accel: --report='r.json' describes a single run, but --compare makes three; "
            "expected: a run without --compare",
        ),
        (["scripts.go"], {"QD_USE_JAX": "2"}, "accel: QD_USE_JAX='2' cannot be used; expected: 1 or 0"),
        (
            ["scripts.go"],
            {"QD_JAX_PLATFORM": "gup"},
            "accel: QD_JAX_PLATFORM='gup' cannot be used; expected: cpu, gpu, tpu, or unset",
        ),
        (["scripts.go"], {"QD_JAX_AOT": "si"}, "accel: QD_JAX_AOT='si' cannot be used; expected: 1 or 0"),
    ],
)
def test_bad_input(bench: Bench, args: list[str], env: dict[str, str], line: str) -> None:
    assert bench.accel(*args, env=env) == Done(2, "", line + "\n")


@pytest.mark.parametrize("option", ["--mode", "--platform"])
def test_a_choice_that_is_none_names_those_that_are(bench: Bench, option: str) -> None:
    done = bench.accel(option, "fast", "scripts.go")
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(rf"accel: argument {option}: invalid choice: 'fast' \(choose from .*\n", done.err)


@pytest.mark.parametrize(
    ("args", "env", "name"),
    [(["--platform", "tpu"], {}, "--platform"), ([], {"QD_JAX_PLATFORM": "tpu"}, "QD_JAX_PLATFORM")],
)
def test_a_platform_that_is_not_there_names_those_that_are(
    bench: Bench, args: list[str], env: dict[str, str], name: str
) -> None:
    done = bench.accel(*args, "scripts.go", env=env)
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(rf"accel: {name}='tpu' [^\n]*expected: [^\n]*cpu[^\n]*\n", done.err)


def test_a_platform_is_not_asked_for_in_a_plain_run(bench: Bench) -> None:
    done = bench.accel("--quiet", "scripts.go", env={"QD_JAX_PLATFORM": "tpu", "QD_USE_JAX": "0"})
    assert done == Done(0, "2.0\n", "")


def test_checking_the_report_path_leaves_no_file_behind(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    bench.accel("--report", str(path), "scripts.nope")
    assert not path.exists()


# -- the other commands ----------------------------------------------------------------------------------------------


def test_accel_itself_runs_programs_and_prints_its_reasons(bench: Bench) -> None:
    assert bench.python("-m", "accel", "run", "--quiet", "scripts.go") == Done(0, "2.0\n", "")
    assert bench.python("-m", "accel", "reasons").out.startswith("| reason | why | hint |\n")
    wrong = "accel: unknown command 'dance'; expected: run, compile, explain, doctor, reasons, cache, coverage\n"
    assert bench.python("-m", "accel", "dance") == Done(2, "", wrong)
