"""Holding state on the device: consecutive iterations of an outlined loop, between which nothing else can look.

Such iterations leave the program's arrays out of date (see accel.backend.resident). They are brought up to date when
the loop leaves its compiled path or ends, and when an iteration raises or leaves the loop. The same happens when a
signal arrives, when garbage is to be collected, and before the first iteration that somebody could look behind.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Mapping
from types import CellType, FrameType, FunctionType
from typing import Any

from accel.backend import resident
from accel.dispatch import Target
from accel.entry.lift.between import NUMBERS, is_plain_target, names_of_test
from accel.entry.lift.switch import Switch
from accel.entry.lift.transform import GONE_ON
from accel.platform import background
from accel.platform.bodies import add_call
from accel.platform.interrupts import pass_on
from accel.platform.ledger import open_ledger
from accel.platform.observers import BUSY, Unobserved, observer

_unobserved = Unobserved(functools.partial(resident.current.bring_up_to_date, "a signal arrived"))
resident.current.closes = _unobserved.end

CONDITION = "the loop's condition may look at arrays, or run code of the program's"


class Holding:
    """Arrays that the iterations of one loop leave on the device. switch, target: the loop's."""

    def __init__(self, switch: Switch, target: Target) -> None:
        self._switch = switch
        self._target = target
        loop = switch.statement
        self._tested = names_of_test(loop.test) if isinstance(loop, ast.While) else frozenset()
        self._target_is_plain = isinstance(loop, ast.While) or (loop is not None and is_plain_target(loop.target))
        self._is_hooked = False

    def run(self, call: Callable[[FunctionType], Any], body: FunctionType) -> Any:
        """Run one iteration by `call`, as it would run otherwise. Raises what that raises."""
        state = resident.current
        why = None if state.is_open else self._open(body)
        if why is not None:
            result = call(body)
            self._count(why)
            return result
        state.iteration += 1
        try:
            result = call(body)
            why = self._ended(result, body)
        except BaseException:
            self._switch.release()
            raise
        if why is None:
            self._switch.holds = True
        else:
            self._switch.release()
        self._count(why)
        return result

    def _ended(self, result: Any, body: FunctionType) -> str | None:
        """End an iteration. Returns why arrays have to be up to date after it; None if they may stay as they are."""
        try:
            if resident.current.is_open:
                resident.current.end_iteration()
            return self._why_not_on(result, body)
        except Exception as error:
            pass_on(error)
            return f"what it leaves is not known: {type(error).__name__}: {error}"

    def _why_not_on(self, result: Any, body: FunctionType) -> str | None:
        if not resident.current.is_open:
            return resident.current.closed_by
        if not (result is None or (type(result) is int and result == GONE_ON)) or not self._switch.on:
            return "it leaves the loop"
        if _unobserved.is_collection_due(resident.current.kept):
            return "garbage is to be collected"
        if background.threads.are_running:
            return BUSY
        return None if self._are_numbers(self._shared(body)) else CONDITION

    def _count(self, why: str | None) -> None:
        """Count an iteration.

        why: the report's reason why it has left nothing on the device; None if it has left its state.
        """
        book = open_ledger(self._target.name)
        if why is None:
            book.held_rounds += 1
        else:
            book.not_held[why] += 1

    def _open(self, body: FunctionType) -> str | None:
        """Let arrays be out of date from now on, if nobody can look. Returns why not, or None."""
        try:
            why = self._why_not(body)
        except Exception as error:
            pass_on(error)
            why = f"whether somebody could look is not known: {type(error).__name__}: {error}"
        if why is not None:
            return why
        if not self._is_hooked:
            self._target.function = plainly_run(self._target.recorded)
            self._is_hooked = True
        state = resident.current
        _unobserved.begin()
        state.iterated = self._switch.read.arrays if self._switch.read is not None else ()
        state.is_open = state.is_held = True
        if not _unobserved.is_on:  # a signal's handler came in between
            state.bring_up_to_date("a signal arrived")
        if background.threads.are_running:  # it began meanwhile, and waits
            state.bring_up_to_date(BUSY)
        return None if state.is_open else state.closed_by

    def _why_not(self, body: FunctionType) -> str | None:
        """Why nothing may be out of date after this iteration; None if it may."""
        switch = self._switch
        if switch.beside is not None:
            return "its iterations are watched"
        if self._target.is_calling_itself:
            return "it is part of an iteration of its own"
        is_known = isinstance(switch.statement, ast.While) or (switch.read is not None and switch.read.are_plain())
        if not self._target_is_plain or not is_known:
            return "what gives the loop its next element may run code of the program's"
        if self._tested is None or not self._are_numbers(self._seen()):
            return CONDITION
        return self._target.why_not_plain() or observer()

    # -- what a `while` decides by ------------------------------------------------------------------------------------

    def _are_numbers(self, values: Mapping[str, Any]) -> bool:
        """Whether those of the condition's variables that are here hold plain numbers."""
        assert self._tested is not None
        return all(type(values[name]) in NUMBERS for name in self._tested if name in values)

    def _shared(self, body: FunctionType) -> Mapping[str, Any]:
        """The variables that iterations may change."""
        if not self._tested:
            return {}
        if not body.__closure__:
            return body.__globals__
        cells = zip(body.__code__.co_freevars, body.__closure__, strict=True)
        return {name: _contents(cell) for name, cell in cells}

    def _seen(self) -> Mapping[str, Any]:
        """All variables of the condition, as the loop's frame has them; one that is not found is no number."""
        if not self._tested:
            return {}
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not any(each is self._switch for each in frame.f_code.co_consts):
            frame = frame.f_back
        if frame is None:
            return dict.fromkeys(self._tested, self)
        known = {**frame.f_builtins, **frame.f_globals, **frame.f_locals}
        return {name: known.get(name, self) for name in self._tested}


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def plainly_run(function: FunctionType) -> FunctionType:
    """A function like that of a loop's iterations, which brings arrays up to date first: whoever runs it runs the
    program.

    It stands where that function stands, for warnings and tracebacks.
    """
    code = function.__code__
    replaced = _after.__code__.replace(
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )
    add_call(replaced)
    made = FunctionType(replaced, function.__globals__, function.__name__, (resident.current.bring_up_to_date,))
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


def _after(body: Any, first: Callable[[], object] = resident.current.bring_up_to_date) -> Any:
    first()
    return body()
