"""Addresses: the way from a call's arguments to where an array or number lives, to read it and to put another there."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from accel.record.objects.names.variables import CONTENTS
from accel.record.state.inputs import MISSING, Fetch, Inputs


class Hop(NamedTuple):
    """One step: to an attribute, or to an item."""

    is_item: bool
    key: Any


Address = tuple[Hop, ...]
"""Steps from a call's roots on: the first one is an item of `Roots`."""


_OF_MEMBER = ".member"
"""What tells a member's global names from a module's: no program has such a name."""

CELL = ".cell "
"""How the names of a member's cells begin among its global names, so that there is one way to each."""


def member_globals(names: Mapping[str, Any]) -> dict[str, Any]:
    """Global names of a member's own, for what it runs of a program's module."""
    return {**names, _OF_MEMBER: True}


@dataclass(slots=True)
class Roots:
    """A call's arguments, and global names. Number 0 of it: the positional ones; 1: those by name; 2: global names."""

    args: list[Any]
    kwargs: dict[str, Any]
    names: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, number: int) -> Any:
        return (self.args, self.kwargs, self.names)[number]


GLOBALS = 2


def address_of(slots: Sequence[Any], slot: int) -> Address | None:
    """Where a slot's value lives; None where it is not reached from the call's arguments by attributes and items.

    slots: of a trace, merged or not.
    """
    steps: list[Hop] = []
    while slot >= Inputs.ROOTS:
        fetch = slots[slot - Inputs.ROOTS].fetch
        steps += reversed(found := _steps_of(fetch))
        if fetch.parent is None:
            return (Hop(True, GLOBALS), *reversed(steps)) if _is_of_member(fetch) else None
        if not found:
            return None
        slot = fetch.parent
    return (Hop(True, slot), *reversed(steps))


def _steps_of(fetch: Fetch) -> list[Hop]:
    text, constants = fetch.text, fetch.constants
    if text == "{parent}[{0}]":
        return [Hop(True, constants[0])]
    if text.startswith("{parent}.") and text.removeprefix("{parent}.").isidentifier():
        return [Hop(False, text.removeprefix("{parent}."))]
    if text in ("getattr({parent}, {0})", "getattr({parent}, {0}, {1})"):
        return [Hop(False, constants[0])]
    if text == "{0}({parent}, {1}, {2})" and constants[0] is dict.get:
        return [Hop(True, constants[1])]
    if _is_of_member(fetch):
        steps = [Hop(True, each) for each in constants[1:]]
        return [*steps, Hop(False, CONTENTS)] if text.endswith(CONTENTS) else steps
    return []


def _is_of_member(fetch: Fetch) -> bool:
    """Whether a value without a parent is a member's: its global names, one of them, or what one of its cells holds."""
    is_one = fetch.text in ("{0}", "{0}[{1}]", f"{{0}}[{{1}}].{CONTENTS}")
    return is_one and type(fetch.constants[0]) is dict and _OF_MEMBER in fetch.constants[0]


def read(roots: Roots, address: Address) -> Any:
    """What lives at an address; MISSING if nothing does."""
    found: Any = roots
    for step in address:
        try:
            found = found[step.key] if step.is_item else getattr(found, step.key)
        except (AttributeError, LookupError, TypeError):
            return MISSING
    return found


def put(roots: Roots, address: Address, value: np.ndarray[Any, Any], kind: type, in_place: bool) -> None:
    """Let a value live at an address. kind: of what the program has there: an array, or a number of this type.

    in_place: an array that is there keeps its place in memory, and all who hold it see the new elements. Raises
    LookupError, AttributeError and TypeError where the program's objects have no such place.
    """
    there = read(roots, address)
    if kind is not np.ndarray:
        _assign(roots, address, value[()] if issubclass(kind, np.generic) else _number(kind, value))
    elif type(there) is np.ndarray and there.shape == value.shape and there.dtype == value.dtype:
        held = there if in_place and there.flags.writeable else np.empty_like(there)
        np.copyto(held, value)
        if held is not there:
            _assign(roots, address, held)
    else:
        _assign(roots, address, np.array(value))


def _number(kind: Any, value: np.ndarray[Any, Any]) -> Any:
    return kind(value.item())


def _is_frozen(container: object) -> bool:
    """Whether an object is one of a frozen dataclass's, which programs replace as a whole."""
    return bool(getattr(getattr(container, "__dataclass_params__", None), "frozen", False))


def _assign(roots: Roots, address: Address, value: Any) -> None:
    *way, last = address
    container = read(roots, tuple(way))
    if container is MISSING:
        raise LookupError(f"nothing has a place for {last.key!r}")
    if not last.is_item and _is_frozen(container):
        other = copy.copy(container)
        object.__setattr__(other, last.key, value)
        _assign(roots, tuple(way), other)
    elif not last.is_item:
        object.__setattr__(container, last.key, value)  # as replays do, past what the class does besides
    elif isinstance(container, tuple):
        parts = [value if position == last.key else part for position, part in enumerate(container)]
        kind: Any = type(container)
        made = container._make(parts) if hasattr(container, "_make") else kind(parts)
        _assign(roots, tuple(way), made)
    else:
        container[last.key] = value
