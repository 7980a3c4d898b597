"""Tracebacks without accel's frames: to the program they look as if it had called its functions itself."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType, TracebackType

ON_BEHALF = "<called by accel>"
"""The name of a frame of accel's with the file and line of the program's (see accel.record.state.on_behalf)."""

GENERATED = "<accel "
"""How the file names of code begin that accel generates."""

_ACCEL = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def entries(traceback: TracebackType | None) -> list[TracebackType]:
    """The entries of a traceback, the outermost first."""
    found = []
    while traceback is not None:
        found.append(traceback)
        traceback = traceback.tb_next
    return found


def with_callers(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that wait for it, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def linked(chosen: Sequence[TracebackType]) -> TracebackType | None:
    """A traceback of these entries of one traceback alone. They are linked anew, whoever holds them."""
    for place, entry in enumerate(chosen):
        following = chosen[place + 1] if place + 1 < len(chosen) else None
        if entry.tb_next is not following:
            entry.tb_next = following
    return chosen[0] if chosen else None


def is_ours(entry: TracebackType) -> bool:
    """Whether an entry is a frame of accel's."""
    frame, code = entry.tb_frame, entry.tb_frame.f_code
    if code.co_filename == "<string>" and str(frame.f_globals.get("__name__")).startswith("accel."):
        return True  # a method that `dataclass` has written, in which an interrupt may arise
    return code.co_filename.startswith((_ACCEL, GENERATED)) or code.co_name == ON_BEHALF


def without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without accel's frames."""
    return linked([each for each in entries(traceback) if not is_ours(each)])


def show_lines_of(code: CodeType, text: str) -> None:
    """Let tracebacks show lines of text that no file holds, as Python does for `-c` from 3.13 on.

    They ask for them by the name of the file that there is not, and in later versions by the code.
    """
    register = getattr(linecache, "_register_code", None)
    if register is not None:
        by_code = hasattr(linecache, "_getline_from_code")
        register(code if by_code else code.co_filename, text, code.co_filename)


class Again:
    """A `with` block that raises an exception which was raised before. It keeps its context.

    `raise error` would make what is being handled at this place its context: the exceptions that it was raised in the
    handling of would no longer be shown. No function does this, which would be one more frame.
    """

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self._context = error.__context__

    def __enter__(self) -> BaseException:
        return self._error

    def __exit__(self, *_: object) -> None:
        self._error.__context__ = self._context
