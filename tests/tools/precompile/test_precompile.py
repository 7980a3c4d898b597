"""`python -m accel compile`: it ends once nothing new needs compiling, and the next run compiles nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from accel.platform import ledger, timeline
from accel.platform.config import Settings
from accel.tools.precompile import messages, watch
from accel.tools.precompile.command import settings_for_later
from accel.tools.precompile.watch import NewsCounter, Progress
from tests.helpers import LONG
from tests.processes import Done, without_settings

ROOT = Path(__file__).resolve().parents[3]
MINIATURE = ROOT / "pygcm_patch" / "miniature"

PROGRAM = """
import sys
import numpy as np
import accel

@accel.accelerate(name="model.step")
def step(x, warm):
    y = np.sqrt(np.abs(np.sin(x) + 1.5)) * np.exp(-x * x) if warm else x * 0.5 + np.cos(x)
    return y - y.mean()

x = np.linspace(0.0, 1.0, 40_000)
for number in range(int(sys.argv[1])):
    x = step(x, number % 3 > 0)
print("the program's own output")
open("restart.txt", "w").write("done")
"""

OWN_HANDLERS = """
import signal
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: open("restart.txt", "w").write("half"))
"""

FAILING = PROGRAM.replace("x = step(x, number % 3 > 0)", "x = step(x, True); assert number < 8, 'the planet froze'")

# `accel.run`, counting the programs that XLA compiles here, and the workers that are started to compile elsewhere.
COUNTED = """
import atexit, json, sys
import jax
from accel.tools.cli import run
from accel.backend.underway import queues, worker
from accel.dispatch import target
from accel.platform import gain
from accel.policy import rest
gain.IMPORT_GAIN_S = gain.COMPILE_GAIN_S = rest.SMALL_CALL_S = rest.MAX_REST = 0  # it is a short run
compiled, started = [], []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: compiled.append(event) if event == "/jax/core/compile/backend_compile_duration" else 0
)
start = worker.Worker.__init__
worker.Worker.__init__ = lambda self: started.append(1) or start(self)
atexit.register(lambda: print(json.dumps({"compiled": len(compiled), "workers": len(started)})))
sys.exit(run.main(sys.argv[1:]))
"""


class Bench:
    """A folder with a program, and a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        (folder / "failing.py").write_text(FAILING, encoding="utf-8")

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        paths = os.pathsep.join([str(ROOT), str(MINIATURE)])
        return {**without_settings(), "PYTHONPATH": paths, "QD_JAX_CACHE_DIR": str(self.cache), **given}

    def python(self, *args: str, **environment: str) -> Done:
        done = subprocess.run(
            [sys.executable, *args],
            cwd=self.folder,
            env=self.environment(environment),
            capture_output=True,
            text=True,
            timeout=900,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def compile(self, *args: str, **environment: str) -> Done:
        return self.python("-m", "accel", "compile", *args, **environment)

    def counted(self, *args: str, report: Path, **environment: str) -> tuple[dict[str, int], dict[str, Any]]:
        """What a normal run compiled, and its report."""
        done = self.python("-c", COUNTED, "--quiet", "--report", str(report), *args, **environment)
        assert done.code == 0, done.err
        return json.loads(done.out.splitlines()[-1]), json.loads(report.read_text(encoding="utf-8"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def programs(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [program for each in report["functions"] for program in each["programs"]]


# -- whole runs --------------------------------------------------------------------------------------------------------


def test_the_next_run_compiles_nothing(bench: Bench, tmp_path: Path) -> None:
    done = bench.compile("--settled", "30", "--report", "made.json", "program.py", "1000000")
    assert done.code == 0, done.err
    _, kept, then, *_ = done.err.splitlines()
    assert re.fullmatch(rf"2 programs of 1 function kept in {re.escape(str(bench.cache))}, \d+ kB\.", kept)
    assert re.fullmatch(r"The next run need not compile anything that was seen in \d+ calls of model.step\.", then)
    assert done.err.endswith("Then the program was killed: a file that it was writing may be incomplete.\n")
    shown = bench.python("-m", "accel", "report").out
    assert shown.startswith("accel compile program.py 1000000, in ") and "model.step" in shown
    assert " s, by accel compile: calls waited for their programs. " in shown
    assert "NumPy would have" not in shown and "after `accel compile" not in shown
    assert not (tmp_path / "restart.txt").exists(), "it was ended before its end"
    assert all(each["kept_bytes"] > 0 for each in programs(json.loads((tmp_path / "made.json").read_text())))
    found, report = bench.counted("program.py", "300", report=tmp_path / "next.json")
    assert found == {"compiled": 0, "workers": 0}, programs(report)
    assert {each["found_on_disk"] for each in programs(report)} == {True}
    again = bench.compile("--steps", "40", "program.py", "1000000")
    assert "(nothing had to be compiled: all of them were there before)" in again.err


def test_before_it_starts_it_says_that_the_program_writes_its_files(bench: Bench, tmp_path: Path) -> None:
    done = bench.compile("--steps", "12", "program.py", "1000000")
    assert done.err.startswith(
        f"accel: the program really runs, in {tmp_path}, and writes its files, restart files included; it is killed "
        "after 12 steps\n"
    )
    told = " ".join(bench.compile("--help").out.split())
    assert "what it would save at its end is not saved, and a file that it was writing may be incomplete" in told
    assert "a copy of the restart file that it overwrites" in told


def test_a_program_may_end_by_itself(bench: Bench, tmp_path: Path) -> None:
    done = bench.compile("program.py", "20")
    assert done.code == 0, done.err
    assert done.out == "the program's own output\n"
    assert done.err.endswith("The program came to its end.\n")
    assert (tmp_path / "restart.txt").read_text() == "done"


def test_what_a_program_that_fails_has_compiled_is_kept(bench: Bench) -> None:
    done = bench.compile("failing.py", "1000")
    assert done.code == 1
    assert "accel: the program ended with exit code 1; " in done.err
    assert "AssertionError: the planet froze" in done.err
    assert "of 1 function kept in" in done.err


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise")
@pytest.mark.parametrize(
    ("number", "code", "words"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_a_signal_ends_the_program_at_once(bench: Bench, tmp_path: Path, number: int, code: int, words: str) -> None:
    """Also a program that has handlers of its own, which might save an incomplete state."""
    own = tmp_path / "temporary"
    own.mkdir()
    named = PROGRAM.replace("import sys\n", f"{OWN_HANDLERS}import os, sys\n", 1)
    named = named.replace("import os, sys\n", "import os, sys\nopen('child.txt', 'w').write(str(os.getpid()))\n", 1)
    (bench.folder / "program.py").write_text(named, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "accel", "compile", "--steps", "1000000000", "program.py", "1000000"],
        cwd=bench.folder,
        env=bench.environment({"TMPDIR": str(own)}),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    with process.stderr as stderr:
        stderr.readline()
        while process.poll() is None and not list(bench.cache.rglob("*.program")):
            time.sleep(0.1)
        process.send_signal(number)
        said = stderr.read()
    assert process.wait(60) == code
    assert re.fullmatch(rf"accel: {words}; \d programs? of \d functions? were compiled until then.*\n", said)
    assert not (tmp_path / "restart.txt").exists()
    assert not list(own.glob("accel-compile-*"))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "child.txt").read_text()), 0)


FLAT = """
import numpy as np
x = np.linspace(0.0, 1.0, 40_000)
for number in range(12):
    x = np.sqrt(np.abs(np.sin(x) + 1.5)) * np.exp(-x * x)
print(x.sum())
"""


def test_the_loops_of_a_flat_script_are_chosen_and_the_next_run_begins_with_them(bench: Bench) -> None:
    (bench.folder / "flat.py").write_text(FLAT, encoding="utf-8")
    done = bench.compile("--auto", "--steps", "6", "flat.py")  # a planet is on the path
    assert done.code == 0 and "\n1 program of 1 function kept in " in done.err, done
    counted, account = bench.counted("--auto", "flat.py", report=bench.folder / "r.json", QD_JAX_AOT="0")
    assert counted["compiled"] == 0
    assert "__main__:<module>" not in {each["target"] for each in account["functions"]}
    called = [each for each in account["functions"] if each["calls"]]
    assert [each["target"] for each in called] == ["__main__:4"]
    assert called[0]["programs"][0]["found_on_disk"]


def test_slips_in_a_catalogue_are_told_of(bench: Bench) -> None:
    made = "Row('__main__', 'smoth', 'why'), Row('model', 'wram', 'why')"
    script = "import numpy as np\ndef smooth(t):\n    return t + 1.0\nsmooth(np.ones(3))\n"
    (bench.folder / "slips.py").write_text(script, encoding="utf-8")
    rows = bench.folder / "rows.py"
    rows.write_text(f"from accel.catalogue import Catalogue, Row\nCATALOGUE = Catalogue('mine', ({made}))\n")
    done = bench.compile("--catalogue", "rows.py", "slips.py")
    assert "accel: rows.py, row 1: __main__ has no smoth (did you mean smooth?)\n" in done.err
    assert "accel: rows.py, row 2: the program has not imported model\n" in done.err
    assert done.err.count("row 2") == 1


@pytest.mark.parametrize("redirected", ["", "import io, sys\nsys.stderr = io.StringIO()\n"])
def test_nothing_to_compile_is_said(bench: Bench, redirected: str) -> None:
    """Also where the program has put a stream of its own in the place of standard error."""
    (bench.folder / "idle.py").write_text(f"{redirected}print(1)\n", encoding="utf-8")
    done = bench.compile("idle.py")
    assert (done.code, done.err.partition("\n")[2]) == (
        1,
        "No accelerated function was called, and no loop ran long enough: there was nothing to compile. `accel doctor` "
        "finds functions that are worth naming by --catalogue.\n",
    )


def test_the_miniature_compiles_nothing_after_it(bench: Bench, tmp_path: Path) -> None:
    chosen = [] if LONG else ["--only", "pygcm.energy", "--only", "pygcm.ocean", "--only", "pygcm.humidity"]
    planet = {"QD_N_LAT": "31", "QD_N_LON": "61", "QD_SIM_DAYS": "0.25", "QD_PLOT": "0", "QD_OUTPUT_DIR": "."}
    target = [*chosen, "scripts.run_simulation"]
    done = bench.compile("--settled", "20", *target, **planet)
    assert done.code == 0, done.err
    assert re.search(r"need not compile anything that was seen in \d+ (steps|calls of)", done.err)
    for name in ("second", "third"):
        found, report = bench.counted(*target, report=tmp_path / f"{name}.json", **planet)
        assert found == {"compiled": 0, "workers": 0}, programs(report)
        assert programs(report), "it was long enough to use some"


# -- what cannot be used -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "environment", "line"),
    [
        ([], {}, "TARGET='' is missing; "),
        (["nope.py"], {}, "TARGET='nope.py' does not exist; "),
        (["--steps", "0", "program.py"], {}, "argument --steps: invalid whole number from 1 value: '0' "),
        (["--report", "r.html", "program.py"], {}, "--report='r.html' has an unknown suffix; "),
        (["--only", "nope", "program.py"], {}, "--only='nope' selects no function; "),
        (["program.py"], {"QD_USE_JAX": "0"}, "QD_USE_JAX=0 compiles nothing; "),
        (["program.py"], {"QD_JAX_MODE": "off"}, "QD_JAX_MODE='off' compiles nothing; "),
        (["program.py"], {"QD_JAX_CACHE_DIR": "off"}, "QD_JAX_CACHE_DIR='off' keeps nothing: the disk cache is off; "),
        (
            ["program.py"],
            {"QD_JAX_CACHE_DIR": "program.py/cache"},
            "QD_JAX_CACHE_DIR='program.py/cache' keeps nothing: it cannot be written to (Not a directory); "
            "expected: a folder that only you can write to\n",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line(bench: Bench, args: list[str], environment: dict[str, str], line: str) -> None:
    done = bench.compile("--quiet", *args, **environment)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"accel: {line}")
    assert done.err.count("\n") == 1


# -- when it is enough -------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as one number that a test moves on."""
    now = [100.0]
    monkeypatch.setattr(watch.time, "perf_counter", lambda: now[0])
    return now


def _calls(watched: NewsCounter, book: ledger.Ledger, count: int) -> list[bool]:
    answers = []
    for _ in range(count):
        book.count_numpy(0.01)
        answers.append(watched.after(book.target))
    return answers


def test_it_is_enough_after_so_many_steps_without_news(books: ModuleType, clock: list[float]) -> None:
    book, watched = books.open_ledger("m.step"), NewsCounter(settled=5)
    assert set(_calls(watched, book, 4)) == {False}
    timeline.note_event(timeline.COMPILE, "m.other")
    clock[0] += 10.0
    assert set(_calls(watched, book, 1)) == {False}
    assert set(_calls(watched, book, 4)) == {False}
    clock[0] += 10.0
    assert _calls(watched, book, 1) == [True]


def test_steps_that_pass_in_no_time_are_not_enough(books: ModuleType, clock: list[float]) -> None:
    book, watched = books.open_ledger("m.small"), NewsCounter(settled=5)
    assert set(_calls(watched, book, 500)) == {False}
    clock[0] += watch.QUIET_S
    assert _calls(watched, book, 1) == [True]


def test_refusals_and_paths_that_never_recur_are_no_news(books: ModuleType, clock: list[float]) -> None:
    book, watched = books.open_ledger("m.step"), NewsCounter(settled=5)
    for _ in range(500):
        timeline.note_event(timeline.RECORDED, "m.restless")
    _calls(watched, book, 1)
    clock[0] += 10.0
    for _ in range(4):
        timeline.note_event(timeline.RECORDED, "m.restless")
        timeline.note_event(timeline.REFUSED, "m.step")
        assert _calls(watched, book, 1) == [False]
    assert _calls(watched, book, 1) == [True]


def test_a_catalogues_step_is_waited_for(
    books: ModuleType, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    books.current_run().step = "m:step"
    monkeypatch.setitem(sys.modules, "m", ModuleType("m"))
    before, step, watched = books.open_ledger("m:before"), books.open_ledger("m:step"), NewsCounter(settled=5)
    _calls(watched, before, 100)
    clock[0] += 10.0
    assert set(_calls(watched, before, 100)) == {False}
    _calls(watched, step, 1)
    clock[0] += 10.0
    assert _calls(watched, step, 5)[-1]
    assert watched.progress().named


def test_the_step_of_another_program_is_not_waited_for(books: ModuleType, clock: list[float]) -> None:
    books.current_run().step = "another.program.step"
    books.open_ledger("another.program.step")
    assert _calls(NewsCounter(settled=5, steps=3), books.open_ledger("m.other"), 3) == [False, False, True]


def test_a_step_that_is_left_alone_is_not_waited_for(books: ModuleType, clock: list[float]) -> None:
    books.current_run().step = "m.step"
    books.open_ledger("m.step").state = ledger.State.NUMPY
    assert _calls(NewsCounter(settled=5, steps=3), books.open_ledger("m.other"), 3) == [False, False, True]


# -- messages and settings --


PROGRESS = Progress(target="m.f", named=True, calls=312, quiet=0, programs=2, functions=1)


def _after(**program: Any) -> list[str]:
    """What is told at the end of a run with two programs, of which the second one is as given."""
    kept = {"kept_bytes": 2_000_000, "unkept": None, "found_on_disk": False}
    function = {"target": "m.f", "calls": 9, "state": "compiled", "programs": [kept, {**kept, **program}]}
    return messages.after({"functions": [function]}, PROGRESS, Path("cache"), killed=True).splitlines()


def test_what_could_not_be_kept_is_named_with_the_reason() -> None:
    assert _after(kept_bytes=None, unkept="it holds a lock, which cannot be described to another process")[:3] == [
        "1 program of 1 function kept in cache, 2.0 MB.",
        "The next run need not compile anything that was seen in 312 steps, with the following exceptions.",
        "Not kept: 1 program of m.f: it holds a lock, which cannot be described to another process.",
    ]


def test_programs_of_a_shared_folder_are_counted_apart() -> None:
    told = _after(shared="/sw/programs", found_on_disk=True)
    assert told[0] == "2 programs of 1 function kept in cache, 1 of them in /sw/programs, 4.0 MB."


def test_progress_in_words() -> None:
    found = messages.progress(PROGRESS, 200, None)
    assert found == "accel: 312 steps, 2 programs of 1 function, nothing new for 0 of 200"
    assert messages.progress(PROGRESS, 200, 400) == "accel: 312 steps of 400, 2 programs of 1 function"
    nothing = PROGRESS._replace(target=None, calls=0, programs=0, functions=0)
    assert messages.progress(nothing, 200, None) == (
        "accel: no accelerated function called yet, 0 programs of 0 functions"
    )


def test_later_runs_find_more_than_one_run_may_have() -> None:
    made = settings_for_later(Settings(mode="strict", max_variants=3))
    assert (made.mode, made.ahead_of_time, made.max_variants, made.quiet) == ("auto", False, 12, True)
