"""The return value and the changed state of a call, as a pytree of arrays in the function's own tuples, lists and
dicts.

Ways are the recorded paths on which a pure function answers calls. Each is identified by its required outcomes. A call
that matches no path was never recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accel.compiler.merge import ABSENT, Member, MergedTrace
from accel.compiler.merge.members import Placement
from accel.compiler.merge.outputs import OutputPlaces
from accel.ir.tape import Node
from accel.ir.template import fill
from accel.ir.views import Placed
from accel.record import Trace
from accel.record.objects.names.variables import CONTENTS, OF_CELL, OF_GLOBALS
from accel.record.state.changes import Write
from accel.record.state.inputs import MISSING, Fetch, Inputs, is_same_code, of_contents, of_namespace
from accel.record.state.leaves import FixedValue, FromSlot, NewArray, NewContainer, NewObject, Number, SharedLeaf
from accel.record.state.leaves import Leaf as Part
from accel.transform.pure.places import InputLeaf, Places
from accel.transform.pure.recorded import RecordedFunction, refused

Steps = tuple[tuple[bool, Any], ...]

MOST_NESTED = 20
"""Maximum depth of a stored value."""

NUMBERS = (bool, int, float, complex, np.generic)


def is_leaf(value: object) -> bool:
    """Return whether a value is an array or a number."""
    return isinstance(value, (np.ndarray, *NUMBERS))


@dataclass(slots=True)
class Returned:
    """The return value and the changed state of one path.

    form: the result with `Hole`s. leaves: of the result, in order. state: by name, the values that the path writes.
    changed: by merged slot of an array that it changes in place, the array's position among those.
    """

    form: Any
    leaves: list[Part]
    state: dict[str, Part]
    changed: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hole:
    """Placeholder for an array or number of a result, by its position among them."""

    position: int


def returned_by(way: Way, recorded: RecordedFunction, places: Places) -> Returned:
    """Return the result and state of a path. Raises Refused for a value that is no array or number."""
    leaves: list[Part] = []
    outputs = way.trace.outputs

    def hole(part: Part) -> Any:
        leaves.append(part)
        return Hole(len(leaves) - 1)

    form = _form(outputs.result, hole, recorded, way)
    changed = {way.slots[slot]: at for at, (slot, _) in enumerate(outputs.changed)}
    state = dict(_state(way, recorded, places))
    return Returned(form, leaves, state, changed)


def _form(template: Any, hole: Callable[[Part], Any], recorded: RecordedFunction, way: Way) -> Any:
    """Return a result with holes. Raises Refused for a value that is no array, number or container."""
    if isinstance(template, (NewArray, Number)):
        return hole(template)
    if isinstance(template, FromSlot):
        return _of_slot(template, hole, recorded, way)
    if isinstance(template, FixedValue):
        return _of_value(template.value, hole, recorded)
    if isinstance(template, SharedLeaf):
        return _form(template.template, hole, recorded, way)
    if isinstance(template, (NewObject, NewContainer)):
        return _form(template.parts, hole, recorded, way)
    if isinstance(template, tuple) or type(template) is list:
        parts = [_form(part, hole, recorded, way) for part in template]
        return tuple(parts) if isinstance(template, tuple) else parts
    if type(template) is dict and all(type(key) is str for key in template):
        return {key: _form(part, hole, recorded, way) for key, part in template.items()}
    return _of_value(template, hole, recorded)


def _of_slot(leaf: FromSlot, hole: Callable[[Part], Any], recorded: RecordedFunction, way: Way) -> Any:
    value = recorded.values[way.slots[leaf.slot]]
    if is_leaf(value):
        return hole(leaf)
    return None  # one of the program's objects: its contents are in the state


def _of_value(value: Any, hole: Callable[[Part], Any], recorded: RecordedFunction) -> Any:
    if value is None:
        return None
    if isinstance(value, NUMBERS):
        return hole(FixedValue(value))
    raise refused(recorded.name, "pure.result", f"it returns a {type(value).__name__}")


def filled(form: Any, values: Sequence[Any]) -> Any:
    return fill(form, lambda hole: values[hole.position], Hole)


# -- state ------------------------------------------------------------------------------------------------------------


def _state(way: Way, recorded: RecordedFunction, places: Places) -> Iterator[tuple[str, Part]]:
    """Yield the arrays and numbers that a path writes to attributes and items, by name."""
    for change in way.trace.outputs.writes:
        if not isinstance(change, Write):
            raise refused(recorded.name, "pure.state", "it changes a list, deque or set, or empties a dict")
        owner = places.names[way.slots[change.owner]]
        if change.is_item and not isinstance(change.name, (str, int)):
            raise refused(recorded.name, "pure.state", f"an item of {owner} has a key that is computed")
        yield from _parts(name_of(change, way, recorded, places), change.value, way, recorded, places)


def name_of(change: Write, way: Way, recorded: RecordedFunction, places: Places) -> str:
    """Return the name of a written value. A variable that the call also reads keeps the name by which it is read."""
    slots, owner = recorded.trace.inputs.slots, way.slots[change.owner]
    holder = slots[owner - Inputs.ROOTS].fetch if owner >= Inputs.ROOTS else None
    if holder is not None:
        read: Fetch | None = of_contents(holder) if change.name == CONTENTS else None
        if change.is_item and holder.text == "{0}":
            read = of_namespace(holder.constants[0], change.name)
        for slot, each in enumerate(slots, Inputs.ROOTS):
            if read is not None and is_same_code(each.fetch, read):
                return places.names[slot]
    name = places.names[owner]
    if change.name == CONTENTS:
        return name.removeprefix(OF_CELL)
    if change.is_item and name.startswith(OF_GLOBALS):
        return f"{name.removeprefix(OF_GLOBALS)}.{change.name}".removeprefix(".")
    return f"{name}[{change.name!r}]" if change.is_item else f"{name}.{change.name}"


def below(name: str, template: Any, steps: Steps = ()) -> Iterator[tuple[str, Steps, Any]]:
    """Yield the parts of a stored value, each with its name, the steps that lead to it, and its template.

    steps: whether each is to an item, or else to an attribute, and its key.
    """
    if len(steps) > MOST_NESTED:
        raise RecursionError(name)
    if isinstance(template, SharedLeaf):
        template = template.template
    if isinstance(template, NewObject):
        parts: Iterable[tuple[Any, Any]] = template.parts.items()
    elif isinstance(template, (tuple, list)):
        parts = enumerate(template)
    elif type(template) is dict:
        parts = template.items()
    else:
        yield name, steps, template
        return
    is_item = not isinstance(template, NewObject)
    for key, part in parts:
        yield from below(f"{name}[{key!r}]" if is_item else f"{name}.{key}", part, (*steps, (is_item, key)))


def _parts(
    name: str, template: Any, way: Way, recorded: RecordedFunction, places: Places
) -> Iterator[tuple[str, Part]]:
    try:
        found = [(each, part) for each, _, part in below(name, template)]
    except RecursionError:
        raise refused(recorded.name, "pure.state", f"{name} is nested") from None
    for each, part in found:
        if isinstance(part, (NewArray, Number)):
            yield each, part
        elif isinstance(part, FromSlot):
            value = recorded.values[way.slots[part.slot]]
            if is_leaf(value):
                yield each, part
            else:
                _check_same(each, value, recorded, places)
        else:
            value = part.value if isinstance(part, FixedValue) else part
            if isinstance(value, Part):
                raise refused(recorded.name, "pure.state", f"it stores a container in {each}")
            is_free = each in places.leaves or each not in places.names.values()
            if is_free and isinstance(value, NUMBERS):
                if np.asarray(value).dtype.kind == "O":
                    raise refused(recorded.name, "pure.state", f"it stores an integer beyond int64 in {each}")
                yield each, FixedValue(value)
            else:
                _check_same(each, value, recorded, places)


def _check_same(name: str, value: object, recorded: RecordedFunction, places: Places) -> None:
    """Refuse a call that changes a value on which its path depends, such as a flag: the next call would take another
    path."""
    slot = next((slot for slot, known in places.names.items() if known == name), None)
    if slot is None:
        return  # nothing reads it
    before = recorded.values[slot]
    if value is MISSING or not (before is value or (type(before) is type(value) and bool(before == value))):
        raise refused(recorded.name, "pure.static", f"{name} is {before!r} before the call and {value!r} after it")


def with_written(recorded: RecordedFunction, places: Places, returned: Sequence[Returned], ways: Sequence[Way]) -> None:
    """Add leaves for values that only some paths write; the other paths leave them unchanged.

    Raises Refused if such a value does not exist before the call.
    """
    for name in dict.fromkeys(name for each in returned for name in each.state):
        if name in places.leaves or all(name in each.state for each in returned):
            continue
        value = _attribute(name, recorded, places, ways, returned)
        if not is_leaf(value):
            raise refused(recorded.name, "pure.state", f"{name} is written on some paths, and is not there before")
        places.leaves[name] = InputLeaf(name, None, np.array(value))


def _attribute(
    name: str, recorded: RecordedFunction, places: Places, ways: Sequence[Way], returned: Sequence[Returned]
) -> Any:
    """Return the value of that name before the call. Raises Refused if a path stores no array or number there."""
    found: Any = ABSENT
    for way, each in zip(ways, returned, strict=True):
        for change in way.trace.outputs.writes:
            if isinstance(change, Write) and name_of(change, way, recorded, places) == name:
                if name not in each.state:
                    raise refused(recorded.name, "pure.state", f"{name} is no array or number after some calls")
                owner = recorded.values[way.slots[change.owner]]
                held = owner if change.is_item else getattr(owner, "__dict__", None)
                found = held.get(change.name, ABSENT) if isinstance(held, dict) else ABSENT
    return found


# -- aliases ----------------------------------------------------------------------------------------------------------


def check_known(recorded: RecordedFunction, places: Places, changed: Sequence[str]) -> None:
    """Refuse a call that changes a value without a leaf of its own.

    The program takes such a value for a constant, or for one with another leaf, and the next call would read it.
    """
    read = set(places.names.values())
    for name in changed:
        if name in read and name not in places.leaves:
            slot = next(slot for slot, known in places.names.items() if known == name)
            other = next((each for each in places.leaves.values() if _is_one(recorded, each, slot)), None)
            if other is not None:
                raise refused(recorded.name, "pure.alias", f"{name} and {other.name} are one array before the call")
            raise refused(recorded.name, "pure.static", f"{name} decides which path a call takes")


def _is_one(recorded: RecordedFunction, leaf: InputLeaf, slot: int) -> bool:
    """Return whether a leaf is the array that a slot holds."""
    value = recorded.values[slot]
    if leaf.slot is None or not isinstance(value, np.ndarray):
        return False
    members = recorded.trace.members
    pairs = ({each.placement.slots[one] for one in pair} for each in members for pair in each.trace.aliases)
    return any(pair == {slot, leaf.slot} for pair in pairs)


def check_aliases(
    recorded: RecordedFunction, places: Places, ways: Sequence[Way], returned: Sequence[Returned]
) -> None:
    """Refuse two leaves that are one array after a call and that a call changes in place: the next call would change
    both."""
    written = {places.names[slot] for each in returned for slot in each.changed}
    for names in shared_arrays(places, ways, returned):
        if not written.isdisjoint(names):
            raise refused(recorded.name, "pure.alias", " and ".join(names))


def check_names(recorded: RecordedFunction, places: Places, returned: Sequence[Returned]) -> None:
    """Refuse a value that a call changes and that different paths know by different names."""
    written = {places.names[slot] for each in returned for slot in each.changed}
    stored = {name for each in returned for name in each.state}
    for slots in recorded.same:
        names = [places.names[slot] for slot in slots]
        changed = written if isinstance(recorded.values[slots[0]], np.ndarray) else written | stored
        if len({name.partition("#")[0] for name in names}) > 1 and len(_known_below(names, changed, places)) > 1:
            raise refused(recorded.name, "pure.alias", " and ".join(names))


def _known_below(names: Sequence[str], changed: set[str], places: Places) -> set[str]:
    """Return those of several names of one object below which the program knows a part that is changed."""
    known = {*places.leaves, *changed}
    parts = {part.removeprefix(name) for name in names for part in changed if _is_below(part, name)}
    return {name for name in names for part in parts if f"{name}{part}" in known}


def _is_below(part: str, name: str) -> bool:
    return part == name or part.startswith((f"{name}.", f"{name}["))


def shared_arrays(places: Places, ways: Sequence[Way], returned: Sequence[Returned]) -> Iterator[list[str]]:
    """Yield, for each array that has several names after a call, those names."""
    for way, each in zip(ways, returned, strict=True):
        holders: dict[Any, list[str]] = {}
        for name, leaf in places.leaves.items():
            if name not in each.state and leaf.slot is not None and not leaf.of_argument:
                holders.setdefault(("slot", leaf.slot), []).append(name)
        for name, part in each.state.items():
            if isinstance(part, NewArray):
                holders.setdefault(("made", way.outputs.arrays[part.index]), []).append(name)
            elif isinstance(part, FromSlot):
                holders.setdefault(("slot", way.slots[part.slot]), []).append(name)
        yield from (names for names in holders.values() if len(names) > 1)


def chain_read(value: Any, chain: Sequence[Any], number: Callable[[Number], Any]) -> Any:
    """Apply a chain of views to an array, in a traced program."""
    for step in chain:
        if isinstance(step, Placed):
            step = Placed(step.extent, fill(step.starts, number, Number))
        value = step.read(value)
    return value


# -- ways -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Way:
    """One path through the function.

    assumed: nodes with their required outcomes. trace: the trace with its result and side effects. slots, outputs: the
    positions of the trace's slots and outputs in the merged trace. nodes: indices of its operations, at least those on
    the host.
    """

    assumed: list[tuple[Node, Any]]
    trace: Trace
    slots: list[int]
    outputs: OutputPlaces
    nodes: frozenset[int]


def ways_of(trace: MergedTrace) -> list[Way]:
    """Return the paths of a merged trace: those of its members."""
    return [_of_member(trace, member) for member in trace.members]


def _of_member(trace: MergedTrace, member: Member) -> Way:
    placement = member.placement
    return Way(_assumed(trace, placement), member.trace, placement.slots, placement.outputs, placement.nodes)


def _assumed(trace: MergedTrace, way: Placement) -> list[tuple[Node, Any]]:
    assumed = [(trace.tape.outcomes[position].node, value) for position, value in way.outcomes.items()]
    return assumed + [(trace.tape.nodes[index], value) for index, value in way.on_host.items()]
