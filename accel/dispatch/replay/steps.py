"""Steps: what stores one change in the program's objects, as calls that need nothing any more and run in C."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from accel.record.state.changes import Change, Emptied, Ends, SetMembers, Write
from accel.record.state.inputs import MISSING

Step = Callable[[], Any]
Build = Callable[[Any], Any]


def steps_of(change: Change, owner: Any, build: Build) -> Iterable[Step]:
    """The steps of a change, in order. owner: the object as it is before the first step. build: gives the values."""
    return _STEPS[type(change)](change, owner, build)


def _write(change: Write, owner: Any, build: Build) -> Iterable[Step]:
    value = build(change.value)
    if change.is_item:
        key = build(change.name)
        if value is MISSING or change.is_anew:
            yield partial(owner.pop, key, None)
        if value is not MISSING:
            yield partial(operator.setitem, owner, key, value)
    elif value is MISSING:
        yield partial(_delete_attribute, owner, change.name)
    else:
        # the class's own __setattr__ may do more, or refuse
        store = type.__setattr__ if isinstance(owner, type) else object.__setattr__
        yield partial(store, owner, change.name, value)


def _delete_attribute(owner: object, name: str) -> None:
    """Delete an attribute, unless it is not there: the call itself created it; or an interrupt came after this."""
    try:
        object.__delattr__(owner, name)
    except AttributeError:
        pass


def _ends(change: Ends, owner: Any, build: Build) -> Iterable[Step]:
    front, back = build(change.front), build(change.back)
    of_kind = _deque_ends if type(owner) is deque else _list_ends
    return of_kind(change, owner, front, back)


def _list_ends(change: Ends, owner: list[Any], front: list[Any], back: list[Any]) -> Iterable[Step]:
    if not change.keeps:
        yield partial(operator.setitem, owner, slice(None), back)
        return
    # Not by positions from the start: another thread may append meanwhile, and its element stays.
    if change.drop:
        yield partial(operator.delitem, owner, slice(-change.drop, None))
    if back:
        yield partial(owner.extend, back)
    if change.skip or front:
        yield partial(operator.setitem, owner, slice(change.skip), front)


def _deque_ends(change: Ends, owner: deque[Any], front: list[Any], back: list[Any]) -> Iterable[Step]:
    if not change.keeps:
        yield owner.clear
    yield from [owner.popleft] * change.skip
    yield from [owner.pop] * change.drop
    yield partial(owner.extendleft, front[::-1])
    yield partial(owner.extend, back)


def _members(change: SetMembers, owner: set[Any], build: Build) -> Iterable[Step]:
    if not change.keeps:
        yield owner.clear
    for member, is_in in change.turns:
        yield partial(owner.add if is_in else owner.discard, build(member))


def _emptied(change: Emptied, owner: dict[Any, Any], build: Build) -> Iterable[Step]:
    yield owner.clear


_STEPS: dict[type, Callable[[Any, Any, Build], Iterable[Step]]] = {
    Write: _write,
    Ends: _ends,
    SetMembers: _members,
    Emptied: _emptied,
}
