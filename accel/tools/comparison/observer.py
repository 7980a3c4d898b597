"""Observe a run, accelerated or not: the start times of steps, and the state after some of them.

Only targets that the program itself calls are observed, not targets called inside other targets. The state is what a
catalogue's `Steps` names. Without `Steps`, it is every floating-point array that the call returns, takes as an
argument, or finds in the attributes of its first argument. For an iteration of an outlined loop, it is the arrays in
the loop's variables and in the attributes of their values. The distance between samples grows, so that a run of any
length gives a few dozen.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from accel.catalogue import Row, Steps
from accel.entry.lift.switch import Beside, Switch, name_of
from accel.entry.lift.transform import NOT_RUN
from accel.platform.clocks import time

GROWTH = 1.25
"""Ratio between the call numbers of successive samples."""

MAX_BYTES = 2 * 2**30
"""Maximum bytes of samples in one run. Once it is reached, no more samples are taken."""

Call = Callable[[tuple[Any, ...], dict[str, Any]], Any]
State = Callable[[Any], Iterator[tuple[str, Any]]]
"""Returns the arrays of the state, by name, given the return value of a call."""


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

    perturb: True to change the state by one unit in the last place before the first step.
    """

    def __init__(self, folder: Path, steps: Steps | None, *, perturb: bool) -> None:
        self.folder = folder
        self.has_steps = steps is not None
        self._steps = steps
        self._perturb = perturb
        self._inside = False
        self._bytes = 0
        self._perturbed: set[str] = set()
        self._has_moved = False  # whether there was an array to perturb
        self._starts: dict[str, list[float]] = {}
        self._seconds: dict[str, float] = {}
        folder.mkdir(parents=True, exist_ok=True)

    # -- replacements for functions -----------------------------------------------------------------------------------

    def on_numpy(self, row: Row, function: FunctionType) -> Any:
        """Return the function itself, observed."""
        if not self._is_observed(row.target):
            return function
        answer = self._answering(row.target, lambda args, kwargs: function(*args, **kwargs), function)

        @functools.wraps(function)
        def observed(*args: object, **kwargs: object) -> Any:
            return answer(args, kwargs)

        return observed

    def accelerated(self, row: Row, function: FunctionType) -> Any:
        """Return the accelerated function, with its direct calls observed."""
        from accel.dispatch import accelerated

        return self.marked(accelerated(function, name=row.target, rtol=row.rtol))

    def marked(self, made: Any) -> Any:
        """Return what `accel.accelerate` made of a function or method, with its direct calls observed.

        Of a function whose loops are accelerated, observe their iterations.
        """
        function = getattr(made, "__func__", made)
        target = getattr(function, "_self_target", None)
        for switch in function.__code__.co_consts if target is None and not self.has_steps else ():
            if isinstance(switch, Switch):
                switch.go_beside(self.rounds(name_of(switch, function.__module__)))
        if target is not None and self._is_observed(target.name):
            # calls of a rest or a streak would not be observed
            target.account.rest.allowed = target.streak.allowed = False
            target.answer = self._answering(target.name, target.answer, target.recorded)
        return made

    def _is_observed(self, target: str) -> bool:
        return self._steps is None or target in self._steps.fields or target == self._steps.step

    def _answering(self, target: str, call: Call, function: FunctionType) -> Call:
        names = list(inspect.signature(function).parameters)

        def answer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return self._observed(
                target,
                lambda: call(args, kwargs),
                lambda result: self._state(target, args, kwargs, result, names),
                lambda: self._moved(target, args, kwargs, names),
            )

        return answer

    def rounds(self, target: str) -> Beside:
        """Return the observer of an outlined loop's iterations, for `Switch.go_beside`.

        Both the accelerated run and the NumPy run need it for the same loops.
        """

        def beside(body: FunctionType, call: Callable[[FunctionType], Any] | None) -> Any:
            if call is None:  # it runs in its place: there is no end at which it could be looked at
                return NOT_RUN
            return self._observed(
                target, lambda: call(body), lambda _: _held(body), lambda: [array for _, array in _held(body)]
            )

        return beside

    def _observed(self, target: str, run: Callable[[], Any], state: State, moved: Callable[[], list[Any]]) -> Any:
        """Run a call or iteration, recording its start time and the state after it.

        moved: returns the arrays among which the first usable one is perturbed.
        """
        if self._inside:
            return run()
        self._inside = True
        try:
            self._move(target, moved)
            begin = time.perf_counter()
            self._starts.setdefault(target, []).append(begin)
            result = run()
            self._seconds[target] = self._seconds.get(target, 0.0) + time.perf_counter() - begin
            self._sample(target, lambda: state(result))
        finally:
            self._inside = False
        return result

    # -- the state ----------------------------------------------------------------------------------------------------

    def _sample(self, target: str, state: Callable[[], Iterator[tuple[str, Any]]]) -> None:
        number = len(self._starts[target])
        if not is_sampled(number) or self._bytes > MAX_BYTES or (self._steps and target not in self._steps.fields):
            return
        arrays = dict(state())
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

    def _moved(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]) -> list[Any]:
        """Return the arrays to perturb before a call: those that the catalogue names, or else the arrays among the
        arguments."""
        if self._steps is not None:
            return [getattr(args[0], name, None) for where, name in self._steps.perturbed if where == target]
        return [array for _, array in _given(args, kwargs, names)]

    def _move(self, target: str, moved: Callable[[], list[Any]]) -> None:
        """Perturb the state by one unit in the last place. Writes in place, because the arrays may be shared."""
        if not self._perturb or target in self._perturbed or (self._steps is None and self._has_moved):
            return
        if self._steps is not None:
            self._perturbed.add(target)
        for array in moved() if self._steps is not None else _first_of(moved()):
            if isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.size and array.flags.writeable:
                np.nextafter(array, array.dtype.type(np.inf), out=array)
                self._has_moved = True

    # -- the end ------------------------------------------------------------------------------------------------------

    def finish(self, **about: object) -> None:
        """Write a summary of the observations, together with `about`."""
        step = None if self._steps is None else self._steps.step
        summary = {
            "step": step,
            "starts": self._starts,
            "seconds": self._seconds,
            "perturbed": self._has_moved,
            **about,
        }
        (self.folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")


def _first_of(arrays: list[Any]) -> list[Any]:
    """Return the first array that is not zero everywhere: a unit in the last place of zero is lost in any sum."""
    arrays = [array for array in arrays if array.dtype.kind == "f" and array.flags.writeable]
    return [array for array in arrays if array.any()][:1] or arrays[:1]


def _given(args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]) -> Iterator[tuple[str, Any]]:
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        yield from _floats(name, value)
    if args and not isinstance(args[0], np.ndarray):
        for name, value in sorted(getattr(args[0], "__dict__", {}).items()):
            yield from _floats(f"{names[0]}.{name}", value)


def _held(body: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the arrays that a loop body can reach: in its function's variables, in global names, and in their
    attributes."""
    names = {name: body.__globals__[name] for name in body.__code__.co_names if name in body.__globals__}
    for name, cell in zip(body.__code__.co_freevars, body.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is not bound yet
            names[name] = cell.cell_contents
    for name, value in names.items():
        yield from _floats(name, value)
        if not isinstance(value, (np.ndarray, type, FunctionType, ModuleType)):
            for attribute, inner in sorted(getattr(value, "__dict__", {}).items()):
                yield from _floats(f"{name}.{attribute}", inner)


def _floats(name: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and value.size:
        yield name, value
    elif isinstance(value, (tuple, list)):
        for position, part in enumerate(value):
            if isinstance(part, np.ndarray):
                yield from _floats(f"{name}[{position}]", part)
