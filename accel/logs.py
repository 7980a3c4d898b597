"""What accel says while a program runs: the logger named "accel", and where its words go.

A library leaves handlers to the program: the logger has a `NullHandler`. But a function that is taken back to NumPy
must not go unnoticed, so `accel.install()` adds a handler that writes to standard error as long as nobody else has set
up logging. Under `python -m accel.run` accel is the program, and its words go to standard error in any case.
"""

from __future__ import annotations

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
    """Begin every message with "accel: ", which a refusal's message does already."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if text.startswith("accel") else f"accel: {text}"


def set_level(level: str) -> None:
    """Let through what `level` (see `accel.config.LOG_LEVELS`) asks for."""
    LOGGER.setLevel(_LEVELS[level])


class _Fallback(logging.StreamHandler[TextIO]):
    """Writes to standard error what no handler of the program will show."""

    def emit(self, record: logging.LogRecord) -> None:
        shown = logging.root.handlers if LOGGER.propagate else []
        if not shown and all(type(handler) in (_Fallback, logging.NullHandler) for handler in LOGGER.handlers):
            super().emit(record)


def to_stderr_unless_configured() -> None:
    """Send accel's messages to standard error unless, when one comes, the program has handlers for them."""
    _add(_Fallback)


def to_stderr() -> None:
    """Send accel's messages to standard error, once each, whatever handlers the program sets up for itself."""
    _add(logging.StreamHandler)
    LOGGER.propagate = False


def _add(kind: type[logging.StreamHandler[TextIO]]) -> None:
    if not any(type(handler) is kind for handler in LOGGER.handlers):
        handler = kind(sys.stderr)
        handler.setFormatter(_Prefixed())
        LOGGER.addHandler(handler)
