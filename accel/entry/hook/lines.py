"""Run a callback before each line at the top level of the program, until it has bound certain names."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Collection
from types import CodeType, FrameType
from typing import Any


def before_each_line(code: CodeType, names: Collection[str], is_over: Callable[[], bool]) -> None:
    """Call `is_over` before each line of a module, in this thread, until it returns True.

    It also ends after the last line that can bind one of `names` at the module's top level. code: of the module, which
    must not have begun. Like a debugger, this occupies Python's trace function until then.
    """
    last = last_line_that_binds(code, names)
    if last is None:
        return

    def at_call(frame: FrameType, event: str, arg: object) -> Any:
        return at_line if frame.f_code is code else None

    def at_line(frame: FrameType, event: str, arg: object) -> Any:
        if not is_over() and frame.f_lineno <= last:
            return at_line
        frame.f_trace = None
        if sys.gettrace() is at_call:  # the program may have set its own
            sys.settrace(None)
        return None

    sys.settrace(at_call)


def last_line_that_binds(code: CodeType, names: Collection[str]) -> int | None:
    """The last line of a module that binds one of these names; None if none does.

    >>> last_line_that_binds(compile("def f(): ...\\ng = 1\\nf()", "", "exec"), {"f"})
    1
    """
    stores = (each for each in dis.get_instructions(code) if each.opname == "STORE_NAME" and each.argval in names)
    return max((each.positions.lineno or 0 for each in stores if each.positions is not None), default=None)
