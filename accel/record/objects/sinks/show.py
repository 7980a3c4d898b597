"""Sinks: what recorded code calls to show something. The call shows it, as ever; replays show the same after theirs.

A sink first makes sure that a replay can show it. If not, the tape ends before anything is shown, as with any effect.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from accel.record.objects.modules import Opaque
from accel.record.objects.proxy import OWN
from accel.record.objects.sinks import streams
from accel.record.state import inputs
from accel.record.state.on_behalf import frames_of
from accel.record.state.recording import Recording
from accel.record.state.shown import Effect, Flushed, Printed, StreamWrite
from accel.record.state.wrapper import StandIn, isinstance_wrapper, unwrap
from accel.record.values.text.capture import REASON, captured_text
from accel.record.values.text.opcodes import instructions
from accel.rules.rule import Unsupported

_PRINT = print
"""Python's own, whatever the program may put in its place."""

Act = Callable[[], Any]
"""Shows something, all of it prepared."""


def show(recording: Recording, note: Callable[[], tuple[Effect, Act]], act: Callable[[], Act]) -> Any:
    """Show something, and let replays show the same.

    note: gives the effect, and what shows it once the recorded call has come to its end: until then it can be undone.
    Raises Unsupported. act: gives what shows it at once, where the tape is broken.
    """
    if recording.active and recording.display.silent:
        return None
    if recording.active and not recording.display.allowed:
        recording.break_(REASON, "effects=False", touched=True)
    noted = recording.write_down(note, None)
    if noted is not None and recording.active:
        recording.display.shown.append(noted[0])
        recording.display.waiting.append(noted[1])
        return None
    now = act()
    recording.touched = True
    if recording.refused_for_text:
        recording.break_(REASON, "shows a text that may be looked at, too")
    return now()


def calling_frame(recording: Recording) -> FrameType | None:
    """The frame of recorded code that calls a sink, which now loads its texts anew."""
    frame = next(frames_of(recording), None)
    if frame is not None:
        recording.display.texts.note_call(frame)
    return frame


def plain(recording: Recording, value: Any) -> Any:
    """A value without wrappers and markers, as it is really shown."""
    return recording.display.texts.resolved(unwrap(value))


# -- print ------------------------------------------------------------------------------------------------------------


def print_(recording: Recording, *args: Any, **kwargs: Any) -> None:
    """`print` in recorded code."""

    def act() -> Act:
        held = {name: plain(recording, value) for name, value in kwargs.items()}
        return functools.partial(_PRINT, *[plain(recording, arg) for arg in args], **held)

    if recording.active and recording.display.silent:
        recording.write_down(lambda: _stream(recording, kwargs.get("file")), None)
    show(recording, lambda: _printed(recording, args, dict(kwargs)), act)


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
    sep, end = (recording.display.texts.parts(ends[name]) for name in ("sep", "end"))
    # as text, since what is printed may change before the end of the call
    texts = [str(plain(recording, arg)) for arg in args]
    held = {name: recording.display.texts.resolved(text) for name, text in ends.items()}
    act = functools.partial(_PRINT, *texts, **held, file=stream._plain_, flush=flush)
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
        recording.display.texts.note_load(sys._getframe(1))
        return StreamMethod(recording, self, name)


class StreamMethod(StandIn):
    """`write` or `flush` of a standard stream."""

    __slots__ = ("_name", "_proxy")

    def __init__(self, recording: Recording, proxy: StreamProxy, name: str) -> None:
        self._recording_, self._plain_, self._proxy = recording, getattr(proxy._plain_, name), proxy
        self._name = name  # what stands before the method may have another, or none

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = self._recording_
        frame = calling_frame(recording)
        name, slot, method = self._name, self._proxy._slot_, self._plain_
        texts = [plain(recording, arg) for arg in args]
        result = show(
            recording,
            lambda: (_STREAM_METHODS[name](recording, slot, frame, *args, **kwargs), functools.partial(method, *texts)),
            lambda: functools.partial(method, *texts, **unwrap(kwargs)),
        )
        return len(texts[0]) if name == "write" and result is None and texts else result


def _written(recording: Recording, slot: int, frame: FrameType | None, *args: Any) -> Effect:
    if len(args) != 1 or type(args[0]) is not str:
        raise Unsupported(REASON, "writes other things than text")
    text = recording.display.texts.parts(args[0])
    # it gives the length of the text, which may be another in a replay
    if any(not isinstance(part, str) for part in text.parts) and not (frame and _drops_result(frame)):
        raise Unsupported(REASON, "takes the length of a text that is shown")
    return StreamWrite(slot, text)


def _drops_result(frame: FrameType) -> bool:
    """Whether nobody takes what the call that the frame is making gives."""
    found = instructions(frame.f_code)
    at = next(index for index, each in enumerate(found) if each.offset == frame.f_lasti)
    at += found[at].opname == "PRECALL"
    return found[at].opname.startswith("CALL") and found[at + 1].opname == "POP_TOP"


def _flushed(recording: Recording, slot: int, frame: FrameType | None) -> Effect:
    return Flushed(slot)


_STREAM_METHODS: dict[str, Callable[..., Effect]] = {"write": _written, "flush": _flushed}


def is_stream(value: Any) -> bool:
    """Whether a value is a standard stream that replays may write to."""
    if isinstance_wrapper(value):
        return False
    try:
        return streams.is_standard(value)
    except Exception:  # a stream without a buffer
        return False
