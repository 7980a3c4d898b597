"""Observing a run, accelerated or not: the times at which steps begin, and the state after some of them.

A run is observed at the targets that the program itself calls, not at targets called inside other targets. The state is
what a catalogue's `Steps` names. Without one, it is every floating-point array that such a call returns, takes as an
argument, or has in the attributes of its first argument. Samples of the state are taken ever further apart, so that a
run of any length gives a few dozen.
"""

from __future__ import annotations

import functools
import inspect
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from accel.catalogue import Row, Steps

GROWTH = 1.25
"""The ratio of the numbers of the calls after which one sample and the next are taken."""

MAX_BYTES = 2 * 2**30
"""The most bytes of samples in one run. After that, none are taken."""

Call = Callable[[tuple[Any, ...], dict[str, Any]], Any]


def is_sampled(number: int) -> bool:
    """Whether the state is sampled after call `number`, counted from 1.

    >>> [number for number in range(1, 40) if is_sampled(number)]
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33]
    """
    sampled = 1
    while sampled < number:
        sampled = max(sampled + 1, int(sampled * GROWTH))
    return sampled == number


class Observer:
    """Observes the targets of one process, and writes samples to `folder`.

    perturb: whether the state is changed by one unit in the last place before the first step.
    """

    def __init__(self, folder: Path, steps: Steps | None, *, perturb: bool) -> None:
        self.folder = folder
        self._steps = steps
        self._perturb = perturb
        self._inside = False
        self._bytes = 0
        self._perturbed: set[str] = set()
        self._starts: dict[str, list[float]] = {}
        self._seconds: dict[str, float] = {}
        folder.mkdir(parents=True, exist_ok=True)

    # -- replacements for functions -----------------------------------------------------------------------------------

    def on_numpy(self, row: Row, function: FunctionType) -> Any:
        """The function itself, observed."""
        if not self._is_observed(row.target):
            return function
        answer = self._answering(row.target, lambda args, kwargs: function(*args, **kwargs), function)

        @functools.wraps(function)
        def observed(*args: object, **kwargs: object) -> Any:
            return answer(args, kwargs)

        return observed

    def accelerated(self, row: Row, function: FunctionType) -> Any:
        """The accelerated function, with its direct calls observed."""
        from accel.dispatch import accelerated

        wrapper: Any = accelerated(function, name=row.target, rtol=row.rtol)
        if self._is_observed(row.target):
            target = wrapper._self_target
            target.account.rest.allowed = False  # calls of a rest would not be observed
            target.answer = self._answering(row.target, target.answer, function)
        return wrapper

    def _is_observed(self, target: str) -> bool:
        return self._steps is None or target in self._steps.fields or target == self._steps.step

    def _answering(self, target: str, call: Call, function: FunctionType) -> Call:
        names = list(inspect.signature(function).parameters)

        def answer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if self._inside:
                return call(args, kwargs)
            self._inside = True
            try:
                self._move(target, args, kwargs, names)
                begin = time.perf_counter()
                self._starts.setdefault(target, []).append(begin)
                result = call(args, kwargs)
                self._seconds[target] = self._seconds.get(target, 0.0) + time.perf_counter() - begin
                self._sample(target, args, kwargs, result, names)
            finally:
                self._inside = False
            return result

        return answer

    # -- the state ----------------------------------------------------------------------------------------------------

    def _sample(
        self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: object, names: list[str]
    ) -> None:
        number = len(self._starts[target])
        if not is_sampled(number) or self._bytes > MAX_BYTES or (self._steps and target not in self._steps.fields):
            return
        arrays = dict(self._state(target, args, kwargs, result, names))
        self._bytes += sum(array.nbytes for array in arrays.values())
        np.savez(self.folder / f"{target}@{number}.npz", **arrays)

    def _state(
        self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: object, names: list[str]
    ) -> Iterator[tuple[str, Any]]:
        if self._steps is not None:
            owner = args[0]
            for name in self._steps.fields.get(target, ()):
                if isinstance(getattr(owner, name, None), np.ndarray):
                    yield name, getattr(owner, name)
            return
        yield from _floats("result", result)
        yield from _given(args, kwargs, names)

    def _move(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]) -> None:
        """Perturb the state by one unit in the last place. In place, because the arrays may be shared."""
        if not self._perturb or target in self._perturbed:
            return
        self._perturbed.add(target)
        if self._steps is not None:
            moved = [getattr(args[0], name, None) for where, name in self._steps.perturbed if where == target]
        else:
            moved = [] if len(self._perturbed) > 1 else _first_of([array for _, array in _given(args, kwargs, names)])
        for array in moved:
            if isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.flags.writeable:
                np.nextafter(array, array.dtype.type(np.inf), out=array)

    # -- the end ------------------------------------------------------------------------------------------------------

    def finish(self, **about: object) -> None:
        """Write a summary of the observations, together with `about`."""
        step = None if self._steps is None else self._steps.step
        summary = {"step": step, "starts": self._starts, "seconds": self._seconds, **about}
        (self.folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")


def _first_of(arrays: list[Any]) -> list[Any]:
    """The first array that is not zero everywhere: the unit in the last place of zero is lost in any sum."""
    return [array for array in arrays if array.any()][:1] or arrays[:1]


def _given(args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]) -> Iterator[tuple[str, Any]]:
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        yield from _floats(name, value)
    if args and not isinstance(args[0], np.ndarray):
        for name, value in sorted(getattr(args[0], "__dict__", {}).items()):
            yield from _floats(f"{names[0]}.{name}", value)


def _floats(name: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and value.size:
        yield name, value
    elif isinstance(value, (tuple, list)):
        for position, part in enumerate(value):
            if isinstance(part, np.ndarray):
                yield from _floats(f"{name}[{position}]", part)
