"""The report: its schema, its arithmetic, and that people can read it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import accel
from accel.platform import config
from accel.platform.ledger import COSTS, Difference, Ledger, RunLedger, State
from accel.platform.reasons import REASONS, Refusal
from accel.reports import markdown, summary
from accel.reports.advice import IN_SHELL
from accel.reports.figures import figures_of_run
from accel.reports.text import text

FUNCTION_KEYS = [
    *("target", "state", "calls", "compiled_calls", "numpy_calls", "inlined_calls", "variants"),
    *("compile_s", "numpy_ms", "compiled_ms", "per_call_speedup", "speedup", "max_rel_error", "numpy_s", "compiled_s"),
    *("gained_s", "spread_s", "unsampled_calls", "samples", "costs_s", "saved_s", "checks", "copying_s"),
    *("transfers", "differences", "doubtful_since", "programs", "reasons"),
]
NUMBER = (int, float)


@pytest.fixture(autouse=True)
def ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run has taken ten seconds."""
    monkeypatch.setattr(RunLedger, "wall_s", 10.0)


@pytest.fixture
def fast(books: ModuleType) -> Ledger:
    """A target with two NumPy calls of 8 ms and 212 compiled ones of 1 ms."""
    book: Ledger = books.open_ledger("pygcm.dynamics.SpectralModel.time_step")
    book.variants, book.compile_s = 2, 3.5
    for _ in range(2):
        book.count_numpy(0.008)
    for _ in range(212):
        book.count_compiled(0.001, 0.007)
    book.compared(3e-13)
    return book


@pytest.fixture
def slow(books: ModuleType) -> Ledger:
    """A target that stayed on NumPy for two reasons, the second one more often."""
    book: Ledger = books.open_ledger("pygcm.ocean.WindDrivenSlabOcean.step")
    book.count_numpy(0.016)
    book.refuse(Refusal("effect.file", "pygcm/ocean.py:9"))
    for _ in range(25):
        book.count_numpy(0.016)
        book.refuse(Refusal("effect.print", "pygcm/ocean.py:371"))
    return book


def _json() -> dict[str, Any]:
    account: dict[str, Any] = json.loads(accel.report("json"))
    return account


def test_the_schema(fast: Ledger, slow: Ledger, books: ModuleType) -> None:
    books.open_ledger("pygcm.routing.RiverRouting.step").state = State.ABSENT
    account = _json()
    assert account["schema"] == 2
    keys = "schema versions platform device mode beforehand finishing precision wall_s steps functions totals notes"
    assert set(keys.split()) == set(account)
    assert {"python", "numpy", "scipy", "jax", "jaxlib"} <= set(account["versions"])
    assert isinstance(account["wall_s"], float)
    assert [each["target"] for each in account["functions"]] == sorted(each["target"] for each in account["functions"])
    for each in account["functions"]:
        assert list(each) == FUNCTION_KEYS
        assert each["state"] in set(State)
        assert all(isinstance(each[key], int) for key in ("calls", "compiled_calls", "numpy_calls", "variants"))
        for key in ("numpy_ms", "compiled_ms", "per_call_speedup", "speedup", "max_rel_error"):
            assert each[key] is None or isinstance(each[key], NUMBER)
        for reason in each["reasons"]:
            assert list(reason) == ["id", "where", "why", "hint", "count"]
            assert reason["id"] in REASONS


def test_medians_and_speedup(fast: Ledger) -> None:
    (function,) = _json()["functions"]
    assert function["numpy_ms"] == pytest.approx(8.0)
    assert function["compiled_ms"] == pytest.approx(1.0)
    assert function["per_call_speedup"] == pytest.approx(8.0)
    assert function["speedup"] == pytest.approx((214 * 0.008) / (2 * 0.008 + 212 * 0.001))
    assert function["max_rel_error"] == 3e-13


def test_totals(fast: Ledger, slow: Ledger) -> None:
    totals = _json()["totals"]
    assert (totals["calls"], totals["compiled_calls"], totals["numpy_calls"]) == (240, 212, 28)
    assert totals["gained_s"] == totals["saved_s"] == pytest.approx(212 * 0.007)
    assert totals["net"] == "gained"
    assert totals["estimated_numpy_s"] == pytest.approx(10.0 + 212 * 0.007)
    assert totals["speedup"] == pytest.approx(1.0 + 212 * 0.0007)
    assert totals["compile_s"] == 3.5
    assert totals["states"] == {"compiled": 1, "numpy": 1, "demoted": 0, "inlined": 0, "absent": 0, "uncalled": 0}


def test_the_totals_say_where_the_time_went(fast: Ledger, slow: Ledger) -> None:
    fast.count_compared(0.012, 0.008)
    fast.charge("recording", 0.5)
    fast.copy_s.append(0.0001)
    totals = _json()["totals"]
    assert totals["numpy_s"] == pytest.approx(3 * 0.008 + 26 * 0.016)
    assert totals["compiled_s"] == pytest.approx(0.212)
    assert totals["checks"] == 1
    assert totals["costs_s"] == pytest.approx({"recording": 0.5, "comparing": 0.004})
    assert totals["saved_s"] == pytest.approx(1.484 - 0.504)
    assert totals["copying_s"] == pytest.approx(213 * 0.0001)
    words = " ".join(accel.report(full=True).split())
    assert (
        "account: compiled calls took 1.5 s less than NumPy's would have; that cost 0.504 s: recording calls 0.500 s, "
        "comparing with NumPy 0.004 s; in all +0.980 s (estimates); 1 comparison with NumPy"
    ) in words
    assert "0.212 s in compiled calls, 0.440 s in the same functions on NumPy, 3.5 s compiling" in words
    assert "0.021 s of the compiled calls copying to the device and back (estimated from samples)" in words


def test_steps_where_a_catalogue_says_what_they_are(fast: Ledger, slow: Ledger, books: ModuleType) -> None:
    assert _json()["steps"] is None
    books.current_run().step = fast.target
    assert _json()["steps"] == {"total": 214, "compiled": 212}
    assert ". 99 % of steps compiled, " in summary.summary_line()
    books.current_run().step = "never.called"
    assert _json()["steps"] is None


def test_steps_of_a_lifted_loop_are_compiled_as_one_program_or_in_parts(fast: Ledger, books: ModuleType) -> None:
    loop: Ledger = books.open_ledger("script:main:10")
    books.current_run().step, books.current_run().loops = fast.target, ["script:main:10"]
    for _ in range(100):
        loop.count_compiled(0.01, 0.0)
    for _ in range(400):
        loop.count_numpy(0.01, 0.01)
    assert _json()["steps"] == {"total": 500, "compiled": 312}


def test_differences_are_reported_with_their_verdict(fast: Ledger) -> None:
    for error in (1e-7, 3e-7):
        fast.differ(Difference("self.u", "[1, 2]", "NumPy 1.0, replay 1.1", error, 4), "near a threshold")
    (found,) = _json()["functions"][0]["differences"]
    assert found == {
        "field": "self.u[1, 2]",
        "what": "NumPy 1.0, replay 1.1",
        "error": 3e-7,
        "points": 4,
        "verdict": "near a threshold",
        "count": 2,
    }
    text = accel.report(full=True)
    assert "SpectralModel.time_step (2)\n    where  self.u[1, 2]: NumPy 1.0, replay 1.1\n    what   near a thr" in text
    assert "| self.u[1, 2] | NumPy 1.0, replay 1.1 | 3e-07 | near a threshold |" in accel.report("markdown")


def _program(outcomes: list[str]) -> dict[str, Any]:
    about = {"state": "in use", "replays": 5, "operations": 70, "compile_s": 1.0, "inputs": 9}
    return {**about, "outcomes": outcomes, "apart": ""}


def test_several_programs_of_a_function_are_told_apart(fast: Ledger) -> None:
    fast.describe = lambda: [_program(["line 3: True", "line 9: 1"]), _program(["line 3: True", "line 9: 2"])]
    text = accel.report(full=True)
    assert "time_step, 2 programs\n    5 calls, 70 operations (in use): line 9: 1\n" in text
    fast.describe = lambda: [_program([]), _program([]) | {"apart": "together they are slower"}]
    text = " ".join(accel.report(full=True).split())
    assert "(in use): types, shapes and identities of its inputs 5 calls" in text
    assert "identities of its inputs; it stays apart, as together they are slower" in text


def test_where_programs_were_found_is_told(fast: Ledger) -> None:
    assert "programs: " not in accel.report(full=True)
    found = _program([]) | {"found_on_disk": True}
    fast.describe = lambda: [_program([]), found, found | {"shared": "/sw/programs"}]
    assert "programs: 3, 2 found on disk, 1 of them in /sw/programs\n" in accel.report(full=True)
    assert " s compiling " in " ".join(accel.report(full=True).split())
    fast.describe = lambda: [found]
    assert " s loading programs, of which all were on disk " in " ".join(accel.report(full=True).split())


def test_programs_that_are_given_up_or_not_kept_are_counted_apart(fast: Ledger) -> None:
    kept, unkept = ({"found_on_disk": False, "kept_bytes": size} for size in (900, None))
    given_up = _program([]) | kept | {"state": "given up"}
    fast.describe = lambda: [_program([]) | kept, given_up, _program([]) | unkept]
    text = " ".join(accel.report(full=True).split())
    assert "programs: 3, 0 found on disk; 1 given up: NumPy answers their calls; 1 not kept on disk for the " in text
    fast.describe = lambda: [_program([]) | kept]
    assert "programs: 1, 0 found on disk\n" in accel.report(full=True)


def test_the_figures_of_a_demoted_function_say_what_they_are(fast: Ledger, slow: Ledger) -> None:
    said = "accel ms: of calls that were compiled, by any of its programs, before it was taken back;"
    assert "before it was taken back" not in " ".join(accel.report(full=True).split())
    fast.demote(Refusal("speed.slower", "", "9 ms compiled, 8 ms on NumPy"))
    demoted = " ".join(accel.report(full=True).partition("demoted to NumPy (1)\n")[2].split())
    assert said in demoted and "(9 ms compiled, 8 ms on NumPy)" in demoted


def test_a_program_of_several_paths_says_where_they_part(fast: Ledger) -> None:
    branches = [{"line": 9, "sides": {"True": 3, "False": 2}}]
    fast.describe = lambda: [_program(["line 3: True"]) | {"paths": 2, "branches": branches}]
    text = accel.report(full=True)
    assert "time_step, 1 program\n" in text
    assert "    5 calls, 70 operations of 2 paths (in use): line 9: True 3 times, False 2 times\n" in text
    fast.describe = lambda: [_program([f"line 3: {number}" for number in range(30)]), _program(["line 3: 99"])]
    assert "line 3: 7 and 22 more" in " ".join(accel.report(full=True).split())


def test_reasons_come_most_frequent_first(slow: Ledger) -> None:
    (function,) = _json()["functions"]
    assert [(each["id"], each["where"], each["count"]) for each in function["reasons"]] == [
        ("effect.print", "pygcm/ocean.py:371", 25),
        ("effect.file", "pygcm/ocean.py:9", 1),
    ]


def test_numbers_that_json_lacks_are_words(fast: Ledger) -> None:
    fast.compared(float("nan"))
    assert _json()["functions"][0]["max_rel_error"] == "inf"


def test_nothing_called_is_no_error(books: ModuleType) -> None:
    assert _json()["functions"] == []
    assert "no accelerated function was called" in accel.report(full=True)
    assert "no accelerated function was called" in accel.report("markdown")


def test_the_summary_line(fast: Ledger, slow: Ledger) -> None:
    assert summary.summary_line() == (
        "accel: 10.0 s, NumPy would have taken 11 to 12 s (about 1.1x). 88 % of calls compiled, error 3e-13.\n"
        "accel: Details: accel.report()"
    )


def test_a_range_says_how_sure_the_estimate_is(fast: Ledger, books: ModuleType) -> None:
    fast.spread_s = 1.0
    assert "NumPy would have taken 10 to 13 s (about 1.1x)" in summary.summary_line()
    assert _json()["totals"]["numpy_range_s"] == pytest.approx([10.484, 12.484])
    books.current_run().charge("loading", 0.4)  # a quarter as much may have gone unseen
    assert _json()["totals"]["numpy_range_s"] == pytest.approx([9.984, 12.084])


@pytest.mark.parametrize("why", ["few samples", "few samples of long calls", "busy"])
def test_no_sign_is_given_where_nobody_can_tell(why: str, fast: Ledger, books: ModuleType) -> None:
    run = books.current_run()
    if why == "busy":
        run.fair_s(9.0, 1.0)
    elif why == "few samples of long calls":
        loop = books.open_ledger("loop")
        for _ in range(3):
            loop.count_compiled(2.0, 0.0)
        loop.unsampled_calls = 3
    else:
        fast.unsampled_calls = 200
    told = "busy machine" if why == "busy" else "2 samples"
    assert summary.summary_line().startswith(f"accel: 10.0 s, cannot tell what NumPy would have taken ({told}). 99 %")
    assert _json()["totals"]["net"] == "unknown"


@pytest.mark.parametrize("gained_s", [-4.0, -0.4, 0.02, 0.5, 30.0])
def test_the_summary_has_two_lines_of_a_hundred_columns(gained_s: float, books: ModuleType, tmp_path: Path) -> None:
    _losing(books, gained_s=gained_s).compared(1e-16)
    with config.override(cache_dir=tmp_path):
        lines = summary.summary_of(figures_of_run(), IN_SHELL).split("\n")
    assert len(lines) == 2 and max(map(len, lines)) <= 100


def test_results_that_may_be_wrong_are_the_next_step(fast: Ledger, slow: Ledger, books: ModuleType) -> None:
    fast.doubt(41)
    fast.doubt(90)
    assert summary.summary_line().endswith(
        "\naccel: Results may be wrong since call 41 of time_step: rerun with `--mode off`."
    )


# -- gain and loss: the line, the text, the table in Markdown and the JSON say the same --------------------------------


def _assert_agree(net: str) -> dict[str, Any]:
    """What all views say of the run's net effect is `net`; the totals."""
    totals: dict[str, Any] = _json()["totals"]
    assert totals["net"] == net
    assert totals["saved_s"] == pytest.approx(totals["gained_s"] - sum(totals["costs_s"].values()))
    if net != "even":
        assert (totals["speedup"] > 1) == (totals["saved_s"] > 0) == (net == "gained")
    assert totals["speedup"] == pytest.approx(totals["estimated_numpy_s"] / 10.0)
    line = summary.summary_line().split("\n")[0]
    for view in (accel.report(full=True), accel.report("markdown"), "\n".join(summary.heading_of(figures_of_run()))):
        assert line in " ".join(view.split())
    return totals


def _losing(books: ModuleType, gained_s: float = 0.5, cost_s: float = 2.0) -> Ledger:
    """A run of 40 steps, ten of them compiled, which costs more than it gains."""
    book: Ledger = books.open_ledger("m.step")
    books.current_run().step = book.target
    for _ in range(30):
        book.count_numpy(0.1)
    for _ in range(10):
        book.count_compiled(0.1 - gained_s / 10, gained_s / 10)
    book.charge("loading", cost_s)
    return book


def test_a_run_that_lost_says_from_where_on_it_would_have_gained(books: ModuleType) -> None:
    _losing(books)
    assert _assert_agree("lost")["saved_s"] == pytest.approx(-1.5)
    assert summary.summary_line() == (
        "accel: 10.0 s, NumPy would have taken 8 to 8.5 s (about 0.82x). 25 % of steps compiled.\n"
        "accel: This program gains from about 70 steps on."
    )


def test_where_programs_are_kept_the_next_run_finds_them(books: ModuleType, tmp_path: Path) -> None:
    book = _losing(books)
    with config.override(cache_dir=tmp_path):
        line, in_a_shell = summary.summary_line(), summary.summary_of(figures_of_run(), IN_SHELL)
    assert line == in_a_shell
    assert line.endswith("gains from about 70 steps on; a next run finds what this one compiled.")
    book.describe = lambda: [{**_program([]), "found_on_disk": True}]
    assert summary.summary_line().endswith("from about 70 steps on.")


def test_a_run_of_accel_compile_is_told_no_loss_and_advised_no_compile(books: ModuleType, tmp_path: Path) -> None:
    _losing(books)
    books.current_run().beforehand = True
    with config.override(cache_dir=tmp_path):
        line = summary.summary_of(figures_of_run(), IN_SHELL)
    assert line == (
        "accel: 10.0 s, by accel compile: calls waited for their programs. 25 % of steps compiled.\n"
        "accel: Details: accel report"
    )
    books.begin_again()
    assert figures_of_run()["beforehand"] is True


def test_an_ensemble_is_told_no_loss_and_advised_no_compile(books: ModuleType, tmp_path: Path) -> None:
    _losing(books)
    with config.override(cache_dir=tmp_path):
        line = summary.summary_of({**figures_of_run(), "members": 4}, IN_SHELL)
    assert line == (
        "accel: 10.0 s, 4 members beside the program included. 25 % of steps compiled.\naccel: Details: accel report"
    )


def test_a_run_whose_time_is_in_what_is_refused_is_not_told_to_run_longer(books: ModuleType) -> None:
    loop, solve = books.open_ledger("m:9"), books.open_ledger("m:solve")
    loop.waits = lambda: Refusal("wait.calls")
    loop.count_numpy(2.0)
    solve.refuse(Refusal("wait.budget"))
    solve.refuse(Refusal("call.opaque"))
    solve.count_numpy(1.0)
    solve.charge("recording", 0.5)
    much = "accel: Much of its time is in m:solve, which cannot be compiled: `accel.report(full=True)` says why."
    assert much in summary.summary_line(), "a longer run is not advised where recordings have failed"
    solve.count_numpy(2.0)
    assert much in summary.summary_line()
    loop.count_compiled(0.5, -0.1)
    assert much in summary.summary_line()
    loop.count_compiled(0.5, 0.5)
    assert much not in summary.summary_line()


def test_a_few_small_calls_are_no_code_that_cannot_be_compiled(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.count_numpy(1.0)
    book.charge("recording", 0.5)
    book.refuse(Refusal("speed.small"))
    assert "cannot be compiled" in summary.summary_line() or "can be compiled as they are" in summary.summary_line()
    for _ in range(3):
        book.refuse(Refusal("wait.calls"))
    assert summary.summary_line().endswith("A longer run may gain.")


def test_a_run_that_ended_before_anything_was_compiled(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.count_numpy(1.0)
    book.charge("recording", 0.5)
    assert _assert_agree("lost")["costs_s"] == {"recording": 0.5}
    line = summary.summary_line()
    assert line.startswith("accel: 10.0 s, NumPy would have taken 9.3 to 9.5 s (about 0.94x). No calls compiled.")
    assert line.endswith("\naccel: A longer run may gain.")
    in_a_shell = summary.summary_of(figures_of_run(), IN_SHELL)
    assert in_a_shell.endswith("\naccel: A longer run may gain, and so may this one after `accel compile ...`.")
    book.describe = lambda: [{**_program([]), "found_on_disk": True}]
    assert summary.summary_line().endswith("A longer run may gain.")
    assert re.search(r"m\.f +1 +0 +1000 +- +- +-0\.50 +-", accel.report(full=True))


def test_a_short_run_that_lost_nothing_is_told_how_to_compile_beforehand(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.count_numpy(1.0)
    book.refuse(Refusal("wait.budget"))
    figures, refused = figures_of_run(), dataclasses.replace(IN_SHELL, refused=True)
    told = summary.summary_of(figures, IN_SHELL)
    assert "about as long as on NumPy" in told
    assert told.endswith("\naccel: A longer run may gain, and so may this one after `accel compile ...`.")
    assert "may gain" not in summary.summary_of(figures, refused)
    with config.override(devices=2):  # whose programs are not kept
        assert summary.summary_of(figures, IN_SHELL).endswith("\naccel: A longer run may gain.")


def test_a_run_with_acceleration_off_says_so_and_nothing_else(books: ModuleType) -> None:
    books.open_ledger("m.f").count_numpy(1.0)
    off = "accel was off: this run used NumPy only"
    for changes in ({"mode": "off"}, {"enabled": False}):
        with config.override(**changes):
            assert summary.summary_line() == off
            assert accel.report().startswith(off) and "what to do" not in accel.report()
            assert accel.report(full=True).startswith(off)


def test_where_each_call_was_compared_nothing_is_said_of_speed(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    for _ in range(3):
        book.count_compared(0.5, 0.2)
    line = summary.summary_line()
    assert line.endswith("Each compiled call was compared, which does the work twice: a longer run compares few.")
    assert "no faster" not in line


def test_compiled_calls_that_are_slower_gain_at_no_length(books: ModuleType) -> None:
    _losing(books, gained_s=-0.4, cost_s=0.1)
    totals = _assert_agree("lost")
    assert totals["gained_s"] == pytest.approx(-0.4)
    line, text = summary.summary_line(), " ".join(accel.report(full=True).split())
    assert "it would have gained" not in line
    assert line.endswith("\naccel: Compiled calls were slower than NumPy's: larger arrays may gain.")
    assert "larger arrays may gain; `--mode off` loses nothing." in summary.summary_of(figures_of_run(), IN_SHELL)
    assert "compiled calls took 0.400 s more than NumPy's would have" in text
    (function,) = _json()["functions"]
    assert function["per_call_speedup"] == pytest.approx(0.1 / 0.14)
    assert function["speedup"] < 1


def test_a_busy_machine_is_not_taken_for_slow_programs(books: ModuleType) -> None:
    book = _losing(books, gained_s=0.5, cost_s=0.1)
    book.count_compiled(3.0, -2.9)  # the process was not let run
    assert _assert_agree("lost")["gained_s"] == pytest.approx(-2.4)
    line = summary.summary_line()
    assert "Most compiled calls were faster than NumPy's: something else used the machine." in line
    assert "loses nothing" not in line


def test_a_few_slow_calls_say_nothing_of_many(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.count_compared(0.5, 0.2)
    book.count_compiled(0.3)
    line = summary.summary_line()
    assert "Too few calls were compiled to tell what they gain: a longer run may gain." in line
    assert "loses nothing" not in line


def test_a_function_that_is_compiled_at_a_loss_is_told_apart(fast: Ledger, books: ModuleType) -> None:
    _losing(books)
    text, markdown = accel.report(full=True), accel.report("markdown")
    assert "\ncompiled (1)\n" in text
    assert "\ncompiled, at a loss so far (1)\n" in text
    assert "| `m.step` | compiled, at a loss so far | 40 |" in markdown
    assert f"| `{fast.target}` | compiled | 214 |" in markdown
    assert "| -1.50 |" in markdown


def test_what_compiling_seems_to_speed_up_is_no_gain(books: ModuleType) -> None:
    """Calls beside a compile may happen to be faster than those before it."""
    book = books.open_ledger("m.f")
    book.count_numpy(1.0)
    book.charge("recording", 0.001)
    book.charge("slowdown", -0.175)
    totals = _assert_agree("even")
    assert (totals["saved_s"], totals["costs_s"]) == (-0.001, {"recording": 0.001, "slowdown": 0.0})
    assert _json()["functions"][0]["saved_s"] == -0.001
    assert summary.summary_line().startswith("accel: 10.0 s, about as long as on NumPy. No calls compiled.")


def test_too_little_to_tell_is_neither_gain_nor_loss(books: ModuleType) -> None:
    _losing(books, gained_s=0.5, cost_s=0.55)
    _assert_agree("even")
    line = summary.summary_line()
    assert line.startswith("accel: 10.0 s, about as long as on NumPy. 25 % of steps compiled.")
    assert "gained" not in line


def test_no_estimate_is_below_nothing(books: ModuleType) -> None:
    _losing(books, cost_s=20.0)
    totals = _assert_agree("lost")
    assert totals["estimated_numpy_s"] == totals["speedup"] == 0.0


def test_every_cost_has_words(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.count_numpy(1.0)
    for cost in COSTS:
        book.charge(cost, 0.25)
    assert "that cost 1.5 s: recording calls 0.250 s, loading JAX and programs 0.250 s" in " ".join(
        accel.report(full=True).split()
    )


def _crowd(books: ModuleType) -> None:
    """Open books with long names, in every state."""
    for number, state in enumerate(list(State) * 6):
        book = books.open_ledger(f"pygcm.ecology.population.PopulationManager.{'a_rather_long_name_' * 3}{number}")
        if state not in (State.ABSENT, State.UNCALLED, State.INLINED):
            book.count_numpy(123.456)
            book.count_compiled(0.00001)
        book.refuse(Refusal("rule.parameter", "pygcm/ecology/population.py:1234", f"numpy.sum(where=...) {number}"))
        book.state = state
    books.current_run().note("built-in JAX layer bypassed: " + "words " * 30)


def test_the_text_keeps_within_100_columns(books: ModuleType) -> None:
    _crowd(books)
    too_wide = [line for line in accel.report("text").splitlines() if len(line) > 100 and " " in line.strip()]
    assert too_wide == []


def test_rows_for_packages_that_are_not_imported_are_left_out(books: ModuleType) -> None:
    targets = ("elsewhere.model:step", "mine:never", "mine:step", "numpy.made_up:never")
    for target in targets:
        books.open_ledger(target)

    def shown() -> list[str]:
        return sorted(each["target"] for each in json.loads(accel.report("json"))["functions"])

    assert shown() == sorted(targets)  # nothing was called
    books.open_ledger("mine:step").count_numpy(0.1)
    assert shown() == ["mine:never", "mine:step", "numpy.made_up:never"]
    text = accel.report(full=True)
    assert "never called (2)" in text and "elsewhere" not in text


def test_what_ran_inside_programs_alone_is_not_told_to_be_uncalled(fast: Ledger, books: ModuleType) -> None:
    books.open_ledger("pygcm.grid:inside").state = State.INLINED
    books.open_ledger("pygcm.grid:perhaps_inside")
    text = accel.report(full=True)
    assert "inlined into a compiled caller (1)" in text and "never called (1)" in text
    fast.describe = lambda: [{**_program([]), "found_on_disk": True}]
    text = accel.report(full=True)
    assert "not called directly: programs from disk may contain them (1)" in text and "never called" not in text


def test_no_difference_is_told_as_zero(books: ModuleType) -> None:
    book = books.open_ledger("m:f")
    book.count_compiled(0.001, 0.007)
    book.compared(0.0)
    assert re.search(r"m:f +1 +1 .* 0$", accel.report(full=True), re.MULTILINE)


def test_the_text_says_where_why_and_what_to_do(fast: Ledger, slow: Ledger) -> None:
    text = accel.report(full=True)
    assert re.search(r"SpectralModel\.time_step +214 +212 +8 +1 +8x +1\.48 +3e-13", text)
    assert "pygcm.ocean.WindDrivenSlabOcean.step (25)" in text
    assert "    where  pygcm/ocean.py:371\n    why    this path shows text" in text
    assert "[effect.print]" in text


def test_the_same_books_give_the_same_report(books: ModuleType) -> None:
    _crowd(books)
    assert accel.report(full=True) == accel.report(full=True)
    names = [each["target"] for each in _json()["functions"]]
    assert names == sorted(names)


def test_the_markdown_is_two_tables(fast: Ledger, slow: Ledger) -> None:
    slow.refuse(Refusal("rule.missing", "a.py:1", "a | b"))
    rows = [line for line in accel.report("markdown").splitlines() if line.startswith("|")]
    cells = {len(re.split(r"(?<!\\)\|", row)) for row in rows}
    assert len(cells) == 2
    assert any("`pygcm.ocean.WindDrivenSlabOcean.step` | `effect.print` | pygcm/ocean.py:371" in row for row in rows)


def test_an_unknown_format_is_named_with_what_is_possible() -> None:
    with pytest.raises(ValueError, match=r"^format='html' cannot be used; expected: text, json, markdown$"):
        accel.report("html")


def test_the_reasons_table_lists_every_reason() -> None:
    lines = markdown.reasons_table().splitlines()
    assert len(lines) == len(REASONS) + 2


def test_mode_verify_says_how_many_calls_agreed_or_that_none_was_compared(books: ModuleType) -> None:
    with config.override(mode="verify"):
        book = books.open_ledger("m.f")
        book.count_numpy(1.0)
        line = summary.summary_line()
        assert (
            "\naccel: Nothing was verified: a longer run, or QD_JAX_AOT=0, verifies calls." in line
            and "may gain" not in line
        )
        for _ in range(3):
            book.count_compared(0.5, 0.2)
        assert "3 of 3 compared calls agreed" in summary.summary_line()
        assert re.match(r"accel: [0-9.]+ s, as mode verify computes twice\. ", summary.summary_line())
        book.differ(Difference("return", "", "1 and 2", 0.5), "demoted")
        assert "3 calls compared, differences in 1 function" in summary.summary_line()


def test_the_whole_report_of_a_run_without_calls_says_what_to_do(books: ModuleType) -> None:
    in_a_shell = " ".join(text(figures_of_run(), IN_SHELL).split())
    assert "what to do" in in_a_shell and IN_SHELL.start in in_a_shell
    assert "`accel run --auto ...`" in summary.summary_of(figures_of_run(), IN_SHELL)


def test_what_merely_waits_did_not_stay_and_what_is_refused_is_not_told_to_run_longer(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.count_numpy(1.0)
    book.charge("recording", 0.5)
    book.waits = lambda: Refusal("wait.compile")
    line = summary.summary_line()
    assert "A longer run may gain" in line
    assert "0 functions stayed on NumPy, 1 not compiled yet" in accel.report(full=True)
    book.waits = None
    book.refuse(Refusal("effect.random"))
    line = summary.summary_line()
    assert "1 function stayed on NumPy" in accel.report(full=True) and "longer run" not in line
    assert line.endswith("\naccel: No calls can be compiled as they are: `accel.report(full=True)` says why.")
