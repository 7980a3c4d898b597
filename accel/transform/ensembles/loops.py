"""An iteration of a program's own loop as an ensemble's step: the test of a `while`, and the loop body.

Variables keep their own names. Text that an iteration shows comes from the program alone, not from its members.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

from accel.entry.lift.assigned import temporary_names
from accel.entry.lift.switch import Switch
from accel.entry.lift.transform import BROKEN, GONE_ON, NOT_RUN
from accel.platform.bodies import add_body
from accel.record import Trace
from accel.record.objects.names.variables import CONTENTS, OF_CELL, OF_GLOBALS
from accel.record.state.changes import Change, Write
from accel.record.state.inputs import Fetch, Inputs, Slot, named_cell, of_closure, of_contents, of_namespace
from accel.transform.ensembles.addresses import CELL, Roots
from accel.transform.ensembles.copies import Copy
from accel.transform.ensembles.variables import OwnBody, own_body
from accel.transform.ensembles.working_copy import WorkingCopy
from accel.transform.pure.recorded import refused

_OF_BODY = of_closure(0, 0).text
"""The fetch expression by which a loop body's cells are read."""

LEFT = NOT_RUN
"""Result of an iteration whose test ended the loop."""

RETURNED = 3
"""Result of an iteration that returns from the function around the loop."""

WAYS = {LEFT: "ends", GONE_ON: "goes on", BROKEN: "breaks out of the loop", RETURNED: "returns from the loop"}


def way_of(result: Any) -> int:
    """Return how an iteration of the program's loop ended, given the result of `Switch.run`."""
    return RETURNED if isinstance(result, tuple) else GONE_ON if result is None else int(result)


def _round(body: Any, test: Any) -> Any:
    if test is not None and not test():
        return 0
    ended = body()
    if ended is None:
        return 1
    return ended if ended == 1 or ended == 2 else 3


class LoopCopy(WorkingCopy):
    """A copy of a loop's variables, on which NumPy runs a member's iteration.

    values: by name, variables that the test reads and that are not shared with the body.
    """

    silent = True

    def __init__(self, switch: Switch, body: FunctionType, values: Mapping[str, Any], name: str) -> None:
        add_body(body.__code__)
        self._own: OwnBody = own_body(body, name)
        test = _test(switch, body, values, name)
        self._cell_names = {id(cell): each for each, cell in self._own.cells.items()}
        self._own.names.update({CELL + each: cell for each, cell in self._own.cells.items()})
        self._read_past: set[str] = set()
        temporary = set() if switch.statement is None else temporary_names(switch.statement)
        self._temporary = temporary - self._own.called
        parts = self._own.parts
        given = [self._own.function, None if test is None else self._own.over(test)]
        copy = Copy(parts.held, parts.originals, Roots(given, {}, self._own.names))
        super().__init__(_as_if_at(switch, body), name, copy, 0)

    def follow(self, name: str, value: Any) -> None:
        """Set a variable that the loop statement itself assigns to the program's value."""
        self._own.put(name, value)

    def check(self, names: Iterable[str]) -> None:
        """Refuse values that members own or change, if some code reads the program's variable instead.

        names: of values that members own or change. Raises Refused.
        """
        for name in names:
            variable = name.partition(".")[0].partition("[")[0]
            if variable in self._read_past:
                raise self._is_read_past(variable)
            why = self._own.failed.get(variable)
            if why is not None:
                raise refused(self.name, "ensemble.copy", f"{variable}: {why}")

    def _is_read_past(self, name: str) -> Exception:
        return refused(self.name, "ensemble.place", f"a method, or another module, reads {name} by its name")

    def _see(self, trace: Trace) -> None:
        renamed: dict[str, str] = {}
        inputs = trace.inputs
        for index, slot in enumerate(inputs.slots, Inputs.ROOTS):
            name, fetch = self._known(slot, inputs)
            if name != slot.name and not slot.name.startswith((OF_GLOBALS, OF_CELL)):
                renamed[slot.name] = name
            elif name == slot.name:
                name = _below(renamed, name)
            inputs.replace(index, name, fetch)
        for name in sorted(self._temporary & self._read_past):
            raise self._is_read_past(name)
        trace.outputs.writes[:] = [each for each in trace.outputs.writes if not self._is_temporary(each, inputs)]

    def _is_temporary(self, change: Change, inputs: Inputs) -> bool:
        """Return whether a change assigns a variable that the next iteration does not read. Raises Refused."""
        if not isinstance(change, Write):
            return False
        holder = inputs.slots[change.owner - Inputs.ROOTS]
        if self._is_programs(holder.fetch):
            raise refused(self.name, "ensemble.place", "a method, or another module, assigns a name of the script")
        if change.name == CONTENTS:
            return holder.name.removeprefix(OF_CELL) in self._temporary
        return holder.name == OF_GLOBALS and change.name in self._temporary

    def _known(self, slot: Slot, inputs: Inputs) -> tuple[str, Any]:
        """Return the name of an input, and the expression that fetches it."""
        constants = slot.fetch.constants
        first = constants[0] if constants else None
        of_body = slot.fetch.text.startswith(_OF_BODY)
        cell = self._own.function.__closure__[first] if of_body else named_cell(slot.fetch)  # type: ignore[index]
        if cell is not None and id(cell) in self._cell_names:
            name = self._cell_names[id(cell)]
            found = of_namespace(self._own.names, CELL + name)
            return (name, of_contents(found)) if slot.fetch.text.endswith(CONTENTS) else (OF_CELL + name, found)
        if first is self._own.names:
            return (OF_GLOBALS if len(constants) == 1 else constants[1]), slot.fetch
        self._note_programs(slot.fetch)
        return slot.name, slot.fetch

    def _note_programs(self, fetch: Fetch) -> None:
        """Record the program's variables that the iteration reads directly, bypassing the members' copies."""
        cell = named_cell(fetch)
        if not self._is_programs(fetch):
            return
        if cell is not None:
            self._read_past.add(self._cell_names[id(self._own.cells_by_id[id(cell)])])
        elif len(fetch.constants) == 2:
            self._read_past.add(fetch.constants[1])

    def _is_programs(self, fetch: Fetch) -> bool:
        first, cell = fetch.constants[0] if fetch.constants else None, named_cell(fetch)
        return first is self._own.module or (cell is not None and id(cell) in self._own.cells_by_id)


def _below(renamed: Mapping[str, str], name: str) -> str:
    """Return a name with its renamed prefix replaced."""
    for before, after in renamed.items():
        if name.startswith((f"{before}.", f"{before}[")):
            return after + name.removeprefix(before)
    return name


def _as_if_at(switch: Switch, body: FunctionType) -> FunctionType:
    """Return the function that runs an iteration, attributed to the program's module and line."""
    code = _round.__code__.replace(
        co_filename=body.__code__.co_filename,
        co_firstlineno=switch.line,
        co_name=body.__code__.co_name,
        co_qualname=body.__code__.co_qualname,
    )
    made = FunctionType(code, body.__globals__, body.__name__)
    made.__module__, made.__qualname__ = body.__globals__.get("__name__", ""), body.__qualname__
    return made


# -- the test of a `while` --------------------------------------------------------------------------------------------

_HARMLESS = frozenset(
    {"abs", "len", "min", "max", "any", "all", "sum", "round", "float", "int", "bool", "item", "mean"}
)
"""Functions and methods without side effects, which a test may call: it is evaluated for the members, too."""


def has_test(switch: Switch) -> bool:
    """Return whether a loop has a test of its own, as `while` has."""
    return isinstance(switch.statement, ast.While) and not isinstance(switch.statement.test, ast.Constant)


def _test(switch: Switch, body: FunctionType, values: Mapping[str, Any], name: str) -> FunctionType | None:
    """Return the test of a `while` as a function of the program's variables. Raises Refused if it may have side
    effects."""
    if not isinstance(switch.statement, ast.While) or not has_test(switch):
        return None
    test = switch.statement.test
    for node in ast.walk(test):
        if isinstance(node, (ast.NamedExpr, ast.Await)) or (isinstance(node, ast.Call) and not _is_harmless(node)):
            raise refused(name, "ensemble.test", ast.unparse(node))
    cells = dict(zip(body.__code__.co_freevars, body.__closure__ or (), strict=True))
    mentioned = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    cells |= {each: CellType(values[each]) for each in sorted(mentioned - set(cells)) if each in values}
    code = _code_of(test, list(cells), body.__code__)
    return FunctionType(code, body.__globals__, "test", None, tuple(cells[each] for each in code.co_freevars))


def _is_harmless(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id=called):
            return called in _HARMLESS
        case ast.Attribute(value=ast.Name(id="np" | "numpy" | "math")):
            return True
        case ast.Attribute(attr=called):
            return called in _HARMLESS
    return False


def _code_of(test: ast.expr, variables: list[str], body: CodeType) -> CodeType:
    around = ast.parse(f"def around({', '.join(variables)}):\n def test(): return 0")
    assert isinstance(around.body[0], ast.FunctionDef)
    inner = around.body[0].body[0]
    assert isinstance(inner, ast.FunctionDef)
    inner.body = [ast.copy_location(ast.Return(test), test)]
    code = compile(ast.fix_missing_locations(around), body.co_filename, "exec", dont_inherit=True)
    return _nested(_nested(code))


def _nested(code: CodeType) -> CodeType:
    return next(each for each in code.co_consts if isinstance(each, CodeType))


def targets(switch: Switch) -> list[str]:
    """Return the variables that the `for` statement itself assigns in each iteration."""
    if not isinstance(switch.statement, ast.For):
        return []
    return [node.id for node in ast.walk(switch.statement.target) if isinstance(node, ast.Name)]
