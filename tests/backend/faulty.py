"""Functions with rows whose programs fail in the process that compiles, and nowhere else: faults of XLA, planted.

`add_one` stands for all of them on NumPy. A program calls Python for it, so that it can do what it likes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from accel.platform import callbacks
from accel.rules.rule import RULES, add_rule


def _in_worker() -> bool:
    return bool(sys.flags.isolated)


def crash(x: Any) -> Any:
    return x + 1.0


def hang(x: Any) -> Any:
    return x + 1.0


def die(x: Any) -> Any:
    return x + 1.0


def differ(x: Any) -> Any:
    return x + 1.0


def fine(x: Any) -> Any:
    return x + 1.0


def _crashing(x: Any) -> list[Any]:
    if _in_worker():
        os.abort()
    return [x + 1.0]


def _hanging(x: Any) -> list[Any]:
    while _in_worker():
        time.sleep(1.0)
    return [x + 1.0]


def _dying(x: Any) -> list[Any]:
    if _in_worker():
        os.kill(os.getpid(), signal.SIGKILL)  # as Linux does for want of memory
    return [x + 1.0]


def _differing(x: Any) -> list[Any]:
    return [x + 1.0 + 1e-3 * _in_worker()]


def _fine(x: Any) -> list[Any]:
    return [x + 1.0]


def _row(function: Callable[..., Any], called: Callable[..., Any]) -> None:
    def lower(*, x: Any) -> Any:
        return callbacks.call(called, [x], [(x.shape, x.dtype.str)])[0]

    RULES[function] = add_rule(function, lower, "x")


FUNCTIONS = {crash: _crashing, hang: _hanging, die: _dying, differ: _differing, fine: _fine}


def add_rows() -> None:
    """Add the rows. Tests that need them take them out again: others go through all rows."""
    for function, called in FUNCTIONS.items():
        if function not in RULES:
            _row(function, called)


if _in_worker():  # it imports this module with a row
    add_rows()
