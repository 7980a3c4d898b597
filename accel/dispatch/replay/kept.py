"""Device residency: which paths, and which outputs, need no array's values on the host.

A path is *plain* if its guards, draws and numbers take no array's contents. Outputs of a plain path may stay on the
device (see accel.backend.resident), unless storing them lets the program's code run: an object that they replace might
have a finalizer.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import CellType, MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.backend import resident
from accel.ir.bits import Content
from accel.ir.tape import nodes_in
from accel.platform.alignment import Room
from accel.record import Trace
from accel.record.objects.names.variables import contents_of
from accel.record.objects.own_attributes import own_attribute
from accel.record.state.changes import Ends, Write
from accel.record.state.inputs import MISSING, Code, Slot, has_flags, is_array_like, is_writeable
from accel.record.state.leaves import FromSlot, NewArray, all_leaves
from accel.record.state.shown import Flushed, Printed, StreamWrite, templates_of

if TYPE_CHECKING:
    from accel.dispatch.replay.commit import StagedOutputs

PLAIN_VALUES: frozenset[type] = frozenset(
    [int, float, complex, bool, str, bytes, type(None)]
    + [kind for kind in np.sctypeDict.values() if not issubclass(kind, (np.object_, np.void))]
)
"""Types of values that end without running any code, and that nothing else ends with."""

MOST_PARTS = 64
"""Tuples and lists with more parts than this are not looked through."""

_OF_FORM = frozenset(
    each.text for each in (is_array_like(np.empty(0)), has_flags(np.empty(0)), is_writeable, Code("type(x) is {0}"))
)
"""Checks of an array that read none of its contents."""


# -- paths -------------------------------------------------------------------------------------------------------------


def why_not_plain(trace: Trace) -> str | None:
    """Why a path's calls need arrays on the host; None if they do not."""
    return next((why for why, applies in _NEEDS if applies(trace)), None)


def _compares_contents(trace: Trace) -> bool:
    constants = (each for slot in trace.inputs.slots for code in _codes(slot) for each in code.constants)
    checks = (check for at in set(trace.array_slots) for check in _slot(trace, at).checks)
    return (
        bool(trace.pinned)
        or any(isinstance(each, Content) for each in constants)
        or any(check.text not in _OF_FORM for check in checks)
    )


def _reads_elements(trace: Trace) -> bool:
    arrays = set(trace.array_slots)
    return any(slot.fetch.parent in arrays for slot in trace.inputs.slots)


def _has_keys_of_the_programs(trace: Trace) -> bool:
    return any(not _is_plain_key(key) for slot in trace.inputs.slots for code in _codes(slot) for key in _keys(code))


def _keys(code: Code) -> tuple[Any, ...]:
    """Return the keys that an expression looks up in a container."""
    if code.constants[:1] == (dict.get,):
        return code.constants[1:2]
    if "[{" in code.text:
        return code.constants[-1:]
    return code.constants[:1] if " in x" in code.text else ()


def _is_plain_key(key: object) -> bool:
    return all(map(_is_plain_key, key)) if type(key) is tuple else type(key) in PLAIN_VALUES


_NEEDS: tuple[tuple[str, Callable[[Trace], bool]], ...] = (
    ("a guard compares what an array holds", _compares_contents),
    ("a guard looks at a part of an array", _reads_elements),
    (
        "random numbers are drawn by what an array holds",
        lambda trace: any(not node.host for draw in trace.draws for node in nodes_in((draw.args, draw.kwargs))),
    ),
    (
        "Python computes with what an array holds",
        lambda trace: any(not each.host for node in trace.tape.nodes if node.host for each in node.operands()),
    ),
    ("a container has keys that the program compares itself", _has_keys_of_the_programs),
    ("a cache of the program's is asked", lambda trace: bool(trace.outputs.asked)),
)
"""Reasons for which arrays are needed on the host before a run, each with its test of a path."""


def _codes(slot: Slot) -> tuple[Code, ...]:
    return (slot.fetch, *slot.checks)


def _slot(trace: Trace, index: int) -> Slot:
    return trace.inputs.slots[index - trace.inputs.ROOTS]


# -- outputs -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Unfetched:
    """Outputs of a run that are on the device: new arrays, which have memory but no values yet, and changed ones.

    fetched: counts that an output has been fetched, by its position among all of them.
    """

    made: list[Any]
    changed: list[Any]
    fetched: Sequence[Callable[[], object]]


def may_stay(staged: StagedOutputs) -> bool:
    """Whether the outputs can be stored while their values stay on the device, and nobody looks meanwhile."""
    values, outputs = staged.values, staged.trace.outputs
    return (
        resident.current.is_open
        and staged.unfetched is not None
        and not outputs.asked
        and all(map(_shows_numbers, outputs.shown))
        and all(_may_be_behind(values[slot]) for slot, _ in outputs.changed)
        and all(_ends_quietly(old) for change in outputs.writes for old in _replaced(change, values[change.owner]))
    )


def steps_left_behind(staged: StagedOutputs, unfetched: Unfetched) -> list[Callable[[], object]]:
    """Return the steps of a commit that leave arrays on the device.

    They come before the steps that let the program see those arrays.
    """
    arrays = [*staged.made, *(staged.values[slot] for slot, _ in staged.trace.outputs.changed)]
    buffers = [*unfetched.made, *unfetched.changed]
    return [resident.current.note(*each) for each in zip(arrays, buffers, unfetched.fetched, strict=True)]


def _shows_numbers(effect: Any) -> bool:
    """Whether an effect gives a standard stream numbers alone: nothing of the program's runs then."""
    if not isinstance(effect, (Printed, StreamWrite, Flushed)):
        return False
    return not any(isinstance(leaf, (NewArray, FromSlot)) for each in templates_of(effect) for leaf in all_leaves(each))


def _may_be_behind(array: Any) -> bool:
    """Whether an array that is changed in place may get its new values later."""
    flags = array.flags
    return type(array) is np.ndarray and flags.owndata and flags.writeable and not resident.current.is_iterated(array)


def _replaced(change: Any, owner: Any) -> Iterator[Any]:
    """Yield the objects that a change replaces; if they are not known, an object whose end may run code."""
    if type(change) is Ends:
        if not (type(owner) is list and change.keeps) or change.drop or change.skip or change.front:
            yield _UNKNOWN
    elif type(change) is not Write:
        yield _UNKNOWN
    elif not change.is_item:
        yield contents_of(owner) if type(owner) is CellType else own_attribute(owner, change.name)
    elif type(owner) is dict and type(change.name) is str:
        yield owner.get(change.name)
    elif type(owner) is list and type(change.name) is int and -len(owner) <= change.name < len(owner):
        yield owner[change.name]
    else:
        yield _UNKNOWN


_UNKNOWN: MappingProxyType[str, Any] = MappingProxyType({})
"""Stands for an unknown object. Its type counts as one whose end may run code."""


def _ends_quietly(value: Any, depth: int = 2) -> bool:
    """Whether no code of the program's runs when nobody holds this any more."""
    kind = type(value)
    if kind in PLAIN_VALUES or value is MISSING:
        return True
    if kind is np.ndarray:
        base = value.base
        return not value.dtype.hasobject and _is_unwatched(value) and (base is None or (depth > 0 and _is_base(base)))
    if kind in (tuple, list) and depth:
        return len(value) <= MOST_PARTS and all(map(partial(_ends_quietly, depth=depth - 1), value))
    return False


def _is_base(base: Any) -> bool:
    return type(base) in (np.ndarray, Room) and base.base is None and not base.dtype.hasobject and _is_unwatched(base)


def _is_unwatched(array: Any) -> bool:
    """Whether no callback is called when the array is gone."""
    return not weakref.getweakrefcount(array) or all(each.__callback__ is None for each in weakref.getweakrefs(array))
