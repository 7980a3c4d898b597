"""Events from Python 3.12 on: by `sys.monitoring`, which tells of chosen code alone.

A trace function would have to rest while a recording writes, and setting one takes Python a millisecond here: it goes
through the instructions of all code that is running.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from accel.platform import interrupts
from accel.platform.codes import with_nested
from accel.record.objects.names.namespaces import SubstitutedGlobals
from accel.record.state.events import Events
from accel.record.state.recording import Recording, gap_text

_MONITORING: Any = getattr(sys, "monitoring", None)

TOOLS = (4, 3, 5)
"""Numbers that a tool may have. The others are for debuggers, coverage tools and profilers."""


class Monitored(Events):
    """Events of one recording by `sys.monitoring`."""

    def __init__(self, recording: Recording, listener: Any) -> None:
        self.recording = recording
        self.thread = threading.get_ident()
        # by the id of the code: equal code is not the same code
        self.followed: dict[int, CodeType] = {}
        self._listener = listener
        self._stepped: set[int] = set()
        self._asked: set[FrameType] = set()
        self._asked_line: set[FrameType] = set()

    def begin(self) -> bool:
        return _tool.begin(self)

    def end(self) -> None:
        followed = list(self.followed.values())
        for each in (self.followed, self._stepped, self._asked, self._asked_line):
            each.clear()
        _tool.end(self, followed)

    def follow(self, code: CodeType) -> None:
        for each in with_nested(code):
            if id(each) not in self.followed:
                self.followed[id(each)] = each
                _tool.refresh(each)

    def step(self, code: CodeType) -> None:
        if id(code) not in self._stepped:
            self.followed[id(code)] = code
            self._stepped.add(id(code))
            _tool.refresh(code)

    def tells_of(self, frame: FrameType) -> bool:
        return id(frame.f_code) in self.followed

    def ask(self, frame: FrameType) -> None:
        self._change(self._asked.add, frame)

    def ask_line(self, frame: FrameType) -> None:
        self._change(self._asked_line.add, frame)

    def assign(self, frame: FrameType, values: Mapping[str, Any]) -> None:
        frame.f_locals.update(values)
        if sys.version_info < (3, 13):  # up to 3.12 `f_locals` is a copy, which debuggers write back so
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), 0)

    def wanted(self, code: CodeType) -> int:
        """The events that are to be told of this code."""
        if id(code) not in self.followed:
            return 0
        names = ["PY_START", "PY_RESUME", "PY_RETURN", "PY_YIELD", "STOP_ITERATION"]
        if id(code) in self._stepped or any(frame.f_code is code for frame in self._asked):
            names.append("INSTRUCTION")
        if any(frame.f_code is code for frame in self._asked_line):
            names.append("LINE")
        return _events(*names)

    def _change(self, change: Callable[[FrameType], None], frame: FrameType) -> None:
        change(frame)
        _tool.refresh(frame.f_code)

    # -- what the tool tells ------------------------------------------------------------------------------------------

    def on_call(self, frame: FrameType) -> None:
        self._listener.on_call(frame)

    def on_yield(self, frame: FrameType, value: object) -> None:
        self._listener.on_return(frame)

    def on_return(self, frame: FrameType, value: object) -> None:
        """The frame is left: nothing is asked of it any more."""
        if frame in self._asked or frame in self._asked_line:
            self._asked_line.discard(frame)
            self._change(self._asked.discard, frame)
        self._listener.on_return(frame)

    def on_raise(self, frame: FrameType, error: BaseException) -> None:
        self._listener.on_exception(frame, error, error.__traceback__)

    def on_stop(self, frame: FrameType, value: object) -> None:
        """An iterator has ended, which a `for` or `yield from` has asked for its next element."""
        self._listener.on_exception(frame, StopIteration(), None)

    def on_instruction(self, frame: FrameType) -> None:
        """The frame is about to run an instruction: tell those who asked."""
        if id(frame.f_code) in self._stepped:
            self._listener.on_step(frame)
        if frame in self._asked and not self._listener.on_instruction(frame):
            self._change(self._asked.discard, frame)

    def on_line(self, frame: FrameType) -> None:
        if frame in self._asked_line:
            self._change(self._asked_line.discard, frame)
            self._listener.on_line(frame)


_TOLD: Mapping[str, Callable[..., None]] = {
    "PY_START": Monitored.on_call,
    "PY_RESUME": Monitored.on_call,
    "PY_YIELD": Monitored.on_yield,
    "PY_RETURN": Monitored.on_return,
    "PY_UNWIND": Monitored.on_return,
    "RAISE": Monitored.on_raise,
    "STOP_ITERATION": Monitored.on_stop,
    "INSTRUCTION": Monitored.on_instruction,
    "LINE": Monitored.on_line,
}
"""By the name of an event: who is told. What it is about, beyond the place, is passed on."""


@functools.cache
def _events(*names: str) -> int:
    """The set of these events."""
    found = 0
    for name in names:
        found |= getattr(_MONITORING.events, name)
    return found


class _Tool:
    """accel among the tools of `sys.monitoring`: one for all recordings, which threads may have at once.

    It is one while there are any; else a program's loop would seem to be watched by somebody
    (accel.platform.observers).
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal's handler may run a recording of its own
        self._number: int | None = None
        self._active: dict[Recording, Monitored] = {}

    def begin(self, events: Monitored) -> bool:
        """Tell these events. Returns whether that is possible: a program may have taken all numbers."""
        with self._lock:
            if self._number is None:
                self._open()
            if self._number is not None:
                self._active[events.recording] = events
            return self._number is not None

    def end(self, events: Monitored, followed: list[CodeType]) -> None:
        """Tell these events no longer. followed: the code that they were about."""
        with self._lock:
            self._active.pop(events.recording, None)
            for code in followed:
                self.refresh(code)
            if not self._active:
                self._close()

    def refresh(self, code: CodeType) -> None:
        """Set the events that Python reports for this code."""
        with self._lock:
            if self._number is not None:
                wanted = [events.wanted(code) for events in self._active.values()]
                _MONITORING.set_local_events(self._number, code, functools.reduce(int.__or__, wanted, 0))

    def _open(self) -> None:
        number = next((each for each in TOOLS if _MONITORING.get_tool(each) is None), None)
        if number is not None:
            _MONITORING.use_tool_id(number, "accel")
            for name, tell in _TOLD.items():
                _MONITORING.register_callback(number, _events(name), functools.partial(self._told, tell))
            _MONITORING.set_events(number, _events("RAISE", "PY_UNWIND"))  # Python tells these of all code, or of none
            self._number = number

    def _close(self) -> None:
        number, self._number = self._number, None
        if number is not None:
            _MONITORING.set_events(number, 0)
            for name in _TOLD:
                _MONITORING.register_callback(number, _events(name), None)
            _MONITORING.free_tool_id(number)

    def _told(self, tell: Callable[..., None], code: CodeType, place: int, *about: object) -> None:
        frame = sys._getframe(1)
        scope = frame.f_globals
        if type(scope) is not SubstitutedGlobals:
            return  # the same code, run by others
        events = self._active.get(scope.recording)
        if events is None or events.thread != threading.get_ident():
            return
        try:
            tell(events, frame, *about)
        except Exception as error:  # a fault of ours must never reach the program: what is raised here does
            interrupts.pass_on(error)
            scope.recording.break_("recorder.gap", gap_text(error))


_tool = _Tool()
