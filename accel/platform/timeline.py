"""The timeline of a run: rare events, and single calls while a profile is being made.

Memory is bounded: the newest calls and the first events are kept; dropped ones are counted.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from accel.platform.clocks import time

NUMPY, COMPILED, COMPARED = "numpy", "compiled", "compared"
"""Kinds of calls, by what answered them. COMPARED: a compiled program, and NumPy for comparison."""

RECORDED, COMPILE, DEMOTED, REFUSED = "recorded", "compile", "demoted", "refused"
"""Kinds of events. The duration of COMPILE is that of the compile, which may have run in the background."""

MAX_CALLS = 200_000
MAX_EVENTS = 2_000


class CallRecord(NamedTuple):
    """One call of a target. end: `time.perf_counter()`. seconds: without other targets called inside it."""

    target: str
    kind: str
    end: float
    seconds: float


class Event(NamedTuple):
    """A rare event, such as a recording. end: `time.perf_counter()`. seconds: its duration, 0 if it has none."""

    kind: str
    target: str
    end: float
    seconds: float
    detail: str


calls: deque[CallRecord] | None = None
"""The newest calls; None if no profile is being made."""

dropped_calls = 0
events: list[Event] = []
dropped_events = 0


def start(capacity: int = MAX_CALLS) -> None:
    """Keep every call from now on, the newest `capacity` of them."""
    global calls, dropped_calls
    calls, dropped_calls = deque(maxlen=capacity), 0


def note_call(target: str, kind: str, seconds: float) -> None:
    """Keep one call that has just ended. The caller must have checked that `calls` is not None."""
    global dropped_calls
    assert calls is not None
    if len(calls) == calls.maxlen:
        dropped_calls += 1
    calls.append(CallRecord(target, kind, time.perf_counter(), seconds))


def note_event(kind: str, target: str, detail: str = "", seconds: float = 0.0) -> None:
    """Keep one event that has just ended."""
    global dropped_events
    if len(events) >= MAX_EVENTS:
        dropped_events += 1
    else:
        events.append(Event(kind, target, time.perf_counter(), seconds, detail))


def forget() -> None:
    """Forget everything so far. A profile that is being made goes on."""
    global dropped_calls, dropped_events
    dropped_calls = dropped_events = 0
    events.clear()
    if calls is not None:
        calls.clear()


def reset() -> None:
    """Forget everything, and keep no calls."""
    global calls
    calls = None
    forget()
