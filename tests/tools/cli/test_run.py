"""`python -m accel.run`: the program finds itself as Python would start it, and bad input is one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from accel.catalogue import Row
from accel.platform import config
from accel.tools.cli.choices import summary_of_chosen
from accel.tools.cli.commandline import parse
from accel.tools.comparison import command, runs
from tests.tools.cli.bench import MIRROR, Bench, Done

# -- the program finds itself as ever ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plain", "target"),
    [
        (["-m", "mirror"], ["mirror"]),
        (["-m", "pack.mirror"], ["pack.mirror"]),
        (["-m", "pack"], ["pack"]),
        (["-m", "pack"], ["-m", "pack"]),
        (["mirror.py"], ["mirror.py"]),
        (["pack/mirror.py"], ["pack/mirror.py"]),
        (["./pack/../mirror.py"], ["./pack/../mirror.py"]),
        (["./pack"], ["./pack"]),
        (["apart/"], ["apart/"]),
        (["packed.zip"], ["packed.zip"]),
        (["mirror.pyc"], ["mirror.pyc"]),
        (["no_suffix"], ["no_suffix"]),
        (["-c", MIRROR], ["-c", MIRROR]),
        (["-"], ["-"]),
    ],
    ids=lambda words: words[0] if words[0] != "-c" else "text",
)
def test_a_program_sees_what_plain_python_shows_it(bench: Bench, plain: list[str], target: list[str]) -> None:
    args = ["--mode", "fast", "-x", "--", "a b", "--demo"]
    stdin = MIRROR.replace('"cwd"', '"größe"') if plain == ["-"] else "text"
    expected = bench.python(*plain, *args, stdin=stdin)
    done = bench.accel("--quiet", *target, *args, stdin=stdin)
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
    done = bench.accel("--demo", "--report", "-", "scripts.main", "--days", "5")
    assert (done.code, done.out) == (0, "demo ['--days', '5']\n")
    assert done.err.startswith("accel: no accelerated function was called\ndevice: none used\n")
    assert "not in this revision of the program" not in done.err, "all of the installed catalogue is another program's"
    short = bench.accel("--demo", "scripts.main")
    assert short.out == "demo []\n"
    assert "was called\n\nwhat to do\n" in short.err
    assert bench.accel("--demo", "--quiet") == Done(0, "demo []\n", "")


# -- how it ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["exits", "says", "stops", "chained", "hooked", "fails", "warns"])
def test_a_program_that_fails_does_so_as_under_plain_python(bench: Bench, name: str) -> None:
    plain = bench.python("-m", f"scripts.{name}")
    done = bench.accel("--quiet", f"scripts.{name}")
    launcher = re.compile(r'  File "<frozen runpy>".*\n')
    assert done == plain._replace(err=launcher.sub("", plain.err))


@pytest.mark.parametrize("code", ["1 / 0", "def f(:", "raise SystemExit(3)", "raise KeyboardInterrupt"])
def test_text_that_fails_does_so_as_under_plain_python(bench: Bench, code: str) -> None:
    assert bench.accel("--quiet", "-c", code) == bench.python("-c", code)
    assert bench.accel("--quiet", "-", stdin=code) == bench.python("-", stdin=code)


def test_a_folder_that_fails_does_so_as_under_plain_python(bench: Bench) -> None:
    launcher = re.compile(r'  File "<frozen runpy>".*\n')
    for name in ("failing", "failing.zip"):
        plain = bench.python(name)
        assert bench.accel("--quiet", name) == plain._replace(err=launcher.sub("", plain.err))


# -- before NumPy is imported -----------------------------------------------------------------------------------------

WRONG = """
import sys
import accel
import numpy as np
from accel.dispatch.replay import Variant

run = Variant.run

def wrong(self, values):
    staged = run(self, values)
    staged.made[0] = staged.made[0] + 1.0
    return staged

if "wrong" in sys.argv:
    Variant.run = wrong

@accel.accelerate
def f(x):
    return x * 2.0

for i in range(8):
    assert (f(np.arange(9.0) + i) == (np.arange(9.0) + i) * 2.0).all()
exec(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("mode", "end", "planted", "code"),
    [
        ("verify", "", "wrong", 3),
        ("verify", "sys.exit(0)", "wrong", 3),
        ("verify", "sys.exit()", "", 0),
        ("verify", "sys.exit(7)", "wrong", 7),
        ("verify", "1 / 0", "wrong", 1),
        ("auto", "sys.exit()", "wrong", 0),
    ],
)
def test_a_mismatch_in_mode_verify_is_an_exit_code(bench: Bench, mode: str, end: str, planted: str, code: int) -> None:
    """It takes the place of 0 alone."""
    path = bench.work / "wrong.py"
    path.write_text(WRONG, encoding="utf-8")
    # not with warnings as errors, which no program can raise
    command = ["-W", "default", "-m", "accel.run", "--mode", mode, "wrong.py", end, planted]
    done = bench.python(*command, env={"QD_JAX_AOT": "0"})
    assert done.code == code, done.err
    assert ("verify.mismatch" in done.err) == (planted == "wrong"), done.err
    if mode == "verify" and code != 1:
        assert ("differences in 1 function" if planted else "compared calls agreed") in done.err


EARLY = """
import os, sys
print("numpy" in sys.modules)
for _ in range(3):
    pass
os.environ["NPY_DISABLE_CPU_FEATURES"] = "NOT_THERE"
try:
    import numpy
except RuntimeError as error:
    print("read", type(error).__name__)
"""


@pytest.mark.parametrize("options", [[], ["--auto"]], ids=["plain", "auto"])
def test_what_the_program_sets_before_it_imports_numpy_is_obeyed(bench: Bench, options: list[str]) -> None:
    plain = bench.python("-W", "default", "-c", EARLY)
    path = bench.work / "early.py"
    path.write_text(EARLY, encoding="utf-8")
    done = bench.python("-W", "default", "-m", "accel.run", "--quiet", *options, "early.py")
    assert plain.out.startswith("False\n")
    assert "NOT_THERE" in plain.out + plain.err
    assert done.out == plain.out
    assert ("NOT_THERE" in done.err) == ("NOT_THERE" in plain.err)


def test_a_loop_at_the_top_of_a_script_is_compiled_though_numpy_came_late(bench: Bench, tmp_path: Path) -> None:
    (bench.work / "late.py").write_text(LATE, encoding="utf-8")
    path = tmp_path / "r.json"
    env = {"QD_JAX_AOT": "0"}
    # not with warnings as errors, which no program can raise
    done = bench.python("-W", "default", "-m", "accel.run", "--auto", "--report", str(path), "late.py", env=env)
    assert done.out == bench.python("late.py").out
    account = {each["target"]: each for each in json.loads(path.read_text(encoding="utf-8"))["functions"]}["__main__:3"]
    assert account["compiled_calls"] > 0, (account["reasons"], account["programs"], done.err)


LATE = """import sys
total = 0.0
for i in range(40):
    import numpy as np
    x = np.linspace(0.0, 1.0, 100_000)
    for _ in range(4):
        x = np.sin(x) + np.cos(x)
    total += float(x.sum())
print(f"{total:.6f}")
"""


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


@pytest.mark.skipif(os.name != "posix", reason="a folder in use cannot be removed there")
@pytest.mark.parametrize("start", [["-m", "accel", "run"], []], ids=["accel run", "decorator"])
def test_a_program_runs_where_the_current_folder_was_removed(bench: Bench, tmp_path: Path, start: list[str]) -> None:
    script, gone = tmp_path / "own.py", tmp_path / "gone"
    script.write_text("import accel\n\n@accel.accelerate\ndef f(x):\n    return x + 1.0\n\nprint(f(1.0), f(2.0))\n")
    gone.mkdir()
    command = [sys.executable, *start, str(script)]
    code = f"import os\nos.chdir({str(gone)!r})\nos.rmdir({str(gone)!r})\nos.execv({command[0]!r}, {command!r})"
    done = bench.python("-c", code, env={"QD_JAX_CACHE_DIR": str(tmp_path / "cache")})
    assert (done.code, done.out) == (0, "2.0 3.0\n")
    assert "Traceback" not in done.err


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("streams", ["1>&-", "2>&-", "1>&- 2>&-", "1>/dev/full 2>/dev/full"])
def test_closed_and_full_streams_are_no_error_at_the_end(bench: Bench, streams: str) -> None:
    log = bench.folder / "log"
    # what an atexit function raises is told to this hook, whatever the streams are
    hook = f"import sys; sys.unraisablehook = lambda about: open({str(log)!r}, 'a').write(repr(about.exc_value))"
    (bench.work / "scripts" / "logged.py").write_text(
        f"{hook}\nimport model\nmodel.warm(1.0)\nopen('ran', 'w').close()\n"
    )
    started = f"exec {sys.executable} -m accel run scripts.logged {streams}"
    subprocess.run(["sh", "-c", started], cwd=bench.work, env=bench.environment(), timeout=300, check=False)
    assert (bench.work / "ran").exists()
    assert not log.exists()


def test_an_error_in_the_users_own_use_of_accel_is_no_bad_input(bench: Bench) -> None:
    done = bench.accel("--quiet", "scripts.installs")
    assert done.code == 1
    assert "Traceback" in done.err
    assert "SettingError: only='nothing' selects no function" in done.err


# -- what is reported ------------------------------------------------------------------------------------------------


def test_by_default_two_lines_on_standard_error(bench: Bench) -> None:
    done = bench.accel("scripts.go")
    assert done.out == "2.0\n"
    assert re.fullmatch(r"accel: \d.* s, .*NumPy.*\. No calls compiled\.\naccel: [A-Z].*\n", done.err)


@pytest.mark.parametrize("name", ["go", "exits", "fails"])
def test_the_report_is_written_however_the_program_ends(bench: Bench, tmp_path: Path, name: str) -> None:
    path = tmp_path / "report.json"
    bench.accel("--report", str(path), f"scripts.{name}")
    account = json.loads(path.read_text(encoding="utf-8"))
    assert account["schema"] == 2
    books = {each["target"]: each for each in account["functions"]}
    assert books["gone:f"]["state"] == "absent"
    assert books["model:fail" if name == "fails" else "model:warm"]["calls"] == 1


@pytest.mark.parametrize(("name", "start"), [("r.json", "{"), ("r.md", "# accel report"), ("r.txt", "accel: ")])
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
    assert "model:warm" in done.err


def test_a_profile_is_written_and_says_what_ran(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "p.html"
    assert bench.accel("--quiet", "--profile", str(path), "scripts.go").err == ""
    page = path.read_text(encoding="utf-8")
    assert "<h1>scripts.go</h1>" in page
    assert ">model:warm</td>" in page


def test_quiet_by_the_environment(bench: Bench) -> None:
    assert bench.accel("scripts.go", env={"QD_JAX_QUIET": "1"}).err == ""


def test_only_and_exclude(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    bench.accel("--exclude", "warm", "--exclude", "fail", "--report", str(path), "scripts.go")
    account = json.loads(path.read_text(encoding="utf-8"))
    reasons = {each["target"]: [reason["id"] for reason in each["reasons"]] for each in account["functions"]}
    assert (reasons["model:fail"], reasons["model:warm"]) == (["choice.excluded"], ["choice.excluded"])
    assert reasons["gone:f"] == []


OWN_ROWS = """
from accel.catalogue import Catalogue, Row
CATALOGUE = Catalogue("own", (Row("__main__", "f", "why", declined="in doubt"), Row("__main__", "g", "why")))
"""


def test_functions_of_the_script_that_are_left_out_say_so(bench: Bench, tmp_path: Path) -> None:
    (bench.work / "own.py").write_text("def f(): pass\n\ndef g(): pass\n\nf(), g()\n", encoding="utf-8")
    (bench.work / "rows.py").write_text(OWN_ROWS, encoding="utf-8")
    path = tmp_path / "r.json"
    bench.accel("--catalogue", "rows.py", "--exclude", "g", "--report", str(path), "own.py")
    found = {each["target"]: each for each in json.loads(path.read_text(encoding="utf-8"))["functions"]}
    for name, why in (("f", "choice.declined"), ("g", "choice.excluded")):
        account = found[f"__main__:{name}"]
        assert (account["state"], [reason["id"] for reason in account["reasons"]]) == ("numpy", [why])


def test_a_catalogue_of_ones_own(bench: Bench, tmp_path: Path) -> None:
    rows = tmp_path / "my_rows.py"
    text = "from accel.catalogue import Catalogue, Row\nCATALOGUE = Catalogue('mine', (Row('model', 'warm', 'why'),))\n"
    rows.write_text(text, encoding="utf-8")
    path = tmp_path / "r.json"
    done = bench.accel("--catalogue", str(rows), "--report", str(path), "scripts.go")
    assert (done.code, done.out) == (0, "2.0\n")
    account = json.loads(path.read_text(encoding="utf-8"))
    assert [each["target"] for each in account["functions"]] == ["model:warm"]


def test_with_auto_what_it_cannot_do_is_not_advised(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    done = bench.accel("--auto", str(tmp_path / "empty.py"))
    assert done.err.startswith("accel: no accelerated function was called\n")
    (tmp_path / "few.py").write_text("import time\nfor i in range(3):\n    time.sleep(0.05)\n", encoding="utf-8")
    assert "accel compile" not in bench.accel("--auto", str(tmp_path / "few.py")).err


def test_ctrl_c_in_a_comparison_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(spec: object, out: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "compare", interrupted)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "a.py").write_text("", encoding="utf-8")
    assert command.main(["--out", str(tmp_path / "out"), str(tmp_path / "a.py")]) == 130
    assert capsys.readouterr().err == "accel: interrupted: nothing was compared\n"


def test_rows_of_the_script_that_name_nothing_are_told_of_at_its_end(bench: Bench, tmp_path: Path) -> None:
    """Its module is `__main__`, and another name of it, or a function that it never defines, is a slip."""
    rows, script = tmp_path / "my_rows.py", tmp_path / "heat.py"
    script.write_text("import numpy as np\n\ndef smooth(t):\n    return t + 1.0\n\nsmooth(np.ones(3))\n")
    named = [("__main__", "smooth"), ("__main__", "smoth"), ("heat", "smooth"), ("model", "wram")]
    made = ", ".join(f"Row({module!r}, {name!r}, 'why')" for module, name in named)
    rows.write_text(f"from accel.catalogue import Catalogue, Row\nCATALOGUE = Catalogue('mine', ({made}))\n")
    done = bench.accel("--catalogue", str(rows), "--report", "-", str(script))
    assert done.code == 0
    err = " ".join(done.err.split())
    assert f"{rows}, row 2: __main__ has no smoth (did you mean smooth?) accel: " in err
    assert f"note: {rows}, row 3: heat is the program itself, whose module is __main__ " in err
    assert f"note: {rows}, row 4: the program has not imported model" in err
    short = bench.accel("--catalogue", str(rows), str(script))
    told = f"accel: {rows}, row 3: heat is the program itself, whose module is __main__; the report has 1 more\n"
    assert told in short.err, "on the screen, without a report"


def test_slips_in_a_catalogue_are_told_of_by_compare(bench: Bench, tmp_path: Path) -> None:
    rows, script = tmp_path / "my_rows.py", tmp_path / "heat.py"
    script.write_text("import numpy as np\n\ndef smooth(t):\n    return t + 1.0\n\nsmooth(np.ones(3))\n")
    made = "Row('__main__', 'smooth', 'why'), Row('__main__', 'smoth', 'why'), Row('model', 'wram', 'why')"
    rows.write_text(f"from accel.catalogue import Catalogue, Row\nCATALOGUE = Catalogue('mine', ({made}))\n")
    named = ("--out", str(tmp_path / "out"), "--catalogue", str(rows))
    done = bench.python("-m", "accel", "compare", *named, str(script))
    assert done.code == 0, done.err
    assert f"accel: {rows}, row 2: __main__ has no smoth (did you mean smooth?)\n" in done.err
    assert f"accel: {rows}, row 3: the program has not imported model\n" in done.err


_STRICT = """import sys
import numpy as np
import accel
@accel.accelerate
def f(x):
    sys.stdout.flush()
    return open(__file__).read()
f(np.ones(3))
"""


def test_a_run_that_a_refusal_has_ended_gets_no_other_advice(bench: Bench, tmp_path: Path) -> None:
    script = tmp_path / "strict.py"
    script.write_text(_STRICT)
    done = bench.accel("--mode", "strict", "--report", "-", str(script))
    assert done.code == 1 and "accel.platform.reasons.Refused: " in done.err, done.err
    assert "compile " not in done.err.partition("accel: ")[2] and "--auto" not in done.err


def test_the_advice_names_the_command_that_compiles_this_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = parse(["--catalogue", _rows(tmp_path).name, "--only", "smooth", "short.py", "4", "a b"])
    assert plan.compile_first == "`accel compile --catalogue rows.py --only smooth short.py 4 'a b'`"
    assert parse(["--auto", "short.py"]).compile_first == "`accel compile --auto short.py`"
    assert parse(["-m", "short", "1"]).compile_first == "`accel compile -m short 1`"
    assert parse(["-c", "a\nb"]).compile_first == "`accel compile ...`"
    assert parse(["-"]).compile_first is None, "it can be read once"


def _rows(folder: Path) -> Path:
    path = folder / "rows.py"
    rows = "Row('__main__', 'smooth', 'why'),"
    path.write_text(f"from accel.catalogue import Catalogue, Row\nCATALOGUE = Catalogue('mine', ({rows}))\n")
    return path


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot be read (FileNotFoundError: "),
        ("\n1 / 0", "cannot be read (line 2: ZeroDivisionError: division by zero); "),
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
    assert done.err.startswith("accel was off: this run used NumPy only\n")
    assert "what to do" not in done.err and "--auto" not in done.err
    assert bench.accel(*args, "scripts.go", env=env).err == "accel was off: this run used NumPy only\n"
    loud = bench.accel(*args, "--quiet", "scripts.go", env={**env, "QD_JAX_LOG": "info"})
    assert loud.err.startswith("accel: not installed: acceleration is switched off by QD_")


# -- bad input: one line, exit code 2, before the program starts -------------------------------------------------------

_TARGETS = (
    "expected: a module such as scripts.run_simulation, a script, a folder or zip file with __main__.py, -c CODE, or -"
)


@pytest.mark.parametrize(
    ("args", "env", "line"),
    [
        ([], {}, f"accel: TARGET='' is missing; {_TARGETS}"),
        (["scripts.nope"], {}, f"accel: TARGET='scripts.nope' does not exist; {_TARGETS}"),
        (["nope.py"], {}, f"accel: TARGET='nope.py' does not exist; {_TARGETS}"),
        (["model.nope"], {}, f"accel: TARGET='model.nope' does not exist; {_TARGETS}"),
        (["no such.thing"], {}, f"accel: TARGET='no such.thing' does not exist; {_TARGETS}"),
        (["./hollow"], {}, f"accel: TARGET='./hollow' holds no __main__.py; {_TARGETS}"),
        (["-c"], {}, "accel: -c='' is missing its argument; expected: code"),
        (["-m", "gone"], {}, "accel: -m='gone' does not exist; expected: a module that can be imported from here"),
        (["empty"], {}, f"accel: TARGET='empty.__main__' holds no Python code to run; {_TARGETS}"),
        (
            ["--pygcm", "pack", "scripts.go"],
            {},
            "accel: --pygcm='pack' has no pygcm/; expected: a checkout with the folder pygcm in it",
        ),
        (["--pygcm", "../checkout"], {}, f"accel: TARGET='' is missing; {_TARGETS}"),
        (
            ["--fast", "scripts.go"],
            {},
            "accel: unrecognized arguments: --fast; expected: --pygcm, --demo, --platform, --mode, --catalogue, "
            "--only, --exclude, --auto, --ensemble, --perturb, --members, --report, --profile, --lines, --quiet "
            "(see --help)",
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
            "accel: --only='nope' selects no function; expected: patterns such as model:warm",
        ),
        (
            ["--auto", "--exclude", "nope", "scripts.go"],
            {},
            "accel: --exclude='nope' selects no function; expected: patterns such as model:warm",
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


def test_a_file_that_another_python_compiled_is_bad_input(bench: Bench) -> None:
    done = bench.accel("bad.pyc")
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"accel: TARGET='bad.pyc' was not compiled by this Python \(.*\); expected: .*\n", done.err)


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
    seen = rf"accel: {name}='tpu' is not there: JAX sees no TPU \(pip install 'pygcm-accel\[tpu\]'\); "
    assert re.fullmatch(rf"{seen}expected: [^\n]*cpu[^\n]*\n", done.err)


def test_cuda_is_a_name_for_a_gpu(tmp_path: Path) -> None:
    assert config.from_environment({"QD_JAX_PLATFORM": "CUDA"}).platform == "gpu"
    options = command._parser().parse_args(["--platform", "cuda", "a.py"])
    assert options.platform == "gpu"


def test_compare_checks_its_options_before_it_starts_anything(bench: Bench, tmp_path: Path) -> None:
    compare = ("-m", "accel", "compare", "--out", str(tmp_path / "out"))
    done = bench.python(*compare, "--only", "nope", "scripts.go")
    assert done == Done(2, "", "accel: --only='nope' selects no function; expected: patterns such as model:warm\n")
    expected = "expected: a program in a file, or -c CODE"
    done = bench.python(*compare, "-")
    assert done == Done(2, "", f"accel: TARGET='-' can be read once, and is run thrice; {expected}\n")


@pytest.mark.parametrize(
    ("target", "what"),
    [
        (["-"], "a script from standard input"),
        (["-c", "print(1)"], "code given by -c"),
        (["packed.zip"], "the program"),
    ],
)
def test_a_program_without_a_source_file_is_told_of(bench: Bench, tmp_path: Path, target: list[str], what: str) -> None:
    shutil.copy(bench.work / "packed.zip", tmp_path)
    said = f"accel: no loop is outlined: {what} has no source file\n"
    for options in ([], ["--auto"]):
        assert bench.accel(*options, *target, stdin="print(1)\n", cwd=str(tmp_path)).err.endswith(said)
    assert "outlined" not in bench.accel("--auto", "mirror.py").err
    row = Row("model", "warm", "a test")
    assert summary_of_chosen([row], "-").splitlines()[0] == "accel: chose warm"


def test_what_is_interrupted_inside_jax_shows_the_programs_line(bench: Bench) -> None:
    (bench.work / "jax").mkdir()
    for name, text in (
        ("jax/__init__.py", ""),
        ("jax/stages.py", "def run():\n    raise KeyboardInterrupt\n"),
        ("waits.py", "import sys\nfrom accel.platform import project\nproject.wait()\n"),
    ):
        (bench.work / name).write_text(text, encoding="utf-8")
    code = "import jax.stages\ndef wait():\n    jax.stages.run()\n"
    starting = f"from accel.platform import project; exec(compile({code!r}, project.__file__, 'exec'), vars(project))"
    done = bench.python("-c", f"{starting}; from accel.tools.cli.run import main; main(['--quiet', 'waits.py'])")
    shown = done.err.splitlines()
    assert shown[-1] == "KeyboardInterrupt" and "project.wait()" in shown[-2 if "^" not in shown[-2] else -3]
    assert "stages.py" not in done.err


@pytest.mark.parametrize("place", ["<accel host tape>", "project.__file__"])
def test_what_is_interrupted_inside_accel_shows_the_programs_line(bench: Bench, place: str) -> None:
    (bench.work / "waits.py").write_text("from accel.platform import project\nproject.wait()\n", encoding="utf-8")
    code, name = "def wait():\n    raise KeyboardInterrupt\n", place if "." in place else repr(place)
    starting = f"from accel.platform import project; exec(compile({code!r}, {name}, 'exec'), vars(project))"
    done = bench.python("-c", f"{starting}; from accel.tools.cli.run import main; main(['--quiet', 'waits.py'])")
    assert done.err.count("  File ") == 1 and "project.wait()" in done.err, done.err
    assert done.err.endswith("KeyboardInterrupt\n")


def test_a_platform_is_not_asked_for_in_a_plain_run(bench: Bench) -> None:
    done = bench.accel("--quiet", "scripts.go", env={"QD_JAX_PLATFORM": "tpu", "QD_USE_JAX": "0"})
    assert done == Done(0, "2.0\n", "")


def test_checking_the_report_path_leaves_no_file_behind(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    bench.accel("--report", str(path), "scripts.nope")
    assert not path.exists()
