"""Capture one real iteration of a loop in a running program, as the call of its body that accel would record.

The code that holds the loop is outlined before it runs, as it is when the loop is accelerated (see accel.entry.lift).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from accel.entry.callables import PlainCall
from accel.entry.lift.iterations import calling
from accel.entry.lift.lifting import LiftedCode, lifted_module_code
from accel.entry.lift.source import NotLiftable
from accel.entry.lift.switch import Switch, name_of
from accel.platform.bodies import add_body
from accel.platform.config import SettingError
from accel.tools.inspect.explain.capture import real_path
from accel.tools.inspect.programs import Change
from accel.tools.inspect.sources import Source


class LoopOf(NamedTuple):
    """A loop. target: the name that the user wrote. qualname: of the enclosing function; TOP if there is none."""

    target: str
    source: Source
    qualname: str
    line: int

    def lifted(self, code: CodeType) -> tuple[CodeType, Switch]:
        """Outline the loop in its module's code. Returns the new code. Raises SettingError if that is impossible."""
        try:
            made = lifted_module_code(code, (self.qualname,))
        except NotLiftable as error:
            made = LiftedCode(code, [], [error.refusal])
        found = next((each for each in made.switches if each.line == self.line), None)
        if found is None:
            raise self._not_lifted(made)
        return made.code, found

    def _not_lifted(self, made: LiftedCode) -> SettingError:
        loops = [each for each in ast.walk(self.source.tree) if isinstance(each, ast.For | ast.While)]
        ends = [each.end_lineno or self.line for each in loops if each.lineno == self.line]
        lines = {str(line) for line in range(self.line, max(ends, default=0) + 1)}
        refusal = next((each for each in made.refusals if each.where.rpartition(":")[2] in lines), None)
        if refusal is not None:
            why = f"is a loop that is not compiled by itself: {refusal.why} [{refusal.reason}]"
            return SettingError("FUNCTION", self.target, refusal.hint, why)
        others = ", ".join(str(each.line) for each in made.switches)
        possible = f"one of the outermost loops, at line {others}" if others else "a function"
        return SettingError("FUNCTION", self.target, possible, "is no loop that is compiled by itself")


@contextmanager
def nth_iteration(loop: LoopOf, nth: int, found: Callable[[PlainCall], None]) -> Iterator[Change]:
    """Within the block, pass the nth iteration of a loop to `found`, before it runs.

    The loop is found in modules that are imported within the block, and in code transformed by the yielded function.
    """

    made: list[CodeType] = []

    def change(code: CodeType) -> CodeType:
        if real_path(code.co_filename) != loop.source.file or code in made:
            return code
        changed, switch = loop.lifted(code)
        _catch(switch, nth, found)
        made.append(changed)
        return changed

    plain = SourceFileLoader.get_code

    def changed_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        code = plain(self, fullname)
        return code if code is None else change(code)

    SourceFileLoader.get_code = changed_code  # type: ignore[assignment,method-assign]
    try:
        yield change
    finally:
        del SourceFileLoader.get_code  # it is inherited


def _catch(switch: Switch, nth: int, found: Callable[[PlainCall], None]) -> None:
    """Call `found` with the nth iteration of this loop."""
    assert switch.code is not None
    add_body(switch.code)
    counts = iter(range(1, nth + 1))

    def call(body: FunctionType) -> Any:
        if next(counts, 0) == nth:
            function = calling(switch, body.__globals__)
            # as the report spells the loop
            function.__qualname__ = name_of(switch, function.__module__).partition(":")[2]
            found(PlainCall(function, (body,), {}))
        return body()

    switch.call = call
    switch.on = True
