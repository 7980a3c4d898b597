"""Variables that outlive a call: names in a namespace, and cells. What they hold, and how a write is noted."""

from __future__ import annotations

from types import CellType
from typing import Any, NamedTuple

from accel.record.state.changes import AttributeState, Item, PlainOwner
from accel.record.state.inputs import MISSING, Fetch
from accel.record.state.recording import Recording
from accel.rules.rule import Unsupported

CONTENTS = "cell_contents"
"""The attribute of a cell that holds its variable."""

OF_CELL, OF_GLOBALS = "the variable ", "the globals of "
"""Prefixes of the texts of holders, before the variable's or the module's name."""


class OuterVariable(NamedTuple):
    """One variable.

    holder: the namespace or the cell that it is in, which a later call finds by `fetch`. name: in the namespace. text:
    as the user knows it. owner_text: the same for the holder.
    """

    holder: Any
    name: str
    text: str
    owner_text: str
    fetch: Fetch

    @property
    def is_cell(self) -> bool:
        return type(self.holder) is CellType

    @property
    def key(self) -> tuple[int, str | Item]:
        """The key of its state among those of attributes."""
        return id(self.holder), CONTENTS if self.is_cell else Item(self.name)

    def held(self) -> Any:
        """The variable's value; MISSING where it is not bound."""
        return contents_of(self.holder) if self.is_cell else self.holder.get(self.name, MISSING)

    def put(self, value: object) -> None:
        """Bind it; MISSING unbinds it."""
        if self.is_cell:
            fill(self.holder, value)
        elif value is MISSING:
            self.holder.pop(self.name, None)
        else:
            self.holder[self.name] = value


def contents_of(cell: CellType) -> Any:
    """A cell's contents; MISSING where its variable is not bound."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def fill(cell: CellType, value: object) -> None:
    """Let a cell hold a value; MISSING empties it."""
    if value is not MISSING:
        cell.cell_contents = value
    elif contents_of(cell) is not MISSING:
        del cell.cell_contents


def state_of(recording: Recording, variable: OuterVariable) -> AttributeState | None:
    """The recorded state of the variable; None before its first write."""
    return recording.attributes.get(variable.key)


def write(recording: Recording, variable: OuterVariable, value: object) -> Any:
    """Give the variable the plain form of `value` (MISSING deletes it), and note that. Returns what it holds then."""
    before = variable.held()
    plain = MISSING if value is MISSING else recording.kept.unwrap_to_store(value)
    recording.journal.add(lambda: variable.put(before))
    variable.put(plain)
    if recording.active:
        recording.write_down(lambda: _note(recording, variable, value, plain), None)
    return plain


def _note(recording: Recording, variable: OuterVariable, value: object, plain: object) -> None:
    owner = _owner(recording, variable)
    if not recording.active:
        return
    namespace = owner._plain_
    if owner._slot_ is None or (isinstance(namespace, dict) and type(namespace) is not dict):
        raise Unsupported("effect.global", f"{variable.text} is assigned, in a namespace of a type of its own")
    key, states = variable.key, recording.attributes
    before = states.get(key)
    # As for attributes: new names are set in the order in which they came.
    if before is None or before.wrapped is MISSING:
        states.pop(key, None)
    name = key[1]
    states[key] = AttributeState(owner, name, value, True, plain)


def _owner(recording: Recording, variable: OuterVariable) -> Any:
    """The owner under which writes to the variable are noted."""
    holder, fetch = variable.holder, variable.fetch
    key = ("holder", id(recording.registry.keep_alive(holder)))
    if not variable.is_cell:
        # As a dict, since the program may have it as one too (`f.__globals__`).
        return recording.enter(holder, key, variable.owner_text, fetch)
    return PlainOwner(holder, slot_of_cell(recording, variable))


def slot_of_cell(recording: Recording, variable: OuterVariable) -> int:
    """The slot of a variable's cell."""
    key = ("holder", id(recording.registry.keep_alive(variable.holder)))
    return recording.inputs.find_or_add(key, variable.owner_text, variable.fetch)


def check_unchanged(recording: Recording) -> None:
    """Break the tape if something else has assigned a variable after the recorded code wrote it."""
    for state in list(recording.attributes.values()):
        holder = state.owner._plain_
        if type(holder) is CellType:
            now = contents_of(holder)
        elif type(holder) is dict and isinstance(state.name, Item) and "__builtins__" in holder:
            now = holder.get(state.name.key, MISSING)
        else:
            continue
        if now is not state.held and recording.active:
            recording.break_unseen(f"{recording.inputs.name(state.owner._slot_)} was changed by something else")
