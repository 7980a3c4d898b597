"""NaN and infinity that no compared replay gave: that call is compared before it is committed, and no other."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel.compiler.lower.written import Written
from accel.dispatch.comparing import nonfinite, policy
from accel.dispatch.comparing.errors import relative_errors
from accel.dispatch.replay import Variant
from accel.platform.ledger import Ledger, State, open_ledger
from accel.policy.speed import Speed
from accel.reports import summary

LATE = 20
"""The first call whose replay, or input, is different: long after the first comparisons."""

pytestmark = pytest.mark.usefixtures("foreground", "only_first_compared")


@pytest.fixture
def only_first_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sample is compared later on, and no call runs on NumPy for its time alone."""
    monkeypatch.setattr(Speed, "evidence_of_slowness", lambda self: None)
    due = lambda self, path, mode: path.replays < policy.FIRST_COMPARED  # noqa: E731
    monkeypatch.setattr(policy.Comparisons, "is_due", due)


def field(i: int) -> Any:
    return np.random.default_rng(i).uniform(1.0, 2.0, (3, 4))


class Model:
    def __init__(self) -> None:
        self.field = np.ones((3, 4))


def new_array(state: Any, x: Any) -> Any:
    return np.sqrt(x)


def complex_array(state: Any, x: Any) -> Any:
    return np.sqrt(x) * 1j


def number(state: Any, x: Any) -> Any:
    return float(np.sqrt(x[0, 0]))


def attribute(state: Any, x: Any) -> Any:
    state.field = np.sqrt(x)


def in_place(state: Any, x: Any) -> Any:
    state.field += np.sqrt(x)


KINDS = [new_array, complex_array, number, attribute, in_place]


def spoilt(value: float) -> Callable[[Any], None]:
    """What makes the first element of a replay's first output this value."""

    def spoil(staged: Any) -> None:
        for outputs in (staged.made, staged.changed):
            if outputs:
                outputs[0] = np.array(outputs[0])  # a program's own memory is not to be written to
                outputs[0].flat[0] = value
        if staged.numbers:
            staged.numbers[0] = value

    return spoil


def plant(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Any], None]) -> list[int]:
    """Let replays go wrong from the call on that is then put into the list."""
    run, late = Variant.run, list[int]()

    def wrong(self: Any, values: Any) -> Any:
        staged: Any = run(self, values)
        if late:
            spoil(staged)
        return staged

    monkeypatch.setattr(Variant, "run", wrong)
    return late


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("function", KINDS)
def test_a_nan_that_only_the_replay_gives_never_reaches_the_program(
    function: Callable[..., Any], value: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    late = plant(monkeypatch, spoilt(value))
    fast = accel.accelerate(function, name="spoilt")
    mine, theirs = Model(), Model()
    with caplog.at_level(logging.WARNING, "accel"):
        for i in range(LATE + 5):
            if i == LATE:
                assert open_ledger("spoilt").state is State.COMPILED
                late.append(i)
            np.testing.assert_array_equal(fast(theirs, field(i)), function(mine, field(i)))
            np.testing.assert_array_equal(theirs.field, mine.field)
    book = open_ledger("spoilt")
    assert book.state is State.DEMOTED
    assert book.comparisons == policy.FIRST_COMPARED + 1, "the one call"
    (message,) = [record.getMessage() for record in caplog.records]
    assert "verify.mismatch" in message


def compared(inputs: list[Any], function: Callable[..., Any] = new_array) -> Ledger:
    """The ledger after calls with these inputs, whose results are NumPy's."""
    fast = accel.accelerate(function, name="given")
    with np.errstate(all="ignore"):
        for x in inputs:
            np.testing.assert_array_equal(fast(None, x), function(None, x))
    book = open_ledger("given")
    assert book.state is State.COMPILED and not book.differences
    return book


def some_negative(i: int, count: int, size: int = 12) -> Any:
    x = np.random.default_rng(i).uniform(1.0, 2.0, size)
    x[:count] *= -1.0
    return x


def test_what_numpy_gives_too_is_compared_once() -> None:
    inputs = [some_negative(i, 3 if i >= LATE else 0) for i in range(LATE + 30)]
    assert compared(inputs).comparisons == policy.FIRST_COMPARED + 1


def test_what_compared_replays_gave_from_the_first_on_is_never_compared_again() -> None:
    assert compared([some_negative(i, 3) for i in range(LATE)]).comparisons == policy.FIRST_COMPARED


def test_what_fills_up_is_compared_each_time_it_has_grown_by_a_factor() -> None:
    inputs = [some_negative(i, max(0, i - LATE), 200) for i in range(LATE + 200)]
    steps = [1]
    while nonfinite.GROWTH * steps[-1] + 1 < 200:
        steps.append(nonfinite.GROWTH * steps[-1] + 1)
    assert compared(inputs).comparisons == policy.FIRST_COMPARED + len(steps)


def test_an_array_with_nan_is_compared_at_its_first_infinity() -> None:
    """NaNs for land or for what is missing say nothing of infinities."""
    inputs = [np.where(np.arange(12) < 3, np.nan, field(i).ravel()) for i in range(LATE)]
    for x in inputs[-5:]:
        x[5] = np.inf
    assert compared(inputs).comparisons == policy.FIRST_COMPARED + 1


def test_whole_numbers_and_texts_are_none_of_that() -> None:
    staged: Any = SimpleNamespace(
        finite=(),
        unfetched=None,
        numbers=[1, True, 2.0, np.nan, np.float32(np.inf)],
        made=[np.arange(3), np.ones(2)],
        changed=[],
    )
    assert nonfinite.counts_of(staged) == {(3, "nan"): 1, (4, "inf"): 1}


def test_arrays_that_are_known_to_be_finite_are_not_looked_at() -> None:
    known, other = np.array([np.nan]), np.array([np.nan])
    written = Written([], [known, other], {})
    staged: Any = SimpleNamespace(finite=[known], unfetched=None, numbers=[], made=[known, other], changed=[written])
    assert nonfinite.counts_of(staged) == {(1, "nan"): 1, (2, "nan"): 1}


def test_of_complex_numbers_both_parts_count() -> None:
    array = np.array([1.0, complex(np.nan, 1.0), complex(np.nan, np.inf)])
    staged: Any = SimpleNamespace(
        finite=(), unfetched=None, numbers=[complex(1.0, np.inf), array[2]], made=[array], changed=[]
    )
    counts = {(0, "inf"): 1, (1, "nan"): 1, (1, "inf"): 1, (2, "nan"): 2, (2, "inf"): 1}
    assert nonfinite.counts_of(staged) == counts


def test_another_part_beside_a_nan_or_an_infinity_differs_and_rounding_of_it_does_not() -> None:
    nan, inf = np.nan, np.inf
    numpys = np.array([complex(nan, inf), complex(inf, nan), complex(1.0, inf), complex(inf, 1.0), complex(nan, 2.0)])
    replays = np.array([complex(nan, nan), complex(inf, nan), complex(1.0 + 1e-15, inf), complex(inf, 2.0), nan * 1j])
    errors = relative_errors(replays, numpys)
    assert errors[0] == errors[4] == inf and errors[1] == 0.0
    assert 0.0 < errors[2] < 1e-14 and errors[3] == 1.0


def test_of_a_large_array_the_views_are_looked_at_that_the_call_writes_to() -> None:
    written = Written([], [np.ones(3), np.array([1.0, np.nan, -np.inf])], {})
    staged: Any = SimpleNamespace(finite=(), unfetched=None, numbers=[], made=[], changed=[written])
    assert nonfinite.counts_of(staged) == {(0, "nan"): 1, (0, "inf"): 1}


def test_arrays_on_a_device_are_not_fetched_for_it() -> None:
    staged: Any = SimpleNamespace(
        finite=(), unfetched=object(), numbers=[np.nan], made=[np.full(2, np.nan)], changed=[]
    )
    assert nonfinite.counts_of(staged) == {(0, "nan"): 1}


# -- which results may be wrong ----------------------------------------------------------------------------------------


def test_a_mismatch_says_since_when_results_may_be_wrong(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The tenth replay is the next that is compared, and the errors begin before it."""
    due = lambda self, path, mode: path.replays in (0, 1, 4, 10)  # noqa: E731
    monkeypatch.setattr(policy.Comparisons, "is_due", due)
    late = plant(monkeypatch, spoilt(7.0))
    fast = accel.accelerate(new_array, name="doubtful")
    agreed = 0
    with caplog.at_level(logging.WARNING, "accel"):
        for i in range(LATE):
            before = open_ledger("doubtful").comparisons
            fast(None, field(i))
            book = open_ledger("doubtful")
            if book.state is State.DEMOTED:
                break
            if book.comparisons > before:
                agreed = book.calls
            if book.comparisons == 3 and not late:
                late.append(i)
    assert book.calls == agreed + 6
    assert book.doubtful_since == agreed + 1
    words = f"results since call {agreed + 1} may be wrong: rerun with `--mode off`; the result[0, 0]: NumPy "
    assert words in caplog.text
    assert f"accel: Results may be wrong since call {agreed + 1} of doubtful: rerun with `--mode off`." in (
        summary.summary_line()
    )
    accel.platform.ledger.begin_again()
    assert open_ledger("doubtful").doubtful_since == 1, "the state may be wrong from the first of these calls on"


def test_a_mismatch_of_a_first_replay_puts_nothing_in_doubt(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plant(monkeypatch, spoilt(7.0)).append(0)
    fast = accel.accelerate(new_array, name="at once")
    with caplog.at_level(logging.WARNING, "accel"):
        for i in range(LATE):
            fast(None, field(i))
    assert open_ledger("at once").state is State.DEMOTED
    assert open_ledger("at once").doubtful_since is None
    assert re.search("verify.mismatch", caplog.text)
    assert "may be wrong" not in caplog.text + summary.summary_line()
