"""A status line on the terminal while something goes on in the background. It is erased before the program writes.

The line is drawn on standard error. The program's standard streams get a `write` and a `flush` that erase it first, so
that it never stands in the program's own output. It is not drawn while the program's last output is an unfinished line,
such as a progress bar. Nor is it drawn while the program does nothing: it may be waiting for the user to type.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO

from accel.platform import background, forks
from accel.platform.clocks import time

TICK_S = 0.1
"""Seconds between two looks at what goes on."""

DELAY_S = 0.3
"""Seconds that a step must take before it is shown. Guess."""

IDLE_SHARE = 0.02
"""With a smaller share of a processor, the program counts as doing nothing."""

PREFIX = "accel: "

ERASE = "\r\x1b[2K"

Look = Callable[[], str | None]
"""Gives the text to show; None once there is nothing more to show."""


class Erasing:
    """Replaces `write` or `flush` of a standard stream: erases the status line, and passes all on."""

    def __init__(self, line: StatusLine, real: Callable[..., Any]) -> None:
        self.line = line
        self.real = real

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.line.make_way(args[0] if args else "")
        return self.real(*args, **kwargs)


class StatusLine:
    """The status line of one process: one line of text on a terminal, drawn over itself. shown: the text, or ""."""

    def __init__(self, terminal: TextIO) -> None:
        # as they are now: it stands before those of the standard streams
        self._write, self._flush = terminal.write, terminal.flush
        self.shown = ""
        self._lock = threading.RLock()  # a signal handler may print while its thread is here
        self._at_line_start = True
        self._used = 0.0
        self._thread: threading.Thread | None = None
        self._streams: list[tuple[Any, str, Erasing]] = []

    def follow(self, look: Look) -> None:
        """Show what `look` says from now on, until it says None."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, args=(look,), name="accel-status", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Erase the line, and show no more."""
        with self._lock:
            self._thread = None
            self._erase()
            self._step_aside()

    def make_way(self, text: object) -> None:
        """Erase the line, because the program writes `text`, or flushes what it has written."""
        with self._lock:
            self._erase()
            if isinstance(text, str) and text:
                self._at_line_start = text.endswith("\n")

    def _work(self, look: Look) -> None:
        time.sleep(DELAY_S)
        self._used = time.process_time()
        while self._thread is threading.current_thread():
            background.threads.may(functools.partial(self._look, look))  # streams may be the program's own
            time.sleep(TICK_S)

    def _look(self, look: Look) -> None:
        try:
            text = look()
        except Exception:  # whatever it is, the program must not be disturbed
            text = None
        with self._lock:
            if self._thread is not threading.current_thread():
                return
            if text is None:
                self.stop()
                return
            before, self._used = self._used, time.process_time()
            if self._used - before >= IDLE_SHARE * TICK_S:
                self._show(text)

    def _show(self, text: str) -> None:
        text = text[: shutil.get_terminal_size().columns - 1]
        if self._step_before() and self._at_line_start and text != self.shown:
            self._draw(text)

    def _erase(self) -> None:
        if self.shown:
            self._draw("")

    def _draw(self, text: str) -> None:
        try:
            self._write(ERASE + text)
            self._flush()
            self.shown = text
        except (OSError, ValueError):  # the terminal is gone, or the stream is closed
            self._thread, self.shown = None, ""

    def _step_before(self) -> bool:
        """Stand before the standard streams, as they are now, if they write to a terminal. Returns whether it does.

        Something else may stand there for a moment, such as what compares a replay's text with NumPy's.
        """
        for stream in (sys.stdout, sys.stderr):
            own = getattr(stream, "__dict__", None)
            if own is None or any(stream is each for each, _, _ in self._streams) or not is_terminal(stream):
                continue
            if "write" in own or "flush" in own:
                return False
            for name in ("write", "flush"):
                erasing = Erasing(self, getattr(stream, name))
                own[name] = erasing
                self._streams.append((stream, name, erasing))
        return True

    def _step_aside(self) -> None:
        """Leave the streams as they were, except where something else stands before them since."""
        for stream, name, erasing in self._streams:
            if stream.__dict__.get(name) is erasing:
                del stream.__dict__[name]
        self._streams.clear()


_line: StatusLine | None = None
_look: Look | None = None


def is_terminal(stream: object) -> bool:
    """Whether a stream writes to a terminal that can erase a line."""
    try:
        return bool(stream.isatty()) and os.environ.get("TERM", "") not in ("", "dumb")  # type: ignore[attr-defined]
    except (AttributeError, ValueError):  # no stream, or a closed one
        return False


def enable() -> None:
    """Show a status line in this process, if standard error is a terminal."""
    global _line
    if _line is None and sys.stderr is not None and is_terminal(sys.stderr):
        _line = StatusLine(sys.stderr)


def text_now() -> str | None:
    """Return the text of the status line, whether or not there is a terminal to show it; None if nothing goes on."""
    return None if _look is None else _look()


def follow(look: Look) -> None:
    """Show what `look` says, until it says None, if a status line is enabled."""
    global _look
    _look = look
    if _line is not None:
        _line.follow(look)


def stop() -> None:
    """Erase the status line, if there is one, and show no more."""
    if _line is not None:
        _line.stop()


@forks.in_child
def _in_child() -> None:
    """Drop the line in a forked child: its thread does not exist there, and the terminal is the parent's."""
    global _line
    line, _line = _line, None
    if line is not None:
        line._lock, line.shown = threading.RLock(), ""
        line._step_aside()
