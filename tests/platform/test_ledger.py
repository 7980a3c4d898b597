"""Ledgers: what is counted, and which state follows."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from accel.platform import clocks, ledger, timeline
from accel.platform.ledger import MAX_KINDS, SAMPLES, Difference, Ledger, State
from accel.platform.reasons import Refusal

pytestmark = pytest.mark.usefixtures("books")


def test_a_target_has_one_ledger(books: ModuleType) -> None:
    first = books.open_ledger("m.f")
    assert books.open_ledger("m.f") is first
    assert books.open_ledger("a.b") is not first
    assert [book.target for book in books.ledgers()] == ["a.b", "m.f"]


def test_calls_move_the_state() -> None:
    book = Ledger("m.f")
    assert book.state is State.UNCALLED
    book.count_numpy(0.25)
    assert book.state is State.NUMPY
    book.count_inlined()
    assert book.state is State.INLINED
    book.count_numpy()
    assert book.state is State.INLINED, "it does run compiled, inside another target's program"
    book.count_compiled(0.125)
    assert book.state is State.COMPILED
    book.count_numpy(0.25)
    assert book.state is State.COMPILED
    assert (book.calls, book.numpy_calls, book.compiled_calls, book.inlined_calls) == (4, 3, 1, 1)
    assert list(book.numpy_s) == [0.25, 0.25]
    assert list(book.compiled_s) == [0.125]


def test_a_demotion_is_for_good_and_counted() -> None:
    book = Ledger("m.f")
    book.count_compiled(0.1)
    book.demote(Refusal("verify.mismatch", "m.py:3"))
    book.count_numpy(0.1)
    book.count_compiled(0.1)
    assert book.state is State.DEMOTED
    assert book.refusals == {Refusal("verify.mismatch", "m.py:3"): 1}


def test_the_largest_error_is_kept_and_nan_is_the_largest() -> None:
    book = Ledger("m.f")
    book.compared(1e-13)
    book.compared(1e-15)
    assert book.max_rel_error == 1e-13
    book.compared(math.nan)
    assert book.max_rel_error == math.inf


def test_what_is_kept_is_bounded() -> None:
    book = Ledger("m.f")
    for number in range(SAMPLES + 10):
        book.count_numpy(float(number))
        book.refuse(Refusal("value.forced", "m.py:1", detail=str(number)))
    assert len(book.numpy_s) == SAMPLES
    assert len(book.refusals) == MAX_KINDS + 1
    assert sum(book.refusals.values()) == SAMPLES + 10


def test_a_note_is_taken_once(books: ModuleType) -> None:
    books.current_run().note("one")
    books.current_run().note("two")
    books.current_run().note("one")
    assert books.current_run().notes == ["one", "two"]
    books.reset()
    assert books.current_run().notes == []
    assert books.ledgers() == ()


def test_the_worst_difference_of_a_field_is_kept_and_the_first_one_said() -> None:
    book = Ledger("m.f")
    news = [book.differ(Difference("x", "[3]", "...", error, 1), "mismatch") for error in (1e-3, 1e-2, 1e-4)]
    assert news == [True, False, False]
    assert book.differences["x", "mismatch"].count == 3
    assert book.differences["x", "mismatch"].worst.error == 1e-2
    for number in range(2 * MAX_KINDS):
        book.differ(Difference(f"x{number}", "", "...", 1.0), "mismatch")
    assert len(book.differences) == MAX_KINDS


def test_calls_are_kept_for_a_profile_only_where_one_is_wanted(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.count_compiled(0.1)
    assert timeline.calls is None
    timeline.start(capacity=3)
    book.count_numpy(None, 0.5)
    book.count_compiled(0.1)
    book.count_compared(0.3, 0.15)
    book.count_compiled(0.3)
    assert [(call.kind, round(call.seconds, 9)) for call in timeline.calls or ()] == [
        ("compiled", 0.1),
        ("compared", 0.3),
        ("compiled", 0.3),
    ]
    assert timeline.dropped_calls == 1
    books.reset()
    assert timeline.calls is None


def test_events_are_bounded(books: ModuleType) -> None:
    for number in range(timeline.MAX_EVENTS + 2):
        timeline.note_event(timeline.RECORDED, "m.f", str(number))
    assert len(timeline.events) == timeline.MAX_EVENTS
    assert timeline.dropped_events == 2


def test_what_is_saved_is_what_was_gained_less_what_that_cost(books: ModuleType) -> None:
    book, other = books.open_ledger("m.f"), books.open_ledger("m.g")
    book.count_numpy(1.0)
    book.count_compiled(0.25, 0.75)
    book.charge("recording", 0.5)
    other.count_numpy(0.5)  # the slowed call, in full
    other.charge("slowdown", 0.125)
    books.current_run().charge("loading", 0.25)
    assert (book.gained_s, book.saved_s, book.spent_s) == (0.75, 0.25, 1.75)
    assert (other.saved_s, other.spent_s) == (-0.125, 0.5)
    run = books.current_run()
    assert (run.gained_s, run.cost_s, run.saved_s) == (0.75, 0.875, -0.125)
    assert run.costs == {"recording": 0.5, "slowdown": 0.125, "loading": 0.25}


def test_calls_on_numpy_whose_samples_add_up_to_less_than_nothing_take_no_time(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.count_rested(2, -0.5)  # what was called inside them took longer than they
    book.count_compiled(0.25, 0.75)
    assert (book.spent_s, book.saved_s) == (0.25, 0.75)


def test_a_compared_call_costs_what_it_took_beyond_numpy(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.count_compared(0.75, 0.5, quiet=False)
    assert (book.comparisons, book.compiled_calls, book.costs["comparing"]) == (1, 1, 0.25)
    assert (book.numpy_total_s, book.gained_s) == (0.5, 0.0)
    assert list(book.numpy_s) == [], "measured beside a compile"


def test_a_cost_may_be_taken_back(books: ModuleType) -> None:
    book = books.open_ledger("m.f")
    book.charge("slowdown", 0.5)
    book.charge("slowdown", -0.25)
    assert book.saved_s == books.current_run().saved_s == -0.25


def test_loading_inside_loading_is_charged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter((1.0, 4.0))
    monkeypatch.setattr(clocks.time, "perf_counter", lambda: next(now, 9.0))
    run = ledger.RunLedger(started=0.0)
    with run.loading():
        run.charge("loading", 2.0)
    assert run.costs["loading"] == 3.0
