"""`accel`: its commands, their help, and what it says to words that it does not know."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import accel
from accel.platform.variables import unknown
from accel.tools.cli import commands, docs, info
from tests.tools.cli.bench import ROOT, Bench, Done


def told(capsys: pytest.CaptureFixture[str], *args: str) -> Done:
    """Run a command in this process."""
    try:
        code = commands.main(list(args))
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return Done(code, out, err)


def test_the_console_script_is_the_module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = re.search(r'^\[project.scripts\]\naccel = "(.+):(.+)"$', text, re.MULTILINE)
    assert named is not None
    monkeypatch.setattr(sys, "argv", ["accel", "--version"])
    assert getattr(importlib.import_module(named[1]), named[2])() == 0
    assert capsys.readouterr().out == f"accel {accel.__version__}\n"
    commands.main(["simulate.py", "3"])
    assert capsys.readouterr().err.endswith("to run a program, write: accel run simulate.py 3\n")


def test_accel_itself_runs_programs_and_prints_its_reasons(bench: Bench) -> None:
    assert bench.python("-m", "accel", "run", "--quiet", "scripts.go") == Done(0, "2.0\n", "")
    assert bench.python("-m", "accel", "reasons").out.startswith("| reason | why | hint |\n")


@pytest.mark.parametrize("args", [(), ("--help",), ("-h",), ("help",)])
def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str], args: tuple[str, ...]) -> None:
    done = told(capsys, *args)
    assert (done.code, done.err) == (0, "")
    assert re.findall(r"^  (\w+) ", done.out, re.MULTILINE) == list(commands.COMMANDS)


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_the_help_of_a_command_is_a_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    done = told(capsys, name, "--help")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith(f"usage: accel {name}")
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 100
    assert told(capsys, "help", name) == done


def test_the_help_of_run_says_that_accel_chooses(capsys: pytest.CaptureFixture[str]) -> None:
    assert "or its own hot loops and functions" in " ".join(
        told(capsys, "run", "--help").out.split("options:")[0].split()
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("exlpain",), "unknown command 'exlpain' (did you mean explain?); expected: run, "),
        (("simulate.py", "3"), "unknown command 'simulate.py'; to run a program, write: accel run simulate.py 3"),
        (("-c", "1"), "unknown command '-c'; to run a program, write: accel run ..."),
        (("reasons", "all"), "accel reasons takes no arguments, but got 'all' (see --help)"),
        (
            ("run", "--reprot", "f", "x"),
            "unrecognized arguments: --reprot (did you mean --report?); expected: --pygcm, ",
        ),
        (("compile", "--setled=3", "x"), "unrecognized arguments: --setled=3 (did you mean --settled?); expected: "),
        (("compare", "--report", "f", "x"), "unrecognized arguments: --report"),
        (("cache", "claer"), "argument info|clear: invalid choice: 'claer' "),
        (("docs", "setings"), "PAGE='setings' does not exist (did you mean settings?); expected: api, "),
    ],
)
def test_a_word_that_is_unknown(capsys: pytest.CaptureFixture[str], args: tuple[str, ...], said: str) -> None:
    done = told(capsys, *args)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"accel: {said}")
    assert done.err.count("\n") == 1


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "--version").out == f"accel {metadata.version('pygcm-accel')}\n"


def test_output_that_nobody_reads_to_its_end_is_no_error() -> None:
    line = f"{sys.executable} -m accel docs coverage | head -1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert (done.stdout[:1], done.stderr) == ("#", "")


def test_the_console_script_finds_modules_of_the_current_folder(bench: Bench, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "accel"
    script.parent.mkdir()
    script.write_text(
        "import sys\nfrom accel.tools.cli.commands import console\nsys.exit(console())\n", encoding="utf-8"
    )
    plain = bench.python("-m", "mirror", "1")
    assert bench.python(str(script), "run", "--quiet", "mirror", "1") == plain
    assert bench.python("-P", str(script), "run", "--quiet", "scripts.go").code == 2
    failed = bench.python(str(script), "run", "--quiet", "scripts.fails")
    assert failed == bench.accel("--quiet", "scripts.fails") and "KeyError" in failed.err


# -- documents and information ----------------------------------------------------------------------------------------


def test_docs_lists_and_prints_the_pages(capsys: pytest.CaptureFixture[str]) -> None:
    listed = told(capsys, "docs").out
    assert re.search(r"^command-line +Command line$", listed, re.MULTILINE)
    assert told(capsys, "docs", "report").out == (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    installed = [*docs.pages().values(), ROOT / "README.md", ROOT / "CHANGELOG.md"]  # of a wheel
    assert len({docs._title(path) for path in installed}) == len(installed)
    assert list(docs.pages()) == sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


def test_info_has_what_a_bug_report_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QD_JAX_MODE", "verify")
    monkeypatch.setenv("QD_JAX_MODUS", "verify")
    monkeypatch.setenv("SECRET_TOKEN", "hidden")
    text = info.text()
    names = [line[:14].strip() for line in text.splitlines()]
    assert {"accel", "Python", "numpy", "jax", "system", "processor", "devices", "catalogues", "disk cache"} <= {*names}
    assert "QD_JAX_MODE='verify'" in text
    assert "did you mean QD_JAX_MODE?" in text
    assert "hidden" not in text


# -- environment variables --------------------------------------------------------------------------------------------


def test_a_variable_that_nothing_reads_is_warned_of(bench: Bench) -> None:
    done = bench.accel("--quiet", "scripts.go", env={"QD_JAX_CACHEDIR": "x"})
    said = (
        "accel does not read QD_JAX_CACHEDIR, so setting it changes nothing of accel's (did you mean QD_JAX_CACHE_DIR?)"
    )
    assert done == Done(0, "2.0\n", f"{said}\n")


def test_a_folder_for_many_users_that_is_missing_is_warned_of(bench: Bench, tmp_path: Path) -> None:
    there, missing = tmp_path / "there", tmp_path / "missing"
    there.mkdir()
    said = f"accel: QD_JAX_CACHE_SHARED names {missing}, which is not a folder: no programs are read from there"
    assert bench.accel("--quiet", "scripts.go", env={"QD_JAX_CACHE_SHARED": str(missing)}).err == f"{said}\n"
    assert bench.accel("--quiet", "scripts.go", env={"QD_JAX_CACHE_SHARED": str(there)}).err == ""
    there.chmod(0o777)
    unsafe = bench.accel("--quiet", "scripts.go", env={"QD_JAX_CACHE_SHARED": str(there)})
    assert "which others can write to: no programs are read from there" in unsafe.err
    assert not missing.exists()


def test_variables_of_others_are_not(bench: Bench) -> None:
    assert list(unknown({"QD_SIM_DAYS": "1", "JAX_PLATFORMS": "cpu", "QD_JAX_MODE": "auto", "QD_USE_JAX": "1"})) == []
    assert next(iter(unknown({"QD_JAX_WHATEVER": "1"}))).endswith("(see accel docs settings)")
