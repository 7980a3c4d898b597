"""The time line of a run: rare events always, single calls only while somebody asked for a profile.

Memory is bounded: the newest calls and the first events are kept, and what was dropped is counted.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

NUMPY, COMPILED, CHECKED = "numpy", "compiled", "checked"
"""What answered a call. CHECKED: a compiled program, and NumPy for comparison."""

RECORDED, COMPILE, DEMOTED, REFUSED = "recorded", "compile", "demoted", "refused"
"""What an event tells of. COMPILE has a duration; it may have gone on in the background."""

MAX_CALLS = 200_000
MAX_EVENTS = 2_000


class Call(NamedTuple):
    """One call of a target. end: `time.perf_counter()`; seconds: without those of other targets inside it."""

    target: str
    kind: str
    end: float
    seconds: float


class Event(NamedTuple):
    """Something rare. end, seconds: as in `Call`; most events take no time worth showing."""

    kind: str
    target: str
    end: float
    seconds: float
    detail: str


calls: deque[Call] | None = None
"""The newest calls; None while nobody wants them."""

dropped_calls = 0
events: list[Event] = []
dropped_events = 0


def start(capacity: int = MAX_CALLS) -> None:
    """Keep every call from now on, the newest `capacity` of them."""
    global calls, dropped_calls
    calls, dropped_calls = deque(maxlen=capacity), 0


def note_call(target: str, kind: str, seconds: float) -> None:
    """Keep one call that has just ended. Only to be asked where `calls` is not None: the test is the caller's."""
    global dropped_calls
    assert calls is not None
    if len(calls) == calls.maxlen:
        dropped_calls += 1
    calls.append(Call(target, kind, time.perf_counter(), seconds))


def note_event(kind: str, target: str, detail: str = "", seconds: float = 0.0) -> None:
    """Keep one event that has just ended."""
    global dropped_events
    if len(events) >= MAX_EVENTS:
        dropped_events += 1
    else:
        events.append(Event(kind, target, time.perf_counter(), seconds, detail))


def reset() -> None:
    """Forget everything, and keep no calls."""
    global calls, dropped_calls, dropped_events
    calls, dropped_calls, dropped_events = None, 0, 0
    events.clear()
