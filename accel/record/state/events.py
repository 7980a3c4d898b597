"""Events: what Python tells of the frames of recorded code, and to whom.

Who tells: see accel.record.run.tracing and accel.record.run.monitoring.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Any


class Events:
    """Reports frames of one recording to its listener (accel.record.run.frames), between `begin` and `end`.

    In the recording's own thread. This base reports nothing.
    """

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
