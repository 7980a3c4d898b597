"""`locals()` in recorded code: which names have values. Variables of the functions around it come in when asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from accel.record.objects.names.cells import Link, links_of_code
from accel.record.state.recording import Recording


class LocalNames:
    """What `locals()` gives in a function that shares variables of the functions around it.

    `name in locals()` is guarded. What else is asked of it ends the recording.
    """

    def __init__(self, recording: Recording, frame: FrameType, links: dict[str, Link]) -> None:
        self._recording = recording
        self._frame = frame
        self._links = links

    def __contains__(self, name: object) -> bool:
        link = self._links.get(name) if type(name) is str else None
        return name in self._frame.f_locals if link is None else link.is_bound()

    def _all(self) -> dict[str, Any]:
        self._recording.break_("code.unsupported", "the values of locals()")
        found = dict(self._frame.f_locals)
        return found | {name: link.cell.cell_contents for name, link in self._links.items() if link.is_bound()}

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __iter__(self) -> Any:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._all(), name)


def make_locals(recording: Recording) -> Callable[[], Any]:
    """`locals` for recorded code."""

    def locals_() -> Any:
        frame = sys._getframe(2)  # beyond Builtin.__call__
        links = links_of_code(recording, frame.f_code) if frame.f_code.co_freevars else {}
        if recording.active and links is None:
            recording.break_("code.unsupported", "locals() of a nested function")
        if recording.active and links:
            return LocalNames(recording, frame, links)
        for link in (links or {}).values():
            link.bring_in()  # the tape is broken: what comes in is plain
        found = frame.f_locals
        return found if type(found) is dict else dict(found)  # from Python 3.13 on it writes through, as no locals() do

    return locals_
