"""Generators of the program that a `for` statement or a `yield from` iterates: they are followed as functions are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

Check = Any


class Log:
    def __init__(self) -> None:
        self.n = 0
        self.seen: list[Any] = []
        self.kept: Any = None


class Node:
    def __init__(self, weight: float, *children: Node) -> None:
        self.weight, self.children = weight, children

    def postorder(self) -> Iterator[Node]:
        for child in self.children:
            yield from child.postorder()
        yield self


def some(i: int) -> Any:
    return np.random.default_rng(i).standard_normal(40)


def signed(x: Any, n: int) -> Iterator[Any]:
    for k in range(n):
        if x[k] > 0.0:
            yield x[k] * 2.0
        else:
            yield x[k] - 1.0


def logged(log: Log, x: Any, n: int) -> Iterator[Any]:
    before = x.sum()
    try:
        for k in range(n):
            log.n += 1
            log.seen.append(before * k)
            yield x * k
    finally:
        log.n += 100


def test_branches_inside(check: Check) -> None:
    def work(x: Any) -> Any:
        total = 0.0
        for value in signed(x, 3):
            total = total + value
        return total * x

    check(work, some, calls=60, replays=20)


def test_branches_inside_and_around(check: Check) -> None:
    """What a generator remembers is its own on every path."""

    def flagged(x: Any) -> Iterator[Any]:
        flag = 1 if x[0] > 0.0 else 0
        yield flag
        if x[1] > 0.0:
            flag += 2
        yield flag * x

    def work(x: Any, y: Any) -> Any:
        for value in flagged(x):
            if y[2] > 0.0:
                y = y + value
            else:
                y = y - 2.0 * value
        return y

    check(work, worlds=lambda: lambda i: (some(i), some(i + 500)), calls=80, replays=20)


def test_trees(check: Check) -> None:
    """Objects are keys of a dictionary that the call makes."""

    def work(tree: Node, x: Any) -> Any:
        partial: dict[Node, Any] = {}
        for node in tree.postorder():
            value = x * node.weight
            for child in node.children:
                value = value + np.exp(-partial.pop(child))
            partial[node] = value
        return partial[tree], len(partial)

    def worlds() -> Any:
        tree = Node(0.1, Node(0.2, Node(0.3), Node(0.4)), Node(0.5))
        return lambda i: (tree, some(i))

    check(work, worlds=worlds)


def test_writes_between_elements(check: Check) -> None:
    def work(log: Log, x: Any) -> Any:
        total = 0.0
        for value in logged(log, x, 4):
            log.n += 10
            total = total + value * log.n
            x += 1.0
        return total

    def worlds() -> Any:
        log = Log()
        return lambda i: (log, some(i))

    check(work, worlds=worlds)


def test_what_a_generator_returns(check: Check) -> None:
    def inner(x: Any) -> Any:
        yield x[0]
        return x.max()

    def outer(x: Any) -> Any:
        largest = yield from inner(x)
        yield largest

    def work(x: Any) -> Any:
        total = x
        for value in outer(x):
            total = total * value
        return total

    check(work, some)


@pytest.mark.parametrize("leaves", ["break", "return", "raise"])
def test_loops_left_early(check: Check, leaves: str) -> None:
    """The generator is closed, and its `finally` runs, in the call."""

    def work(log: Log, x: Any, wanted: int) -> Any:
        total = x
        for value in logged(log, x, 5):
            total = total + value
            if log.n % 100 == wanted:
                if leaves == "break":
                    break
                if leaves == "return":
                    return total
                raise ValueError(wanted)
        return total * 3.0

    def worlds() -> Any:
        log = Log()

        def make(i: int) -> Any:
            log.n = 0
            return log, some(i), 3

        return make

    check(work, worlds=worlds, reason="path.exception" if leaves == "raise" else None)


def test_exceptions_inside(check: Check) -> None:
    def failing(x: Any) -> Iterator[Any]:
        yield x
        if x[0] > 0.0:
            raise ValueError("positive")
        yield -x

    def work(x: Any) -> Any:
        total = x
        try:
            for value in failing(x):
                total = total + value * 2.0
        except ValueError:
            total = total - 5.0
        return total

    check(work, some, calls=40, replays=5)


def test_loops_by_data_inside(check: Check) -> None:
    """The one who iterates goes on between two iterations of the generator's own loop."""

    def halving(x: Any) -> Iterator[Any]:
        while x.max() > 0.1:
            x = x * 0.5
            yield x.max()

    def work(x: Any) -> Any:
        total, k = 0.0, 1
        for value in halving(x):
            k *= 2
            total = total + value * k
        return total

    check(work, some, calls=60, replays=10)


def test_loops_by_data_around(check: Check) -> None:
    def work(x: Any) -> Any:
        while x.max() > 0.1:
            for value in signed(x, 2):
                x = x * 0.3 + 0.001 * value
        return x

    check(work, some, calls=60, replays=10)


def test_effects_inside(check: Check) -> None:
    """A recording that ends while a generator is suspended leaves nothing of its own in it."""

    def reading(log: Log, x: Any) -> Iterator[Any]:
        doubled = x * 2.0
        yield doubled
        log.kept = doubled
        yield [doubled, x]

    def work(log: Log, x: Any) -> Any:
        found = []
        for value in reading(log, x):
            with open(__file__):
                found.append(value)
        return found

    def worlds() -> Any:
        log = Log()
        return lambda i: (log, some(i))

    check(work, worlds=worlds, reason="effect.file", replays=0)


def test_generators_that_are_kept(check: Check) -> None:
    """A loop iterates what a call gives, and keeps the generators in it."""

    def work(log: Log, x: Any) -> Any:
        for each in list(map(signed, (x, -x), (3, 4))):
            log.kept = each
        return x + 1.0

    def worlds() -> Any:
        log = Log()

        def make(i: int) -> Any:
            log.seen, log.kept = list(log.kept or ()), None
            return log, some(i)

        return make

    check(work, worlds=worlds, replays=0)
