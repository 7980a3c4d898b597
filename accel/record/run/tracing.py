"""Events up to Python 3.11: by a trace function.

Python calls it for every frame of the thread, ours too: it rests while a recording writes (Recording.write_down).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from accel.record.objects.names.namespaces import SubstitutedGlobals
from accel.record.state.events import Events
from accel.record.state.recording import Recording


class Traced(Events):
    """By a trace function."""

    def __init__(self, recording: Recording, listener: Any) -> None:
        self._listener = listener
        self._stepped: set[CodeType] = set()
        self._before: Any = None

    def begin(self) -> bool:
        self._before = sys.gettrace()
        sys.settrace(self._on_call)
        return True

    def end(self) -> None:
        sys.settrace(self._before)
        self._stepped.clear()

    def follow(self, code: CodeType) -> None:
        pass

    def step(self, code: CodeType) -> None:
        self._stepped.add(code)

    def tells_of(self, frame: FrameType) -> bool:
        return frame.f_trace is not None

    def ask(self, frame: FrameType) -> None:
        frame.f_trace_opcodes = True

    def ask_line(self, frame: FrameType) -> None:
        frame.f_trace_lines = True

    def assign(self, frame: FrameType, values: Mapping[str, Any]) -> None:
        frame.f_locals.update(values)  # Python writes them back after the event

    def _on_call(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        if type(frame.f_globals) is not SubstitutedGlobals:
            return None
        frame.f_trace_lines = False
        if frame.f_code in self._stepped:
            frame.f_trace_opcodes = True
        self._listener.on_call(frame)
        return self._on_event

    def _on_event(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event == "exception":
            self._listener.on_exception(frame, arg[1], arg[2])
        elif event == "return":
            self._listener.on_return(frame)
        elif event == "opcode":
            self._on_opcode(frame)
        elif event == "line" and frame.f_trace_lines:
            frame.f_trace_lines = False
            self._listener.on_line(frame)
        return self._on_event

    def _on_opcode(self, frame: FrameType) -> None:
        is_stepped = frame.f_code in self._stepped
        if is_stepped:
            self._listener.on_step(frame)
            # Python is going to write back the frame's variables as they were before this event, cells included.
            frame.f_locals  # noqa: B018 - reads them again
        frame.f_trace_opcodes = self._listener.on_instruction(frame) or is_stepped
