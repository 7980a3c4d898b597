"""Recorded text: a marker stands for each formatted value until a sink resolves it.

Python joins formatted values into plain strings, which remember nothing. So where the code of the function proves that
a text reaches sinks alone (see accel.record.values.text.flow), formatting gives a marker instead of digits. Only a sink
sees the marker, and what the sink really shows has the digits.
"""

from __future__ import annotations

import os
import re
from types import FrameType
from typing import Any

from accel.record.state.shown import Formatted, Text


class Texts:
    """The markers of one recording.

    refused: no more of them are made, since an exception may show a text to a handler of the program's.
    """

    def __init__(self) -> None:
        self.refused = False
        self._formatted: list[tuple[Formatted, str]] = []
        self._pattern: re.Pattern[str] | None = None
        self._token = ""
        self._loaded: set[tuple[int, int]] = set()

    @property
    def are_made(self) -> bool:
        return self._pattern is not None

    def mark(self, formatted: Formatted, text: str) -> str:
        """A marker for a value that is formatted as `text` now."""
        if self._pattern is None:
            self._token = f"\ue000accel{os.urandom(9).hex()}:"
            self._pattern = re.compile(re.escape(self._token) + "([0-9]+)\ue001")
        self._formatted.append((formatted, text))
        return f"{self._token}{len(self._formatted) - 1}\ue001"

    def parts(self, text: str) -> Text:
        """A string as text: what stands for markers in it, between what the path fixes."""
        if self._pattern is None:
            return Text((text,))
        split = self._pattern.split(text)
        parts = [self._formatted[int(part)][0] if i % 2 else part for i, part in enumerate(split)]
        return Text(tuple(part for part in parts if part != ""))

    def holds_marker(self, value: Any) -> bool:
        return self._pattern is not None and type(value) is str and self._token in value

    def resolved(self, value: Any) -> Any:
        """A string with the digits in the place of the markers; anything else as it is, and so are lists and the like.

        (A marker is in no list: the flow of a text ends where one is made.)
        """
        if not self.holds_marker(value):
            return value
        assert self._pattern is not None
        return self._pattern.sub(lambda found: self._formatted[int(found[1])][1], value)

    # -- methods of sinks, loaded to be called ------------------------------------------------------------------------

    def note_load(self, frame: FrameType) -> None:
        """A sink is being loaded by the frame's present instruction, as an attribute."""
        self._loaded.add((id(frame), frame.f_lasti))

    def is_loaded(self, frame: FrameType, offset: int) -> bool:
        """Whether the instruction at `offset` has loaded a sink's method that the frame has not called yet."""
        return (id(frame), offset) in self._loaded

    def note_call(self, frame: FrameType) -> None:
        """A sink is called by the frame: whatever it loads next, it notes anew."""
        self._loaded = {each for each in self._loaded if each[0] != id(frame)}
