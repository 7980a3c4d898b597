"""Loggers whose records reach their readers by Python's own code alone: standard handlers, formatters, no filters."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from accel.record.objects.sinks.streams import is_plain, own_names

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
"""The methods of a logger, and functions of `logging`, that log at one level."""

LOGGERS = (logging.Logger, logging.RootLogger)

_METHODS = "debug info warning error critical log isEnabledFor getEffectiveLevel handle makeRecord callHandlers filter"
_ORIGINAL = {name: getattr(logging.Logger, name) for name in _METHODS.split()}
_HANDLERS = (logging.StreamHandler, logging.FileHandler, logging.NullHandler, type(logging.lastResort))
_STYLES: tuple[Any, ...] = tuple(style for style, _ in logging._STYLES.values())
_OWN = frozenset("emit handle format filter handleError flush acquire release".split())
_FOR_READERS = "_pytest"


def is_original(logger: Any) -> bool:
    """Whether a logger is of Python's own class, and has Python's own methods."""
    return (
        type(logger) in LOGGERS
        and _ORIGINAL.keys().isdisjoint(own_names(logger))
        and all(getattr(logging.Logger, name) is method for name, method in _ORIGINAL.items())
    )


def has_answer(logger: Any, level: int, enabled: bool) -> bool:
    """Whether the logger logs at a level, or does not, as `enabled` says."""
    return is_original(logger) and logger.isEnabledFor(level) is enabled


def has_level(logger: Any, level: int) -> bool:
    return is_original(logger) and bool(logger.getEffectiveLevel() == level)


def has_handlers(logger: Any) -> bool:
    """Whether a logger has handlers of its own: else the functions of `logging` give the root logger one."""
    return len(logger.handlers) > 0


def is_plain_route(logger: Any) -> bool:
    """Whether no code of the program's sees what an original logger logs."""
    if logging.getLogRecordFactory() is not logging.LogRecord or logger.filters:
        return False
    handlers = list(_handlers(logger))
    if not handlers and logging.lastResort is not None:
        handlers = [logging.lastResort]
    return all(map(_is_plain_handler, handlers))


def _handlers(logger: Any) -> Iterator[Any]:
    found = logger
    while found is not None:
        yield from found.handlers
        found = found.parent if found.propagate else None


def _is_plain_handler(handler: Any) -> bool:
    if handler.filters or not _OWN.isdisjoint(vars(handler)) or not _is_plain_formatter(handler.formatter):
        return False
    if type(handler).__module__.partition(".")[0] == _FOR_READERS:
        return True
    if type(handler) not in _HANDLERS:
        return False
    stream = getattr(handler, "stream", None)
    return stream is None or is_plain(stream)


def _is_plain_formatter(formatter: Any) -> bool:
    if formatter is None or type(formatter).__module__.partition(".")[0] == _FOR_READERS:
        return True
    if type(formatter) is not logging.Formatter or "format" in vars(formatter):
        return False
    return type(formatter._style) in _STYLES
