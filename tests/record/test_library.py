"""Helpers of Python's library: caches, copies, context managers; NumPy's functions that call back."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import accel
from tests.helpers import some

# -- caches -----------------------------------------------------------------------------------------------------------


def cached(maxsize: int | None = 128, typed: bool = False) -> Any:
    """A function with a cache of its own, and what it ran with."""
    ran: list[Any] = []

    @functools.lru_cache(maxsize=maxsize, typed=typed)
    def weights(n: int, h: float = 0.5) -> Any:
        ran.append((n, h))
        return np.arange(n) * h

    return weights, ran


@pytest.mark.parametrize("maxsize", [None, 128, 1])
def test_cached_results_are_the_same_object_and_hits_are_counted(check: Any, maxsize: Any) -> None:
    made: list[Any] = []

    def worlds() -> Any:
        weights, ran = cached(maxsize)
        made.append((weights, ran))

        def make(i: int) -> Any:
            return some(i), weights

        return make

    def work(x: Any, weights: Any) -> Any:
        table = weights(4)
        return x * table + weights(4)[::-1], table

    check(work, worlds=worlds, calls=12)
    (plain, ran_plainly), (fast, ran_fast) = made
    assert plain.cache_info() == fast.cache_info() and fast.cache_info().hits == 23
    assert ran_plainly == ran_fast == [(4, 0.5)]


def test_caches_by_keyword_and_type_and_number(check: Any) -> None:
    made: list[Any] = []

    def worlds() -> Any:
        weights, _ = cached(typed=True)
        made.append(weights)
        return lambda i: (some(i), weights, 3 + i % 2)

    def work(x: Any, weights: Any, n: int) -> Any:
        return x.sum() * weights(n, h=2) + weights(n, h=2.0) + weights(n, 1)

    check(work, worlds=worlds, calls=20, replays=10)
    assert made[0].cache_info() == made[1].cache_info()


def test_a_cache_that_is_cleared_or_loses_an_entry(check: Any) -> None:
    made: list[Any] = []

    def worlds() -> Any:
        weights, ran = cached(2)
        made.append((weights, ran))

        def make(i: int) -> Any:
            if i == 8:
                weights.cache_clear()
            if i in (12, 13):
                weights(i), weights(i + 1)
            return some(i), weights

        return make

    def work(x: Any, weights: Any) -> Any:
        table = weights(4)
        table += x
        return table.sum()

    check(work, worlds=worlds, calls=20, replays=8)
    (plain, ran_plainly), (fast, ran_fast) = made
    assert plain.cache_info() == fast.cache_info()
    assert ran_plainly == ran_fast


class Basis:
    def __init__(self, n: int) -> None:
        self.n = n

    @functools.lru_cache  # noqa: B019 - as programs have it
    def table(self, k: int) -> Any:
        return np.arange(self.n) * float(k)

    @functools.cached_property
    def points(self) -> Any:
        return np.linspace(0.0, 1.0, self.n)


def test_cached_methods_and_properties(check: Any) -> None:
    def worlds() -> Any:
        bases = [Basis(4), Basis(4)]

        def make(i: int) -> Any:
            if i == 9:
                del bases[0].points
            return some(i), bases[i % 2]

        return make

    def work(x: Any, basis: Any) -> Any:
        basis.table(3)[0] += 1.0
        return x * basis.table(3) + basis.points, basis.points

    check(work, worlds=worlds, calls=24, replays=14)


@dataclass(frozen=True)
class Key:
    n: int


def test_caches_of_other_than_plain_values_stay_on_numpy(check: Any) -> None:
    def worlds() -> Any:
        weights, _ = cached()
        return lambda i: (some(i), weights)

    def work(x: Any, weights: Any) -> Any:
        return x * weights(float("nan") if x[0] > 1e9 else np.array(4))

    check(work, worlds=worlds, reason="call.opaque")

    @functools.lru_cache
    def by_key(key: Key) -> float:
        return float(key.n)

    check(lambda x: x * by_key(Key(3)), some, reason="value.forced")


def test_a_loop_by_data_does_not_lose_hits(check: Any) -> None:
    made: list[Any] = []

    def worlds() -> Any:
        weights, _ = cached()
        made.append(weights)
        return lambda i: (np.full(4, 2.0 ** (1 + i % 3)), weights)

    def work(x: Any, weights: Any) -> Any:
        while x.max() > 1.0:
            x = x * 0.5 + 0.0 * weights(4)
        return x

    check(work, worlds=worlds, calls=24, replays=6)
    assert made[0].cache_info() == made[1].cache_info()


def test_merged_paths_count_the_hits_of_the_one_that_is_taken(check: Any) -> None:
    made: list[Any] = []

    def worlds() -> Any:
        weights, _ = cached()
        made.append(weights)
        return lambda i: (some(i), some(i + 100), weights)

    def work(x: Any, y: Any, weights: Any) -> Any:
        total = x * weights(4)
        if x[0] > 0.0:
            total = total + weights(4) + weights(4)
        if y[0] > 0.0:
            total = total - y
        return total

    check(work, worlds=worlds, calls=40, replays=20)
    assert made[0].cache_info() == made[1].cache_info()


def test_a_cached_result_is_one_with_an_argument(check: Any) -> None:
    def worlds() -> Any:
        weights, _ = cached()
        return lambda i: (weights(4), some(i), weights)

    def work(table: Any, x: Any, weights: Any) -> Any:
        table += x
        return table + weights(4), weights(4)

    check(work, worlds=worlds)


def test_what_a_cache_says_of_itself_is_no_constant(check: Any) -> None:
    def worlds() -> Any:
        weights, _ = cached()
        return lambda i: (some(i), weights)

    def hits(x: Any, weights: Any) -> Any:
        table = weights(4)
        return x * table, weights.cache_info().hits

    def clear(x: Any, weights: Any) -> Any:
        before = weights(4)
        weights.cache_clear()
        return x * before + weights(4)

    check(hits, worlds=worlds, reason="call.opaque")
    check(clear, worlds=worlds, reason="call.opaque")


# -- copies -----------------------------------------------------------------------------------------------------------


class Node:
    def __init__(self, u: Any, child: Any = None) -> None:
        self.u, self.child, self.n = u, child, 1
        self.parent: Any = None


def test_copies_of_arrays_numbers_and_containers(check: Any) -> None:
    def work(x: Any, values: Any, table: Any) -> Any:
        one, two = copy.copy(x), copy.deepcopy(x)
        one[0], two[1] = 5.0, 6.0
        whole, flat = copy.deepcopy(values), copy.copy(values)
        whole[0] += 1.0
        flat[1] = x * 2
        deep = copy.deepcopy(table)
        deep["b"][0] += 2.0
        pair = (x, 1)
        return one, two, whole, flat, deep, copy.copy(x[0]), copy.deepcopy(2.5), copy.copy(pair), pair, x

    def worlds() -> Any:
        return lambda i: (some(i), [some(i + 1), some(i + 2)], {"a": 1.0, "b": [some(i + 3), "text", None]})

    check(work, worlds=worlds)


PAIRS: list[tuple[Any, Any]] = [
    (lambda x, y: [x, y], lambda made: made),
    (lambda x, y: (x, {"y": y}), lambda made: (made[0], made[1]["y"])),
    (lambda x, y: Node(x, y), lambda made: (made.u, made.child)),
]


@pytest.mark.parametrize(("pair", "parts"), PAIRS)
def test_a_deep_copy_of_one_array_in_two_places_is_one_array(check: Any, pair: Any, parts: Any) -> None:
    def work(given: Any) -> Any:
        first, second = parts(copy.deepcopy(given))
        first += 1.0
        return second * 2.0

    for turn in (lambda i: i > 4, lambda i: i < 4):  # whichever is recorded first
        check(work, lambda i, turn=turn: (pair(*[some(i), some(i)] if turn(i) else [some(i)] * 2),), replays=2)


def test_a_deep_copy_keeps_what_is_one_object_one(check: Any) -> None:
    def work(node: Any, x: Any) -> Any:
        made = copy.deepcopy(node)
        made.u += x
        made.child.u *= 2.0
        made.extra = x
        return made, made.child.parent is made, made.u is made.child.u, node.u

    def worlds() -> Any:
        def make(i: int) -> Any:
            u = some(i)
            node = Node(u, Node(u))
            node.child.parent = node
            return node, some(i + 50)

        return make

    check(work, worlds=worlds)


def test_a_shallow_copy_shares_what_it_holds(check: Any) -> None:
    def work(node: Any, x: Any) -> Any:
        node.n += 1
        node.fresh = x * 3.0
        made = copy.copy(node)
        made.u = made.u + x
        made.child.u[0] = 7.0
        return made

    check(work, worlds=lambda: lambda i: (Node(some(i), Node(some(i + 1))), some(i + 2)))


def test_an_object_with_other_attributes_is_copied_as_it_is(check: Any) -> None:
    def worlds() -> Any:
        def make(i: int) -> Any:
            node = Node(some(i))
            if i > 8:
                node.late = some(i + 1)  # type: ignore[attr-defined]
            return node

        return make

    check(lambda node: copy.copy(node), worlds=worlds, calls=20, replays=8)


class Own:
    def __init__(self, u: Any) -> None:
        self.u = u

    def __deepcopy__(self, memo: Any) -> Any:
        return "own"


class Guarded:
    __slots__ = ("u",)

    def __init__(self, u: Any) -> None:
        self.u = u


def test_classes_that_say_how_they_are_copied_are_left_to_python(check: Any) -> None:
    check(lambda x: copy.deepcopy(x), lambda i: Own(some(i)), reason="call.opaque")
    check(lambda x: copy.deepcopy(x), lambda i: random.Random(i), reason="call.opaque")
    check(lambda x: copy.deepcopy([x, collections.OrderedDict(a=x)]), some, reason="call.opaque")
    check(lambda x: copy.deepcopy(x), lambda i: Guarded(some(i)))


def test_a_class_that_learns_how_to_copy_is_asked(check: Any, monkeypatch: Any) -> None:
    class Late:
        def __init__(self, u: Any) -> None:
            self.u = u

    def before(i: int) -> None:
        if i == 8:
            monkeypatch.setattr(Late, "__copy__", lambda self: self, raising=False)

    check(lambda late: copy.copy(late), lambda i: Late(some(i)), before=before, calls=14, replays=3)


# -- dataclasses ------------------------------------------------------------------------------------------------------


@dataclass
class Grid:
    dx: Any
    shape: tuple[int, int] = (2, 2)


@dataclass
class State:
    u: Any
    grid: Grid
    tags: dict[str, Any] = field(default_factory=dict)
    t: float = 0.0


def test_fields_of_a_dataclass(check: Any) -> None:
    def work(state: Any) -> Any:
        total = 0.0
        for each in dataclasses.fields(state):
            if each.name in ("u", "t"):
                total = total + getattr(state, each.name)
        return total, [each.name for each in dataclasses.fields(Grid)]

    check(work, lambda i: State(some(i), Grid(1.0), t=float(i)))


def test_replace_follows_post_init(check: Any) -> None:
    @dataclass(frozen=True)
    class Frozen:
        u: Any
        norm: Any = 0.0

        def __post_init__(self) -> None:
            object.__setattr__(self, "norm", self.u.sum())

    check(lambda s, x: dataclasses.replace(s, u=s.u + x), lambda i: (Frozen(some(i)), some(i + 1)))


# -- context managers -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def scaled(x: Any, by: Any) -> Iterator[Any]:
    x *= by
    try:
        yield x
    finally:
        x /= by


class Solver:
    def __init__(self, u: Any) -> None:
        self.u, self.depth, self.log = u, 0, []

    @contextlib.contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        before = self.u.copy()
        self.depth += 1
        self.log.append(name)
        yield
        self.depth -= 1
        self.u[:] = before + self.u.mean()


def test_context_managers_of_generators(check: Any) -> None:
    def work(x: Any, solver: Any) -> Any:
        with scaled(x, 2.0) as y, solver.frozen("a"):
            total = y.sum()
            solver.u += y
            with scaled(solver.u, 3.0):
                total += solver.u.max()
        return total, solver.u

    def worlds() -> Any:
        return lambda i: (some(i), Solver(some(i + 1)))

    check(work, worlds=worlds)


def test_branches_and_loops_around_context_managers(check: Any) -> None:
    @contextlib.contextmanager
    def flagged(x: Any) -> Iterator[Any]:
        flag = bool(x.max() > 1.0)
        scale = 2.0 if flag else 3.0
        yield scale
        x *= scale
        if flag:
            x += 100.0

    def work(x: Any, y: Any) -> Any:
        for k in range(3):
            with flagged(x) as scale:
                if y[k] > 0.0:
                    y = y + scale
                y = y * 0.5
        residual = y.copy()
        with flagged(residual):
            while residual.max() > 0.1:
                residual *= 0.5
        return x, y, residual

    check(work, lambda i: (some(i), some(i + 60)), calls=30, replays=4)


def test_exceptions_go_through_context_managers_as_in_python(check: Any) -> None:
    seen: list[str] = []

    @contextlib.contextmanager
    def watched(x: Any) -> Iterator[Any]:
        try:
            yield x * 2
        except ValueError as error:
            seen.append(str(error))
            x[:] = -1.0
        finally:
            x += 1.0

    def work(x: Any, fails: int) -> Any:
        with watched(x) as y:
            if fails == 1:
                raise ValueError("bad")
            if fails == 2:
                raise KeyError("worse")
            return y.sum()
        return x

    def worlds() -> Any:
        return lambda i: (some(i), (0, 0, 0, 0, 0, 0, 0, 1, 2)[i % 9])

    check(work, worlds=worlds, calls=27, replays=10)
    assert seen == ["bad"] * 6


def test_suppress_nullcontext_and_closing(check: Any) -> None:
    def work(x: Any) -> Any:
        with contextlib.suppress(ValueError), contextlib.nullcontext(x * 2) as y:
            return y.sum()
        return None

    check(work, some)


def test_a_context_manager_that_is_not_entered_at_once_stays_on_numpy(check: Any) -> None:
    def work(x: Any) -> Any:
        manager = scaled(x, 2.0)
        with manager as y:
            return y.sum()

    check(work, some, reason="call.opaque")


def test_a_context_manager_that_ends_the_recording_half_way(check: Any) -> None:
    @contextlib.contextmanager
    def opaque(x: Any) -> Iterator[Any]:
        x += 1.0
        yield x
        x *= float(str(x[0])[:3] or 1)

    def work(x: Any) -> Any:
        with opaque(x) as y:
            total = y.sum()
        return total, x

    check(work, lambda i: abs(some(i)) + 1.0, reason="value.forced")


class Box:
    pass


def test_variables_of_a_generator_are_plain_once_the_recording_has_ended(check: Any) -> None:
    @contextlib.contextmanager
    def saved(box: Any, x: Any) -> Iterator[Any]:
        before = x * 2
        yield before
        box.saved = before
        box.more = [before, x]

    def work(box: Any, x: Any) -> Any:
        with saved(box, x) as before:
            with open(os.devnull):
                pass
            return x + before

    check(work, worlds=lambda: lambda i: (Box(), some(i)), reason="effect.file")


def test_flags_of_a_generator_are_its_own_on_every_path(check: Any) -> None:
    """What a generator remembers decides what follows: no path goes on in another one's."""

    class Log:
        def __init__(self) -> None:
            self.n, self.both = 0, 0

    @contextlib.contextmanager
    def counted(log: Any, x: Any) -> Iterator[Any]:
        flag = 1 if x[0] > 0 else 0
        if x[1] > 0:
            flag += 2
        yield flag
        log.n += flag
        if flag == 3:
            log.both += 1

    def work(log: Any, x: Any, y: Any) -> Any:
        with counted(log, x) as flag:
            if y[0] > 0:
                y = y + 1
            y = y + flag
        if y[1] > 0:
            y = -y
        return y, log.n

    def worlds() -> Any:
        log = Log()
        return lambda i: (log, some(i), some(i + 500))

    check(work, worlds=worlds, calls=80, replays=10)


def test_generators_that_yield_twice_or_never(check: Any) -> None:
    @contextlib.contextmanager
    def twice(x: Any) -> Iterator[Any]:
        yield x
        yield x

    def work(x: Any) -> Any:
        with twice(x) as y:
            return y.sum()

    check(work, some, reason="path.exception")


# -- NumPy's functions that call back ---------------------------------------------------------------------------------


class Seen:
    def __init__(self) -> None:
        self.rows = 0
        self.last: Any = None

    def see(self, v: Any) -> Any:
        self.rows += 1
        self.last = v
        v[0] = 9.0
        return v.sum()


CALLING: list[Any] = [
    lambda m, seen: np.apply_along_axis(lambda v: seen.see(v), 1, m),
    lambda m, seen: np.apply_along_axis(func1d=seen.see, axis=0, arr=m),
    lambda m, seen: np.apply_over_axes(lambda v, axis: v.sum(axis=axis) + seen.see(v).sum(), m, [0, -1]),
    lambda m, seen: np.fromfunction(lambda i, j: i * m[0, 0] + seen.see(j + 0.0), (3, 2)),
]


@pytest.mark.parametrize("calling", CALLING)
def test_a_function_that_numpy_calls_stays_on_numpy_and_runs_once(check: Any, calling: Any) -> None:
    check(lambda m, seen: (calling(m, seen), seen.last), lambda i: (some(i, 3, 4), Seen()), reason="call.opaque")


def test_a_function_of_numpys_along_an_axis(check: Any) -> None:
    check(lambda m: (np.apply_along_axis(np.sum, 0, m), np.apply_over_axes(np.sum, m, [0])), lambda i: some(i, 3, 4))


# -- NumPy scalars ----------------------------------------------------------------------------------------------------


def test_items_of_numpy_scalars(check: Any) -> None:
    def work(x: Any) -> Any:
        one = x[0]
        array = one[None]
        array[0] += 1.0
        return array, one[...], one[()], one[None, None], x.sum()[np.newaxis], hasattr(float(one), "__getitem__")

    check(work, some)
    check(lambda x: list(x[0]), some, reason="path.exception")
    check(lambda x: x[0][0], some, reason="path.exception")
    check(lambda x: float(x[0])[None], some, reason="path.exception")  # type: ignore[index]


def test_recording_asks_no_cache_twice(foreground: None) -> None:
    """A recording that is undone has asked nothing: the plain call does."""
    weights, _ = cached()
    weights(4)

    @accel.accelerate
    def work(x: Any) -> Any:
        weights(4)
        return x * float(str(x[0]))

    for i in range(6):
        work(some(i))
    assert weights.cache_info().hits == 6
