"""Stepping: recorded code that touches variables outside itself is watched, one instruction at a time.

Python has no hook on a store into a global or an enclosing function's variable. But it can tell before each
instruction: then what the last one has stored is passed on, before anything else can look at the variable; and what
the next one is going to read is brought in.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType, FrameType

from accel.platform import interrupts
from accel.platform.codes import with_nested
from accel.record.objects.names.cells import links_of
from accel.record.objects.names.namespaces import SubstitutedGlobals
from accel.record.objects.names.steps import Access, AccessKind, steps_of, writes_of
from accel.record.state.events import Events
from accel.record.state.recording import Recording, gap_text


class Stepper:
    """The code of one recording that is watched, and what its instructions do to variables outside it."""

    def __init__(self, recording: Recording, events: Events) -> None:
        self._recording = recording
        self._of_code: dict[CodeType, Mapping[int, Access]] = {}
        self._events = events
        self._has_stored = False

    def follow(self, code: CodeType) -> None:
        """Watch code that is about to be followed, if it writes variables outside itself."""
        if not writes_of(code):
            return
        self.watch(code)

    def watch(self, code: CodeType) -> None:
        """Watch code, and that of its nested functions, where it touches variables outside itself.

        Each instruction that is watched takes some microseconds: in a loop over cells, after the tape broke, seconds.
        """
        for each in with_nested(code):
            steps = steps_of(each)
            if steps:
                self._of_code[each] = steps
                self._events.step(each)

    def close(self) -> None:
        """Watch nothing any more."""
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

    def _prepare(self, step: Access, scope: SubstitutedGlobals) -> None:
        if step.kind is AccessKind.STORE:
            self._has_stored = True
            return
        if step.kind is AccessKind.DELETE_GLOBAL:
            scope.prepare_deletion(step.name)
            self._has_stored = True
            return
        for link in links_of(self._recording):
            if link.is_named(step.name):
                link.pass_on()  # where the tape is broken, its plain form may have taken its place
                link.bring_in()
        self._has_stored = step.kind is AccessKind.DELETE_CELL


_NONE: Mapping[int, Access] = {}
