"""Programs that explain and doctor run to observe their calls: started as by `accel run`, or a function of a module."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType

from accel.entry.hook.imports import find_module, split_name
from accel.platform.config import SettingError
from accel.tools.cli import program
from accel.tools.cli.starts import TARGETS, Start, StartCommand

Change = Callable[[CodeType], CodeType]
"""Transforms a module's code into the code that runs in its place."""

PROGRAMS = f"{TARGETS}, or module:callable"


def found(words: Sequence[str], find: Callable[[StartCommand], Start] = program.enter) -> Start:
    """Return the program that the words after --run name. Raises SettingError if there is none.

    find: `program.enter`, which sets `sys.path` too, or `starts.find`.
    """
    if not words:
        raise SettingError("--run", "", PROGRAMS, "is missing its program")
    target, *args = words
    module, name = ("", "") if os.path.exists(target) else split_name(target)
    if name and find_module(module) is not None:
        target, args = "-c", [f"import {module}\n{module}.{name}()", *args]
    try:
        return find(StartCommand(target, args, None))
    except SettingError as error:
        raise error.renamed("--run") from None


INTERRUPTED = "was interrupted"


def run(start: Start, change: Change = lambda code: code) -> str:
    """Run a program, with nothing installed. Returns in words how it ended; "" if it came to its end.

    change: transforms the program's own code. Raises SettingError.
    """
    try:
        program.execute(start, hooked=False, change=change)
    except SettingError:
        raise
    except SystemExit as error:
        return f"ended with exit code {error.code}" if error.code else ""
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return f"failed ({type(error).__name__}: {error})".splitlines()[0]
    return ""


@contextmanager
def output_to_stderr() -> Iterator[int]:
    """Redirect the process's standard output to standard error. Yields a descriptor of the real standard output."""
    sys.stdout.flush()
    # descriptors, and not `sys.stdout` alone: C libraries and child processes print too
    real = os.dup(1)
    os.dup2(2, 1)
    try:
        yield real
    finally:
        sys.stdout.flush()
        os.dup2(real, 1)
        os.close(real)
