"""Logging: the logger named "accel", and its handlers.

A library leaves handlers to the program, so the logger has a `NullHandler`. But the demotion of a function to NumPy
must not go unnoticed. So `accel.install()` adds a handler that writes to standard error unless the program has set up
logging. Under `accel run`, messages always go to standard error.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TextIO

LOGGER = logging.getLogger("accel")
LOGGER.addHandler(logging.NullHandler())

_LEVELS = {
    "off": logging.CRITICAL + 10,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}


class _Prefixed(logging.Formatter):
    """Begins every message with "accel: ". A refusal's message has the prefix already."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if text.startswith("accel") else f"accel: {text}"


_own_level = logging.NOTSET


def set_level(level: str) -> None:
    """Set the logger's level, one of `accel.platform.config.LOG_LEVELS`, unless the program has set one itself."""
    global _own_level
    if LOGGER.level in (logging.NOTSET, _own_level):
        _own_level = _LEVELS[level]
        LOGGER.setLevel(_own_level)


class _Fallback(logging.StreamHandler[TextIO]):
    """Writes a message to standard error if the program has no handler that shows it."""

    def emit(self, record: logging.LogRecord) -> None:
        # asked for each message: the program may set up logging after accel was installed
        shown = logging.root.handlers if LOGGER.propagate else []
        if not shown and all(type(handler) in (_Fallback, logging.NullHandler) for handler in LOGGER.handlers):
            super().emit(record)


def to_stderr_unless_configured() -> None:
    """Send accel's messages to standard error, except while the program has a handler for them."""
    _add(_Fallback)


def to_stderr() -> None:
    """Send accel's messages to standard error, once each, whatever handlers the program sets up."""
    _add(logging.StreamHandler)
    LOGGER.propagate = False


def say_at_end(text: str) -> None:
    """Write to standard error, after what the program wrote to standard output. Raises nothing.

    At a program's end either stream may be None, closed, on a full disk, or an object of the program's.
    """
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(Exception):
        sys.stderr.write(text)


def _add(kind: type[logging.StreamHandler[TextIO]]) -> None:
    if not any(type(handler) is kind for handler in LOGGER.handlers):
        handler = kind(sys.stderr)
        handler.setFormatter(_Prefixed())
        LOGGER.addHandler(handler)
