"""A recording: one NumPy call on tape, its inputs, and the way back if something goes wrong.

Order matters everywhere: an intercepted operation first runs the real function on plain values and returns, or
raises, exactly that. Only then is it written to the tape, inside its own `try`; that part can only break the tape.
Once broken, wrappers are passive: they compute on plain values and give plain values.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from accel.ir.tape import Node, Place
from accel.platform import interrupts
from accel.platform.own_code import under_own_wrapper
from accel.platform.reasons import Refusal, source_line
from accel.record.state.changes import Asked, AttributeState, Item
from accel.record.state.draw import Draw
from accel.record.state.inputs import (
    CALL_SHAPE,
    Check,
    Fetch,
    Inputs,
    has_code,
    is_equal,
    is_same,
    of_constant,
    satisfies,
)
from accel.record.state.joins import Joins
from accel.record.state.kept import Kept
from accel.record.state.registry import Registry
from accel.record.state.shown import Display
from accel.record.state.storages import Journal, Storages
from accel.record.state.writer import NO_LIMITS, Limits, TapeWriter
from accel.rules.rule import Unsupported


class Hooks(NamedTuple):
    """Functions of the layers above that a recording calls.

    enter: gives the guard and the recorded form of a value that comes in through a slot. marker: see
    accel.record.values.text.markers. builtins: those of recorded code. heads, frames: see accel.record.run.loops.heads
    and accel.record.run.frames. held: see Joins.
    """

    enter: Callable[[Recording, Any, int], tuple[Check | None, Any]]
    marker: Callable[..., str | None]
    builtins: Callable[[Recording], dict[str, Any]]
    heads: Callable[[Recording], Any]
    frames: Callable[[Recording], Any]
    held: Callable[[Recording, list[Any]], tuple[list[Node], list[tuple[int, Node]]]]


class _Current(threading.local):
    recording: Recording | None = None


CURRENT = _Current()

IS_TRACED = sys.version_info < (3, 12)
"""Whether recorded code is watched by a trace function (see accel.record.run.tracing)."""


def current() -> Recording | None:
    """This thread's recording, if one is under way."""
    return CURRENT.recording


class Unwound(BaseException):
    """Leaves the recorded code where the tape breaks: the call is undone and run plainly. Never seen by the program."""


@dataclass(slots=True)
class FollowedCode:
    """Facts about the code that a recording has followed so far (see accel.record.objects.follow).

    makes_writers: nested functions write variables outside. makes_functions: nested functions capture variables.
    handles_exceptions: it has handlers. compares_identity: it tests `is`, or the program compares objects so.
    """

    makes_writers: bool = False
    makes_functions: bool = False
    handles_exceptions: bool = False
    compares_identity: bool = False


class Recording:
    """The state of one recording.

    package, module: the target's root package and its module, whose functions are followed wherever they are. start:
    the target's first line. refusal: why the tape is broken, or None. refused_for_text: it is broken because the text
    of a value was needed. touched: something outside was changed in a way that cannot be undone. raised: an exception
    passed through recorded code. watcher: told of the first exception, of the break and of the end, while everything is
    still there (accel.explain). asked: the results that it takes from caches, in order.

    Its parts: inputs, what the call read; storages, the memory of its arrays; writer, the tape; registry, what stands
    for what; journal, the way back; kept, what the program holds on to afterwards; display, the text that it shows;
    code, facts about what was followed; heads, where loops were asked for their conditions; joins, where the sides of
    branches come together.
    """

    def __init__(
        self, package: str, module: str, start: Place, hooks: Hooks, limits: Limits = NO_LIMITS, effects: bool = True
    ) -> None:
        self._hooks = hooks
        self.marker = hooks.marker
        self.start = start
        self.package = package
        self.module = module
        self.inputs = Inputs()
        self.heads = hooks.heads(self)
        self.writer = TapeWriter(self, self.inputs, start, limits, self.heads.note)
        self.registry = Registry()
        self.journal = Journal()
        self.kept = Kept(self)
        self.asked: list[Asked] = []
        self.frames = hooks.frames(self)
        self.events = self.frames.events
        self.joins = Joins(self.writer, self.events, partial(hooks.held, self))
        self.refusal: Refusal | None = None
        self.refused_for_text = False
        self.closed = False
        self.touched = False
        self.watcher: Callable[[], None] | None = None
        self.code = FollowedCode()
        self.display = Display(effects)
        self.raised: tuple[str, Place] | None = None
        self.inlined: set[Any] = set()
        self.storages = Storages(self)
        self.attributes: dict[tuple[int, str | Item], AttributeState] = {}
        self.entered: dict[int, tuple[Any, Any]] = {}  # slot -> plain value and its recorded form
        self.aliases: list[tuple[int, int]] = []  # slots that hold the same array, as now
        self.same: list[tuple[int, int]] = []  # slots that lead to the same object
        self.changed: dict[int, Any] = {}  # the wrappers of containers that the call changes, by id of the container
        self.draws: list[Draw] = []
        self.drawn_from: set[int] = set()  # ids of generators whose state is journalled
        self.absent: dict[int, set[str]] = {}  # slot of an object -> names that it must not have of its own
        self.builtins = hooks.builtins(self)
        self.new_names: set[tuple[int, str]] = set()  # attributes that objects, by id, got only in this call
        self.made: dict[int, int] = {}  # objects that the call made, by id -> number (see accel.ir.tape.SERIAL)
        self._foreseen: list[Exception] = []

    # -- life ---------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Recording:
        self._outer, CURRENT.recording = CURRENT.recording, self
        return self

    def __exit__(self, *exc: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Be this thread's recording no longer."""
        if CURRENT.recording is self:
            CURRENT.recording = self._outer

    def survivors(self) -> list[Any]:
        """The wrappers that something outside holds on to, once the recording itself has let go of all."""
        self._let_go()
        return self.registry.survivors()

    def _let_go(self) -> None:
        self.closed = True
        for error in self._foreseen:  # the program may have kept them
            if isinstance(error, KeyError):  # it holds the key
                error.args = self.kept.unwrap_to_store(error.args)
        self.registry.let_go()
        self.kept.let_go()
        self.joins.let_go()
        self.storages.let_go()
        for held in (self.attributes, self.entered, self.changed, self._foreseen, self.made, self.new_names):
            held.clear()
        self.heads.let_go()

    def close(self) -> None:
        """End the recording: what of it outlives it is passive from now on, and holds on to nothing."""
        self._let_go()
        self.registry.forget()
        self.journal.clear()  # last: until then a fault of ours leads back

    @property
    def active(self) -> bool:
        """Whether operations are still written down."""
        return self.refusal is None and not self.closed

    def break_(self, reason: str, detail: str = "", *, touched: bool = False) -> None:
        """Break the tape, for good. touched: what comes next has effects that cannot be undone.

        May raise Unwound: nothing that cannot be undone has happened yet.
        """
        if self.refusal is None:
            self.refuse(Refusal(reason, self.writer.where_text(), detail))
        # `print(f"{x}")` asks for the text first. "It prints" is what the user can act on, "a text is needed" is not.
        elif self.refused_for_text and reason.startswith("effect."):
            self.refused_for_text = False
            self.refusal = self._with_stack(Refusal(reason, self.writer.where_text(), detail))  # what the text was for
        self.touched |= touched

    def _with_stack(self, refusal: Refusal) -> Refusal:
        stack = [(frame.f_code.co_filename, frame.f_lineno) for frame in self.writer.frames()]
        return replace(refusal, stack=(*refusal.stack, *stack))

    def break_for_text(self, reason: str, detail: str) -> None:
        """Break the tape because the text of a value is needed. What for shows only later, by an effect (`break_`)."""
        if self.refusal is None:
            self.refused_for_text = True
        self.break_(reason, detail)

    def break_unseen(self, detail: str) -> None:
        """Break the tape: something that it did not see has had an effect, which cannot be undone."""
        self.touched = True
        self.break_("guard.unstable", detail)

    @property
    def can_be_undone(self) -> bool:
        """Whether the call may be undone where its tape breaks. What a text is for shows only later."""
        return not self.touched and (not self.refused_for_text or self.code.makes_writers)

    def refuse(self, refusal: Refusal) -> None:
        """Break the tape because of `refusal`."""
        if self.refusal is None:
            self.refusal = self._with_stack(refusal)
            self.heads.let_go()
            self.tell_watcher()
            self.frames.clear_up()

    def show_waiting(self) -> None:
        """Show what waits for the end of the call. From now on the call cannot be undone."""
        self.touched = True
        try:
            while self.display.waiting:
                self.display.waiting.pop(0)()
        except Exception as error:  # the program's; it gets it at the end of the call
            interrupts.pass_on(error)
            self.display.error = self.display.error or error

    def tell_watcher(self) -> None:
        if self.watcher is not None:
            self.watcher()

    def guard_function(self, function: Any) -> None:
        """Let replays check that a followed function still has this code and these defaults."""
        key = ("function", id(self.registry.keep_alive(function)))
        if self.inputs.find(key) is None:
            self.inputs.add(key, f"{function.__qualname__}'s code", of_constant(function), has_code(function))

    def guard_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let replays check that the call has as many arguments, and the same keywords in the same order."""
        shape = len(args), tuple(kwargs)
        self.inputs.add(("call",), "the number of arguments", CALL_SHAPE, is_equal(shape))

    def guard_missing(self, namespace: object, name: str, text: str) -> None:
        """Let replays check that a module's or class's namespace still has no such name."""
        key = ("missing", id(namespace), name)
        if self.active and self.inputs.find(key) is None:
            self.registry.keep_alive(namespace)
            self.inputs.add(key, text, of_constant(namespace), satisfies(_lacks, name))

    # -- what comes in ------------------------------------------------------------------------------------------------

    def enter(self, value: object, key: object, name: str, fetch: Fetch) -> Any:
        """The recorded form of a plain value from outside.

        key: what makes it the same input when read again. name: as the user would write it. fetch: how a later call
        reads it from the slots before.
        """
        if not self.active:
            return value
        slot = self.inputs.find(key)
        # The same input read twice is one slot: a loop that reads `self.dx` a thousand times is guarded once.
        if slot is None:
            slot = self.inputs.add(key, name, fetch)
            return self.write_down(lambda: self._enter_first(value, slot), value)
        return self.write_down(lambda: self._enter_again(value, slot), value)

    def _enter_first(self, value: object, slot: int) -> Any:
        guard, wrapped = self._hooks.enter(self, value, slot)
        if guard is not None:
            self.inputs.narrow(slot, guard)
        self.entered[slot] = (value, wrapped)
        return wrapped

    def _enter_again(self, value: object, slot: int) -> Any:
        # By identity: while we record, another thread, a callback or a property may have put another object there.
        before, wrapped = self.entered.get(slot, (None, None))
        if before is value:
            return wrapped
        if before is not None and under_own_wrapper(before) is under_own_wrapper(value):
            # accel itself has begun to accelerate the function meanwhile, or ceased to
            self.inputs.renew(slot, is_same(before), is_same(value))
            self.entered[slot] = (value, wrapped)
            return wrapped
        self.break_unseen(f"{self.inputs.name(slot)} changed while it was recorded")
        return value

    # -- exceptions ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def foreseen(self) -> Iterator[None]:
        """Errors raised in here follow from guarded inputs alone, so that a replay's path has them too."""
        try:
            yield
        except Exception as error:
            # `os.environ["X"]`, `d[key]`, `self.cache` in `try`: a replay's guards make sure that it would raise again.
            self._foreseen.append(error)
            raise

    def is_foreseen(self, error: object) -> bool:
        """Whether an error follows from guarded inputs alone."""
        return any(error is each for each in self._foreseen)

    def note_exception(self, error: BaseException, place: Place) -> None:
        """Note an exception that passed through recorded code. A signal handler's would not recur in a second run."""
        if interrupts.raised_by_handler(error):
            self.touched = True
            self.break_("path.exception", "a signal handler raised it")
        self.display.texts.refused = True  # its handlers may look at them
        # The first is the cause; what is raised while it is handled follows from it.
        if self.raised is None:
            self.raised = (f"{type(error).__name__}: {error}", place)
            self.tell_watcher()

    def branch(self, node: Node, taken: bool) -> None:
        """The program goes one way, by the truth of a recorded value: an outcome, and a branch that may join again."""
        if not node.constant and not self.writer.is_assumed(node):
            self.joins.branch()
        self.writer.outcome(node, taken)

    # -- writing down -------------------------------------------------------------------------------------------------

    def write_down(self, action: Callable[[], Any], plain: object) -> Any:
        """`action()`, which writes to the tape and wraps `plain`; `plain` itself if the tape is or gets broken.

        No code of the program's runs in it, so the watch for exceptions, which slows every call, rests.
        """
        if not self.active:
            return plain
        watch = sys.gettrace() if IS_TRACED else None
        if IS_TRACED:  # the trace function would be called for every frame of ours too
            sys.settrace(None)
        try:
            made = action()
            if self.active:
                return made
        except Unsupported as gap:
            self.break_(gap.reason, gap.detail)
        except Exception as error:  # a fault of ours must never reach the user's handlers
            interrupts.pass_on(error)
            self.break_("recorder.gap", gap_text(error))
        finally:
            if IS_TRACED:
                sys.settrace(watch)
        return plain


def _lacks(namespace: Container[str], name: str) -> bool:
    return name not in namespace


def gap_text(error: BaseException, callers: int = 0) -> str:
    """A fault of accel's, with the line where it arose, and those of its last callers."""
    frames = traceback.extract_tb(error.__traceback__)[-1 - callers :]
    lines = " < ".join(source_line(frame.filename, frame.lineno or 0) for frame in reversed(frames))
    return f"{type(error).__name__}: {error} [{lines}]"


def place_text(place: Place) -> str:
    return source_line(*place)
