"""`accel report`: the report of the last run is there after its process has ended, in every format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.tools.cli.bench import Bench, Done


@pytest.fixture
def run(bench: Bench, tmp_path: Path):  # type: ignore[no-untyped-def]
    """Run a command of accel's that keeps its things in an empty folder."""

    def accel(*args: str, **env: str) -> Done:
        return bench.python("-m", "accel", *args, env={"QD_JAX_CACHE_DIR": str(tmp_path / "cache"), **env})

    return accel


def test_a_run_leaves_its_report(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    done = run("run", "scripts.go", "a b")
    assert done.err.count("\naccel: ") == 1
    short = run("report")
    assert (short.code, short.err) == (0, "")
    assert re.match(r"scripts\.go 'a b', in .*/work, ended \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n\naccel: \d", short.out)
    assert "model:warm: " in short.out
    assert len(short.out.splitlines()) <= 18
    full = run("report", "--full").out
    assert "versions: " in full and "gone (1)" in full
    account = json.loads(run("report", "--format", "json").out)
    assert {each["target"]: each["calls"] for each in account["functions"]}["model:warm"] == 1
    assert run("report", "--format", "markdown").out.startswith("# accel report")
    kept = tmp_path / "cache" / "last-report.json"
    assert kept.stat().st_mode & 0o077 == 0
    assert {path.name for path in kept.parent.iterdir() if not path.is_dir()} == {"last-report.json", "lengths.json"}


def test_the_page_is_that_of_the_profile(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run("run", "scripts.go")
    done = run("report", "--format", "html")
    assert (done.code, done.out) == (1, "")
    assert done.err == "accel: the last run drew no page; accel run --profile FILE.html draws one\n"
    page = tmp_path / "page.html"
    run("run", "--profile", str(page), "scripts.go")
    assert run("report", "--format", "html").out == page.read_text(encoding="utf-8")
    page.unlink()
    assert run("report", "--format", "html").err.startswith(f"accel: the page of the last run cannot be read: {page}")


def test_a_program_that_installs_accel_leaves_its_report_too(bench: Bench, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code = "import accel; accel.install(); import model; model.warm(1.0)"
    env = {"QD_JAX_CACHE_DIR": str(tmp_path / "cache")}
    assert bench.python("-c", code, env=env).err.count("\naccel: ") == 1
    assert "model:warm" in run("report").out


_MARKED = """
import multiprocessing
import sys

import accel
import numpy as np


@accel.accelerate
def double(x):
    return 2.0 * x


def work(queue):
    queue.put(float(double(np.ones(3)).sum()))


if __name__ == "__main__" and "idle" not in sys.argv:
    x = double(double(np.ones(3)))
    spawning = multiprocessing.get_context("spawn")
    queue = spawning.Queue()
    child = spawning.Process(target=work, args=(queue,))
    child.start()
    print(float(x.sum()) + 2.0 * queue.get())
    child.join()
"""


def test_a_program_that_marks_its_functions_leaves_its_report(bench: Bench, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    program = str(tmp_path / "marked.py")
    Path(program).write_text(_MARKED, encoding="utf-8")
    env = {"QD_JAX_CACHE_DIR": str(tmp_path / "cache")}
    for more in ({"QD_JAX_QUIET": "1"}, {"QD_USE_JAX": "0"}, {"QD_JAX_MODE": "off"}):
        assert bench.python(program, env=env | more) == Done(0, "24.0\n", "")
        assert run("report").code == 1, more
    assert bench.python(program, env=env) == Done(0, "24.0\n", "")
    kept = run("report").out
    assert re.match(r".*marked\.py, in .*, ended ", kept) and "__main__:double" in kept
    assert bench.python(program, "idle", env=env).code == 0
    assert run("report").out == kept, "a run that calls nothing has nothing to tell"
    assert run("run", program, "under accel run").out == "24.0\n"
    assert "marked.py 'under accel run', in " in run("report").out


def test_without_a_report_it_says_why(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    place = tmp_path / "cache" / "last-report.json"
    none = f"accel: no report of a run was found in {place}; accel run TARGET leaves one\n"
    assert run("report") == Done(1, "", none)
    off = "accel: no report is kept, as the disk cache is off (QD_JAX_CACHE_DIR)\n"
    assert run("report", QD_JAX_CACHE_DIR="off") == Done(1, "", off)
    for content in ("", "[]", '{"kept": 2}', '{"kept": 1}', "\x00"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(content, encoding="utf-8")
        assert run("report") == Done(1, "", none)


def test_bad_input(run) -> None:  # type: ignore[no-untyped-def]
    done = run("report", "--format", "jsn")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("accel: argument --format: invalid choice: 'jsn' ") and done.err.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_no_error(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    done = run("run", "scripts.go")
    assert (done.code, done.out) == (0, "2.0\n")
    assert "--report -" in done.err, "accel report has nothing to show"


def test_a_forked_child_keeps_none(run) -> None:  # type: ignore[no-untyped-def]
    assert run("run", "scripts.forks").code == 0
    assert run("report").out.startswith("scripts.forks, in ")
