"""Whole processes: how they are started, cut to size, timed and judged. No figure is judged here."""

from __future__ import annotations

import argparse
import json
import math
import sys
from array import array
from pathlib import Path

import pytest

from accel.entry.lift.between import iterations_of
from benchmarks import cases, harness, started, starts
from benchmarks.bars import bar_class
from benchmarks.cases import CASES, Run, Start
from benchmarks.harness import BadInput
from benchmarks.lockstep import ChildFailed


def a_run(wall_s: float, exit_s: float = 0.1, steps: int = 4, total: float | None = None) -> Run:
    return Run(wall_s, exit_s, wall_s, 1000 * steps, array("d", [0.25] * steps), total, "accel: said so")


def result_of(tmp_path: Path, *arguments: object) -> dict:
    """Run the command with NumPy for a rival, unless told otherwise, and return its JSON."""
    out = tmp_path / "result.json"
    starts.main(["--candidate", "numpy", "--rounds", "1", "--out", str(out), *map(str, arguments)])
    return json.loads(out.read_text())


# -- the command -------------------------------------------------------------------------------------------------------


def test_every_rival_does_as_many_steps_as_numpy_did_in_the_time(toy, tmp_path, capsys):
    result = result_of(tmp_path, "--pygcm", toy, "--cases", "old", "--seconds", 0.05)
    cold, warm = result["rows"]
    assert (cold["cache"], warm["cache"]) == ("cold", "warm")
    for row in (cold, warm):
        runs = [*row["runs"]["numpy"], *row["runs"][row["cache"]]]
        assert [run["steps"] for run in runs] == [row["steps"]] * 2
        assert row["numpy_s"] == runs[0]["steps_s"] >= 0.05
        assert row["ratio"] == pytest.approx(row["accel_wall_s"] / row["numpy_wall_s"])
        assert 0.0 < row["exit_s"] < row["accel_wall_s"]
    assert {"machine", "versions", "commit", "settings", "goals"} <= result.keys()
    assert len(result["goals"]) == 6
    shown = capsys.readouterr().out
    assert "| old  | cold  |" in shown
    assert f"commit {result['commit'] or 'unknown'}" in shown


def test_the_checkout_stays_clean(toy, tmp_path):
    before = sorted(toy.rglob("*"))
    result_of(tmp_path, "--pygcm", toy, "--cases", "old", "--seconds", 0.01)
    assert sorted(toy.rglob("*")) == before


def test_a_model_without_a_checkout_is_skipped_with_a_word(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("QD_PYGCM_PATH", raising=False)
    assert starts.main(["--candidate", "numpy", "--cases", "old", "new-energy"]) == 1
    said = capsys.readouterr().out
    assert "- old: skipped, needs a checkout of PyGCM 1742bf9: --pygcm DIR, or QD_PYGCM_PATH" in said
    assert "- new-energy: skipped" in said
    assert "0 of 0 limits met" in said


def test_a_child_that_fails_is_quoted_and_the_others_go_on(toy, tmp_path, capsys):
    arguments = ["--pygcm", toy, "--cases", "old", "old-energy", "--seconds", 0.01, "--env", "TOY_FAIL_AT=1"]
    result = result_of(tmp_path, *arguments)
    assert "ArithmeticError: the toy broke" in capsys.readouterr().err
    assert result["failed"] == ["old", "old-energy"]


def test_quick_is_one_short_run_of_each(toy, tmp_path, capsys):
    result = result_of(tmp_path, "--pygcm", toy, "--cases", "old", "--quick", "--cache", "cold")
    assert [(row["seconds"], row["cache"], len(row["runs"]["cold"])) for row in result["rows"]] == [(0.5, "cold", 1)]
    assert "the figures mean nothing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--cases", "mars"], "--cases mars: no such case; there are old, old-energy, new, "),
        (["--pygcm", "/nowhere"], "--pygcm /nowhere: no folder 'pygcm' there"),
        (["--env", "QD_SEED"], "--env 'QD_SEED': expected NAME=VALUE"),
        (["--out", "/nowhere/x.json"], "--out /nowhere/x.json: its folder does not exist"),
    ],
)
def test_bad_input_is_named(arguments, text):
    with pytest.raises(BadInput, match=text):
        starts.main(arguments)


# -- turns -------------------------------------------------------------------------------------------------------------


def test_rivals_take_turns_and_what_fills_a_cache_comes_before_what_uses_it():
    seen = []

    def rival(name):
        def run(round_, steps, seconds):
            seen.append((name, round_, steps, seconds))
            return a_run(1.0, steps=steps or 7)

        return run

    runs = starts.in_turns({name: rival(name) for name in ("numpy", "cold", "warm")}, 3.0, rounds=3)
    assert [name for name, *_ in seen] == "numpy cold warm cold warm numpy numpy cold warm".split()
    assert seen[0] == ("numpy", 0, None, 3.0)
    assert all((steps, seconds) == (7, None) for _, _, steps, seconds in seen[1:])
    assert {name: len(found) for name, found in runs.items()} == {"numpy": 3, "cold": 3, "warm": 3}


def test_each_round_has_a_cache_folder_of_its_own_which_cold_and_warm_share(tmp_path):
    used = []

    class Noted:
        def run(self, way, folder, cache, steps, seconds):
            used.append((way, folder.name, cache.name))

    options = argparse.Namespace(candidate="accel", cache=["cold", "warm"])
    rivals = starts.turns(Noted(), options, tmp_path)  # type: ignore[arg-type]
    for round_ in range(2):
        for rival in rivals.values():
            rival(round_, 1, None)
    assert used[1:3] == [("accel", "cold-0", "cache-0"), ("accel", "warm-0", "cache-0")]
    assert used[4:] == [("accel", "cold-1", "cache-1"), ("accel", "warm-1", "cache-1")]
    assert [way for way, *_ in used] == ["numpy", "accel", "accel"] * 2
    options.cache = ["cold"]
    assert list(starts.turns(Noted(), options, tmp_path)) == ["numpy", "cold"]  # type: ignore[arg-type]


# -- verdicts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "seconds", "numpy_wall_s", "limit_s"),
    [
        ("old", 1.0, 2.0, 1.15 * 2.0 + 2.0),
        ("old", 100.0, 101.0, 0.6 * 101.0),
        ("old-energy", 100.0, 101.0, 1.15 * 101.0 + 2.0),
        ("miniature", 100.0, 101.0, 1.15 * 101.0 + 2.0),
    ],
)
def test_what_a_start_may_cost(case, seconds, numpy_wall_s, limit_s):
    assert starts.allowed(CASES[case], seconds, numpy_wall_s) == pytest.approx(limit_s)


@pytest.mark.parametrize(
    ("wall_s", "exit_s", "total", "missed"),
    [
        (4.3, 0.5, 1.0, []),
        (4.4, 0.5, 1.0, ["wall time (new-paths, 1 s, warm)"]),
        (4.0, 0.7, 1.0, ["exit (new-paths, 1 s, warm)"]),
        (4.0, 0.1, 1.1, ["difference of the totals (new-paths, 1 s, warm)"]),
        (4.0, 0.1, math.nan, ["difference of the totals (new-paths, 1 s, warm)"]),
        (4.0, 0.1, None, ["difference of the totals (new-paths, 1 s, warm)"]),
    ],
)
def test_a_row_is_judged_by_wall_time_exit_and_total(wall_s, exit_s, total, missed):
    case = CASES["new-paths"]
    row = starts.compared(case, 1.0, "warm", [a_run(2.0, total=1.0)], [a_run(wall_s, exit_s, total=total)])
    assert [goal.name for goal in starts.limits(case, row) if not goal.met] == missed
    assert starts.cells(row)[7] == ("MISSED" if wall_s > 4.3 else "met")
    assert starts.cells(row)[10] == ("MISSED" if exit_s > 0.6 else "met")


def test_nothing_measured_is_nothing_met():
    met, missed = {"met": True, "name": "exit"}, {"met": False, "name": "exit"}
    assert starts.all_met({"goals": [met], "failed": []})
    assert not starts.all_met({"goals": [met, missed], "failed": []})
    for is_good in (starts.all_met, starts.is_right):
        assert not is_good({"goals": [met], "failed": ["old"]})
        assert not is_good({"goals": [], "failed": []})


# -- a child -----------------------------------------------------------------------------------------------------------


def test_the_first_bar_of_the_program_counts_and_takes_its_plots_away(monkeypatch):
    made = bar_class("__main__", started.Steps().through, 2, started.silence_plots)
    names = {"bar": made, "plot_all": print, "plots": 3, "__name__": "library"}
    exec("other = list(bar(range(5)))", names)
    assert names["other"] == [0, 1, 2, 3, 4]
    names["__name__"] = "__main__"
    exec("bar = (first := bar(range(5))), list(type(first)('abc')); first.set_description('x')", names)
    bar, later = names["bar"]
    assert iterations_of(bar) == iterations_of(enumerate(iter(bar))) == 2  # as of a bar of tqdm's own
    assert (list(bar), later) == ([0, 1], ["a", "b", "c"])
    assert names["plot_all"] is started.nothing
    assert names["plots"] == 3


def test_programs_are_started_as_users_start_them():
    parsed = started.parser().parse_args
    model = ["--module", "scripts.run_simulation", "--folder", "there"]
    assert started.command(parsed(["--way", "numpy", *model])) == ["scripts.run_simulation"]
    assert started.command(parsed(["--way", "accel", *model])) == [
        "accel.run", "--pygcm", "there", "scripts.run_simulation",
    ]  # fmt: skip
    assert started.command(parsed(["--way", "accel", "--module", "mine"])) == ["mine", "accel"]


def test_a_run_is_more_than_its_steps_and_its_exit(tmp_path):
    run = Start(CASES["new-paths"], {}).run("numpy", tmp_path / "a", tmp_path / "cache", steps=5)
    assert len(run.times) == 5
    assert run.wall_s > run.steps_s + run.exit_s > 0.0
    assert run.cpu_s > 0.0
    assert run.record()["steps"] == 5
    again = Start(CASES["new-paths"], {}).run("numpy", tmp_path / "b", tmp_path / "cache", steps=5)
    assert run.total == again.total
    assert run.total is not None


@pytest.mark.parametrize("name", ["small-grids", "new-paths", "miniature"])
def test_a_program_starts_under_accel_and_computes_the_same(name, tmp_path):
    pytest.importorskip("accel.dispatch")
    start = Start(CASES[name], {"miniature": harness.MINIATURE}, {"QD_N_LAT": "19", "QD_N_LON": "36"})
    plain, fast = (start.run(way, tmp_path / way, tmp_path / "cache", steps=2) for way in ("numpy", "accel"))
    assert len(plain.times) == len(fast.times) == 2
    assert starts.total_error(plain, fast) <= starts.AGREEMENT
    assert name != "miniature" or fast.said.startswith("accel: ")


def test_a_child_of_another_tree_is_refused(tmp_path):
    (tmp_path / started.SUMMARY).write_text(json.dumps({"accel": "/elsewhere/accel/__init__.py"}))
    with pytest.raises(ChildFailed, match="the accel child had imported accel from /elsewhere/accel"):
        cases.check_tree(tmp_path, "accel", harness.REPOSITORY)
    with pytest.raises(ChildFailed, match="the numpy child had imported accel from /elsewhere/accel"):
        cases.check_tree(tmp_path, "numpy", harness.REPOSITORY)


def test_a_child_that_hangs_is_killed(tmp_path):
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(ChildFailed, match="ended with exit code -9"):
        cases.timed(command, tmp_path, {}, limit_s=0.05)


# -- the programs ------------------------------------------------------------------------------------------------------
