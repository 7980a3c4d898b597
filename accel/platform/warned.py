"""`warnings.warn` and loggers without accel's frames: a `stacklevel` counts the functions of the program alone.

Accel's frames lie between an accelerated function and its caller, and the body of an outlined loop is a function of its
own. Counted with them, a warning names another line, is shown more or less often, and meets filters of other modules.
A log record names another function.
"""

from __future__ import annotations

import itertools
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from accel.platform.bodies import calls_body
from accel.platform.logs import LOGGER
from accel.platform.own_code import PACKAGE
from accel.platform.tracebacks import GENERATED, ON_BEHALF, without_ours

original = warnings.warn
_find_caller = logging.Logger.findCaller

_ACCEL = os.path.join(PACKAGE, "")

_LIFT = os.path.join(PACKAGE, "entry", "lift", "")
"""Where bodies of loops are called."""

_COMMANDS = os.path.join(PACKAGE, "tools", "")
"""Where the frames are that call a program as a whole: above them Python itself has none."""

_NO_FRAME = 2**30
"""A `stacklevel` at which there is none."""


def begin() -> None:
    """Put accel's functions in the place of Python's, unless the program has put its own there."""
    if warnings.warn is original:
        warnings.warn = warn
    if logging.Logger.findCaller is _find_caller:
        logging.Logger.findCaller = find_caller  # type: ignore[assignment, method-assign]


def end() -> None:
    """Put Python's back."""
    if warnings.warn is warn:
        warnings.warn = original
    if logging.Logger.findCaller is find_caller:
        logging.Logger.findCaller = _find_caller  # type: ignore[method-assign]


def warn(*args: Any, **kwargs: Any) -> None:
    """Warn as `warnings.warn` does."""
    level = args[2] if len(args) > 2 else kwargs.get("stacklevel", 1)
    if type(level) is int:
        level = _level(sys._getframe(1), level) + 1  # this frame
        if len(args) > 2:
            args = (*args[:2], level, *args[3:])
        else:
            kwargs["stacklevel"] = level
    try:
        original(*args, **kwargs)
    except BaseException as error:
        error.__traceback__ = without_ours(error.__traceback__)
        raise


def find_caller(logger: logging.Logger, stack_info: bool = False, stacklevel: int = 1) -> Any:
    """Find the frame that logs as `logging.Logger.findCaller` does, which takes the outermost if there are too few."""
    if logger is LOGGER:
        return _find_caller(logger, stack_info, stacklevel + 1)
    frame: FrameType | None = sys._getframe(1)
    found = [each for each in frames_of_program(frame) if not _is_of_logging(each)][:stacklevel]
    level = 2  # this frame, and the one that is found
    while frame is not None and not (found and frame is found[-1]):
        level += not _is_of_logging(frame)
        frame = frame.f_back
    return _find_caller(logger, stack_info, level)


def frames_of_program(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames from this one on that there are without accel."""
    is_part = False
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_COMMANDS):
            return
        if name.startswith(_LIFT) or calls_body(frame.f_code):
            is_part = True  # a loop's body was called, which stands for the function of the next frame
        elif not name.startswith((_ACCEL, GENERATED)) and not _is_skipped(frame):
            if not is_part:
                yield frame
            is_part = frame.f_code.co_name == ON_BEHALF
        frame = frame.f_back


def _level(frame: FrameType, wanted: int) -> int:
    """Return the level, as Python counts from this frame, of one of the program's frames."""
    if wanted <= 1 or frame.f_code.co_filename.startswith(_ACCEL):
        return wanted
    target = next(itertools.islice(frames_of_program(frame), wanted - 1, None), None)
    level, each = 1, frame.f_back
    while each is not None:
        level += not _is_skipped(each)
        if each is target:
            return level
        each = each.f_back
    return _NO_FRAME


def _is_of_logging(frame: FrameType) -> bool:
    return frame.f_code.co_filename == _find_caller.__code__.co_filename or _is_skipped(frame)


def _is_skipped(frame: FrameType) -> bool:
    """Whether Python itself leaves a frame out, as it does with those of imports."""
    return "importlib" in frame.f_code.co_filename and "_bootstrap" in frame.f_code.co_filename
