"""What an adversary found: programs that a recording or a replay once got wrong without a word."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import operator
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform.ledger import open_ledger
from accel.record.state import registry
from tests.helpers import some

# -- a call is run once, whatever happens after its tape has ended ----------------------------------------------------


def swallowed(s: Any, x: Any) -> Any:
    np.trim_zeros(x)
    try:
        x += 1
        s.items.append(2)
        s.n += 1
        {}["missing"]
    except KeyError:
        s.table["met"] = s.table.get("met", 0) + 1
    return x


def passed_on(s: Any, x: Any) -> Any:
    np.trim_zeros(x)
    x += 1
    s.n += 1
    raise ValueError("late")


def kept(s: Any, x: Any) -> Any:
    s.again = map(float, [s.n])
    np.trim_zeros(x)
    x += 1
    s.n += 1
    s.again = list(s.again)
    return x


@pytest.mark.parametrize("function", [swallowed, passed_on, kept])
def test_writes_after_the_tape_has_ended_happen_once(check: Any, function: Any) -> None:
    def make(i: int) -> Any:
        return SimpleNamespace(n=0, items=[1], table={}), some(i)

    check(function, make, reason="shape.dynamic")


def test_a_closure_that_is_kept_when_the_tape_ends(check: Any) -> None:
    """What a recording cannot take back is not run again either."""

    def work(s: Any, x: Any) -> Any:
        s.later = lambda: s.n
        np.trim_zeros(x)
        x += 1
        s.n += 1
        del s.later
        return x

    check(work, lambda i: (SimpleNamespace(n=0), some(i)), reason="shape.dynamic")


# -- methods ----------------------------------------------------------------------------------------------------------


class Limiter:
    """Methods of each kind."""

    top = 3.0

    def __init__(self) -> None:
        self.factor = 2.0

    def limit(self, r: float = 0.5, k: float = 2.0) -> float:
        return r * k * self.factor

    def slope(self, y: Any) -> Any:
        return -y * self.factor

    @classmethod
    def highest(cls, y: Any) -> Any:
        return np.minimum(y, cls.top)

    @staticmethod
    def half(y: Any) -> Any:
        return y * 0.5


def euler(slope: Any, y: Any) -> Any:
    np.trim_zeros(y)
    return y + 0.1 * slope(y)


def named(o: Any, y: Any) -> Any:
    limit = o.limit
    np.trim_zeros(y)
    return limit(3.0) * y


def handed_on(o: Any, y: Any) -> Any:
    return euler(o.slope, y)


def of_the_class(o: Any, y: Any) -> Any:
    return euler(o.highest, y), euler(o.half, y), euler(Limiter.highest, y)


def in_a_list(o: Any, y: Any) -> Any:
    methods = [o.slope, {"key": o.half}]
    np.trim_zeros(y)
    return methods[0](y) + methods[1]["key"](y)


@pytest.mark.parametrize("function", [named, handed_on, of_the_class, in_a_list])
def test_methods_keep_their_object_when_the_tape_ends(check: Any, function: Any) -> None:
    check(function, lambda i: (Limiter(), some(i)), reason="shape.dynamic")


def test_methods_that_are_kept_keep_their_object() -> None:
    def keep(o: Any, table: Any, y: Any) -> Any:
        o.callback = o.limit
        table["highest"] = o.highest
        return o.slope

    fast = accel.accelerate(keep)
    for _ in range(6):
        limiter, table = Limiter(), {}
        slope = fast(limiter, table, some(0))
        assert slope == limiter.slope
        assert limiter.callback(3.0) == limiter.limit(3.0)
        assert table["highest"](5.0) == 3.0


def test_what_a_method_belongs_to(check: Any) -> None:
    def work(o: Any, y: Any) -> Any:
        method = o.slope
        return method.__self__.factor * y + method.__func__(o, y) * (method == o.slope)

    check(work, lambda i: (Limiter(), some(i)))


# -- objects that a path tells apart ----------------------------------------------------------------------------------


class Grid:
    """Equal to itself alone."""

    def __init__(self, x: Any) -> None:
        self.x = x


TELLING = {
    "==": lambda a, b: a.x + 1.0 if a == b else a.x * 2.0,
    "!=": lambda a, b: a.x + 1.0 if a != b else a.x * 2.0,
    "in": lambda a, b: a.x + 1.0 if a in [b] else a.x * 2.0,
    "index": lambda a, b: a.x * [b, a].index(a),
    "dict": lambda a, b: a.x * {a: 1.0, b: 2.0}[a],
    "set": lambda a, b: a.x * len({a, b}),
}


@pytest.mark.parametrize("way", TELLING)
@pytest.mark.parametrize("first", [False, True], ids=["apart first", "same first"])
def test_objects_that_are_told_apart(check: Any, way: str, first: bool) -> None:
    def make(i: int) -> Any:
        a = Grid(some(i))
        return a, a if (i >= 9) is not first else Grid(some(i + 1))

    check(TELLING[way], make, calls=18, replays=8)


# -- numbers that do not fit ------------------------------------------------------------------------------------------

STORES = {
    "item": lambda a, k: a.__setitem__(1, k),
    "mask": lambda a, k: a.__setitem__(a == 0, k),
    "indices": lambda a, k: a.__setitem__(np.array([0, 2]), k),
    "list": lambda a, k: a.__setitem__(slice(0, 2), [k, 1]),
    "fill": lambda a, k: a.fill(k),
    "copyto": lambda a, k: np.copyto(a, k),
    "put": lambda a, k: np.put(a, [0], k),
    "place": lambda a, k: np.place(a, a == 0, k),
    "putmask": lambda a, k: np.putmask(a, a == 0, k),
    "fill_diagonal": lambda a, k: np.fill_diagonal(a.reshape(1, 3), k),
    "full": lambda a, k: a.__setitem__(..., np.full(3, k, dtype=a.dtype)),
    "full_like": lambda a, k: a.__setitem__(..., np.full_like(a, k)),
    "array": lambda a, k: a.__setitem__(..., np.array([k, 1, 2], dtype=a.dtype)),
    "pad": lambda a, k: a.__setitem__(..., np.pad(a, 1, constant_values=k)[:3]),
    "insert": lambda a, k: a.__setitem__(..., np.insert(a, 1, k)[:3]),
    "clip": lambda a, k: a.__setitem__(..., np.clip(a, k, None)),
    "initial": lambda a, k: a.__setitem__(..., a.max(initial=k)),
    "where": lambda a, k: a.__setitem__(..., np.where(a == 0, k, a)),
}


@pytest.mark.parametrize("store", STORES)
def test_integers_that_do_not_fit_later(check: Any, store: str) -> None:
    """NumPy raises for Python's integers; XLA would wrap them."""
    function = STORES[store]

    def work(a: Any, k: Any) -> Any:
        function(a, k)
        return a

    check(work, lambda i: (np.zeros(3, np.uint8), (200, 7, 300, -1)[i % 4] if i > 8 else 200), calls=17, replays=4)


@pytest.mark.parametrize("store", ["item", "list", "fill", "place", "array"])
def test_numpy_integers_that_do_not_fit_later(check: Any, store: str) -> None:
    """They raise like Python's where they are stored as numbers."""
    function = STORES[store]

    def work(a: Any, x: Any) -> Any:
        function(a, x[0])
        return a

    check(
        work,
        lambda i: (np.zeros(3, np.int8), np.array([(2, 300, 7, -200)[i % 4] if i > 8 else 2])),
        calls=17,
        replays=4,
    )


@pytest.mark.parametrize("store", sorted(set(STORES) - {"clip", "where", "initial", "copyto"}))
def test_floats_that_do_not_fit_later(check: Any, store: str) -> None:
    function = STORES[store]

    def work(a: Any, k: Any) -> Any:
        function(a, k)
        return a

    check(work, lambda i: (np.zeros(3, int), (2.5, math.nan, -3.0, 7.5)[i % 4] if i > 8 else 2.5), calls=17, replays=4)


def test_numbers_of_an_array_that_do_not_fit_later(check: Any) -> None:
    def work(x: Any) -> Any:
        return np.array([x[0], x.sum()], dtype=int)

    check(work, lambda i: np.array([1.5, math.nan if i == 12 else 2.0]), calls=16, replays=8)


@pytest.mark.parametrize("kind", [int, np.int64, lambda f: 1 / (f - 3.0), lambda f: 2.0**f])
def test_a_number_that_python_cannot_compute_with(check: Any, kind: Any) -> None:
    """Of one call; the path is as good as before for the next."""

    def work(a: Any, f: Any) -> Any:
        return a * kind(f)

    check(work, lambda i: (np.arange(3.0), {9: math.nan, 10: 3.0, 11: 1e9}.get(i, 2.0 + i / 8)), calls=24, replays=8)


# -- smaller ones -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled_before", [False, True])
def test_an_array_that_may_not_be_written_to(check: Any, compiled_before: bool) -> None:
    def work(a: Any) -> Any:
        try:
            a[0] = 1.0
        except ValueError:
            return "read-only"
        return "written"

    def make(i: int) -> Any:
        a = some(i)
        a.flags.writeable = compiled_before and i < 9
        return a

    check(work, make, calls=14, reason="path.exception", replays=3 if compiled_before else None)


def test_variances_of_fewer_elements_than_ddof(check: Any) -> None:
    def work(x: Any, mask: Any) -> Any:
        return x[mask].var(ddof=2), x[mask].std(ddof=1), x.reshape(4, 2)[mask[:4]].var(axis=0, ddof=3)

    check(work, lambda i: (some(i, 8), np.arange(8) < 9 - i), calls=10)


def test_covariances_of_fewer_observations_than_ddof(check: Any) -> None:
    check(lambda a, b: np.cov(a, b, ddof=5), lambda i: (some(i), some(i + 1)), reason="rule.parameter")


def test_bins_that_are_no_numbers(check: Any) -> None:
    def work(x: Any, k: float) -> Any:
        return np.digitize(x, [0.0, k])

    check(work, lambda i: (some(i), math.nan if i > 8 else 1.0), calls=12, replays=5, reason="rule.parameter")


def test_logarithms_to_a_base(check: Any) -> None:
    def work(x: Any, base: float) -> Any:
        return x * math.log(float(abs(x[0])), 2) + math.log(8.0, float(base + abs(x[1])))

    check(work, lambda i: (some(i), 3.0))


def test_builtins_and_views_that_are_kept_are_pythons_own() -> None:
    def keep(s: Any, y: Any) -> Any:
        s.reduce, s.kind, s.table = max, type, {"sum": sum}
        s.values, s.items = s.fields.values(), s.fields.items()
        np.trim_zeros(y)
        s.later = min
        return y

    fast = accel.accelerate(keep)
    for _ in range(4):
        s = SimpleNamespace(fields={"u": np.ones(2)})
        fast(s, some(0))
        assert (s.reduce, s.kind, s.table, s.later) == (max, type, {"sum": sum}, min)
        assert s.reduce is max and pickle.loads(pickle.dumps(s.table)) == {"sum": sum}
        assert type(s.values) is type({}.values()) and type(s.items) is type({}.items())


def test_builtins_do_what_they_do(check: Any) -> None:
    class Above:
        def scale(self, y: Any) -> Any:
            return y * 2.0

    class Below(Above):
        def scale(self, y: Any) -> Any:
            return super().scale(y) + max([1.0, 3.0]) + min(y[0], y[1]) + sum([y[2], 1.0]) * isinstance(Below, type)

    def work(o: Any, y: Any) -> Any:
        return o.scale(y) * (type(o) is Below) * callable(o.scale) * isinstance(y, np.ndarray)

    check(work, lambda i: (Below(), some(i)))


def test_a_tuple_that_comes_back_is_the_same_tuple() -> None:
    def back(t: Any, d: Any, y: Any) -> Any:
        d["kept"] = d["given"]
        return t

    fast = accel.accelerate(back)
    for i in range(8):
        pair, given = (some(i), 1), (some(i), 2)
        table = {"given": given}
        assert fast(pair, table, some(i)) is pair
        assert table["kept"] is given


def test_what_two_names_share_is_no_difference() -> None:
    """Comparisons see the item that was set under the other name too."""

    def work(s: Any) -> Any:
        s.a[0] = s.b[0] * 2.0
        return s.b[0] + s.a[0]

    fast = accel.accelerate(work, name="shared", mode="verify")
    for i in range(8):
        items = [float(i), 2.0]
        s = SimpleNamespace(a=items, b=items)
        expected = work(copy.deepcopy(s))
        assert fast(s) == expected
    assert "verify.mismatch" not in {refusal.reason for refusal in open_ledger("shared").refusals}


# -- where the tape breaks in the middle -------------------------------------------------------------------------------


def shout(x: Any) -> float:
    print(end="")
    return 1.0


def in_a_statement(o: Any, dt: float, x: Any) -> Any:
    info = {"dt": dt, "one": shout(x), "n": 3}
    return json.dumps(info)


def in_a_loop(o: Any, dt: float, x: Any) -> Any:
    found = []
    for value in [dt, x.tolist()]:
        shout(x)
        found.append(json.dumps(value))
    return found


def of_a_type(o: Any, dt: float, x: Any) -> Any:
    return 1 if shout(x) and type(o) is Limiter else 2


def beside_the_class(o: Any, dt: float, x: Any) -> Any:
    object.__setattr__(o, "cache", shout(x))
    return o.cache


def half_way(o: Any, dt: float, x: Any) -> Any:
    kinds = [(type(a).__name__, type(b).__name__, shout(x)) for a, b in zip([x, x], (x * 2, dt), strict=True)]
    later = (type(a).__name__ for a in [x * 2, x * 3])
    shout(x)
    return kinds, list(later)


def with_a_base(o: Any, dt: float, x: Any) -> Any:
    part = x[1:]
    return x + 1 if x is part.base else x - 1


@pytest.mark.parametrize(
    "function",
    [in_a_statement, in_a_loop, of_a_type, beside_the_class, half_way, with_a_base],
    ids=lambda f: f.__name__,
)
def test_nothing_recorded_is_left_where_the_tape_breaks(check: Any, function: Any) -> None:
    check(function, lambda i: (Limiter(), 1.5 + i, some(i)), replays=0)


def test_a_break_that_numpy_swallows(check: Any) -> None:
    """NumPy takes an object whose length raises for a single one."""

    class Span:
        def __len__(self) -> int:
            return int(np.unique(np.arange(3)).size)

        def __getitem__(self, i: int) -> float:
            if i >= 3:
                raise IndexError
            return float(i)

    def work(span: Any, x: Any) -> Any:
        x += 1
        return np.asarray(span), x

    check(work, lambda i: (Span(), some(i)), replays=0)


def test_what_an_enclosing_function_counts() -> None:
    n = 0

    def count() -> None:
        nonlocal n
        n += 1

    def work(x: Any) -> Any:
        count()
        return x + n

    fast = accel.accelerate(work)
    for i in range(1, 5):
        np.testing.assert_array_equal(fast(np.zeros(2)), [i, i])


def grows(items: Any, x: Any) -> Any:
    for item in items:
        if len(items) < 5:
            items.append(item)
    return x * len(items)


def shrinks(items: Any, x: Any) -> Any:
    for item in items:
        if item < 2:
            items.remove(item)
    return x * len(items)


def late(items: Any, x: Any) -> Any:
    it = iter(items)
    next(it)
    items.append(9.0)
    return x * sum(it)


@pytest.mark.parametrize("function", [grows, shrinks, late])
def test_lists_that_change_while_they_are_gone_through(check: Any, function: Any) -> None:
    check(function, lambda i: ([-1, -2, 1, 3], some(i)), replays=0)


# -- objects, again ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Point:
    n: int


@dataclasses.dataclass(frozen=True)
class Key:
    n: int


class Any_:
    """Equal to everything, where it is asked."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


EQUAL: dict[str, Any] = {
    "!=": (lambda a, b, x: x * 2 if a != b else x + 1, lambda i: (Point(1), Point(1 + (i > 6)))),
    "reflected": (lambda a, b, x: x * 2 if a == b else x + 1, lambda i: (Grid(1), Any_())),
    "hash": (lambda a, b, x: x * 2 if a in {b} else x + 1, lambda i: (Key(1 + (i > 6)), Key(2))),
    "operator": (lambda a, b, x: x * 2 if operator.is_(a, b) else x + 1, lambda i: [Grid(1)] * 2 if i > 6 else [1, 2]),
    "key": (lambda a, b, x: {a: x + 1}[a], lambda i: (Grid(1), 0)),
}


@pytest.mark.parametrize("way", EQUAL)
def test_what_is_equal(check: Any, way: str) -> None:
    function, make = EQUAL[way]
    check(function, lambda i: (*make(i), some(i)), calls=12, replays=0)


def test_objects_for_keys(check: Any) -> None:
    def work(d: Any, x: Any) -> Any:
        total = 0.0
        for key in d:
            total += key.x
            key.count = 1 + getattr(key, "count", 0)
        return x * total

    def make(i: int) -> Any:
        key = Grid(2.0 + i)
        return {key: 1}, some(i)

    def counted(d: Any, x: Any) -> Any:
        result = work(d, x)
        return result, [key.count for key in d]

    fast = accel.accelerate(work)
    for i in range(8):
        (d, x), (e, y) = make(i), make(i)
        expected = counted(d, x)
        np.testing.assert_array_equal(fast(e, y), expected[0])
        assert [key.count for key in e] == expected[1]


class Base:
    factor = 2.0

    @property
    def k(self) -> float:
        return self.factor

    @classmethod
    def scale(cls, x: Any) -> Any:
        return x * cls.factor


class Derived(Base):
    @property
    def k(self) -> float:
        return super().k + 1.0

    @classmethod
    def scale(cls, x: Any) -> Any:
        return super().scale(x)


def test_super(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(i: int) -> None:
        monkeypatch.setattr(Base, "factor", 2.0 + (i > 6))

    check(lambda o, x: x * o.k, lambda i: (Derived(), some(i)), calls=12, before=change, replays=4)
    check(lambda o, x: o.scale(x), lambda i: (Derived(), some(i)), calls=12, before=change, replays=0)


class Config(dict):  # type: ignore[type-arg]
    """What accel does not look into."""


def test_what_accel_does_not_look_into(check: Any) -> None:
    def asked(config: Any, x: Any) -> Any:
        return x * 2 if hasattr(config, "scale") and config.hook is not None else x

    def make(i: int) -> Any:
        config = Config()
        config.hook = max if i % 2 else None  # type: ignore[attr-defined]
        if i % 3:
            config.scale = 2.0  # type: ignore[attr-defined]
        return config, some(i)

    check(asked, make, calls=12, replays=0)

    def stored(config: Any, x: Any) -> Any:
        items = [x]
        config["items"] = items
        items.append(1)
        config.total = x.sum()
        return len(config["items"])

    check(stored, make, replays=0)


def test_out_by_position_is_undone_too(check: Any) -> None:
    def clipped(x: Any, buffer: Any) -> Any:
        total = buffer.sum()
        x.clip(0.0, 1.0, buffer)
        try:
            [].pop()
        except IndexError:
            pass
        return total

    def copied(x: Any, buffer: Any) -> Any:
        total = buffer.sum()
        np.copyto(src=x, dst=buffer)
        try:
            [].pop()
        except IndexError:
            pass
        return total

    for function in (clipped, copied):
        check(function, lambda i: (some(i), some(i + 1)), reason="path.exception")


def test_attributes_in_their_order_and_tuples_in_two_places(check: Any) -> None:
    def work(o: Any, x: Any) -> Any:
        if hasattr(o, "b"):
            return x
        o.a = x + 1.0
        o.b = x + 2.0
        o.first = o.second = (x * 2.0, 1)
        return x * 2.0

    fast = accel.accelerate(work)
    for i in range(8):
        mine, theirs = SimpleNamespace(n=1), SimpleNamespace(n=1)
        work(mine, some(i))
        fast(theirs, some(i))
        assert list(vars(theirs)) == list(vars(mine))
        assert theirs.first is theirs.second
    assert open_ledger(fast._self_target.name).compiled_calls


def test_what_is_deleted_must_be_the_objects_own(check: Any) -> None:
    class Holder:
        x = 1.0

    def work(o: Any, y: Any) -> Any:
        del o.x
        return y * 2.0

    def make(i: int) -> Any:
        holder = Holder()
        if i < 8:
            holder.x = 2.0
        return holder, some(i)

    check(work, make, calls=12, replays=2)


WRAPPING = {
    "product": lambda x: int(x[0]) * 2**40,
    "products": lambda x: (int(x[0]) * int(x[1])) % 1000,
    "sum": lambda x: int(x[0]) + int(x[0]) + int(x[0]),
    "difference": lambda x: int(x[0]) - 2**62 - int(x[1]) - 2**62,
    "power": lambda x: int(x[0]) ** 3,
    "negative power": lambda x: 3 ** min(12 - int(x[0]), 30),
    "absolute": lambda x: abs(int(x[0])),
    "item": lambda x: float(x.item(0) * x.item(1)),
    "modular power": lambda x: pow(int(x[0]), 3, 7),
}


@pytest.mark.parametrize("name", WRAPPING)
def test_python_integers_do_not_wrap(check: Any, name: str) -> None:
    def work(x: Any) -> Any:
        return x * 1.0, WRAPPING[name](x)

    large = {9: 2**53, 10: 2**62, 11: -(2**63), 12: 2**40 + 1}
    check(work, lambda i: np.array([large.get(i, i), 2**33 if i in large else 3]), calls=20, replays=0)


@pytest.mark.parametrize("largest", [2**53 - 1, 2**53])
def test_a_number_that_floats_cannot_tell_from_the_next(check: Any, largest: int) -> None:
    """2**53 + 1 rounds to 2**53: an outcome that is checked as a float would take one for the other."""
    factors = {2**53 - 1: 1.0, 2**53: 2.0, 2**53 + 1: 3.0}

    def work(x: Any, y: Any) -> Any:
        return y * factors[int(x.max())]

    check(work, lambda i: (np.array([largest + (i == 9), 3]), np.arange(4.0)), calls=12, replays=0)


def test_an_unsigned_integer_as_python_has_it(check: Any) -> None:
    def work(x: Any) -> Any:
        return int(x[0]), int(x[0]) + 1

    check(work, lambda i: np.array([2**64 - 1 if i == 9 else i, 3], np.uint64), calls=20, replays=8)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("function", [int, math.floor, math.ceil])
def test_numbers_without_an_integer_later(check: Any, function: Any, dtype: Any) -> None:
    """They raise in Python; 2**53 is infinite in half precision."""

    def work(x: Any) -> Any:
        return function(x[0])

    check(work, lambda i: np.array([(2.5, np.inf, np.nan)[i % 3] if i > 8 else i + 0.5], dtype), calls=18, replays=4)


def written_and_read(v: Any, m: Any, i: Any, j: Any, k: Any) -> Any:
    v[i] = 5.0
    return v[i], v


def written_in_a_slice(v: Any, m: Any, i: Any, j: Any, k: Any) -> Any:
    v[120:130] = 1.0
    return v[i]


def row(v: Any, m: Any, i: Any, j: Any, k: Any) -> Any:
    found = m[i]
    m[120:130] = 0.0
    return found + 0.0, m


def negative(v: Any, m: Any, i: Any, j: Any, k: Any) -> Any:
    v[j] = 5.0
    m[j, i % 2] += 1.0
    return v, m


def of_an_array(v: Any, m: Any, i: Any, j: Any, k: Any) -> Any:
    v[k[0]] += 5.0
    v[k[0] :] *= 2.0
    m[k[1]] += m[0]
    return v[127], m


@pytest.mark.parametrize("function", [written_and_read, written_in_a_slice, row, negative, of_an_array])
def test_small_integers_as_indices(check: Any, function: Any) -> None:
    """What is computed from them does not wrap."""
    small = np.int8(127), np.int8(-1), np.array([127, -1], np.int8)

    def make(i: int) -> Any:
        draw = np.random.default_rng(i).normal
        return draw(size=300), draw(size=(300, 3)), *small

    check(function, make)


def test_frames_that_another_thread_looks_at_are_no_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--auto` and profilers hold frames of the recorded code, and what is in them, while they wait for the GIL."""
    known, held = registry.Registry(), [type("Wrapper", (), {})()]
    known.born(held[0])
    monkeypatch.setattr(registry.time, "sleep", lambda _: held.clear())
    assert known.survivors() == []
