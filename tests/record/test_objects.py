"""Objects: state by path, the ways Python finds attributes, containers, and identity."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import accel
from accel.platform.ledger import open_ledger
from tests.helpers import some


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Params:
    g: float = 9.8
    scale: Any = None
    mode: Mode = Mode.FAST


class Grid:
    cells = 4
    spacing = 0.5

    def __init__(self, i: int = 0) -> None:
        self.lat = some(i)
        self.params = Params(scale=some(i + 5))

    @property
    def cos(self) -> Any:
        return np.cos(self.lat)

    @cos.setter
    def cos(self, value: Any) -> None:
        self.lat = np.arccos(value)

    @staticmethod
    def double(x: Any) -> Any:
        return x * 2

    @classmethod
    def made(cls, x: Any) -> Any:
        return x * cls.spacing

    def area(self, x: Any) -> Any:
        return x * self.spacing


class Model:
    def __init__(self, i: int = 0) -> None:
        self.grid = Grid(i)
        self.u = some(i + 1)
        self.v = some(i + 2)
        self.n = 0
        self.history = [some(i + 3), some(i + 4)]
        self.fields = {"T": some(i + 6), "q": some(i + 7), "k": 2.0}
        self.shape = (4, 1.5)
        self.pair = Pair(some(i + 8), 3.0)
        self.mode = Mode.FAST
        self.label = "ocean"
        self.nothing = None
        self.names = ["T", "q"]


def lasting(make: Any = Model) -> Any:
    def worlds() -> Any:
        one = make()
        return lambda i: (one, some(i))

    return worlds


def test_nested_objects_and_properties(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.u = self.u + self.grid.cos * self.grid.params.g * 0.01 + x
        self.grid.lat[0] += 0.1
        self.grid.params.scale *= 0.5
        self.v += self.grid.area(x) + self.grid.double(x) + self.grid.made(x) + Grid.made(x) + Grid.double(x)
        return self.u, self.grid.cells

    check(step, worlds=lasting())


def test_property_setter(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.grid.cos = np.tanh(x)
        return self.grid.lat

    check(step, worlds=lasting())


def test_swapping_attributes(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.u, self.v = self.v, self.u
        self.u += x
        return self.v

    check(step, worlds=lasting())


def test_swapping_and_replacing(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        old = self.u
        self.u = self.v * 0.5 + x
        self.v = old
        self.v[0] = 1.0
        return old

    check(step, worlds=lasting())


def test_attributes_created_and_deleted(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        if not hasattr(self, "extra"):
            self.extra = x * 0
        self.extra = self.extra + x
        self.temporary = x
        y = self.temporary + 1
        del self.temporary
        return y, getattr(self, "absent", 3.0), getattr(self, "n", 5)

    check(step, worlds=lasting(), calls=12, replays=4)


def test_deleting_an_attribute_for_good(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        y = self.u + x
        del self.u
        self.w = y
        return y

    check(step, lambda i: (Model(i), some(i)))


def test_the_same_array_under_two_names(check: Any) -> None:
    def make() -> Any:
        one = Model()
        one.v = one.u
        one.fields["T"] = one.u
        return one

    def step(self: Any, x: Any) -> Any:
        self.u += x
        self.fields["T"] *= 0.5
        return self.v.sum()

    check(step, worlds=lasting(make))


def test_two_names_for_a_new_array(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        new = self.u * 0.5 + x
        self.u = new
        self.v = new
        self.w = new[1:]
        self.fields["T"] = new
        return new

    check(step, worlds=lasting())


def test_two_names_for_an_object(check: Any) -> None:
    def make() -> Any:
        one = Model()
        one.other = one.grid
        return one

    def step(self: Any, x: Any) -> Any:
        self.grid.lat = x * 1
        self.other.lat[0] = 5.0
        return self.grid is self.other, self.grid.lat, self.grid.lat is self.other.lat

    check(step, worlds=lasting(make))


def test_objects_that_become_the_same(check: Any) -> None:
    def step(a: Any, b: Any, x: Any) -> Any:
        a.lat = x
        b.lat = x * 2
        return a.lat

    def make(i: int) -> Any:
        one = Grid(i)
        return (one, one, some(i)) if i % 4 == 3 else (one, Grid(i + 1), some(i))

    check(step, make, calls=20, replays=5)


def test_slots(check: Any) -> None:
    class Slotted:
        __slots__ = ("a", "b")

        def __init__(self) -> None:
            self.a = some(3)

    def step(self: Any, x: Any) -> Any:
        if not hasattr(self, "b"):
            self.b = x
        self.a = self.a + self.b
        self.b = x
        return self.a

    check(step, worlds=lasting(Slotted), calls=12, replays=4)


def test_inheritance_and_super(check: Any) -> None:
    class Base:
        def __init__(self) -> None:
            self.x = some(0)

        def step(self, y: Any) -> Any:
            self.x = self.x * 0.5 + y
            return self.size()

        def size(self) -> Any:
            return self.x.sum()

    class Child(Base):
        def step(self, y: Any) -> Any:
            first = super().step(y * 2)
            return first + super(Child, self).size()  # noqa: UP008

        def size(self) -> Any:
            return self.x.max()

    check(Child.step, worlds=lasting(Child))


def test_recursion_and_methods_calling_each_other(check: Any) -> None:
    class Tree:
        def __init__(self) -> None:
            self.x = some(1)

        def down(self, y: Any, n: int) -> Any:
            return y if n == 0 else self.up(y * 0.5, n)

        def up(self, y: Any, n: int) -> Any:
            self.x = self.x + y
            return self.down(y + 1, n - 1)

    check(lambda self, x: self.down(x, 3), worlds=lasting(Tree))


def test_class_attribute_overridden_on_the_instance(check: Any) -> None:
    one, two = Grid(), Grid()

    def step(grid: Any, x: Any) -> Any:
        return x * grid.spacing + grid.area(x)

    def before(i: int) -> None:
        if i == 7:
            one.spacing = two.spacing = 3.0
        if i == 9:
            one.area = two.area = lambda x: x * 100

    made = iter([one, two])

    def worlds() -> Any:
        mine = next(made)
        return lambda i: (mine, some(i))

    checked = check(step, worlds=worlds, before=before, calls=9, replays=2)
    assert checked.function(one, np.ones(2)).tolist() == [6.0, 6.0]


def test_method_overridden_on_the_instance(check: Any) -> None:
    def step(grid: Any, x: Any) -> Any:
        return grid.area(x)

    def worlds() -> Any:
        one = Grid()

        def make(i: int) -> Any:
            if i == 7:
                one.area = lambda x: x * 100
            return one, some(i)

        return make

    check(step, worlds=worlds, replays=2)


def test_method_overridden_on_the_class(check: Any, monkeypatch: Any) -> None:
    class Finer(Grid):
        pass

    def before(i: int) -> None:
        if i == 7:
            monkeypatch.setattr(Finer, "area", lambda self, x: x * 100, raising=False)

    one = Finer()
    check(lambda grid, x: grid.area(x), lambda i: (one, some(i)), before=before, replays=2)


def test_class_attribute_changed(check: Any, monkeypatch: Any) -> None:
    def before(i: int) -> None:
        if i == 7:
            monkeypatch.setattr(Grid, "spacing", 100.0)

    one = Grid()
    check(lambda grid, x: grid.area(x) + Grid.spacing, lambda i: (one, some(i)), before=before, replays=2)


def test_dataclasses(check: Any) -> None:
    def step(p: Any, x: Any) -> Any:
        p.scale = x * p.g
        p.g += 1.0
        return p.mode is Mode.FAST, p.mode == Mode.SLOW, p.mode.value, p.mode

    def worlds() -> Any:
        one = Params()
        return lambda i: (one, some(i))

    check(step, worlds=worlds)


def test_a_new_object_inside(check: Any) -> None:
    def step(x: Any) -> Any:
        p = Params(scale=x)
        p.g = p.g * 2
        pair = Pair(x, p.g)
        return p.scale * p.g + pair.a * pair.b

    check(step, some)


def test_lists_and_dicts_as_attributes(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.history[0] = self.history[1] + x
        self.history[-1] += 1.0
        self.fields["T"] = self.fields["T"] * 0.5 + x
        self.fields["q"][0] = 3.0
        self.fields["k"] *= 1.01
        total = 0.0
        for name in self.names:
            total = total + self.fields[name].sum()
        for value in self.history:
            total += value.sum()
        return total, len(self.history), "T" in self.fields, self.fields.get("absent", 2.0)

    check(step, worlds=lasting())


def test_negative_and_positive_list_index(check: Any) -> None:
    def step(lst: Any, x: Any) -> Any:
        lst[-1] = lst[-1] * 2.0 + x.sum()
        lst[0] = lst[1] + lst[2]
        return lst[2], lst[-1]

    check(step, lambda i: ([1.0 + i, 2.0 * i, 3.0], some(i)))


def test_swapping_in_containers(check: Any) -> None:
    def step(lst: Any, d: Any) -> Any:
        lst[0], lst[1] = lst[1], lst[0]
        d["a"], d["b"] = d["b"], lst[0]
        lst[0] += 1
        return lst[1]

    check(step, lambda i: ([some(i), some(i + 1)], {"a": some(i + 2), "b": some(i + 3)}))


def test_tuples(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        n, s = self.shape
        y = self.shape[1] * x + self.pair.a
        self.pair = Pair(y, self.pair.b + s)
        self.shape = (n, s + 1.0)
        a, _ = self.pair
        return a + self.pair.b, self.shape, self.pair

    check(step, worlds=lasting())


def test_containers_that_grow(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.history.append(x * 2)
        return self.history[-1] + self.history[0]

    check(step, worlds=lasting())


def test_new_containers_as_attributes(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.history = [x, x * 2]
        self.history.append(self.u)
        self.fields = {"T": x + 1, "q": (x, 2.0), "deep": {"l": [x + 3]}}
        self.fields["k"] = 5
        self.bundle = (x + 1, [x + 2])
        self.bundle[1].append(x + 4)
        return self.history[0] + self.bundle[1][0]

    check(step, worlds=lasting())


def test_a_list_that_changes_its_length(check: Any) -> None:
    def step(lst: Any) -> Any:
        return sum(lst) + len(lst)

    check(step, lambda i: [some(i)] * (2 + i % 2), calls=16, replays=5)


def test_comparing_containers(check: Any) -> None:
    def step(names: Any, d: Any, x: Any) -> Any:
        if names == ["a", "b"]:
            x = x + 1
        if d == {"k": 2}:
            x = x * 2
        if names != ["z"]:
            x = x - 3
        if not names:
            x = x + 100
        return x

    def make(i: int) -> Any:
        return [["a", "b"], ["a", "c"], ["z"], []][i % 4], {"k": i % 3}, some(i)

    check(step, make, calls=60, replays=15)


def test_dict_iteration_and_order(check: Any) -> None:
    def step(d: Any) -> Any:
        total = 0.0
        out = {}
        for name, value in d.items():
            total = total * 2 + value
            out[name] = value * 2
        return total, next(iter(d.values())), sorted(d.keys()), out, {**d}, dict(d)

    check(
        step,
        lambda i: {"a": some(i), "b": some(i + 1)} if i % 2 else {"b": some(i), "a": some(i + 1)},
        calls=16,
        replays=5,
    )


def test_missing_keys(check: Any) -> None:
    def step(d: Any) -> Any:
        x = d.get("a")
        y = d.get("b", 2.0)
        return x * y + (d["c"] if "c" in d else 0.0)  # noqa: SIM401

    check(
        step,
        lambda i: {"a": some(i), **({"b": 5.0} if i % 2 else {}), **({"c": 1.0} if i % 3 else {})},
        calls=30,
        replays=8,
    )


def test_other_containers(check: Any) -> None:
    def step(q: Any, names: Any, x: Any) -> Any:
        return x * 2 if q and "a" in names else x

    check(step, lambda i: (collections.deque([1] * (i % 2)), {"a"} if i % 3 else {"b"}, some(i)), replays=2)


def test_frozensets(check: Any) -> None:
    def step(names: Any, x: Any) -> Any:
        return x * 2 if "a" in names else x

    check(step, lambda i: (frozenset("ab" if i % 3 else "bc"), some(i)), calls=16, replays=6)


SENTINEL = object()


def helper(x: Any, flag: Any = SENTINEL) -> Any:
    return x * 2 if flag is SENTINEL else x * flag


def test_sentinels_functions_and_modules_keep_their_identity(check: Any) -> None:
    def step(x: Any, f: Any, xp: Any, kind: Any) -> Any:
        if f is helper:
            x = x + 1
        if f == helper:
            x = x + 2
        if xp is np:
            x = xp.sin(x)
        if xp.sum is np.sum:
            x = x * 3
        if kind is Grid:
            x = x - 1
        return helper(x) + f(x, 2.0)

    check(step, lambda i: (some(i), helper, np, Grid))


def test_sentinel_from_outside(check: Any) -> None:
    check(lambda x, flag: helper(x, flag), lambda i: (some(i), SENTINEL if i % 2 else 3.0), calls=16, replays=6)


class Odd:
    _plain = 1.0
    _slot = 2.0
    _recording = 3.0

    def __init__(self) -> None:
        self._node = some(1)
        self._slot = 5.0


def test_attributes_named_as_the_recorders_own(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self._recording = self._recording + 1
        return self._plain + self._slot + x + self._node + Odd._plain

    check(step, worlds=lasting(Odd))


def test_isinstance_and_type(check: Any) -> None:
    def step(self: Any, x: Any, s: float) -> Any:
        facts = (
            isinstance(x, np.ndarray),
            isinstance(s, float),
            isinstance(s, (int, np.floating)),
            isinstance(s, int | float),
            isinstance(self, Model),
            isinstance(self.grid, (Model, Grid)),
            isinstance(self.grid, collections.abc.Iterable),
            isinstance(self.fields, dict),
            isinstance(self.history, collections.abc.Sequence),
            type(x) is np.ndarray,
            type(s) is float,
            type(self) is Model,
            type(self).__name__,
            type(self.fields) is dict,
            callable(self.grid),
            callable(self.grid.area),
            np.isscalar(s),
            np.isscalar(x),
            np.ndim(s),
            hasattr(self.grid, "__len__"),
            hasattr(x, "dtype"),
            issubclass(type(self), Model),
        )
        return x * 2, facts

    check(step, worlds=lambda: (lambda one: lambda i: (one, some(i), 1.5 + i))(Model()))


def test_class_by_dunder(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        return x * 2, self.__class__.__name__, self.__class__ is Model

    check(step, worlds=lasting(), replays=0)  # a function's argument, and not a method's


def test_objects_with_operators(check: Any) -> None:
    class Vector:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __add__(self, other: Any) -> Any:
            return Vector(self.x + other.x)

        def __len__(self) -> int:
            return len(self.x)

        def __getitem__(self, i: int) -> Any:
            return self.x[i]

        def __call__(self, y: Any) -> Any:
            return self.x * y

        def __bool__(self) -> bool:
            return bool(self.x[0] > 0)

        def __float__(self) -> float:
            return float(self.x[0])

        def __eq__(self, other: Any) -> bool:
            return bool((self.x == other.x).all())

        def __enter__(self) -> Any:
            return self.x

        def __exit__(self, *exc: Any) -> None:
            return None

        __hash__ = None

    def step(a: Any, b: Any) -> Any:
        c = a + b
        with a as inside:
            y = inside * 1
        return len(c), c[0], c(2.0), (1 if a else 2), a == b, y

    check(step, lambda i: (Vector(some(i)), Vector(some(i + 1))), calls=20, replays=4)
    check(lambda a, x: x * float(a), lambda i: (Vector(some(i)), some(i)), replays=0)


def test_copies(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        return x.copy(), copy.copy(x) + 1

    check(step, worlds=lasting(), replays=0)
    check(lambda self, x: copy.deepcopy(self.grid).lat + x, worlds=lasting(), replays=0)


def test_namespaces(check: Any) -> None:
    def step(s: Any, x: Any) -> Any:
        s.x = x + s.k
        return s.x

    check(step, lambda i: (SimpleNamespace(k=1.0 + i), some(i)), replays=0)


def test_getattr_and_setattr_by_name(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        for name in ("u", "v"):
            setattr(self, name, getattr(self, name) + x)
        delattr(self, "nothing") if hasattr(self, "nothing") else None
        return self.u

    check(step, lambda i: (Model(i), some(i)))


def test_frozen_dataclass_and_cached_property(check: Any) -> None:
    @dataclasses.dataclass(frozen=True)
    class Frozen:
        x: Any

        @functools.cached_property
        def double(self) -> Any:
            return self.x * 2

    check(lambda f: f.x + 1, lambda i: Frozen(some(i)))
    check(lambda x: Frozen(x).x + 1, some)
    check(lambda f: f.double + 1, lambda i: Frozen(some(i)), replays=0)


def test_dynamic_attributes(check: Any) -> None:
    class Magic:
        def __init__(self) -> None:
            self.x = some(1)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return 2.0

    check(lambda m, x: x * m.anything + m.x, lambda i: (Magic(), some(i)), replays=0)


def test_setattr_of_the_class(check: Any) -> None:
    class Logged:
        def __init__(self) -> None:
            object.__setattr__(self, "log", [])

        def __setattr__(self, name: str, value: Any) -> None:
            self.log.append(name)
            object.__setattr__(self, name, value)

    def step(m: Any, x: Any) -> Any:
        m.x = x * 2
        return m.x + 1

    check(step, lambda i: (Logged(), some(i)), reason="call.opaque")


class Shadowed:
    """Its class has what the object gets at its first call."""

    cfg = {"k": 2.0}  # noqa: RUF012
    scale = np.ones(4)
    n = 0

    def __init__(self) -> None:
        self.u = some(1)


def half_shadowed() -> Any:
    """Every other call is an object's first."""
    made = [Shadowed() for _ in range(5)]
    return lambda i: (made[i // 2], some(i))


def test_what_the_class_has_assigned_to_the_object(check: Any) -> None:
    def step(o: Any, x: Any) -> Any:
        o.cfg = o.cfg
        o.scale = o.scale
        o.n += 1
        return x * o.cfg["k"] + o.scale * o.n

    check(step, worlds=half_shadowed)


def test_in_place_change_of_what_only_the_class_has_makes_an_attribute() -> None:
    def step(o: Any, x: Any) -> Any:
        o.buf += x
        return o.buf * 2

    def left_behind(step: Any) -> Any:
        kind = type("Buffered", (), {"buf": np.zeros(4)})
        made = [kind() for _ in range(5)]
        results = [step(made[i // 2], some(i)).tolist() for i in range(9)]
        return results, [sorted(vars(each)) for each in made], all(each.buf is kind.buf for each in made)

    accelerated = accel.accelerate(step, name="shadowed in place")
    assert left_behind(accelerated) == left_behind(step)
    assert open_ledger("shadowed in place").compiled_calls >= 4


def test_deleting_an_attribute_shows_the_class_s_again(check: Any) -> None:
    def step(o: Any, x: Any) -> Any:
        y = o.scale + x
        del o.scale
        return y + o.scale

    def make(i: int) -> Any:
        o = Shadowed()
        o.scale = some(i + 1)
        return o, some(i)

    check(step, make)


class Above:
    k = 2.0


class Below(Above):
    def step(self, x: Any) -> Any:
        self.k = super().k * 1.5
        return x * self.k


def test_super_looks_past_the_object_s_own_attributes(check: Any) -> None:
    check(lambda o, x: o.step(x), worlds=lasting(Below))


class Cached:
    def __init__(self) -> None:
        self.dx = some(2)

    @functools.cached_property
    def area(self) -> Any:
        return self.dx * self.dx


class Answering:
    __slots__ = ("area", "dx")

    def __init__(self) -> None:
        self.dx = some(2)
        self.area = some(3)

    def __getattr__(self, name: str) -> Any:
        if name == "area":
            return self.dx * self.dx
        raise AttributeError(name)


@pytest.mark.parametrize("kind", [Cached, Answering])
def test_what_a_class_computes_is_not_computed_before_the_call(check: Any, kind: Any) -> None:
    def step(o: Any, x: Any) -> Any:
        o.dx = o.dx * 1.5
        return x * o.area

    def worlds() -> Any:
        has, lacks = kind(), kind()
        has.area  # noqa: B018
        vars(lacks).pop("area", None) if kind is Cached else delattr(lacks, "area")
        return lambda i: (lacks if i == 6 else has, some(i))

    # a cached_property is followed, and set when it is its turn; `__getattr__` is followed too
    check(step, worlds=worlds, replays=3)


class Around:
    def __init__(self, inner: Any, **own: Any) -> None:
        self.inner = inner
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("scaled_"):
            return getattr(self, name.removeprefix("scaled_")) * 2.0
        return getattr(self.inner, name)


def test_attributes_that_another_object_answers(check: Any) -> None:
    def step(o: Any, x: Any) -> Any:
        o.x = o.x + x
        return o.k * x, o.scaled_k, o.scaled_x.sum(), o.step(x)

    check(step, worlds=lasting(lambda: Around(Below(), x=some(4))))


def test_an_attribute_that_appears_later_hides_what_another_object_answers(check: Any) -> None:
    def worlds() -> Any:
        made = Around(Below())

        def make(i: int) -> Any:
            if i == 6:
                made.k = 5.0
            return made, some(i)

        return make

    check(lambda o, x: o.k * x, worlds=worlds, replays=3)


class Table(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(name)


def test_attributes_of_what_is_not_looked_into_are_refused_as_such(check: Any) -> None:
    checked = check(lambda o, x: o.k * x, lambda i: (Table(k=2.0), some(i)), reason="object.opaque")
    (refusal,) = checked.ledger.refusals
    assert refusal.detail == ".k of a Table"


def test_dtypes_come_in_and_leave(check: Any) -> None:
    kinds = np.dtype("f4"), np.dtype("f8")

    def step(o: Any, x: Any, log: Any) -> Any:
        o.kind = x.dtype
        log.append(x.dtype)
        return x.astype(o.wanted) * 2.0, {"kind": x.dtype}, np.zeros(2, o.wanted), o.wanted == np.float32

    def worlds() -> Any:
        made, log = SimpleNamespace(kind=None), []

        def make(i: int) -> Any:
            made.wanted = kinds[i > 5]
            return made, some(i), log

        return make

    check(step, worlds=worlds, replays=3)


@dataclasses.dataclass(frozen=True)
class Sealed:
    x: Any
    k: float = 2.0
    scaled: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scaled", self.x * self.k)

    def moved(self, by: Any) -> Sealed:
        return Sealed(self.x + by, self.k * 1.5)


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    x: Any


class Locked:
    def __init__(self) -> None:
        super().__setattr__("v", np.zeros(4))
        object.__setattr__(self, "n", 0)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("locked")


def test_frozen_objects_are_made_in_recorded_code(check: Any) -> None:
    check(lambda x: Sealed(x).moved(x).moved(1.0).scaled + Slotted(x).x + Locked().v, some)


def test_object_s_own_way_to_set_and_delete(check: Any) -> None:
    def step(o: Any, x: Any) -> Any:
        object.__setattr__(o, "v", o.v + x)
        object.__setattr__(o, "n", o.n + 1)
        object.__setattr__(o, "scratch", x * 2)
        y = o.scratch + o.v
        object.__delattr__(o, "scratch")
        return y * o.n

    def fails(o: Any, x: Any) -> Any:
        object.__setattr__(o, "v", x)
        return [][o.n]

    check(step, worlds=lasting(Locked))
    check(fails, worlds=lasting(Locked), reason="path.exception")


def test_object_is_object(check: Any) -> None:
    def step(x: Any) -> Any:
        nothing = object()
        return x + 1, isinstance(x, object), type(nothing) is object, issubclass(Sealed, object), nothing is None

    check(step, some)


def test_special_methods_by_super(check: Any) -> None:
    class Above:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, i: int) -> Any:
            return self.x * i

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    class Below(Above):
        def __init__(self, x: Any) -> None:
            super().__init__()
            self.x = x

        def __len__(self) -> int:
            return super().__len__() + 1

        def __getitem__(self, i: int) -> Any:
            return super().__getitem__(i) + 1

        def __eq__(self, other: object) -> bool:
            return super().__eq__(other)

    check(lambda x: Below(x)[2] * len(Below(x)) * (Below(x) == Below(x)), some)


def test_class_without_a_module(check: Any) -> None:
    class Homeless(type):
        @property
        def __module__(cls) -> Any:
            raise AttributeError("__module__")

    class Bare(metaclass=Homeless):
        v = 3.0

    bare = Bare()
    check(lambda x: x * Bare.v + bare.v if type(bare) is Bare else x, some)
