"""Containers and tuples that the program keeps after a recorded call, unwrapped in the end."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from types import FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from accel.record.state.wrapper import DICTS, LISTS, has_wrapper, isinstance_wrapper, rebuilt, refill, unwrap

if TYPE_CHECKING:
    from accel.record.state.recording import Recording

_EMPTY: tuple[Any, ...] = ((), [], {}, set())
MUTABLE = (*LISTS, *DICTS, set)
ITERATORS = frozenset({map, zip, filter, enumerate, reversed, functools.partial, *(type(iter(e)) for e in _EMPTY)})
"""Types whose objects may hold recorded values where nothing can take them out."""


_ARGS: Any = vars(BaseException)["args"]
"""An exception's arguments, past what its class does with attributes."""


class EnteredTuple(NamedTuple):
    """A tuple that came in from outside. made: its recorded form, of wrappers. plain: itself."""

    made: Any
    plain: Any
    slot: int


class Kept:
    """The values of one recording that the program keeps.

    containers: lists, dicts and sets that the program stored, wrappers in them. tuples: those that came in from
    outside, by id of their recorded form. leaked: something that holds recorded values, and that cannot be unwrapped,
    left the recorded code.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.containers: list[Any] = []
        self.tuples: dict[int, EnteredTuple] = {}
        self.leaked = False
        self._rebuilt: dict[int, tuple[Any, Any]] = {}  # id of a tuple with wrappers -> it and the plain one

    def let_go(self) -> None:
        """Hold on to nothing any more but the containers."""
        self.tuples.clear()
        self._rebuilt.clear()

    def unwrap_to_store(self, value: Any) -> Any:
        """`value` as an object of the program's may keep it from now on.

        Wrappers become what they stand for. Lists, dicts and sets stay the very objects; they are unwrapped when the
        recording ends, or at once where the tape is broken.
        """
        if isinstance_wrapper(value):
            return value._plain_
        kind = type(value)
        if kind in MUTABLE:
            self.containers.append(value)
            return value if self._recording.active else self.unwrap_in_place(value)
        if issubclass(kind, tuple):
            return self._unwrapped_tuple(value, self.unwrap_to_store)
        self._note_leak(value)
        return value

    def _unwrapped_tuple(self, value: Any, unwrap_part: Callable[[Any], Any]) -> Any:
        """The tuple as the program may keep it: the one that came in, or one for all places that hold it."""
        # `self.shape = shape`: what came in is given back as the very tuple, so that `is` and ids stay as they were.
        entered = self.entered_tuple(value)
        if entered is not None:
            return entered.plain
        before, made = self._rebuilt.get(id(value), (None, None))
        # One plain tuple for all places that hold it, since the program may compare them by `is`.
        if before is not value:
            made = rebuilt(value, map(unwrap_part, value))
            self._rebuilt[id(value)] = value, made
        return made

    def entered_tuple(self, value: object) -> EnteredTuple | None:
        """The entry of a tuple that came in from outside: its recorded form is another object."""
        entered = self.tuples.get(id(value))
        return entered if entered is not None and entered.made is value else None

    def unwrap_in_place(self, value: object, seen: set[int] | None = None) -> Any:
        """`value` as the program may keep it: lists, dicts and sets changed in place, tuples rebuilt."""
        seen = set() if seen is None else seen
        kind = type(value)
        if kind in MUTABLE:
            # A list may contain itself.
            if id(value) not in seen:
                seen.add(id(value))
                self._unwrap_parts(value, seen)
            return value
        if issubclass(kind, tuple) and not isinstance_wrapper(value):
            return self._unwrapped_tuple(value, lambda part: self.unwrap_in_place(part, seen))
        if issubclass(kind, BaseException):  # not of a stand-in for one
            self._unwrap_exception(cast("BaseException", value), seen)
            return value
        self._note_leak(value)
        return unwrap(value)

    def _unwrap_exception(self, error: BaseException, seen: set[int]) -> None:
        """Unwrap what an exception carries. Its class is the program's own: it is given wrappers as they are."""
        if id(error) in seen:
            return
        seen.add(id(error))
        held: tuple[Any, ...] = _ARGS.__get__(error)
        plain = self.unwrap_in_place(held, seen)
        if plain is not held:
            _ARGS.__set__(error, plain)
        self._unwrap_parts(vars(error), seen)
        for other in (error.__cause__, error.__context__):
            if other is not None:
                self._unwrap_exception(other, seen)

    def _unwrap_parts(self, value: Any, seen: set[int]) -> None:
        if type(value) is defaultdict:
            self._note_leak(value.default_factory)
        if type(value) is not set or any(map(has_wrapper, value)):
            refill(value, lambda part: self.unwrap_in_place(part, seen))

    def unwrap_containers(self) -> None:
        """At the end of the recorded call: `unwrap_in_place` of every container that the program keeps."""
        for container in self.containers:
            self.unwrap_in_place(container)

    def _note_leak(self, value: Any) -> None:
        kind = type(value)
        # A closure or generator of recorded code holds wrappers in its cells, and runs with substituted globals for
        # ever.
        if kind in (FunctionType, GeneratorType):
            # A closure or generator of recorded code holds wrappers in its cells, and runs with substituted globals for
            # ever.
            scope = value.__globals__ if kind is FunctionType else getattr(value.gi_frame, "f_globals", None)
            self.leaked |= getattr(scope, "recording", None) is self._recording
        elif kind in ITERATORS:
            self.leaked = True
