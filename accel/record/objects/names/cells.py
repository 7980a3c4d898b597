"""Substituted cells: what followed code has for the variables of the functions around it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from accel.platform.bodies import is_body
from accel.record.objects.names.steps import writes_of
from accel.record.objects.names.variables import OF_CELL, OuterVariable, contents_of, fill, slot_of_cell, write
from accel.record.state import inputs
from accel.record.state.inputs import MISSING, Check, Fetch
from accel.record.state.recording import Recording


def enter_body(recording: Recording, function: FunctionType, slot: int) -> Check:
    """Note that the body of an outlined loop comes in through this slot. Returns the check that knows it by its code.

    Each call of the function around it has another body, over new variables. So its cells are fetched from the body of
    the present call.
    """
    recording.inputs.note(("function", id(recording.registry.keep_alive(function))), slot)
    return inputs.runs_code(function.__code__)


def fetch_of_cell(recording: Recording, function: FunctionType, place: int) -> Fetch:
    """Fetch the cell at a place of a function's closure in a later call."""
    slot = recording.inputs.find(("function", id(function))) if is_body(function) else None
    if slot is not None:
        return inputs.of_closure(slot, place)
    # the function may have a name that a later run finds it by, a cell has none
    return inputs.of_cell(function, place)


class Link:
    """A cell of the program's, and the one that recorded code has in its place.

    inner: that one. It is empty until the variable is read (`bring_in`) or written (`pass_on`). known: whether it has
    been. wrapped: what it holds, as far as it is known here. held: what the program's cell holds, by identity.
    """

    __slots__ = ("_recording", "_variable", "held", "inner", "known", "wrapped")

    def __init__(self, recording: Recording, variable: OuterVariable) -> None:
        self._recording = recording
        self._variable = variable
        self.inner = CellType()
        self.known = False
        self.wrapped: Any = MISSING
        self.held: Any = MISSING

    @property
    def cell(self) -> CellType:
        """The program's cell."""
        cell: CellType = self._variable.holder
        return cell

    def is_named(self, name: str) -> bool:
        """Whether this is a variable of that name."""
        return self._variable.name == name

    def bring_in(self) -> None:
        """Let recorded code find what the variable holds, before it reads it."""
        now = self._variable.held()
        if self.known and now is self.held:
            return
        recording = self._recording
        if self.known and recording.active:
            recording.break_unseen(f"{self._variable.text} was changed from outside the recorded code")
        if recording.active and now is not MISSING:
            key = ("cell", id(recording.registry.keep_alive(self.cell)))
            fetch = inputs.of_contents(self._variable.fetch)
            self._hold(recording.enter(now, key, self._variable.text, fetch), now)
        elif now is not MISSING or self.known:
            self._hold(now, now)

    def pass_on(self) -> bool:
        """Pass on to the program's variable what recorded code has just stored or deleted. Returns whether it has."""
        now = contents_of(self.inner)
        if now is self.wrapped:
            return False
        # Once the tape is broken, variables of running code become plain: no write.
        plain = now if now is MISSING or self._recording.active else self._recording.kept.unwrap_to_store(now)
        is_written = self._recording.active or plain is not self.held
        if is_written:
            self.held = write(self._recording, self._variable, now)
        self.wrapped, self.known = now, True
        return is_written

    def is_bound(self) -> bool:
        """Whether the variable has a value. Later calls must find it so, unless the recorded code decides that."""
        bound = self._variable.held() is not MISSING
        if not self.known and self._recording.active:
            slot = slot_of_cell(self._recording, self._variable)
            self._recording.inputs.narrow(slot, inputs.satisfies(_holds_value, bound))
        return bound

    def _hold(self, wrapped: object, held: object) -> None:
        fill(self.inner, wrapped)
        self.wrapped, self.held, self.known = wrapped, held, True


def closure_for(recording: Recording, function: FunctionType) -> tuple[CellType, ...] | None:
    """The substituted closure of a function. One cell of the program's has one that stands for it in a recording.

    What code that is watched reads comes in when it is read: if it is written first, it is no input.
    """
    if function.__closure__ is None:
        return None
    is_watched = bool(writes_of(function.__code__))
    cells = []
    for place, (name, cell) in enumerate(zip(function.__code__.co_freevars, function.__closure__, strict=True)):
        if name == "__class__":  # for zero-argument super()
            cells.append(cell)
            continue
        link = _link_of(recording, function, place)
        if not is_watched:
            link.bring_in()
        cells.append(link.inner)
    return tuple(cells)


def _link_of(recording: Recording, function: FunctionType, place: int) -> Link:
    """The one that stands for the cell at a place of a function's closure."""
    assert function.__closure__ is not None
    links, cell, name = recording.registry.links, function.__closure__[place], function.__code__.co_freevars[place]
    link: Link | None = links.get(id(cell))
    if link is None:
        fetch = fetch_of_cell(recording, function, place)
        variable = OuterVariable(cell, name, f"{function.__name__}'s {name}", f"{OF_CELL}{name}", fetch)
        link = links[id(recording.registry.keep_alive(cell))] = Link(recording, variable)
    return link


def _holds_value(cell: CellType, expected: bool) -> bool:
    return (contents_of(cell) is not MISSING) is expected


def links_of_code(recording: Recording, code: CodeType) -> dict[str, Link] | None:
    """The variables of the functions around followed code, by name; None for code that recorded code has defined."""
    functions = [function for function in recording.registry.functions if function.__code__ is code]
    if len(functions) != 1:
        return None
    cells = zip(code.co_freevars, functions[0].__closure__ or (), strict=True)
    links = recording.registry.links
    return {name: links[id(cell)] for name, cell in cells if id(cell) in links}


def links_of(recording: Recording) -> Iterator[Link]:
    """All cells for which recorded code has others."""
    return iter(list(recording.registry.links.values()))


class LocalNames:
    """The result of `locals()` in a function that shares variables with the functions around it.

    `name in locals()` is guarded. What else is asked of it ends the recording.
    """

    def __init__(self, recording: Recording, frame: FrameType, links: dict[str, Link]) -> None:
        self._recording = recording
        self._frame = frame
        self._links = links

    def __contains__(self, name: object) -> bool:
        link = self._links.get(name) if type(name) is str else None
        return name in self._frame.f_locals if link is None else link.is_bound()

    def _all(self) -> dict[str, Any]:
        self._recording.break_("code.unsupported", "the values of locals()")
        found = dict(self._frame.f_locals)
        return found | {name: link.cell.cell_contents for name, link in self._links.items() if link.is_bound()}

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __iter__(self) -> Any:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._all(), name)


def locals_(recording: Recording) -> Any:
    """`locals()` in recorded code."""
    frame = sys._getframe(2)  # beyond Builtin.__call__
    links = links_of_code(recording, frame.f_code) if frame.f_code.co_freevars else {}
    if recording.active and links is None:
        recording.break_("code.unsupported", "locals() of a nested function")
    if recording.active and links:
        return LocalNames(recording, frame, links)
    for link in (links or {}).values():
        link.bring_in()  # the tape is broken: what comes in is plain
    return dict(frame.f_locals)  # which writes through from Python 3.13 on, and before changes when it is read again
