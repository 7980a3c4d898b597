"""Runs that are left alone: those that are too short for accel to gain anything, or in which it gained nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel.platform import config, project
from accel.platform.ledger import current_run
from accel.tools.cli import lengths
from accel.tools.cli.commandline import parse
from accel.tools.cli.lengths import PAYS_FACTOR, History, Length
from accel.tools.cli.program import enter
from tests.tools.cli.bench import Bench

SHORT = """
import atexit, sys
import numpy as np

atexit.register(lambda: print(sorted({"jax", "wrapt", "accel.dispatch"} & set(sys.modules))))
print(float(np.ones(3).sum()), sys.argv[1:])
"""
ALONE = "accel: left to NumPy: this program takes "


@pytest.fixture
def kept(bench: Bench, tmp_path: Path) -> dict[str, str]:
    (bench.work / "short.py").write_text(SHORT, encoding="utf-8")
    return {"QD_JAX_CACHE_DIR": str(tmp_path)}


def test_the_second_run_of_a_short_program_imports_nothing_heavy(bench: Bench, kept: dict[str, str]) -> None:
    first, second = (bench.accel("short.py", "-x", env=kept) for _ in range(2))
    assert first.out == "3.0 ['-x']\n['accel.dispatch', 'wrapt']\n", first.err
    assert second.out == "3.0 ['-x']\n[]\n", second.err
    assert second.err.startswith(ALONE) and second.err.count("\n") == 1 and second.code == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc keeps freed memory")
@pytest.mark.parametrize("tune", [True, False])
def test_a_run_that_is_left_alone_keeps_freed_memory(tune: bool, bench: Bench, kept: dict[str, str]) -> None:
    program = "import numpy, sys\nprint(sys.modules['accel.platform.tuning'].keeps_freed())\n"
    (bench.work / "short.py").write_text(program, encoding="utf-8")
    env = kept if tune else kept | {"QD_JAX_TUNE": "0"}
    first, second = (bench.accel("short.py", env=env) for _ in range(2))
    assert first.out == "False\n" and second.err.startswith(ALONE)
    assert second.out == f"{tune}\n"


@pytest.mark.parametrize("other", ["arguments", "variable", "source", "report", "policy", "quiet"])
def test_what_may_be_another_run_is_not_left_alone(bench: Bench, kept: dict[str, str], other: str) -> None:
    bench.accel("short.py", "-x", env=kept)
    words, env = ["short.py", "-x"], dict(kept)
    if other == "arguments":
        words = ["short.py", "-y"]
    elif other == "variable":
        env["STEPS"] = "1000"
    elif other == "source":
        with (bench.work / "short.py").open("a", encoding="utf-8") as file:
            file.write("# longer now\n")
    elif other == "report":
        words = ["--report", "-", *words]
    elif other == "policy":
        env["QD_JAX_POLICY"] = "eager"
    done = bench.accel(*(["--quiet"] if other == "quiet" else []), *words, env=env)
    assert ALONE not in done.err
    assert done.out.endswith("[]\n" if other == "quiet" else "['accel.dispatch', 'wrapt']\n"), "it is quiet, and alone"


def test_errors_and_exit_codes_of_a_run_that_is_left_alone_are_pythons(bench: Bench, kept: dict[str, str]) -> None:
    program = "import os, numpy\ndef f():\n    1 / 0\nif not os.path.exists('data'):\n    f()\n"
    (bench.work / "ends.py").write_text(program, encoding="utf-8")
    plain = bench.python("ends.py")
    (bench.work / "data").touch()
    bench.accel("ends.py", env=kept)
    (bench.work / "data").unlink()
    done = bench.accel("ends.py", env=kept)
    traceback, _, last = done.err.rstrip().rpartition("\n")
    assert (done.code, traceback) == (plain.code, plain.err.rstrip()) and last.startswith(ALONE)


@pytest.mark.parametrize("ending", ["raise KeyboardInterrupt", "open('missing')", "sys.exit('no data')"])
def test_a_run_that_was_broken_off_says_nothing_of_the_next_one(
    bench: Bench, kept: dict[str, str], tmp_path: Path, ending: str
) -> None:
    data = tmp_path / "data"
    program = f"import os, sys, numpy\nif not os.path.exists({str(data)!r}):\n    {ending}\n"
    (bench.work / "ends.py").write_text(program, encoding="utf-8")
    for _ in range(2):
        assert ALONE not in bench.accel("ends.py", env=kept).err
    assert not (tmp_path / lengths.NAME).exists()
    data.touch()
    bench.accel("ends.py", env=kept)
    assert (tmp_path / lengths.NAME).exists()


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("streams", ["1>&-", "2>&-", "1>/dev/full 2>/dev/full"])
def test_closed_and_full_streams_are_no_error_of_a_run_that_is_left_alone(
    bench: Bench, kept: dict[str, str], tmp_path: Path, streams: str
) -> None:
    log = tmp_path / "log"
    # what an atexit function raises is told to this hook, whatever the streams are
    (bench.work / "quick.py").write_text(f"""
import pathlib, sys, numpy
log = pathlib.Path({str(log)!r})
log.touch()
sys.unraisablehook = lambda about: log.write_text(repr(about.exc_value))
""")
    assert ALONE not in bench.accel("quick.py", env=kept).err
    log.unlink()
    started = f"exec {sys.executable} -m accel.run quick.py {streams}"
    subprocess.run(["sh", "-c", started], cwd=bench.work, env=bench.environment(kept), timeout=300, check=False)
    assert log.read_text() == "", "it ran, and nothing was raised at its end"
    assert ALONE in bench.accel("quick.py", env=kept).err


@pytest.mark.parametrize(
    ("length", "alone"),
    [
        (Length(0.1), True),
        (Length(100.0), False),
        (Length(100.0, lost_s=1.0), True),
        (Length(100.0, lost_s=1.0, alone_s=1.01 * PAYS_FACTOR), False),
        (Length(0.1, lost_s=1.0, alone_s=100.0), True),
    ],
)
def test_a_run_is_left_alone_if_it_is_short_or_accel_has_lost(length: Length, alone: bool) -> None:
    assert length.is_left_alone == alone


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], History]:
    monkeypatch.setenv("QD_JAX_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(project, "_home", None)  # `parse` sets it, and `enter` the path's first entry
    monkeypatch.setattr(sys, "path", [*sys.path])
    config.set_current(None)
    (tmp_path / "program.py").write_text("")
    plan = parse([str(tmp_path / "program.py")])
    assert lengths.counts(plan)
    return lambda: History(plan, enter(plan.command))


def _figures(
    net: str, saved_s: float, programs: list[dict[str, Any]], *, busy: bool = False, costs_s: float = 15.0
) -> dict[str, Any]:
    function = {
        "target": "script:<module>:3",
        "programs": programs,
        "numpy_s": 50.0,
        "compiled_s": 1.0,
        "gained_s": 5.0,
        "unsampled_calls": 0,
        "costs_s": {"recording": 1.0},
        "reasons": [{"id": "wait.calls"}],
    }
    costs = {"costs_s": {"recording": costs_s - 1.0, "guards": 1.0}, "freed_range_s": [0.0, 2.0]}
    costs |= {"numpy_range_s": None if net == "unknown" else [99.0 + saved_s, 101.0 + saved_s]}
    return {
        "wall_s": 100.0,
        "finishing": 0,
        "totals": {"saved_s": saved_s, "freed_s": 0.0, "net": net, "stretch": 3.0 if busy else 1.0, **costs},
        "functions": [function],
    }


def _spend(monkeypatch: pytest.MonkeyPatch, seconds: float, in_children: float = 0.0) -> None:
    monkeypatch.setattr(os, "times", lambda: os.times_result((seconds, 0.0, in_children, 0.0, 0.0)))


@pytest.mark.parametrize(
    ("net", "found", "lost"), [("lost", True, True), ("unknown", True, False), ("gained", True, False)]
)
def test_a_loss_counts(
    net: str, found: bool, lost: bool, made: Callable[[], History], monkeypatch: pytest.MonkeyPatch
) -> None:
    _spend(monkeypatch, 100.0)
    saved_s = 10.0 if net == "gained" else -10.0
    made().note_accelerated(_figures(net, saved_s, [{"state": "in use", "found_on_disk": found}]))
    last = made().last
    assert last is not None and (last.numpy_s, last.lost_s) == (100.0 + saved_s, 10.0 if lost else 0.0)
    assert (last.gain_s > 0.0) == (not lost and net != "unknown")


def test_programs_that_lose_what_kept_memory_gains_are_a_loss(
    made: Callable[[], History], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run keeps freed memory without them."""
    _spend(monkeypatch, 100.0)
    figures = _figures("gained", 10.0, [{"state": "in use", "found_on_disk": True}])
    figures["totals"]["freed_s"] = 30.0
    made().note_accelerated(figures)
    last = made().last
    assert last is not None and (last.numpy_s, last.lost_s, last.gain_s) == (110.0, 20.0, 0.0) and last.is_left_alone


@pytest.mark.parametrize(
    ("costs_s", "unsampled", "lost_s"),
    [(8.1, 0, 10.0), (7.9, 0, 0.0), (8.1, 1, 0.0)],  # of 1 s compiled, 5 s gained, 2 s by freed memory
)
def test_on_a_busy_machine_costs_above_all_that_compiled_calls_take_on_numpy_are_a_loss(
    costs_s: float, unsampled: int, lost_s: float, made: Callable[[], History], monkeypatch: pytest.MonkeyPatch
) -> None:
    _spend(monkeypatch, 100.0)
    programs = [{"state": "in use", "found_on_disk": True}]
    figures = _figures("unknown", -10.0, programs, busy=True, costs_s=costs_s)
    figures["functions"][0]["unsampled_calls"] = unsampled
    made().note_accelerated(figures)
    last = made().last
    assert last is not None and last.lost_s == lost_s


def test_a_loss_counts_although_the_next_run_may_find_more_and_hope_ends_with_the_second(
    made: Callable[[], History], monkeypatch: pytest.MonkeyPatch
) -> None:
    _spend(monkeypatch, 100.0)
    for run, (hopes, gain) in enumerate([(True, True), (False, False)]):
        made().note_accelerated(_figures("lost", -20.0, [{"state": "in use", "found_on_disk": False}]))
        last = made().last
        assert last is not None and last.lost_s == 20.0 * (run + 1)
        assert last.is_left_alone is not hopes
        assert (last.gain_s > 0.0) is gain


@pytest.mark.parametrize(
    ("recorded_s", "reasons", "hopes"),
    [(1.0, ["wait.calls", "value.forced"], True), (1.0, ["value.forced"], False), (0.0, ["wait.calls"], False)],
)
def test_recordings_that_a_later_run_finds_are_a_hope(
    recorded_s: float, reasons: list[str], hopes: bool, made: Callable[[], History], monkeypatch: pytest.MonkeyPatch
) -> None:
    _spend(monkeypatch, 100.0)
    figures = _figures("lost", -20.0, [])
    figures["functions"][0] |= {"costs_s": {"recording": recorded_s}, "reasons": [{"id": each} for each in reasons]}
    made().note_accelerated(figures)
    last = made().last
    assert last is not None and last.is_left_alone is not hopes


def test_a_program_of_a_loop_is_hoped_to_answer_all_calls_inside(
    made: Callable[[], History], monkeypatch: pytest.MonkeyPatch
) -> None:
    _spend(monkeypatch, 100.0)
    figures = _figures("lost", -20.0, [{"state": "in use", "found_on_disk": False}])
    inside = {**figures["functions"][0], "target": "inside", "programs": []}
    figures["functions"][0]["numpy_s"] = 5.0
    figures["functions"].append({**inside, "costs_s": {}, "reasons": []})
    for loops, hopes in (([], False), (["script:<module>:3"], True)):
        monkeypatch.setattr(current_run(), "loops", loops)
        lengths.forget()
        made().note_accelerated(figures)
        last = made().last
        assert last is not None and last.is_left_alone is not hopes


@pytest.mark.parametrize("content", ["", "[]", "{", '{"KEY": 3}', '{"KEY": ["x"]}', '{"KEY": [1, 2, 3, 4, 5, 6, 7]}'])
def test_a_damaged_file_says_nothing(content: str, made: Callable[[], History], tmp_path: Path) -> None:
    made().note_alone()
    place = tmp_path / lengths.NAME
    (key,) = json.loads(place.read_bytes())
    place.write_text(content.replace("KEY", key))
    again = made()
    assert again.last is None
    again.note_alone()
    assert made().last is not None


def test_the_time_of_children_counts_in_runs_of_both_kinds(
    made: Callable[[], History], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or each run on NumPy of a program that leaves its work to a pool would seem slower than one under accel."""
    _spend(monkeypatch, 1.0, 99.0)
    made().note_accelerated(_figures("lost", -20.0, [{"state": "in use", "found_on_disk": True}]))
    assert "earlier runs gained nothing" in made().note_alone()
    last = made().last
    assert last is not None and last.accel_s == last.numpy_s == 100.0


@pytest.mark.parametrize(("numpy_s", "refuted"), [(110.0, True), (90.0, False)])
def test_a_loss_is_refuted_by_a_longer_run_on_numpy(
    numpy_s: float, refuted: bool, made: Callable[[], History], monkeypatch: pytest.MonkeyPatch
) -> None:
    _spend(monkeypatch, 100.0)
    made().note_accelerated(_figures("lost", -20.0, [{"state": "in use", "found_on_disk": True}]))
    _spend(monkeypatch, numpy_s)
    assert ("with accel 100.0 s" in made().note_alone()) is refuted
    last = made().last
    assert last is not None and last.is_left_alone is not refuted
    assert last.gain_s == (10.0 if refuted else 0.0)


def test_a_hope_ends_with_a_run_that_has_spent_it_in_vain(
    made: Callable[[], History], monkeypatch: pytest.MonkeyPatch
) -> None:
    _spend(monkeypatch, 100.0)
    for net, hopes in (("unknown", True), ("lost", False)):
        made().note_accelerated(_figures(net, -5.0, [{"state": "in use", "found_on_disk": False}]))
        last = made().last
        assert last is not None and last.is_left_alone is not hopes
        assert last.gain_s == (lengths.HOPED_S if hopes else 0.0), "what is hoped for is no gain yet"


def test_accel_compile_has_the_next_run_accelerated(made: Callable[[], History]) -> None:
    made().note_alone()
    before = made().last
    assert before is not None
    made().note_alone(whole=False)
    assert made().last == before
    lengths.forget()
    assert made().last is None
    lengths.forget()
