"""One call of an accelerated function, and whether the program's own function has run for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from accel.process import interrupts


class _Thread(threading.local):
    inside = False
    """Whether a target's call is under way in this thread: nested targets then run plainly."""
    counted_s = 0.0
    """Seconds of this thread that stand in some target's ledger: the caller of a nested target leaves them out."""


THREAD = _Thread()


class Call:
    """One call. done: its effects are made, and `result` is what the program gets; it must not run again.

    raised: what the program's own code raised, for the program to get. began: when accel took it up. seconds, own_s:
    how long NumPy took for it, the latter without what other targets took inside it; seconds is None before that.
    """

    __slots__ = ("args", "began", "done", "function", "kwargs", "own_s", "raised", "result", "seconds")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.done = False
        self.result: Any = None
        self.raised: BaseException | None = None
        self.began = 0.0
        self.seconds: float | None = None
        self.own_s = 0.0

    def run(self) -> Any:
        """Run the program's own function, once. Raises what it raises, noted as the program's own."""
        before, started = THREAD.counted_s, time.perf_counter()
        try:
            self.result = self.function(*self.args, **self.kwargs)
            self.done = True
        except BaseException as error:
            self.raised = error
            raise
        finally:
            self.seconds = time.perf_counter() - started
            self.own_s = self.seconds - (THREAD.counted_s - before)
            THREAD.counted_s = before + self.seconds
        return self.result


def is_fault(error: BaseException) -> bool:
    """Whether an error that arose outside the program's own code is accel's: no interrupt, no handler of a signal's."""
    if not isinstance(error, Exception):
        return False
    try:
        return not interrupts.raised_by_handler(error)
    except Exception:
        return True
