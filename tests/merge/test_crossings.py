"""Crossings: combinations of branches that were never recorded run where the state at the joins proves them.

ACCEL_CROSSINGS sets how many random programs are tried, 80 by default; ACCEL_CROSSINGS_SEED, a number, gives others.
"""

from __future__ import annotations

import collections
import itertools
import os
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from accel.record import Completed, record
from tests.merge.runs import Call, Merged, State, assert_agrees, traces_of
from tests.random_programs import try_crossings

PROGRAMS = int(os.environ.get("ACCEL_CROSSINGS", "80"))
SEED = int(os.environ.get("ACCEL_CROSSINGS_SEED", "0"))
PARTS = 4


def call_of(bits: Sequence[int]) -> Call:
    """A call of a function of a state, of an array for each branch, and of a field."""
    return (
        State(u=np.arange(4.0), k=2.0, n=bits[0]),
        *(np.array([float(bit), 0.0, 0.0, 0.0]) for bit in bits),
        np.linspace(0.0, 1.0, 4),
    )


def covered(function: Callable[..., Any], recorded: Iterable[Sequence[int]], branches: int = 2) -> int:
    """How many of all combinations one program of the recorded ones takes. All of those are compared with NumPy."""
    program = Merged(traces_of(function, map(call_of, recorded)))
    return assert_agrees(function, program, map(call_of, itertools.product((0, 1), repeat=branches)))


THREE = ((0, 0), (1, 0), (0, 1))


# -- combinations that are what they seem ------------------------------------------------------------------------------


def of_a_new_array(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = x * 0.5
    if a.any():
        y = np.sin(y)
    if b.any():
        y = y + 1.0
    return y


def of_an_argument(s: Any, a: Any, b: Any, x: Any) -> Any:
    if a.any():
        x = np.sin(x)
    if b.any():
        x = x + 1.0
    return x


def of_both_sides(s: Any, a: Any, b: Any, x: Any) -> Any:
    if a.any():
        one = x * 2.0
        y = one + 1.0
    else:
        other = x - 1.0
        y = other * 3.0
    z = y * y if b.any() else y + y
    return y, z


def again(s: Any, a: Any, b: Any, x: Any) -> Any:
    if a.any():
        x = x + 1.0
    if b.any():
        x = x * 2.0
    if a.any():
        x = x - 3.0
    return x


def kept_truth(s: Any, a: Any, b: Any, x: Any) -> Any:
    cold = a[0] > 0.5
    if cold:
        x = x + 1.0
    if b.any():
        x = x * 2.0
    y = x - 5.0 if cold else x
    return y * float(cold)


def on_host(s: Any, a: Any, b: Any, x: Any) -> Any:
    if s.n % 2 == 1:
        x = x + 1.0
    if b.any():
        x = x * 2.0
    return x


def helper(x: Any, c: Any) -> Any:
    if c.any():
        return x + 1.0
    y = x * 2.0
    return y - 0.5


def helped(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = helper(x, a)
    return x * 3.0 + helper(y, b)


def same_or_new(x: Any, c: Any) -> Any:
    if c.any():
        return x + 1.0
    return x


def beside_its_argument(s: Any, a: Any, b: Any, x: Any) -> Any:
    """What the caller holds in the middle of a statement is what one side of the callee returns."""
    y = x * 1.0
    y = y + same_or_new(y, a)
    return y - same_or_new(y, b)


def looped(s: Any, a: Any, b: Any, x: Any) -> Any:
    for k in range(2):
        if (a if k else b).any():
            x = x + np.sin(x) * (k + 1)
    return x


def chained(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = x * 0.5
    if a.any() and x.mean() > 0.0:
        y = np.sin(y)
    if b.any() or x.mean() > 5.0:
        y = y + 1.0
    return y


def written_on_all_sides(s: Any, a: Any, b: Any, x: Any) -> Any:
    s.u = x * 2.0
    if a.any():
        s.u = x * 3.0
    if b.any():
        s.u = s.u + 1.0
    return s.u.sum()


def kept_function(s: Any, a: Any, b: Any, x: Any) -> Any:
    weight = x * 0.5
    scaled = lambda v: v * weight  # noqa: E731
    if a.any():
        x = scaled(x)
    if b.any():
        x = scaled(x) + 1.0
    return x


CROSSED = [
    of_a_new_array, of_an_argument, of_both_sides, again, kept_truth, on_host, helped, beside_its_argument, looped,
    chained, written_on_all_sides, kept_function,
]  # fmt: skip


@pytest.mark.parametrize("function", CROSSED, ids=lambda each: each.__name__)
def test_what_was_not_recorded_runs(function: Callable[..., Any]) -> None:
    assert covered(function, THREE) == 4


@pytest.mark.parametrize("function", CROSSED, ids=lambda each: each.__name__)
def test_nothing_is_taken_from_a_side_that_was_not_recorded(function: Callable[..., Any]) -> None:
    assert covered(function, ((0, 0), (1, 0))) == 2


@pytest.mark.parametrize("function", CROSSED, ids=lambda each: each.__name__)
def test_what_crosses_is_right_whatever_was_recorded(function: Callable[..., Any]) -> None:
    for recorded in (((1, 1), (1, 0), (0, 1)), ((0, 0), (1, 1)), ((1, 0), (0, 1))):
        assert covered(function, recorded) >= 2


def eight(s: Any, *given: Any) -> Any:
    *branches, x = given
    c0, c1, c2, c3, c4, c5, c6, c7 = branches
    if c0.any():
        x = np.sin(x)
    if c1.any():
        x = x + 1.0
    else:
        x = x * 0.5
    if c2.mean() > 0.1:
        x = np.roll(x, 1)
    if c3.any():
        t = x * x
        x = t - x
    if c4.any():
        x = np.cos(x)
    else:
        x = x - 0.25
    if c5.any():
        x = np.sqrt(np.abs(x))
    if c6.any():
        x = x + x.mean()
    if c7.any():
        x = -x
    return x


def test_eight_branches_need_each_side_once() -> None:
    only = [tuple(int(place == branch) for place in range(8)) for branch in range(8)]
    assert covered(eight, [(0,) * 8, *only], 8) == 256
    assert covered(eight, [(0, 1) * 4, (1, 0) * 4], 8) > 100
    assert covered(eight, [(0, 1) * 4, (1, 0) * 4, (0, 0, 1, 1) * 2, (1, 1, 0, 0) * 2], 8) == 256


# -- combinations that are not -----------------------------------------------------------------------------------------


def counted(s: Any, a: Any, b: Any, x: Any) -> Any:
    n = 0
    if a.any():
        n += 1
    if b.any():
        n += 1
    x = np.sin(x)
    if n == 2:
        x = x + 100.0
    return x


def flagged(s: Any, a: Any, b: Any, x: Any) -> Any:
    flag = False
    if a.any():
        flag = True
    if b.any():
        x = x * 2.0
    return x + 1.0 if flag else x


def by_a_literal(s: Any, a: Any, b: Any, x: Any) -> Any:
    weight = 0.5
    if a.any():
        weight = 1.0
    if b.any():
        x = x * 2.0
    return x * weight


def none_or_not(s: Any, a: Any, b: Any, x: Any) -> Any:
    extra = None
    if a.any():
        extra = x
    if b.any():
        x = x * 2.0
    return x if extra is None else x + extra


def appended(s: Any, a: Any, b: Any, x: Any) -> Any:
    kept: list[Any] = []
    if a.any():
        kept.append(x)
    if b.any():
        x = x * 2.0
    return len(kept), x


def one_list_or_two(s: Any, a: Any, b: Any, x: Any) -> Any:
    first = [x]
    second = first
    if a.any():
        second = [x]
    if b.any():
        x = x + 1.0
    second.append(x)
    return len(first), x


def of_a_dict(s: Any, a: Any, b: Any, x: Any) -> Any:
    kept = {}
    if a.any():
        kept["one"] = 1
    if b.any():
        x = x + 1.0
    return x + len(kept)


def of_a_set(s: Any, a: Any, b: Any, x: Any) -> Any:
    kept = set()
    if a.any():
        kept.add(1)
    if b.any():
        x = x + 1.0
    return x + len(kept)


def one_array_or_two(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = x * 1.0
    z = y
    if a.any():
        z = y * 1.0
    if b.any():
        x = x + 1.0
    z += 1.0
    return y + z, x


def returned_once_or_twice(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = x * 1.0
    z = y
    if a.any():
        z = y * 1.0
    if b.any():
        x = x + 1.0
    return y, z, x


def of_the_program_or_new(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = x * 1.0
    if a.any():
        y = s.u
    if b.any():
        x = x + 1.0
    y += 1.0
    return x


def seen_through(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = x * 1.0
    part = y[1:]
    if a.any():
        part = y[:-1]
    if b.any():
        x = x + 1.0
    part[0] = 7.0
    return y, x


def set_on_one_side(s: Any, a: Any, b: Any, x: Any) -> Any:
    if a.any():
        s.u = x * 2.0
    if b.any():
        x = x + 1.0
    return x


def number_set_on_one_side(s: Any, a: Any, b: Any, x: Any) -> Any:
    if a.any():
        s.k = 3.0
    if b.any():
        x = x + 1.0
    return x * s.k


def changed_in_place(s: Any, a: Any, b: Any, x: Any) -> Any:
    if a.any():
        s.u[0] = 3.0
    if b.any():
        x = x + 1.0
    return x * s.u


def read_again(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = s.u
    if a.any():
        y = y + 1.0
    if b.any():
        y = y * 2.0
    return y + s.u


def number_read_again(s: Any, a: Any, b: Any, x: Any) -> Any:
    k = s.k
    if a.any():
        k = float(x.max())
    if b.any():
        x = x * 2.0
    return x * k + s.k


def bound_on_one_side(s: Any, a: Any, b: Any, x: Any) -> Any:
    if a.any():
        more = x
    if b.any():
        x = x * 2.0
    return x + more if "more" in locals() else x


def iterated(s: Any, a: Any, b: Any, x: Any) -> Any:
    left = iter(range(3))
    if a.any():
        next(left)
    if b.any():
        x = x + 1.0
    return x + next(left)


def in_the_loops_list(s: Any, a: Any, b: Any, x: Any) -> Any:
    """The loop holds what a variable held before."""
    x = x * 1.0
    y = x * 2.0
    total = 0.0
    for v in (y, x):
        if a.any():
            x = x + 1.0
        if b.any():
            total = total + x.sum()
        total = total + v
    return total


def in_a_cell(s: Any, a: Any, b: Any, x: Any) -> Any:
    offset = 1.0

    def moved(v: Any) -> Any:
        return v + offset

    if a.any():
        offset = 2.0
    if b.any():
        x = x + 1.0
    return moved(x)


def by_a_nested_function(s: Any, a: Any, b: Any, x: Any) -> Any:
    n = 0

    def count() -> None:
        nonlocal n
        n += 1

    if a.any():
        count()
    if b.any():
        count()
    return x + 100.0 if n == 2 else x


def of_constants(s: Any, a: Any, b: Any, x: Any) -> Any:
    mask = np.zeros(4)
    if a.any():
        mask = np.ones(4)
    if b.any():
        x = x + 1.0
    return x * 3.0 if mask.any() else x


class Counter:
    def __init__(self) -> None:
        self.n = 0


def of_a_new_object(s: Any, a: Any, b: Any, x: Any) -> Any:
    counter = Counter()
    if a.any():
        counter.n = 1
    if b.any():
        x = x + 1.0
    return x + counter.n


def handled(s: Any, a: Any, b: Any, x: Any) -> Any:
    table = {"one": 1.0}
    key = "one"
    if a.any():
        key = "two"
    if b.any():
        x = x + 1.0
    try:
        return x * table[key]
    except KeyError:
        return x


NOT_CROSSED = [
    counted, flagged, by_a_literal, none_or_not, appended, one_list_or_two, of_a_dict, of_a_set, one_array_or_two,
    returned_once_or_twice, of_the_program_or_new, seen_through, set_on_one_side, number_set_on_one_side,
    changed_in_place, read_again, number_read_again, bound_on_one_side, iterated, in_the_loops_list, in_a_cell,
    by_a_nested_function, of_constants, of_a_new_object, handled,
]  # fmt: skip


@pytest.mark.parametrize("function", NOT_CROSSED, ids=lambda each: each.__name__)
def test_what_may_be_something_else_does_not_run(function: Callable[..., Any]) -> None:
    for missing in itertools.product((0, 1), repeat=2):
        rest = [bits for bits in itertools.product((0, 1), repeat=2) if bits != missing]
        traces = traces_of(function, map(call_of, rest))
        if traces:
            program = Merged(traces)
            # every call that does run is compared, here that of the missing one
            assert_agrees(function, program, map(call_of, itertools.product((0, 1), repeat=2)))
    if len(traces_of(function, map(call_of, THREE))) == 3:
        assert covered(function, THREE) == 3


def in_doubt(s: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    x = x * 1.0
    y = x * 2.0
    if a.any():
        y = x
    if b.any():
        s.k = 1.0 * s.k
        z = x + y
    else:
        s.k = 2.0 * s.k
        z = x - y
    if c.any():
        x += 1.0
    return x + y + z


def test_arrays_that_are_one_stay_so_on_the_way_through_a_third_path() -> None:
    """The first path goes on as the second, which writes to neither array; this one as the third, which does."""
    assert covered(in_doubt, ((1, 0, 0), (0, 1, 0), (0, 0, 1)), 3) >= 4


def rounds_left(s: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    rounds = 1
    if a.any():
        rounds = 2
    for _ in range(rounds):
        x = x * 0.5
        if b.any():
            x = x + 1.0
    if c.any():
        x = x - 3.0
    return x


def halved(x: Any, b: Any) -> Any:
    y = x * 0.5
    if b.any():
        y = y + 1.0
    return y


def in_a_statement(s: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    x = ("one" if a.any() else "other", halved(x, b))
    y = x[1] if x[0] == "one" else -x[1]
    if c.any():
        y = y - 3.0
    return y


@pytest.mark.parametrize("function", (rounds_left, in_a_statement))
def test_what_is_hidden_at_a_join_is_told_apart(function: Callable[..., Any]) -> None:
    """At the joins inside, the variables are the same on both paths; how many rounds are left, or a text, is not."""
    assert covered(function, ((1, 0, 0), (0, 0, 1)), 3) == 2
    assert covered(function, ((1, 0, 0), (0, 1, 1)), 3) == 2


def elsewhere(s: Any, a: Any, b: Any, x: Any) -> Any:
    y = a + b
    if a.any():
        y = s.u
    if b.any():
        x += 1.0
    return y * 2.0


def test_what_one_path_writes_is_not_what_another_has_read() -> None:
    program = Merged(traces_of(elsewhere, map(call_of, THREE)))
    apart = call_of((1, 1))
    assert assert_agrees(elsewhere, program, [apart]) == 1
    for whole in (False, True):
        state, a, b, x = call_of((1, 1))
        state.u = x if whole else x[:]
        assert assert_agrees(elsewhere, program, [(state, a, b, x)]) == 0


def test_a_long_recording_has_few_joins() -> None:
    from accel.record.state.joins import MOST_VISITS

    def long(x: Any) -> Any:
        for k in range(100):
            if x[k % 4] > 0.5:
                x = x * 0.9
        return x

    recorded = record(long, (np.linspace(0.0, 1.0, 4),), {}, max_nodes=10_000)
    assert isinstance(recorded, Completed)
    assert recorded.trace is not None
    assert 0 < len(recorded.trace.joins) <= MOST_VISITS


def test_a_fault_in_noting_joins_does_not_reach_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    from accel.record.state.joins import Joins

    def failing(*args: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Joins, "_note", failing)
    recorded = record(of_a_new_array, call_of((1, 1)), {}, max_nodes=1000)
    assert isinstance(recorded, Completed)
    assert recorded.refusal is None
    assert recorded.trace is not None
    assert recorded.trace.joins == []
    np.testing.assert_array_equal(recorded.result, of_a_new_array(*call_of((1, 1))))


# -- random programs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_cross_where_it_is_right(part: int) -> None:
    tally: collections.Counter[str] = collections.Counter()
    for number in range(PROGRAMS // PARTS):
        tally.update(try_crossings(random.Random(f"{SEED} {part} {number}")))
    # the programs must not drift to what never crosses
    assert tally["crossed"] >= tally["merged"]
