"""Events: what Python tells of the frames of recorded code, and to whom.

Who tells: see accel.record.run.tracing and accel.record.run.monitoring.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType, FrameType, TracebackType
from typing import Any, Protocol


class Listener(Protocol):
    """Receives events of the frames of recorded code, in the recording's own thread."""

    def on_call(self, frame: FrameType) -> None:
        """The frame begins, or goes on after a `yield`."""

    def on_return(self, frame: FrameType) -> None:
        """The frame is left, by `return`, by `yield`, or by an exception."""

    def on_exception(self, frame: FrameType, error: BaseException, traceback: TracebackType | None) -> None:
        """An exception was raised in the frame, or comes out of a call that it made."""

    def on_step(self, frame: FrameType) -> None:
        """The frame, whose code is stepped, is about to run an instruction."""

    def on_instruction(self, frame: FrameType) -> bool:
        """The frame, which was asked for, is about to run an instruction. Returns whether to tell of the next one."""

    def on_line(self, frame: FrameType) -> None:
        """The frame, which was asked for, is about to run a line; told once."""


class Events:
    """Reports frames of one recording to a listener, between `begin` and `end`. This base reports nothing."""

    def begin(self) -> bool:
        """Tell from now on. Returns whether that is possible."""
        return True

    def end(self) -> None:
        """Tell nothing any more."""

    def follow(self, code: CodeType) -> None:
        """Tell of frames of this code, and of what is nested in it: it is about to run."""

    def step(self, code: CodeType) -> None:
        """Tell of all instructions of this code from now on (`on_step`)."""

    def tells_of(self, frame: FrameType) -> bool:
        """Whether the listener is told of this frame."""
        return False

    def ask(self, frame: FrameType) -> None:
        """Tell of the frame's next instruction (`on_instruction`)."""

    def ask_line(self, frame: FrameType) -> None:
        """Tell of the frame's next line (`on_line`)."""

    def assign(self, frame: FrameType, values: Mapping[str, Any]) -> None:
        """Give variables of the frame that has just been told of these values."""
