"""The frames of recorded code: exceptions in them are seen, and once the tape breaks they go on with plain values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from accel.process import interrupts
from accel.process.tracebacks import without_ours
from accel.record.arrays.arrays import RecordedValue
from accel.record.names.namespaces import SubstitutedGlobals
from accel.record.objects.builtins import plain_builtins
from accel.record.objects.scan import handles_exceptions
from accel.record.parts.flow import is_loop_head
from accel.record.recording import Recording, Unwound
from accel.record.run.states import watch_joins
from accel.record.run.stepping import IS_TRACED, Steps
from accel.record.wrapper import isinstance_wrapper


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
        self._before: Any = None
        self._steps = Steps(recording)
        self._with_wrappers: set[FrameType] = set()

    def __enter__(self) -> FrameWatch:
        self._recording.on_break = self._clear_up
        self._recording.on_follow = self._steps.follow
        watch_joins(self._recording)
        self._before = sys.gettrace()
        sys.settrace(self._on_call)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.settrace(self._before)
        self._recording.on_break = self._recording.on_follow = None
        self._steps.close()
        self._with_wrappers.clear()

    def finish(self) -> None:
        """Make sure that what recorded code has stored in variables outside it is there."""
        self._steps.finish()

    def _on_call(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        if type(frame.f_globals) is not SubstitutedGlobals:
            return None
        frame.f_trace_lines = False
        if self._is_stepped(frame):
            frame.f_trace_opcodes = True
        self._steps.rearm(frame.f_code)
        if not self._recording.active:
            self._make_plain(frame)
        elif self._recording.heads is not None:
            self._recording.heads.enter(frame)
        return self._on_event

    def _is_stepped(self, frame: FrameType) -> bool:
        """Whether this trace function has to tell of the frame's instructions."""
        return IS_TRACED and frame.f_code in self._steps

    def _on_event(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event == "exception":
            self._note_exception(frame, arg)
        elif event == "return":
            self._tell_joins(self._recording.joins.returned, frame)
        elif event == "opcode":
            self._on_opcode(frame)
        elif event == "line" and not self._recording.active:
            frame.f_trace_lines = False
            self._make_plain(frame)
        return self._on_event

    def _resolve_texts(self, frame: FrameType) -> None:
        """Give recorded text its digits: a handler of the program's may look at it."""
        variables, texts = frame.f_locals, self._recording.texts
        if texts.are_made:
            found = {name: texts.resolved(value) for name, value in variables.items() if texts.holds_marker(value)}
            for name, text in found.items():
                variables[name] = text
            if found:
                self._recording.break_for_text("value.forced", "a text is kept while an exception is handled")

    def _tell_joins(self, what: Callable[[FrameType], Any], frame: FrameType) -> Any:
        try:
            return what(frame)
        except Exception as error:  # a fault of ours must never reach the program: what a trace function raises does
            interrupts.pass_on(error)
            self._recording.joins.stop()
            return False

    def _note_exception(self, frame: FrameType, raised: Any) -> None:
        # a `for` loop ends by StopIteration, where its code says
        if not (issubclass(raised[0], StopIteration) and is_loop_head(frame.f_code, frame.f_lasti)):
            self._recording.joins.interrupted()
        is_end = issubclass(raised[0], (StopIteration, GeneratorExit, Unwound))
        if is_end:
            return
        try:
            without_ours(raised[2])  # in place: a handler may look at it
        except Exception as error:  # as above
            interrupts.pass_on(error)
        self._resolve_texts(frame)
        if not self._recording.is_foreseen(raised[1]):
            self._recording.note_exception(raised[1], (frame.f_code.co_filename, frame.f_lineno))

    def _on_opcode(self, frame: FrameType) -> None:
        is_stepped = self._is_stepped(frame)
        if is_stepped:
            self._steps.before(frame, frame.f_code, frame.f_lasti)
            # Python is going to write back the frame's variables as they were before this event, cells included.
            frame.f_locals  # noqa: B018 - reads them again
        if frame in self._with_wrappers:
            self._with_wrappers.discard(frame)
            self._make_plain(frame, proxies=False)
        elif self._recording.active and self._recording.heads is not None:
            self._recording.heads.exchange(frame)
        joins = self._recording.active and self._tell_joins(self._recording.joins.at, frame)
        frame.f_trace_opcodes = bool(is_stepped or joins)
        self._steps.rearm(frame.f_code)

    def _clear_up(self) -> None:
        """Leave the recorded code, or where that is not possible, let it go on with plain values.

        What holds recorded values half-way through a statement or a loop cannot be made plain. But nobody must catch
        what leaves it, no `finally` run, and nothing have happened that cannot be undone. Otherwise every recorded
        frame on the stack is made plain when it goes on; what it writes then is not journalled.
        """
        frames = list(_recorded_frames())
        # A handler of the program's (`except BaseException`, `finally`) would see Unwound, and run its code for
        # nothing.
        if self._recording.can_be_undone and not any(handles_exceptions(frame.f_code) for frame in frames):
            self._recording.raised = (Unwound.__name__, self._recording.writer.where())  # NumPy may swallow it
            raise Unwound
        self._recording.show_waiting()
        self._recording.builtins.update(plain_builtins())
        self._with_wrappers.update(frames)
        for frame in frames:
            # From now on other code may assign what they share with it.
            self._steps.watch(frame.f_code)
            frame.f_trace_lines = frame.f_trace_opcodes = True

    def _make_plain(self, frame: FrameType, *, proxies: bool = True) -> None:
        """Give a frame's variables plain values. A trace function may: changes to `f_locals` are written back.

        proxies: whether those of objects and containers are replaced too. They stay until the statement that broke
        the tape is over, since what it computed before may still be stored through them.
        """
        variables = frame.f_locals
        for name, value in list(variables.items()):
            if proxies or not isinstance_wrapper(value) or issubclass(type(value), RecordedValue):
                made = self._recording.texts.resolved(self._recording.kept.unwrap_in_place(value))
                if made is not value:
                    variables[name] = made
