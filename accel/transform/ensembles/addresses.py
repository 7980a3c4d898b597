"""Addresses: the path from a call's arguments to the place of an array or number, for reading and replacing it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from accel.record.objects.names.variables import CONTENTS
from accel.record.state.inputs import MISSING, Fetch, Inputs


class Hop(NamedTuple):
    """One step of an address: to an attribute or to an item."""

    is_item: bool
    key: Any


Address = tuple[Hop, ...]
"""Steps that lead from a call's roots to a value. The first one is an item of `Roots`."""


_OF_MEMBER = ".member"
"""Key that marks a member's copy of the global names. No program has such a name."""

CELL = ".cell "
"""Prefix of closure cells among a member's global names, so that each cell has one address."""


def member_globals(names: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a module's global names for one member, in which that member runs the program's code."""
    return {**names, _OF_MEMBER: True}


@dataclass(slots=True)
class Roots:
    """The roots of addresses: item 0, positional arguments; item 1, keyword arguments; item 2, global names."""

    args: list[Any]
    kwargs: dict[str, Any]
    names: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, number: int) -> Any:
        return (self.args, self.kwargs, self.names)[number]


GLOBALS = 2


def address_of(slots: Sequence[Any], slot: int) -> Address | None:
    """Return the address of a slot's value; None if attributes and items do not lead to it from the call's arguments.

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
    """Return whether a value without a parent belongs to a member: its global names, one of them, or the content of a
    cell."""
    is_one = fetch.text in ("{0}", "{0}[{1}]", f"{{0}}[{{1}}].{CONTENTS}")
    return is_one and type(fetch.constants[0]) is dict and _OF_MEMBER in fetch.constants[0]


def read(roots: Roots, address: Address) -> Any:
    """Return the value at an address; MISSING if there is none."""
    found: Any = roots
    for step in address:
        try:
            found = found[step.key] if step.is_item else getattr(found, step.key)
        except (AttributeError, LookupError, TypeError):
            return MISSING
    return found


def put(roots: Roots, address: Address, value: np.ndarray[Any, Any], kind: type, in_place: bool) -> None:
    """Store a value at an address. kind: the type that the program has there: `numpy.ndarray`, or a number's type.

    in_place: write into the existing array, so that all its holders see the new elements. Raises LookupError,
    AttributeError or TypeError if the program's objects have no such place.
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
    """Return whether an object is an instance of a frozen dataclass, which programs replace as a whole."""
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
        object.__setattr__(container, last.key, value)  # as replays do, bypassing the class's own __setattr__
    elif isinstance(container, tuple):
        parts = [value if position == last.key else part for position, part in enumerate(container)]
        kind: Any = type(container)
        made = container._make(parts) if hasattr(container, "_make") else kind(parts)
        _assign(roots, tuple(way), made)
    else:
        container[last.key] = value
