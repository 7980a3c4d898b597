"""The frames of recorded code: exceptions in them are seen, and once the tape breaks they go on with plain values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from accel.platform import interrupts
from accel.platform.tracebacks import without_ours
from accel.record.objects.builtins import plain_builtins
from accel.record.objects.names.namespaces import SubstitutedGlobals
from accel.record.objects.scan import handles_exceptions
from accel.record.run.loops.code import begins_statement, may_set_parts
from accel.record.run.monitoring import Monitored
from accel.record.run.stepping import Stepper
from accel.record.run.tracing import Traced
from accel.record.state.events import Events
from accel.record.state.flow import is_loop_head
from accel.record.state.recording import IS_TRACED, Recording, Unwound
from accel.record.state.wrapper import isinstance_wrapper
from accel.record.values.arrays import RecordedValue

_TELLER: Callable[[Recording, Any], Events] = Traced if IS_TRACED else Monitored


def _recorded_frames() -> Iterator[FrameType]:
    """The frames of recorded code on the stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if type(frame.f_globals) is SubstitutedGlobals:
            yield frame
        frame = frame.f_back


class FrameWatch:
    """Sees every exception that passes through recorded code, handled there or not; and clears up once the tape breaks.

    A gap in the recorder might raise where NumPy would not, and the program's own handler might swallow that; so any
    exception means that the call is undone and run plainly. Once the tape is broken, the variables of recorded frames
    are given plain values, at each frame's next instruction: from there on the program runs as if it had never been
    recorded.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._is_on = False
        self.events = _TELLER(recording, self)
        self._steps = Stepper(recording, self.events)
        self._with_wrappers: set[FrameType] = set()
        self._innermost: FrameType | None = None

    def __enter__(self) -> FrameWatch:
        if not self.events.begin():
            self._recording.break_("environment.traced", "other tools have all numbers of sys.monitoring")
        self._is_on = True
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_on = False
        self.events.end()
        self._steps.close()
        self._with_wrappers.clear()
        self._innermost = None

    def finish(self) -> None:
        """Make sure that what recorded code has stored in variables outside it is there."""
        self._steps.finish()

    def follow(self, code: CodeType) -> None:
        """Watch code that is about to run."""
        self.events.follow(code)
        self._steps.follow(code)

    # -- what Python tells --------------------------------------------------------------------------------------------

    def on_call(self, frame: FrameType) -> None:
        """The frame begins, or goes on after a `yield`."""
        if not self._recording.active:
            self._make_plain(frame)
        else:
            self._recording.heads.enter(frame)

    def on_return(self, frame: FrameType) -> None:
        """The frame is left, by `return`, by `yield`, or by an exception."""
        self._tell_joins(self._recording.joins.returned, frame)

    def on_exception(self, frame: FrameType, error: BaseException, traceback: TracebackType | None) -> None:
        """An exception was raised in the frame, or comes out of a call that it made."""
        # a `for` loop ends by StopIteration, where its code says
        if not (isinstance(error, StopIteration) and is_loop_head(frame.f_code, frame.f_lasti)):
            self._recording.joins.interrupted()
        if isinstance(error, (StopIteration, GeneratorExit, Unwound)):
            return
        try:
            without_ours(traceback)  # in place: a handler may look at it
        except Exception as fault:  # must never reach the program: what is raised here does
            interrupts.pass_on(fault)
        self._resolve_texts(frame)
        if not self._recording.is_foreseen(error):
            self._recording.note_exception(error, (frame.f_code.co_filename, frame.f_lineno))
        if not self._recording.active:
            self._recording.kept.unwrap_in_place(error)

    def on_step(self, frame: FrameType) -> None:
        """The frame, whose code is stepped, is about to run an instruction."""
        self._steps.before(frame, frame.f_code, frame.f_lasti)

    def on_instruction(self, frame: FrameType) -> bool:
        """The frame, which was asked for, is about to run an instruction. Returns whether to tell of the next one."""
        if self._recording.active:
            self._recording.heads.exchange(frame)
            return bool(self._tell_joins(self._recording.joins.at, frame))
        is_next = begins_statement(frame.f_code, frame.f_lasti)  # several may share a line
        if is_next or frame in self._with_wrappers:
            # what broke the tape has given the innermost frame a plain value
            newest = frame is not self._innermost
            self._make_plain(frame, proxies=not may_set_parts(frame.f_code, frame.f_lasti, newest))
        self._with_wrappers.discard(frame)
        return not is_next

    def on_line(self, frame: FrameType) -> None:
        """The frame, which was asked for, is about to run a line; told once."""
        if not self._recording.active:
            self._make_plain(frame)

    # -- what is done about it ----------------------------------------------------------------------------------------

    def _resolve_texts(self, frame: FrameType) -> None:
        """Give recorded text its digits: a handler of the program's may look at it."""
        variables, texts = frame.f_locals, self._recording.display.texts
        if texts.are_made:
            found = {name: texts.resolved(value) for name, value in variables.items() if texts.holds_marker(value)}
            self.events.assign(frame, found)
            if found:
                self._recording.break_for_text("value.forced", "a text is kept while an exception is handled")

    def _tell_joins(self, what: Callable[[FrameType], Any], frame: FrameType) -> Any:
        try:
            return what(frame)
        except Exception as error:  # as above
            interrupts.pass_on(error)
            self._recording.joins.stop()
            return False

    def clear_up(self) -> None:
        """Leave the recorded code, or where that is not possible, let it go on with plain values.

        What holds recorded values half-way through a statement or a loop cannot be made plain. But nobody must catch
        what leaves it, no `finally` run, and nothing have happened that cannot be undone. Otherwise every recorded
        frame on the stack is made plain when it goes on; what it writes then is not journalled.
        """
        if not self._is_on:
            return
        frames = list(_recorded_frames())
        # A handler of the program's (`except BaseException`, `finally`) would see Unwound, and run its code for
        # nothing.
        if self._recording.can_be_undone and not any(handles_exceptions(frame.f_code) for frame in frames):
            self._recording.raised = (Unwound.__name__, self._recording.writer.where())  # NumPy may swallow it
            raise Unwound
        self._recording.show_waiting()
        self._recording.builtins.update(plain_builtins())
        self._with_wrappers.update(frames)
        self._innermost = next(iter(frames), None)
        for frame in frames:
            # From now on other code may assign what they share with it.
            self._steps.watch(frame.f_code)
            self.events.ask_line(frame)
            self.events.ask(frame)

    def _make_plain(self, frame: FrameType, *, proxies: bool = True) -> None:
        """Give a frame's variables plain values.

        proxies: whether those of objects and containers are replaced too. They stay until the statement that broke
        the tape is over if it sets an attribute or item: what it computed before may still be stored through them.
        """
        coming = {}
        for name, value in list(frame.f_locals.items()):
            if proxies or not isinstance_wrapper(value) or issubclass(type(value), RecordedValue):
                made = self._recording.display.texts.resolved(self._recording.kept.unwrap_in_place(value))
                if made is not value:
                    coming[name] = made
        self.events.assign(frame, coming)
