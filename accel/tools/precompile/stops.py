"""Signals that stop the command: Ctrl-C, SIGTERM from a scheduler or `timeout`, and the end of the terminal.

Handlers only record them. Otherwise an exception could interrupt starting, ending or cleaning up after the program.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

WORDS = {
    128 + number: words
    for name, words in (("SIGINT", "interrupted"), ("SIGTERM", "ended by SIGTERM"), ("SIGHUP", "ended by SIGHUP"))
    if (number := getattr(signal, name, None)) is not None  # Windows has no SIGHUP
}
"""Description of each signal, by the exit code that a shell expects of it."""


class Stops:
    """The signals received so far. code: the exit code for the first one; 0 before any."""

    def __init__(self) -> None:
        self.code = 0

    def note(self, number: int, frame: FrameType | None) -> None:
        """Record the signal. Used as a signal handler."""
        self.code = self.code or 128 + number


@contextmanager
def noted() -> Iterator[Stops]:
    """Record signals within the block, except those that this process ignores, as under `nohup`."""
    stops = Stops()
    before: dict[int, Any] = {}
    for code in WORDS:
        handler = signal.getsignal(code - 128)
        if handler not in (signal.SIG_IGN, None):
            before[code - 128] = signal.signal(code - 128, stops.note)
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
