"""The loops that one installation has outlined, and how to restore them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from accel.catalogue import Row
from accel.entry.hook.imports import locate
from accel.platform import logs
from accel.platform.codes import with_nested
from accel.platform.ledger import current_run
from accel.platform.reasons import Refusal, source_line
from accel.platform.versions import shortfall

if TYPE_CHECKING:
    from accel.entry.lift.iterations import Splits
    from accel.entry.lift.lifting import LiftedFunction
    from accel.entry.lift.passed import After, Bound
    from accel.entry.lift.switch import Switch

MAIN, TOP = "__main__", "<module>"
"""The program's own module, and the qualified name of a module's top-level code."""

WHY = "chosen by accel"

Listener = Callable[["Switch", dict[str, Any]], object]

listeners: list[Listener] = []
"""Callbacks for each outlined loop, called with the globals of its module."""

Start = Callable[[Row, "Switch", dict[str, Any], "Splits | None"], None]
"""Attaches a target to an outlined part of a row's function. Arguments: the row, the part's switch, the globals of its
module, and the function's splits, where it has been split."""


class Lifts:
    """The outlined loops of one installation. start: None if loops stay as they are."""

    def __init__(self, start: Start | None) -> None:
        self._start = start if shortfall() is None else None  # calls would stay on NumPy anyway
        self._functions: list[LiftedFunction] = []
        self._switches: list[Switch] = []

    def lift(self, row: Row, function: FunctionType) -> Refusal | None:
        """Outline the loops of an imported function. Returns why that is impossible, or None."""
        if self._start is None or any(each.function is function for each in self._functions):
            return None
        from accel.entry.lift.lifting import lift_function
        from accel.entry.lift.source import NotLiftable

        try:
            made = lift_function(function)
        except NotLiftable as error:
            return error.refusal
        except Exception as error:  # a fault of accel's must not end the program's import
            return _fault(function.__code__, error)
        self._functions.append(made)
        self._begin(row, made.lifted.switches, function.__globals__)
        _note(made.lifted.refusals)
        return None

    def lift_refused(self, row: Row, function: FunctionType, refusals: Sequence[Refusal], call_s: float) -> bool:
        """Outline parts of a function that is refused as a whole. See `OnRefused` in accel.dispatch.recordings."""
        if self._start is None or any(each.function is function for each in self._functions):
            return False
        from accel.entry.lift.iterations import lift_refused
        from accel.entry.lift.source import NotLiftable

        def begin(switch: Switch, name: str, splits: Splits) -> None:
            self._begin(row, [switch], function.__globals__, splits)

        try:
            made = lift_refused(function, row.target, refusals, call_s, begin)
        except NotLiftable:
            return False
        except Exception as error:
            _note([_fault(function.__code__, error)])
            return False
        self._functions.append(made)
        _note(made.lifted.refusals)
        return True

    def lift_program(
        self, rows: Iterable[Row], code: CodeType, names: dict[str, Any], on_bound: Bound | None, after: After
    ) -> CodeType | Refusal:
        """Outline the loops that rows name in a module that has not run yet.

        names: the globals in which it will run. on_bound: called with functions that the program passes on, as soon as
        it has bound them. after: see `After`.
        """
        wanted = {row.qualname: row for row in rows}
        if self._start is None or not (wanted or on_bound or after.names):
            return code
        from accel.entry.lift.lifting import lifted_module_code
        from accel.entry.lift.source import NotLiftable

        try:
            made = lifted_module_code(code, wanted, on_bound, after)
        except NotLiftable as error:
            return error.refusal
        except Exception as error:
            return _fault(code, error)
        for switch in made.switches:
            assert switch.around is not None
            self._begin(wanted[switch.around.co_qualname], [switch], names)
        _note(made.refusals)
        return made.code

    def _begin(self, row: Row, switches: Iterable[Switch], names: dict[str, Any], splits: Splits | None = None) -> None:
        assert self._start is not None
        for switch in switches:
            self._start(row, switch, names, splits)
            self._switches.append(switch)
            for listener in listeners:
                listener(switch, names)
            logs.LOGGER.info("%s: line %s is outlined", row.target, switch.place)

    def undo(self) -> None:
        """Restore the original code of all functions. Loops that are running stay as they are."""
        for switch in self._switches:
            switch.on = False
        for each in self._functions:
            each.undo()


def _note(refusals: Iterable[Refusal]) -> None:
    """Log loops that stay as they are while others of the same function were outlined."""
    for refusal in refusals:
        current_run().note(f"not lifted: the loop at {refusal.where}: {refusal.why} [{refusal.reason}]")


def _fault(code: CodeType, error: Exception) -> Refusal:
    where = source_line(code.co_filename, code.co_firstlineno)
    return Refusal("accel.fault", where, f"{type(error).__name__}: {error}")


def rows_of_program(rows: Iterable[Row], filename: str) -> list[Row]:
    """Return the rows that name loops of the program that runs as `__main__` from this file."""
    return [row for row in rows if row.loops and (row.module == MAIN or is_file_of(row.module, filename))]


def is_file_of(module: str, filename: str) -> bool:
    """Return whether importing `module` would run this file."""
    try:
        origin = getattr(locate(module), "origin", None)
        return isinstance(origin, str) and os.path.samefile(origin, filename)
    except OSError:
        return False


def rows_of_all(code: CodeType, known: Iterable[Row]) -> list[Row]:
    """Return rows for the loops of a program, at its top level and in its functions, except for rows in `known`."""
    names = dict.fromkeys(each.co_qualname for each in with_nested(code))
    for row in known:
        names.pop(row.qualname, None)
    return [Row(MAIN, name, WHY, loops=True) for name in names]
