"""Stepping: recorded code that touches variables outside itself is watched, one instruction at a time.

Python has no hook on a store into a global or an enclosing function's variable. But it can tell before each
instruction: then what the last one has stored is passed on, before anything else can look at the variable; and what
the next one is going to read is brought in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from accel.process import interrupts
from accel.record.names.cells import links_of
from accel.record.names.namespaces import SubstitutedGlobals
from accel.record.names.steps import Kind, Step, steps_of, with_nested, writes_of
from accel.record.recording import Recording, gap_text


class Steps:
    """The code of one recording that is watched, and what its instructions do to variables outside it."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._of_code: dict[CodeType, Mapping[int, Step]] = {}
        self._events = _Events(self.before)
        self._has_stored = False

    def __contains__(self, code: CodeType) -> bool:
        return code in self._of_code

    def follow(self, code: CodeType) -> None:
        """Watch code that is about to be followed, if it writes variables outside itself."""
        if writes_of(code) and not self.watch(code):
            self._recording.break_("effect.global", "no tool of sys.monitoring is free to see what is assigned")

    def watch(self, code: CodeType) -> bool:
        """Watch code, and that of its nested functions. Returns whether that is possible."""
        for each in with_nested(code):
            if each not in self._of_code:
                if not self._events.add(each):
                    return False
                self._of_code[each] = steps_of(each)
        return True

    def close(self) -> None:
        """Watch nothing any more."""
        self._events.close()
        self._of_code.clear()

    def before(self, frame: FrameType, code: CodeType, offset: int) -> None:
        """See what the last instruction has done, and prepare the next one, that at `offset`."""
        scope = frame.f_globals
        if type(scope) is not SubstitutedGlobals or scope.recording is not self._recording:
            return  # the same code, run by others
        try:
            if self._has_stored:
                self.pass_on()
            step = self._of_code.get(code, _NONE).get(offset)
            if step is not None:
                self._prepare(step, scope)
        except Exception as error:  # a fault of ours must never reach the user's handlers
            interrupts.pass_on(error)
            self._recording.break_("recorder.gap", gap_text(error))

    def pass_on(self) -> bool:
        """Pass on to the program's variables what recorded code has stored and deleted. Returns whether it has."""
        self._has_stored = False
        scopes = list(self._recording.registry.namespaces.values())
        passed = [each.pass_on() for each in (*scopes, *links_of(self._recording))]
        return any(passed)

    def finish(self) -> None:
        """Pass on what was not seen when it was stored; and break the tape if there was any."""
        if self.pass_on():
            self._recording.break_("recorder.gap", "an assignment to a global or nonlocal name was seen too late")

    def rearm(self, code: CodeType) -> None:
        """Go on watching code, after something else may have stopped that (see _Events.rearm)."""
        if code in self._of_code:
            self._events.rearm(code)

    def _prepare(self, step: Step, scope: SubstitutedGlobals) -> None:
        if step.kind is Kind.STORE:
            self._has_stored = True
            return
        if step.kind is Kind.DELETE_GLOBAL:
            scope.prepare_deletion(step.name)
            self._has_stored = True
            return
        for link in links_of(self._recording):
            if link.is_named(step.name):
                link.pass_on()  # where the tape is broken, its plain form may have taken its place
                link.bring_in()
        self._has_stored = step.kind is Kind.DELETE_CELL


_NONE: Mapping[int, Step] = {}

if sys.version_info >= (3, 12):

    class _Events:
        """Has a function called before each instruction of some code: by sys.monitoring, from Python 3.12 on."""

        def __init__(self, before: Callable[[FrameType, CodeType, int], None]) -> None:
            self._before = before
            self._tool: int | None = None
            self._codes: list[CodeType] = []

        def add(self, code: CodeType) -> bool:
            """Tell of this code's instructions too. Returns whether that is possible."""
            if self._tool is None and not self._open():
                return False
            sys.monitoring.set_local_events(self._tool, code, sys.monitoring.events.INSTRUCTION)
            self._codes.append(code)
            return True

        def rearm(self, code: CodeType) -> None:
            """Ask for the code's instructions again.

            Up to Python 3.13 at least, a tool that stops asking for them (so does `frame.f_trace_opcodes = False`)
            stops others from being told.
            """
            if self._tool is not None:
                sys.monitoring.set_local_events(self._tool, code, sys.monitoring.events.NO_EVENTS)
                sys.monitoring.set_local_events(self._tool, code, sys.monitoring.events.INSTRUCTION)

        def _open(self) -> bool:
            # Debuggers and profilers have numbers of their own; several recordings may run, in threads.
            for tool in _TOOLS:
                try:
                    sys.monitoring.use_tool_id(tool, "accel")
                except ValueError:
                    continue
                self._tool = tool
                sys.monitoring.register_callback(tool, sys.monitoring.events.INSTRUCTION, self._on_instruction)
                return True
            return False

        def _on_instruction(self, code: CodeType, offset: int) -> Any:
            self._before(sys._getframe(1), code, offset)

        def close(self) -> None:
            """Tell of nothing any more."""
            tool, self._tool = self._tool, None
            if tool is not None:
                for code in self._codes:
                    sys.monitoring.set_local_events(tool, code, sys.monitoring.events.NO_EVENTS)
                sys.monitoring.register_callback(tool, sys.monitoring.events.INSTRUCTION, None)
                sys.monitoring.free_tool_id(tool)
            self._codes.clear()

    _TOOLS = (4, 3)

else:

    class _Events:
        """Before Python 3.12, the trace function of the recorded frames tells of instructions (see FrameWatch)."""

        def __init__(self, before: Callable[[FrameType, CodeType, int], None]) -> None:
            pass

        def add(self, code: CodeType) -> bool:
            """Tell of this code's instructions too."""
            return True

        def rearm(self, code: CodeType) -> None:
            """The frames' trace function is asked at each call."""

        def close(self) -> None:
            """Tell of nothing any more."""


IS_TRACED = sys.version_info < (3, 12)
"""Whether the frames' trace function tells of instructions."""
