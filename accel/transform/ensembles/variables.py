"""The variables of a program's own loop, and a loop body over copies of them. A member's iteration runs that body.

The variables are those of the function around the loop, those of nested functions that the loop may call, and global
names of its module. A value that cannot be copied, such as an open file, is shared by all members, and no iteration may
change it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from accel.platform.codes import with_nested
from accel.record.objects.names.variables import contents_of, fill
from accel.record.state.inputs import MISSING
from accel.transform.ensembles.addresses import member_globals
from accel.transform.ensembles.copies import MemberParts, copied_each

_NO_STATE = (ModuleType, type, FunctionType)

_CLASS = "__class__"
"""The variable by which `super()` finds the class."""


class OwnBody(NamedTuple):
    """A loop body over copies of its variables.

    module: the program's global names. names: a member's global names. cells: its other variables, by name.
    cells_by_id: the same, by the ids of the program's cells. failed: by name, why a variable could not be copied.
    parts: the copied values. called: names used in functions that the body may call.
    """

    function: FunctionType
    module: dict[str, Any]
    names: dict[str, Any]
    cells: dict[str, CellType]
    cells_by_id: dict[int, CellType]
    failed: dict[str, str]
    parts: MemberParts
    called: frozenset[str]

    def over(self, function: FunctionType) -> FunctionType:
        """Return a function of the program, rebound to the copies."""
        names = self.names if function.__globals__ is self.module else function.__globals__
        closure = function.__closure__
        cells = None if closure is None else tuple(self.cells_by_id.get(id(each), each) for each in closure)
        made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
        made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
        made.__module__ = function.__module__
        vars(made).update(vars(function))
        return made

    def put(self, name: str, value: Any) -> None:
        """Set a variable."""
        if name in self.cells:
            fill(self.cells[name], value)
        elif name in self.names:
            self.names[name] = value


class _Found(NamedTuple):
    """The program's variables. cells: by the names that users know; names: global names; called: see OwnBody."""

    cells: dict[str, CellType]
    names: dict[str, Any]
    called: set[str]


def own_body(body: FunctionType, name: str) -> OwnBody:
    """Return a loop body over copies of its variables' current values. name: of the loop, for refusals. Raises
    Refused."""
    given = body.__globals__
    found = _variables_of(body)
    local = {each: held for each, cell in found.cells.items() if (held := contents_of(cell)) is not MISSING}
    both = {**_with_state(found.names), **_with_state(local)}  # of two of one name the global one is the program's
    copies, failed, parts = copied_each(both, name)
    names = member_globals(given)
    cells = {each: cell if each == _CLASS else CellType() for each, cell in found.cells.items()}
    by_id = {id(found.cells[each]): cell for each, cell in cells.items()}
    own = OwnBody(body, given, names, cells, by_id, failed, parts, frozenset(found.called))
    for each, value in local.items():
        if each != _CLASS:
            fill(cells[each], _over(own, copies.get(each, value)))
    for each in given:
        is_own = each in copies and each not in local
        names[each] = _over(own, copies[each] if is_own else given[each])
    return own._replace(function=own.over(body))


def _over(own: OwnBody, value: Any) -> Any:
    """Return a value. A function of the program that uses the variables is rebound to the copies."""
    if type(value) is not FunctionType:
        return value
    is_nested = any(id(cell) in own.cells_by_id for cell in value.__closure__ or ())
    return own.over(value) if is_nested or value.__globals__ is own.module else value


def _with_state(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not isinstance(value, _NO_STATE)}


def _variables_of(body: FunctionType) -> _Found:
    """Return the variables used in a loop body and in those functions of its module that it may call."""
    given = body.__globals__
    found, seen = _Found({}, {}, set()), {id(body)}
    known: set[int] = set()
    waiting = [body]

    def note(value: Any) -> None:
        if type(value) is FunctionType and value.__globals__ is given and id(value) not in seen:
            seen.add(id(value))
            waiting.append(value)

    while waiting:
        function = waiting.pop(0)
        if function is not body:
            found.called.update(function.__code__.co_freevars, _names_of(function.__code__))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if id(cell) not in known:
                known.add(id(cell))
                found.cells[name if name not in found.cells else f"{function.__name__}'s {name}"] = cell
                note(contents_of(cell))
        for name in _names_of(function.__code__):
            if name in given:
                found.names[name] = given[name]
                note(given[name])
    return found


def _names_of(code: CodeType) -> Iterator[str]:
    return (name for each in with_nested(code) for name in each.co_names)
