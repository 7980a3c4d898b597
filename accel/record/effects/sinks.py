"""Sinks: what recorded code calls to show something. The call shows it, as ever; replays show the same after theirs.

A sink first makes sure that a replay can show it. If not, the tape ends before anything is shown, as with any effect.
"""

from __future__ import annotations

import builtins
import copy
import functools
import logging
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from accel.record import inputs
from accel.record.arrays.arrays import as_static
from accel.record.effects import flow, loggers, streams
from accel.record.effects.capture import REASON, captured_text, formatted, logged_args
from accel.record.effects.opcodes import instructions
from accel.record.effects.percent import text_by_percent
from accel.record.effects.shown import Effect, Flushed, Logged, Printed, Written
from accel.record.objects.modules import Opaque
from accel.record.objects.proxy import OWN
from accel.record.recording import Recording
from accel.record.standin import StandIn
from accel.record.wrapper import isinstance_wrapper, unwrap
from accel.rules.rule import Unsupported

_BUILTINS = {name: getattr(builtins, name) for name in ("print", "str", "repr", "format")}


Act = Callable[[], Any]
"""Shows something, all of it prepared."""


def show(recording: Recording, note: Callable[[], tuple[Effect, Act]], act: Callable[[], Act]) -> Any:
    """Show something, and let replays show the same.

    note: gives the effect, and what shows it once the recorded call has come to its end: until then it can be undone.
    Raises Unsupported. act: gives what shows it at once, where the tape is broken.
    """
    if recording.active and not recording.shows_effects:
        recording.break_(REASON, "effects=False", touched=True)
    noted = recording.write_down(note, None)
    if noted is not None and recording.active:
        recording.shown.append(noted[0])
        recording.waiting.append(noted[1])
        return None
    now = act()
    recording.touched = True
    if recording.refused_for_text:
        recording.break_(REASON, "shows a text that may be looked at, too")
    return now()


def plain(recording: Recording, value: Any) -> Any:
    """What is really shown: no wrappers, no markers."""
    return recording.texts.resolved(unwrap(value))


def _frame(recording: Recording) -> FrameType | None:
    """The frame of the program's code that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and getattr(frame.f_globals, "recording", None) is not recording:
        frame = frame.f_back
    return frame


# -- print ------------------------------------------------------------------------------------------------------------


def print_sink(recording: Recording) -> Callable[..., Any]:
    """What `print` is in recorded code."""

    def print_(*args: Any, **kwargs: Any) -> None:
        def act() -> Act:
            held = {name: plain(recording, value) for name, value in kwargs.items()}
            return functools.partial(_BUILTINS["print"], *[plain(recording, arg) for arg in args], **held)

        show(recording, lambda: _printed(recording, args, dict(kwargs)), act)

    return print_


def _printed(recording: Recording, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Printed, Act]:
    stream = _stream(recording, kwargs.pop("file", None))
    ends = {"sep": " ", "end": "\n"}
    for name in ends.keys() & kwargs.keys():
        value = kwargs.pop(name)
        if value is not None:
            ends[name] = value
    flush = kwargs.pop("flush", False)
    if kwargs or type(flush) not in (bool, int) or any(type(each) is not str for each in ends.values()):
        raise Unsupported(REASON, "print() with other arguments than usual")
    shown = tuple([captured_text(recording, arg) for arg in args])
    sep, end = (recording.texts.parts(ends[name]) for name in ("sep", "end"))
    # as text, since what is printed may change before the end of the call
    texts = [str(plain(recording, arg)) for arg in args]
    held = {name: recording.texts.resolved(text) for name, text in ends.items()}
    act = functools.partial(_BUILTINS["print"], *texts, **held, file=stream._plain_, flush=flush)
    return Printed(stream._slot_, shown, sep, end, bool(flush)), act


def _stream(recording: Recording, file: Any) -> StreamProxy:
    """The stream that is printed to."""
    if file is None:
        file = standard_output(recording)
    if issubclass(type(file), StreamProxy):
        found: StreamProxy = file
        return found
    kind = type(unwrap(file))
    raise Unsupported(REASON, f"prints to a {kind.__module__}.{kind.__qualname__}")


def standard_output(recording: Recording) -> Any:
    """sys.stdout, as an input of the call."""
    return recording.enter(sys.stdout, ("global", id(sys), "stdout"), "sys.stdout", inputs.of_object(sys, "stdout"))


# -- streams ----------------------------------------------------------------------------------------------------------


class StreamProxy(Opaque):
    """A standard stream. What it does but for writing and flushing is not looked into."""

    __slots__ = ()
    _slot_: int

    def __getattribute__(self, name: str) -> Any:
        if name in OWN:
            return object.__getattribute__(self, name)
        if name not in _STREAM_METHODS:
            return Opaque.__getattribute__(self, name)
        recording = self._recording_
        recording.texts.note_load(sys._getframe(1))
        return StreamMethod(recording, self, name)


class StreamMethod(StandIn):
    """`write` or `flush` of a standard stream."""

    __slots__ = ("_proxy",)

    def __init__(self, recording: Recording, proxy: StreamProxy, name: str) -> None:
        self._recording_, self._plain_, self._proxy = recording, getattr(proxy._plain_, name), proxy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = self._recording_
        frame = _frame(recording)
        if frame is not None:
            recording.texts.note_call(frame)
        name, slot, method = self._plain_.__name__, self._proxy._slot_, self._plain_
        texts = [plain(recording, arg) for arg in args]
        result = show(
            recording,
            lambda: (
                _STREAM_METHODS[name](recording, slot, frame, *args, **kwargs),
                functools.partial(method, *texts),
            ),
            lambda: functools.partial(method, *texts, **unwrap(kwargs)),
        )
        return len(texts[0]) if name == "write" and result is None and texts else result


def _written(recording: Recording, slot: int, frame: FrameType | None, *args: Any) -> Effect:
    if len(args) != 1 or type(args[0]) is not str:
        raise Unsupported(REASON, "writes other things than text")
    text = recording.texts.parts(args[0])
    # it gives the length of the text, which may be another in a replay
    if any(not isinstance(part, str) for part in text.parts) and not (frame and _drops_result(frame)):
        raise Unsupported(REASON, "takes the length of a text that is shown")
    return Written(slot, text)


def _drops_result(frame: FrameType) -> bool:
    """Whether nobody takes what the call that the frame is making gives."""
    found = instructions(frame.f_code)
    at = next(index for index, each in enumerate(found) if each.offset == frame.f_lasti)
    at += found[at].opname == "PRECALL"
    return found[at].opname.startswith("CALL") and found[at + 1].opname == "POP_TOP"


def _flushed(recording: Recording, slot: int, frame: FrameType | None) -> Effect:
    return Flushed(slot)


_STREAM_METHODS: dict[str, Callable[..., Effect]] = {"write": _written, "flush": _flushed}


# -- loggers ----------------------------------------------------------------------------------------------------------


class LoggerProxy(Opaque):
    """A logger of Python's own class. A level that is off is a guard; what is logged is shown."""

    __slots__ = ()
    _slot_: int

    def __getattribute__(self, name: str) -> Any:
        if name in OWN:
            return object.__getattribute__(self, name)
        recording = self._recording_
        if not recording.active or name not in _LOGGER_METHODS or not loggers.is_original(self._plain_):
            return Opaque.__getattribute__(self, name)
        recording.texts.note_load(sys._getframe(1))
        return LoggerMethod(recording, self, name)


class LoggerMethod(StandIn):
    """A method of a logger's; or the function of `logging` that calls it on the root logger."""

    __slots__ = ("_name", "_proxy")

    def __init__(self, recording: Recording, proxy: LoggerProxy, name: str, function: object = None) -> None:
        self._recording_, self._proxy, self._name = recording, proxy, name
        self._plain_ = getattr(proxy._plain_, name) if function is None else function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = self._recording_
        frame = _frame(recording)
        if frame is not None:
            recording.texts.note_call(frame)
        if recording.active and not kwargs:
            if self._name == "isEnabledFor" and len(args) == 1:
                return self._is_enabled(args[0])
            if self._name == "getEffectiveLevel" and not args:
                return self._effective_level()
        return self._log(frame, args, kwargs)

    def _is_enabled(self, level: Any) -> bool:
        """Whether a level is on, guarded."""
        recording, logger, slot = self._recording_, self._proxy._plain_, self._proxy._slot_
        number = recording.write_down(lambda: _level(level), unwrap(level))
        enabled = bool(logger.isEnabledFor(number))
        if recording.active:
            recording.inputs.narrow(slot, inputs.satisfies(loggers.has_answer, number, enabled))
        return enabled

    def _effective_level(self) -> int:
        recording, logger, slot = self._recording_, self._proxy._plain_, self._proxy._slot_
        level = int(logger.getEffectiveLevel())
        recording.inputs.narrow(slot, inputs.satisfies(loggers.has_level, level))
        return level

    def _log(self, frame: FrameType | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recording, logger = self._recording_, self._proxy._plain_
        level, rest = loggers.LEVELS.get(self._name), args
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
            record = loggers.record_of(logger, effect.level, message, copy.deepcopy(tuple(shown)), effect.place)
            return effect, functools.partial(logger.handle, record)

        show(recording, note, lambda: by_logging(self._plain_, frame, values, held))


def by_logging(function: Callable[..., None], frame: FrameType | None, args: list[Any], kwargs: dict[str, Any]) -> Act:
    """Log as the program says, in the name of the frame that does. It is to be called by the caller's caller."""
    above, mine = 1, sys._getframe(2)
    while frame is not None and mine is not frame and mine.f_back is not None:
        above, mine = above + 1, mine.f_back
    if frame is not None:
        kwargs = {**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + above - 1}
    return functools.partial(function, *args, **kwargs)


def _level(level: Any) -> int:
    found = as_static(level)
    if type(found) is not int:
        raise Unsupported(REASON, "a level that is not an integer")
    return found


def _place(frame: FrameType) -> tuple[str, int, str]:
    """What `logging` finds out of the caller."""
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def _logged(
    recording: Recording,
    proxy: LoggerProxy,
    level: int | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    frame: FrameType | None,
) -> Logged:
    usual = {"exc_info": None, "extra": None, "stack_info": False, "stacklevel": 1}
    if any(name not in usual or (value is not usual[name] and value is not False) for name, value in kwargs.items()):
        raise Unsupported(REASON, "logs with more than a message and its arguments")
    if level is None or frame is None or not args or type(args[0]) is not str:
        raise Unsupported(REASON, "logs other things than text")
    if not loggers.is_plain_route(proxy._plain_):
        raise Unsupported(REASON, "logs to a handler, filter or formatter that is not Python's own")
    recording.inputs.narrow(proxy._slot_, inputs.satisfies(loggers.is_plain_route))
    message = recording.texts.parts(args[0])
    templates, rounded = logged_args(recording, recording.texts.resolved(args[0]), args[1:])
    return Logged(proxy._slot_, level, message, templates, _place(frame), rounded)


_LOGGER_METHODS = frozenset({*loggers.LEVELS, "log", "isEnabledFor", "getEffectiveLevel"})


class LogFunction(StandIn):
    """`logging.info` and its like: they log to the root logger, once that has a handler."""

    __slots__ = ()
    shows_text = True

    def __init__(self, recording: Recording, function: Any) -> None:
        self._recording_, self._plain_ = recording, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording, function = self._recording_, self._plain_
        key, fetch = ("global", id(logging), "root"), inputs.of_object(logging, "root")
        root = recording.enter(logging.root, key, "logging.root", fetch)
        if not issubclass(type(root), LoggerProxy) or not loggers.has_handlers(logging.root):
            recording.break_(REASON, "logging has no handler yet", touched=True)
            held = {name: plain(recording, value) for name, value in kwargs.items()}
            values, frame = [plain(recording, arg) for arg in args], _frame(recording)
            return (lambda: by_logging(function, frame, values, held))()()
        recording.inputs.narrow(root._slot_, inputs.satisfies(loggers.has_handlers))
        return LoggerMethod(recording, root, function.__name__, function)(*args, **kwargs)


LOG_FUNCTIONS = {getattr(logging, name) for name in (*loggers.LEVELS, "log")}


class GetLogger(StandIn):
    """`logging.getLogger`: the same logger for a name each time."""

    __slots__ = ()

    def __init__(self, recording: Recording) -> None:
        self._recording_, self._plain_ = recording, logging.getLogger

    def __call__(self, name: Any = None) -> Any:
        recording = self._recording_
        name = recording.write_down(lambda: as_static(name), unwrap(name))
        logger = self._plain_(name)
        if not recording.active or type(name) not in (str, type(None)):
            return logger
        fetch = inputs.Code("{0}({1})", (logging.getLogger, name))
        return recording.enter(logger, ("logger", name), f"logging.getLogger({name!r})", fetch)


# -- formatting -------------------------------------------------------------------------------------------------------


def marker(recording: Recording, value: Any, how: str, spec: str, text: str, frame: FrameType) -> str | None:
    """A marker for a recorded value that becomes text, if nothing but sinks can see that text; else None.

    frame: the one that asks for the text. Raises Unsupported where the text goes to a sink, which cannot show it.
    """
    if recording.texts.refused or getattr(frame.f_globals, "recording", None) is not recording:
        return None
    code, offset = frame.f_code, frame.f_lasti
    readers = flow.readers(code, offset, how)
    if not readers or not all(_is_sink(recording, frame, reader) for reader in readers):
        return None
    for maker in flow.makers(code, offset):
        if maker.kind == "global" and not _is_builtin(frame, maker.name):
            return None
    if how == "percent":
        return text_by_percent(recording, spec, value)
    made: str = recording.texts.mark(formatted(recording, value, how, spec), text)
    return made


def _is_sink(recording: Recording, frame: FrameType, reader: flow.Origin) -> bool:
    if reader.kind == "global":
        return reader.name == "print" and _is_builtin(frame, "print")
    return recording.texts.is_loaded(frame, reader.offset)


def _is_builtin(frame: FrameType, name: str) -> bool:
    """Whether a global name means Python's own function in the frame."""
    scope: Any = frame.f_globals
    if name in scope or name in scope.namespace:
        return False
    found = scope.namespace.get("__builtins__", builtins)
    namespace = found if isinstance(found, dict) else vars(found)
    return bool(namespace.get(name) is _BUILTINS[name])


def is_stream(value: Any) -> bool:
    """Whether a value is a standard stream that replays may write to."""
    if isinstance_wrapper(value):
        return False
    try:
        return streams.is_standard(value)
    except Exception:  # a stream without a buffer
        return False
