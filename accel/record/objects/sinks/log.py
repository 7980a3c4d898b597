"""Loggers as sinks: what a logger, its methods and the functions of `logging` are in recorded code."""

from __future__ import annotations

import copy
import functools
import logging
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from accel.record.objects.modules import Opaque
from accel.record.objects.proxy import OWN
from accel.record.objects.sinks.show import Act, calling_frame, plain, show
from accel.record.objects.sinks.streams import is_plain, own_names
from accel.record.state import inputs
from accel.record.state.recording import Recording
from accel.record.state.shown import Effect, Logged, record_of
from accel.record.state.wrapper import StandIn, unwrap
from accel.record.values.arrays import as_static
from accel.record.values.text.capture import REASON, logged_args
from accel.rules.rule import Unsupported

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


class LoggerProxy(Opaque):
    """A logger of Python's own class. A level that is off is a guard; what is logged is shown."""

    __slots__ = ()
    _slot_: int

    def __getattribute__(self, name: str) -> Any:
        if name in OWN:
            return object.__getattribute__(self, name)
        recording = self._recording_
        if not recording.active or name not in _LOGGER_METHODS or not is_original(self._plain_):
            return Opaque.__getattribute__(self, name)
        recording.display.texts.note_load(sys._getframe(1))
        return LoggerMethod(recording, self, name)


class LoggerMethod(StandIn):
    """A method of a logger's; or the function of `logging` that calls it on the root logger."""

    __slots__ = ("_name", "_proxy")

    def __init__(self, recording: Recording, proxy: LoggerProxy, name: str, function: object = None) -> None:
        self._recording_, self._proxy, self._name = recording, proxy, name
        self._plain_ = getattr(proxy._plain_, name) if function is None else function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = self._recording_
        frame = calling_frame(recording)
        if recording.active and self._name == "isEnabledFor" and len(args) == 1 and not kwargs:
            return self._is_enabled(args[0])
        return self._log(frame, args, kwargs)

    def _is_enabled(self, level: Any) -> bool:
        """Whether a level is on, guarded."""
        recording, logger, slot = self._recording_, self._proxy._plain_, self._proxy._slot_
        number = recording.write_down(lambda: _level(level), unwrap(level))
        enabled = bool(logger.isEnabledFor(number))
        if recording.active:
            recording.inputs.narrow(slot, inputs.satisfies(has_answer, number, enabled))
        return enabled

    def _log(self, frame: FrameType | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recording, logger = self._recording_, self._proxy._plain_
        level, rest = LEVELS.get(self._name), args
        if self._name == "log" and args:
            level, rest = recording.write_down(lambda: _level(args[0]), None), args[1:]
        # whatever its other arguments are, nothing is done with them
        if recording.active and level is not None and rest and not self._is_enabled(level):
            return
        values = [plain(recording, arg) for arg in args]
        held = {name: plain(recording, value) for name, value in kwargs.items()}

        def note() -> tuple[Effect, Act]:
            effect = _logged(recording, self._proxy, level, rest, kwargs, frame)
            message, *shown = values[len(args) - len(rest) :]
            # as they are now, since a handler looks at them at the end of the call
            record = record_of(logger, effect.level, message, copy.deepcopy(tuple(shown)), effect.place)
            return effect, functools.partial(logger.handle, record)

        show(recording, note, lambda: functools.partial(self._plain_, *values, **held))


def _level(level: Any) -> int:
    found = as_static(level)
    if type(found) is not int:
        raise Unsupported(REASON, "a level that is not an integer")
    return found


def _place(frame: FrameType) -> tuple[str, int, str]:
    """File, line and function of the caller, as `logging` finds them."""
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def _logged(
    recording: Recording,
    proxy: LoggerProxy,
    level: int | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    frame: FrameType | None,
) -> Logged:
    """The log call as an effect. Raises Unsupported for all but text, plain arguments and handlers of Python's."""
    usual = {"exc_info": None, "extra": None, "stack_info": False, "stacklevel": 1}
    if any(name not in usual or (value is not usual[name] and value is not False) for name, value in kwargs.items()):
        raise Unsupported(REASON, "logs with more than a message and its arguments")
    if level is None or frame is None or not args or type(args[0]) is not str:
        raise Unsupported(REASON, "logs other things than text")
    if not is_plain_route(proxy._plain_):
        raise Unsupported(REASON, "logs to a handler, filter or formatter that is not Python's own")
    recording.inputs.narrow(proxy._slot_, inputs.satisfies(is_plain_route))
    message = recording.display.texts.parts(args[0])
    templates, rounded = logged_args(recording, recording.display.texts.resolved(args[0]), args[1:])
    return Logged(proxy._slot_, level, message, templates, _place(frame), rounded)


_LOGGER_METHODS = frozenset({*LEVELS, "log", "isEnabledFor"})


class LogFunction(StandIn):
    """`logging.info` and its like: they log to the root logger, once that has a handler."""

    __slots__ = ()
    shows_text = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording, function = self._recording_, self._plain_
        key, fetch = ("global", id(logging), "root"), inputs.of_object(logging, "root")
        root = recording.enter(logging.root, key, "logging.root", fetch)
        if not issubclass(type(root), LoggerProxy) or not has_handlers(logging.root):
            recording.break_(REASON, "logging has no handler yet", touched=True)
            held = {name: plain(recording, value) for name, value in kwargs.items()}
            return function(*(plain(recording, arg) for arg in args), **held)
        recording.inputs.narrow(root._slot_, inputs.satisfies(has_handlers))
        return LoggerMethod(recording, root, function.__name__, function)(*args, **kwargs)


LOG_FUNCTIONS = {getattr(logging, name) for name in (*LEVELS, "log")}
