"""New objects of the program's classes: returned, stored, in containers, in several places, and in one another."""

from __future__ import annotations

import abc
import dataclasses
from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.helpers import some


class Vec:
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __add__(self, other: Vec) -> Vec:
        return Vec(self.x + other.x, self.y + other.y)

    def __mul__(self, factor: Any) -> Vec:
        return Vec(self.x * factor, self.y * factor)

    __rmul__ = __mul__

    @property
    def norm(self) -> Any:
        return np.sqrt(self.x**2 + self.y**2)


class Slotted:
    __slots__ = ("_hidden", "flux", "n")

    def __init__(self, flux: Any, n: int) -> None:
        self.flux = flux
        self.n = n

    def grown(self) -> Slotted:
        return Slotted(self.flux * 1.5, self.n + 1)


@dataclasses.dataclass(frozen=True)
class State:
    u: Any
    v: Any
    t: float = 0.0
    tags: list[str] = dataclasses.field(default_factory=list)

    def energy(self) -> Any:
        return 0.5 * float((self.u**2).sum() + (self.v**2).sum())


@dataclasses.dataclass
class Checked:
    value: Any
    double: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.double = self.value * 2


@dataclasses.dataclass(slots=True, frozen=True)
class Compact:
    a: Any
    b: Any = 1.0


class Base(abc.ABC):
    def __init__(self, x: Any) -> None:
        self.x = x

    @abc.abstractmethod
    def f(self) -> Any: ...


class Derived(Base):
    def f(self) -> Any:
        return Derived(self.x + 1)


class Empty:
    pass


class Node:
    def __init__(self, value: Any, parent: Node | None = None) -> None:
        self.value = value
        self.parent = parent
        self.children: list[Node] = []

    def add(self, value: Any) -> Node:
        child = Node(value, self)
        self.children.append(child)
        return child


class Pair(NamedTuple):
    a: Any
    b: Any


def test_operators_make_new_objects(check: Any) -> None:
    def step(a: Any, b: Any, x: Any) -> Any:
        c = a + 0.5 * b
        return c, c.norm, [c, (c, Vec(x, a.x))]

    check(step, lambda i: (Vec(some(i), some(i + 1)), Vec(some(i + 2), 2.0 + i), some(i)))


def test_a_state_is_returned_and_passed_in_again(check: Any) -> None:
    def worlds() -> Any:
        box = {"state": State(some(0), some(1))}

        def make(i: int) -> Any:
            return box, 0.1

        return make

    def step(box: Any, dt: float) -> Any:
        s = box["state"]
        box["state"] = State(u=s.u + dt * s.v, v=s.v - dt * s.u, t=s.t + dt)
        return box["state"].energy(), box["state"]

    check(step, worlds=worlds, calls=30)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: Checked(x + 1),
        lambda x: Compact(x * 2),
        lambda x: Compact(Compact(x * 2, x), 3),
        lambda x: Slotted(x, 1).grown(),
        lambda x: Derived(x * 2).f(),
        lambda x: State(x, x * 2, float(x[0]), ["a"]),
        lambda x: Pair(Vec(x, x * 2), [Checked(x)]),
        lambda x: {"one": Vec(x, 1), "two": (Vec(x, None), "text")},
    ],
)
def test_kinds_of_classes(check: Any, function: Any) -> None:
    check(function, some)


def test_an_empty_class(check: Any) -> None:
    def step(x: Any) -> Any:
        e = Empty()
        e.b = x * 2
        e.a = x
        e.c = 3
        del e.c
        e.b = x * 3
        return e

    result = check(step, some)
    assert list(vars(result.function(some(1)))) == ["b", "a"]


def test_one_object_in_several_places(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        v = Vec(x * 2, self)
        w = Vec(v, v)
        self.v = v
        self.all = [v, w, v]
        self.d["k"] = w
        return v, w, self.all, self

    def worlds() -> Any:
        one = SimpleNamespace(v=None, all=None, d={"k": 1})
        return lambda i: (one, some(i))

    check(step, worlds=worlds, calls=30)


def test_objects_that_contain_one_another(check: Any) -> None:
    def step(x: Any) -> Any:
        root = Node(x)
        child = root.add(x * 2)
        child.add(x * 3).add(x.sum())
        pair = (root, [child])
        root.pair = pair
        ring: list[Any] = [x + 1]
        ring.append(ring)
        table: dict[str, Any] = {"ring": ring}
        table["self"] = table
        return pair, table

    check(step, some)


def test_a_ring_that_is_stored(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        first, second = Node(x), Node(x * 2)
        first.parent, second.parent = second, first
        t = (first,)
        first.children = [t]
        self.first = t
        return first.children

    def worlds() -> Any:
        one = SimpleNamespace(first=None)
        return lambda i: (one, some(i))

    check(step, worlds=worlds)


class Sensor:
    """Makes its own containers."""

    def __init__(self, size: int) -> None:
        self.window: deque[Any] = deque(maxlen=size)
        self.groups: defaultdict[str, list[Any]] = defaultdict(list)
        self.totals: defaultdict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()
        self.names = {"a", "b"}
        self.order: OrderedDict[str, Any] = OrderedDict()

    def read(self, x: Any) -> None:
        self.window.append(x)
        self.window.append(x * 2)
        self.window.append(float(x.sum()))
        self.groups["x"].append(x)
        self.totals["x"] += x.mean()
        self.counts["x"] += 1
        self.names.add("c")
        self.order["second"] = x * 3
        self.order["first"] = 1


def new_sensor(self: Any, x: Any) -> Any:
    sensor = Sensor(2)
    sensor.read(x)
    self.sensor = sensor
    return sensor, np.mean(sensor.window[0]), SimpleNamespace(x=x, again=sensor.window)


def old_sensor(self: Any, x: Any) -> Any:
    self.old.read(x)
    del self.old.order["first"]
    return self.old, len(self.old.window), list(self.old.order)


@pytest.mark.parametrize("function", [new_sensor, old_sensor])
def test_containers_of_collections(check: Any, function: Any) -> None:
    def worlds() -> Any:
        one = SimpleNamespace(sensor=None, old=Sensor(3))
        return lambda i: (one, some(i))

    check(function, worlds=worlds, calls=20)


def test_a_deque_as_an_array(check: Any) -> None:
    def step(x: Any) -> Any:
        window = deque([x, x * 2], maxlen=2)
        window.append(x * 3)
        return np.mean(window, axis=0), np.stack(window)

    check(step, some)


class Flow(NamedTuple):
    """A named tuple with code of its own."""

    u: Any
    n: int = 0
    parent: Any = None

    @property
    def half(self) -> Any:
        return self.u * 0.5

    def moved(self, x: Any) -> Flow:
        return self._replace(u=self.u + x, n=self.n + 1)

    def __add__(self, other: Any) -> Any:
        return Flow(self.u + other.u, self.n + other.n)

    @classmethod
    def made(cls, x: Any) -> Any:
        return cls(x, parent=[x])


def test_named_tuples_with_methods(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        u, n, _ = self.flow
        new = self.flow.moved(x * 0.1)
        self.flow = new
        self.both = [new, new, Flow.made(x)]
        other = new + Flow(x, parent=self.flow)
        same = new == new, self.flow is new, len(new), new[1], isinstance(new, tuple), new._asdict()
        return u + other.half, n, other, same, new[1:], self.kept, (1, *new)

    def worlds() -> Any:
        one = SimpleNamespace(flow=Flow(some(0)), both=None, kept=Flow(some(1), 5))
        return lambda i: (one, some(i))

    check(step, worlds=worlds, calls=20)


def test_replace(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.state = dataclasses.replace(self.state, u=self.state.u + x, t=self.state.t + 0.5)
        return dataclasses.replace(self.state, v=x), self.state

    def worlds() -> Any:
        one = SimpleNamespace(state=State(some(0), some(1)))
        return lambda i: (one, some(i))

    check(step, worlds=worlds, calls=20)
