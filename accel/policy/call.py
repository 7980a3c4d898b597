"""One call of an accelerated function, and whether the program's own function has run for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from accel.backend import resident
from accel.platform import freed, interrupts
from accel.platform.clocks import time
from accel.platform.ledger import current_run
from accel.platform.tracebacks import Again

LONG_CALL_S = 0.5
"""Seconds after which targets that are called inside a first call are examined themselves.

The outer one is to have a program of its own, which theirs would be a part of. But a function that is called once and
loops for minutes never gets one: what it calls is then all that can be compiled.
"""


class _ThreadState(threading.local):
    inside = False
    """Whether a target's call is under way in this thread. Targets that are called inside it then run on NumPy."""
    opens_at = inf
    """Time after which such targets leave NumPy: the call around them is a long first one (see LONG_CALL_S)."""
    counted_s = 0.0
    """Seconds of this thread that are already in some target's ledger, so that none are counted twice.

    Whoever times a call reads it before and after: the difference is the time of targets called inside it, and belongs
    to them. Afterwards it is set to what it was, plus all that the call took. This arithmetic stands wherever a call is
    timed, and in no function: it runs after the program's own code, where no call of accel's may fail.
    """


THREAD = _ThreadState()


def note_counted(seconds: float) -> None:
    """Note seconds that have just been entered into some target's ledger."""
    THREAD.counted_s += seconds


@dataclass(slots=True, eq=False, repr=False)
class Call:
    """One call.

    done: the call's effects have been made and `result` is final, so the function must not run again. raised: the
    exception that the program's own code raised; the program must get it. began: `time.perf_counter()` when accel
    received the call. seconds: time that the call took on NumPy; None if it has not run there. own_s: the same without
    the time of other targets called inside it. worked_s: processor time of its thread. fair_s: `seconds` as a sample,
    by processor time. system_s: of `worked_s` in the kernel; 0 unless that is being measured. put_back: puts back what
    a run has drawn for the call, before the program's own function draws it; None where nothing was.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    done: bool = False
    result: Any = None
    raised: BaseException | None = None
    began: float = 0.0
    seconds: float | None = None
    own_s: float = 0.0
    fair_s: float = 0.0
    worked_s: float = 0.0
    system_s: float = 0.0
    put_back: Callable[[], None] | None = None

    def run(self, *, fair: bool) -> Any:
        """Run the program's own function, once. What it raises is kept in `raised` and raised again.

        fair: whether nothing of accel's slows it down.
        """
        if self.put_back is not None:
            self.put_back()
        if resident.current.is_held:
            resident.current.bring_up_to_date("NumPy runs it")
        before, system_s = THREAD.counted_s, freed.current.system_s()
        worked, started = time.thread_time(), time.perf_counter()
        try:
            self.result = self.function(*self.args, **self.kwargs)
            self.done = True
        except BaseException as error:
            self.raised = error
            raise
        finally:
            self.seconds = time.perf_counter() - started
            self.worked_s = time.thread_time() - worked
            self.system_s = freed.current.system_s() - system_s
            self.fair_s = current_run().fair_s(self.seconds, self.worked_s) if fair else self.seconds
            self.own_s = self.seconds - (THREAD.counted_s - before)
            THREAD.counted_s = before + self.seconds
        return self.result

    def answer(self) -> Any:
        """Return what the call has returned, or raise again what the program's own code has raised."""
        if self.raised is not None:
            with Again(self.raised) as error:
                raise error
        return self.result


class Turn:
    """One call at a time, as a lock that knows its holder: nobody waits for it.

    A lock would not do. A signal handler may raise after the lock is taken, and before Python has noted that: nobody
    would give it back. Here the call is the note. Who has had a turn deletes `holder`, which takes no call either.
    """

    holder: object = None

    def take(self, call: object) -> bool:
        """Whether it is this call's turn now: no other one is under way."""
        return self.__dict__.setdefault("holder", call) is call  # one call of C code: threads do not come in between


def is_fault(error: BaseException) -> bool:
    """Whether an error from outside the program's own code is accel's, and not from an interrupt or signal handler."""
    if not isinstance(error, Exception):
        return False
    try:
        # the program's signal handlers run between any two bytecodes, accel's too: what they raise is the program's
        return not interrupts.raised_by_handler(error)
    except Exception:
        return True
