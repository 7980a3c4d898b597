"""Segments that run other programs: branches and loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.compiler.kernels.iterating import LoopRun, may_drive
from accel.compiler.kernels.segments import ArrayTable, Form, Made, Segment, Segmented
from accel.platform.alignment import aligned_array


@dataclass(slots=True)
class Nested(Segment):
    """A segment that runs other programs, which return lists."""

    programs: tuple[Segmented, ...]


@dataclass(slots=True)
class Choice(Nested):
    """A segment that runs one of several programs. The first input is its number; the others are its arguments."""

    def fill(self, values: ArrayTable, memory: Mapping[int, Made]) -> None:
        which, *given = [values.arrays[number] for number in self.inputs]
        found, finite = self.programs[min(max(int(which), 0), len(self.programs) - 1)].run(given, (), {})
        for number, array in zip(self.outputs, found, strict=True):
            values.set(number, array)
            if any(array is each for each in finite):
                values.finite.add(number)


@dataclass(slots=True)
class Scan(Nested):
    """A segment that runs a program for a fixed number of iterations; `backwards`: from the last row to the first.

    fixed: number of inputs passed to each iteration. state: number of inputs, after those, that an iteration passes to
    the next. The other inputs are passed row by row. forms: shape and dtype of the stacked outputs besides the state.
    """

    fixed: int
    state: int
    iterations: int
    backwards: bool
    forms: tuple[Form, ...]

    def run(self, given: Sequence[Any]) -> Sequence[Any]:
        (body,), first = self.programs, self.fixed + self.state
        state = _own(given[self.fixed : first], body, self.fixed)
        collected = [aligned_array(*form) for form in self.forms]
        order = range(self.iterations)[:: -1 if self.backwards else 1]
        if self.iterations > 1 and may_drive(body):
            arguments = (*given[: self.fixed], *state), range(self.fixed, first), given[first:], collected
            loop, left = LoopRun(body, *arguments, backwards=self.backwards), self.iterations
            while left:
                left -= loop.iterate_on(left)[0]
            return [*_apart(loop.end(), given, body), *collected]
        for number in order:
            rows = [array[number, ...] for array in given[first:]]
            found = body((*given[: self.fixed], *state, *rows), (), {})
            state = found[: self.state]
            for array, row in zip(collected, found[self.state :], strict=True):
                array[number] = row
        return [*_apart(state, given, body), *collected]


@dataclass(slots=True)
class While(Nested):
    """A segment that runs its second program as long as that returns True last.

    The first program says whether to run it at all. fixed: number of inputs that both are passed, and number that the
    second one is passed besides, after those. The rest is the state.
    """

    fixed: tuple[int, int]

    def run(self, given: Sequence[Any]) -> Sequence[Any]:
        (begins, body), (first, second) = self.programs, self.fixed
        fixed = given[: first + second]
        state = _own(given[first + second :], body, first + second)
        (goes_on,) = begins((*given[:first], *state), (), {})
        if goes_on and may_drive(body):
            loop = LoopRun(body, (*fixed, *state), range(first + second, len(given)))
            while goes_on:
                _, (last,) = loop.iterate_on(asks=True)
                goes_on = loop.array(last)
            return _apart(loop.end(), given, body)
        while goes_on:
            *state, goes_on = body((*fixed, *state), (), {})
        return _apart(state, given, body)


def _own(state: Sequence[Any], body: Segmented, first: int) -> Sequence[Any]:
    """Return a loop's first state, with copies of the arrays that its body writes to. first: the body's argument."""
    return [np.array(each) if first + at in body.changed else each for at, each in enumerate(state)]


def _apart(state: Sequence[Any], given: Sequence[Any], body: Segmented) -> list[Any]:
    """Return a loop's last state, with copies of arrays that are inputs or their rows, constants of its body, or
    duplicates."""
    taken = {owner for each in (*given, *body.constants.values()) for owner in _owners(each)}
    apart = []
    for each in state:
        owners = _owners(each)
        apart.append(each if taken.isdisjoint(owners) else np.array(each))
        taken |= owners
    return apart


def _owners(array: np.ndarray[Any, Any]) -> set[int]:
    """Return the ids of the array and of what it is a view of."""
    return {id(array)} if array.base is None else {id(array), id(array.base)}
