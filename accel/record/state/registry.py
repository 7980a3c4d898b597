"""The registry: which recorded value, stand-in or namespace stands for which of the program's objects."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any
from weakref import WeakValueDictionary

from accel.platform.clocks import time
from accel.record.state.wrapper import Wrapper

LOOKS, LOOK_S = 10, 0.001
"""Number and length in seconds of the pauses for threads that hold this one's frames until they run again. Guess.

`--auto` and profilers are such threads."""


class Registry:
    """The stand-ins of one recording, by the identity of the program's object.

    values, arrays: the one wrapper of an object, of an array. stand_ins: of functions, modules, classes ...: the object
    and what stands for it. namespaces: the substitute for a module's globals. links: for a cell. functions: the
    followed form of one.
    """

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}
        self.arrays: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self.stand_ins: dict[int, tuple[Any, Any]] = {}
        self.namespaces: dict[int, Any] = {}
        self.links: dict[int, Any] = {}
        self.functions: dict[FunctionType, FunctionType] = {}
        self._alive: list[Any] = []
        self._born: list[weakref.ref[Wrapper]] = []

    def keep_alive(self, value: object) -> Any:
        """Hold on to a value, so that its id stays its own."""
        self._alive.append(value)
        return value

    def born(self, wrapper: Wrapper) -> None:
        """Know of a wrapper without holding on to it."""
        self._born.append(weakref.ref(wrapper))

    def survivors(self) -> list[Any]:
        """The wrappers that somebody holds on to, after `let_go`."""
        alive = self._now_alive()
        # Collecting garbage takes longer than recording most calls, and is needed only for cycles: a nested function
        # that calls itself is freed no sooner. Most of that is young: to look through the old objects takes longest.
        steps: list[Callable[[], object]] = [partial(gc.collect, 1), *[partial(time.sleep, LOOK_S)] * LOOKS, gc.collect]
        while alive and steps:
            del alive
            steps.pop(0)()
            alive = self._now_alive()
        return alive

    def _now_alive(self) -> list[Any]:
        return [wrapper for wrapper in (reference() for reference in self._born) if wrapper is not None]

    def let_go(self) -> None:
        """Hold on to nothing; `survivors` still knows of all wrappers."""
        for held in (self.values, self.stand_ins, self.namespaces, self.links, self.functions, self._alive):
            held.clear()

    def forget(self) -> None:
        """Know of no wrapper any more."""
        self._born.clear()
