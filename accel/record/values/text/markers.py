"""Markers: whether a formatted value may stay a marker, because nothing but sinks can see the text."""

from __future__ import annotations

import builtins
from types import FrameType
from typing import Any

from accel.record.state.recording import Recording
from accel.record.values.text import flow
from accel.record.values.text.capture import formatted
from accel.record.values.text.percent import text_by_percent

_BUILTINS = {name: getattr(builtins, name) for name in ("print", "str", "repr", "format")}


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
