"""Paths: one recorded path of a target, on its way from recording to compiled program."""

from __future__ import annotations

import functools
import time
from collections.abc import Collection, Hashable, Mapping
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from accel.backend.disk import cache
from accel.dispatch.paths import work
from accel.dispatch.paths.constants import COMPARED_CALLS, PathConstants, Refold, Refolds, have_one_form
from accel.platform import config, interrupts, logs
from accel.platform.ledger import current_run, open_ledger
from accel.platform.reasons import Refusal
from accel.policy.speed import Speed

if TYPE_CHECKING:
    from accel.backend.executable import Executable
    from accel.backend.job import Trial
    from accel.backend.underway.pending import PendingProgram
    from accel.compiler.lower import Known
    from accel.dispatch.paths.joint import JointPath
    from accel.dispatch.replay import Matcher, SideExit, StagedOutputs, Variant
    from accel.policy.call import Call
    from accel.record import Trace

START_NODE_S = 1.2e-4
"""Seconds per operation that describing a path takes, for its key on disk and for the process that compiles it."""

START_ANYWAY_S = 0.25
"""A path that takes longer to describe is started once the budget covers that."""

MAX_BACKOFF = 1023
"""The most calls on NumPy between two runs of a program whose last runs were all discarded."""

COMES_WITHIN_S = 2.0
"""Seconds of a path's calls on NumPy within which a program on disk is loaded."""

DISCARDED_SHARE = 0.02
"""Maximum cost of discarded runs, as a share of the calls on NumPy between them. Fewer calls suffice for that."""


class Stage(Enum):
    """State of a path, which decides how its calls run.

    OBSERVING: calls run on NumPy, while inputs that do not change are found. PENDING: its program is being compiled;
    calls run on NumPy. COMPILED: calls are replayed. JOINED: they are replayed by a program of several paths (see
    accel.dispatch.paths.joint). GIVEN_UP: calls stay on NumPy for good.
    """

    OBSERVING = "observing"
    PENDING = "pending"
    COMPILED = "compiled"
    JOINED = "joined"
    GIVEN_UP = "given up"


TRANSITIONS: Mapping[Stage, tuple[Stage, ...]] = {
    Stage.OBSERVING: (Stage.PENDING, Stage.JOINED),  # start, join
    # finish; stop_folding, as a constant changed on another path; join; give_up, as compiling failed or took too long
    Stage.PENDING: (Stage.COMPILED, Stage.OBSERVING, Stage.JOINED, Stage.GIVEN_UP),
    # drop_program, as a constant changed; join; give_up, as the program is slower than NumPy or cannot be run
    Stage.COMPILED: (Stage.OBSERVING, Stage.JOINED, Stage.GIVEN_UP),
    Stage.JOINED: (Stage.OBSERVING,),  # part: that program is given up
    Stage.GIVEN_UP: (Stage.COMPILED,),  # try_again: it was slower, but the machine may have been busy
}
"""Stages that may follow each stage, and the methods that lead there. A path begins in OBSERVING."""


class Path:
    """One recorded path of a target.

    name: the target's, for messages.
    stage: see TRANSITIONS.
    observed: calls in stage OBSERVING so far.
    constants: the inputs that have not changed so far, and may be folded.
    pending: the program that is being compiled. In stage COMPILED, it is to replace the one in use: inputs take the
    place of constants that change often.
    numpy_call_s: seconds of the last call on NumPy. waited_s: of all calls since the recording that had no program.
    found_on_disk, kept, unkept: of its program (see `PendingProgram`).
    replays: of its program. compared_at: the value of `replays` at the last comparison.
    refolded: slots of the constants that have been replaced.
    start_s: seconds that it takes to describe it to whoever compiles it. may_start: whether that may be done.
    backoff: calls that still go to NumPy before a program whose runs were discarded is tried again.
    joint: the path of several that is being compiled because this one needs a program. apart: why this path has a
    program of its own though it might have one with others; "" if nothing speaks against that.
    """

    def __init__(self, trace: Trace, name: str) -> None:
        from accel.dispatch.replay.draws import drawn_outcomes

        self.trace = trace
        self.name = name
        self.matcher = self._matcher()
        self.stage = Stage.OBSERVING
        self.observed = 0
        self._variant: Variant | None = None
        self.found_on_disk = False
        self.kept: tuple[tuple[str, str], ...] = ()
        self.unkept = ""
        self.pending: PendingProgram | None = None
        self.joint: JointPath | None = None
        self.apart = ""
        self.refolded: set[int] = set()
        self._refolds = Refolds()
        self.numpy_call_s = 0.0
        self.waited_s = 0.0
        self.replays = 0
        self.compared_at = 0
        self.backoff = 0
        self.start_s = START_NODE_S * len(trace.tape.nodes)
        self.may_start = self.start_s <= START_ANYWAY_S
        self._discarded = 0  # runs in a row
        self._is_slower = False  # which is why it was given up
        self.speed = Speed()
        # the others depend on scalars alone, and are guards: the matcher checks them before a run
        self.outcomes = [outcome for outcome in trace.tape.outcomes if not outcome.node.host]
        self.drawn_outcomes = drawn_outcomes(trace)
        self.constants = PathConstants(self._foldable())

    def _matcher(self) -> Matcher:
        from accel.dispatch.replay import Matcher

        return Matcher(self.trace)

    def _foldable(self) -> frozenset[int]:
        from accel.compiler.lower.folding import foldable

        return foldable(self.trace)

    def taken(self, staged: StagedOutputs) -> Path:
        """The recorded path that a run of the program has taken."""
        return self

    def left_at(self, exit: SideExit) -> Hashable:
        """The place in the user's program where a call has left this path."""
        return "what was drawn" if exit.on_host else self.variant.executable.program.outcomes[exit.position].where

    @property
    def has_program(self) -> bool:
        """Whether there is a program, in use or given up."""
        return self._variant is not None

    @property
    def variant(self) -> Variant:
        """The program, with what it commits. There is one in stage COMPILED."""
        assert self._variant is not None
        return self._variant

    @functools.cached_property
    def key(self) -> str | None:
        """The path's key on disk; None where no other process could find it, or the disk is not used."""
        from accel.backend.job import key_of_path

        return key_of_path(self.trace) if cache.is_used() else None

    @functools.cached_property
    def sides(self) -> frozenset[tuple[Hashable, str]]:
        """The sides of branches that it takes: by the branch's file and line, its value as text."""
        return frozenset((outcome.where[:2], repr(outcome.expected)) for outcome in self.trace.tape.outcomes)

    def observe(self, values: list[Any]) -> None:
        """Note the inputs of one more call, before it runs: an input that differs is no constant."""
        looks_at_all = self.observed < COMPARED_CALLS or not self.observed & (self.observed - 1)
        self.constants.compare(values, looks_at_all=looks_at_all)
        self.observed += 1

    def folded_slots(self, names: Collection[str]) -> tuple[int, ...]:
        """The slots with one of these names that are folded, or may be."""
        return self.constants.named(names, self.trace.inputs.name)

    def _foldable_now(self) -> Known:
        """The constants that the next program is folded for: those that are worth it."""
        self.constants.rule_out_dear(self.numpy_call_s)
        return self.constants.worth_folding(self.trace)

    def note_numpy(self, seconds: float, *, quiet: bool) -> None:
        """Note the time of a call on NumPy. quiet: nothing was being compiled, so that it is a fair sample of NumPy."""
        self.numpy_call_s = seconds
        if quiet:
            self.speed.numpy_s.add(seconds)

    def wait(self, seconds: float) -> None:
        """Add the time of calls that had no program to run."""
        self.waited_s += seconds
        if self.pending is not None:
            self.pending.add_missed(seconds)

    # -- its program --------------------------------------------------------------------------------------------------

    def start(self, joint: JointPath | None = None, trial: Trial | None = None) -> None:
        """Compile the path: in the background, or at once if `Settings.ahead_of_time` is off.

        joint: compile that one, which has this path among others. trial: how the program is tried.
        """
        self.joint = joint
        self.pending = (joint or self)._compile(self.numpy_call_s + self.waited_s, trial)
        self._enter(Stage.PENDING)

    def trial_on(self, call: Call, tolerance: float, unit: float | None) -> Trial | None:
        """Return the worker's trial of the path's program, on a call's inputs; None if there is none.

        tolerance, unit: of a comparison.
        """
        from accel.backend.underway.supervisor import has_worker
        from accel.dispatch.comparing.first_run import first_run

        values = self.matcher.match(call.args, call.kwargs) if has_worker() else None
        if not isinstance(values, list):
            return None
        return first_run(self.trace, values, self.numpy_call_s, tolerance, unit)

    def start_alone(self, why: str) -> None:
        """Compile the path itself after all. why: not with others."""
        self.apart, self.joint = why, None
        self.pending = self._compile(self.numpy_call_s)

    def join(self) -> None:
        """A program of several paths replays the calls of this one from now on."""
        if self.pending is not None and self.joint is None:
            self.pending.withdraw()
        self._variant = self.pending = self.joint = None
        self._enter(Stage.JOINED)
        self.forget_replays()

    def part(self, why: str) -> None:
        """The program of several paths is given up: this one gets a program of its own."""
        self.apart = why
        self._enter(Stage.OBSERVING)

    def note_compared(self) -> None:
        """A replay has been compared with NumPy."""
        self.replays += 1
        self.compared_at = self.replays

    def forget_replays(self) -> None:
        """A new program: times and comparisons of the earlier one say nothing about it."""
        self.replays = self.compared_at = 0
        self.speed.compiled_s.clear()

    @property
    def is_on_disk(self) -> bool:
        """Whether an earlier run has compiled it, alone or with others, so that there will soon be a program.

        Not where calls wait for their programs: each run is to compute the same as the one before, to the last bit. And
        not before the path may be described, which its key takes.
        """
        return self.may_start and self._has_entry

    @functools.cached_property
    def _has_entry(self) -> bool:
        from accel.backend.disk import experience

        waits = not config.current().ahead_of_time
        return not waits and self.key is not None and bool(experience.read(self.key).together)

    @property
    def is_coming(self) -> bool:
        """Whether its program is likely to come from disk within its next few calls."""
        return self.is_on_disk and self.waited_s < COMES_WITHIN_S

    def is_ready(self) -> bool:
        """Whether compiling has ended, with a program or with an error."""
        return self.pending is not None and self.pending.done()

    def give_up(self, *, is_slower: bool = False) -> None:
        """Keep its calls on NumPy; for good, or until `try_again` where its program is slower."""
        self.withdraw()
        self.pending = None  # even if it is too late to cancel it: nobody is to use it
        self._is_slower = is_slower
        self._enter(Stage.GIVEN_UP)

    def try_again(self) -> None:
        """Use its program again if it was given up as slower: it is timed and judged anew."""
        if self.stage is Stage.GIVEN_UP and self._is_slower:
            self._enter(Stage.COMPILED)
            self.speed.begin_anew()

    def _enter(self, stage: Stage) -> None:
        assert stage in TRANSITIONS[self.stage], f"from {self.stage} to {stage}"
        self.stage = stage

    def _compile(self, missed_s: float, trial: Trial | None = None) -> PendingProgram:
        """missed_s: seconds of calls that had no program so far, which are the first priority in the queue."""
        from accel.backend.job import samples_of
        from accel.backend.underway import queues

        started = time.perf_counter()
        arguments = self.trace, self._foldable_now(), samples_of(self.trace)
        try:
            if config.current().ahead_of_time:
                return queues.compile_in_background(*arguments, missed_s=missed_s, name=self.name, trial=trial)
            return queues.compile_now(*arguments, name=self.name)
        finally:
            open_ledger(self.name).charge("loading", time.perf_counter() - started)

    def abandon_if_overdue(self) -> Refusal | None:
        """Abandon a compile that takes longer than `Settings.max_compile_s`. Returns why the path is to be given up."""
        limit = config.current().max_compile_s
        if self.pending is None or not self.pending.seconds() > limit:
            return None
        from accel.backend.underway import queues

        pending, self.pending = self.pending, None
        queues.abandon(pending)
        if self.joint is not None:
            self.start_alone(f"compiling it with others took more than {limit:g} s")
            return None
        return Refusal("limit.compile", "", f"more than {limit:g} s")

    def finish(self) -> Refusal | None:
        """Use the program that is ready from now on. Returns why there is none if compiling failed, else None.

        Where compiling it with others failed, the path is compiled alone. Where there is a program, that stays in use.
        """
        from accel.rules.rule import Unsupported

        assert self.pending is not None
        pending, self.pending = self.pending, None  # whatever comes of it, the path waits for it no longer
        try:
            if self.joint is None:
                self._install(pending)
            else:
                self.joint.install(pending)
            return None
        except Unsupported as gap:
            refusal = Refusal(gap.reason, "", gap.detail)
        except Exception as error:
            if interrupts.raised_by_handler(error):
                self.pending = pending  # the program is still there for the next call
                raise
            refusal = Refusal("compile.failed", "", f"{type(error).__name__}: {error}")
        if self.stage is Stage.COMPILED:  # the program in use stays
            logs.LOGGER.info("%s could not be compiled again: %s", self.name, refusal.detail)
            return None
        if self.joint is None:
            return refusal
        self.start_alone(f"compiling it with others failed: {refusal.detail}")
        return None

    def _install(self, made: PendingProgram) -> None:
        """Put a new program in place. Its first replays are compared, whatever those of an earlier program showed."""
        self._use(made.result())
        undivided = self.variant.executable.undivided
        if undivided:
            current_run().note(f"{self.name} runs on one device: {undivided}")
        self.found_on_disk, self.kept, self.unkept = made.found_on_disk, made.kept, made.unkept
        self._refolds = Refolds()
        if self.stage is not Stage.COMPILED:  # as it is if a program takes the place of another
            self._enter(Stage.COMPILED)
        self.forget_replays()

    def _use(self, executable: Executable) -> None:
        """Launch this one from now on. What launches of one that was in its place have moved stays counted."""
        from accel.dispatch.paths.transfers import Transfers

        before, self._variant = self._variant, self._launchable(executable)
        there = [] if before is None else before.executable.constants
        open_ledger(self.name).transfers.append(Transfers(self.trace, self._variant, there))

    def _launchable(self, executable: Executable) -> Variant:
        from accel.dispatch.replay import Variant

        return Variant(self.trace, executable)

    def refold(self, changed: Mapping[int, NDArray[Any]]) -> Refold:
        """Give the program these arrays, by slot, in place of constants, if it can take them and that pays.

        If others of them have changed than before, the next replays are compared with NumPy again.
        """
        known = self.variant.executable.program.known.arrays
        same_form = all(slot in known and have_one_form(array, known[slot]) for slot, array in changed.items())
        if not same_form or (self._refolds.cost_more(self.numpy_call_s) and self.changes_often):
            return Refold.ANOTHER
        from accel.backend.refolding import refolded
        from accel.compiler.lower import OtherWay

        started = time.perf_counter()
        copies = {slot: array.copy() for slot, array in changed.items()}  # the program may write to its arrays
        try:
            again = refolded(self.variant.executable, copies)
        except OtherWay:
            return Refold.OTHER_WAY
        if again is None:
            return Refold.ANOTHER
        if not self.variant.renew(again, copies):
            self._use(again)
        varying = self.constants.varying
        self.constants.values.update((slot, copy) for slot, copy in copies.items() if slot not in varying)
        if not self.refolded.issuperset(copies):
            self.forget_replays()
        self.refolded.update(copies)
        self._refolds.note(time.perf_counter() - started)
        return Refold.GOES_ON

    @property
    def changes_often(self) -> bool:
        """Whether constants have changed often."""
        return self._refolds.are_often

    def replace(self, changed: Collection[int]) -> bool:
        """Compile a program that takes these constants as inputs. The one in use goes on with new constants meanwhile.

        Returns whether a compile was started.
        """
        if self.constants.values.keys().isdisjoint(changed) or not self.withdraw():
            return False
        self.vary(changed)
        self.pending = self._compile(self.numpy_call_s)
        return True

    def vary(self, changed: Collection[int]) -> None:
        """Constants in these slots have changed: no further program takes them for constant."""
        self.constants.note_changed(changed)

    def withdraw(self) -> bool:
        """Cancel any pending replacement of the program in use. Returns whether that was possible."""
        if self.pending is not None and not self.pending.withdraw():
            return False
        self.pending = None
        return True

    def respecialize(self, changed: tuple[int, ...]) -> None:
        """Drop the program, because constants in these slots changed. The next one takes them as inputs."""
        self.vary(changed)
        # one that is on its way has folded the same constants
        self.drop_program()

    def drop_program(self) -> None:
        """Forget the program: another one is to be compiled."""
        self.withdraw()
        self._variant = self.pending = None
        self._enter(Stage.OBSERVING)

    def stop_folding(self, names: Collection[str]) -> None:
        """Inputs with these names changed on another path. If this path is not compiled yet, do not fold them here."""
        slots = self.folded_slots(names)
        if slots and self.stage is Stage.PENDING and self.pending is not None and self.pending.withdraw():
            self.pending = self.joint = None
            self._enter(Stage.OBSERVING)
        if self.stage is Stage.OBSERVING:
            self.constants.rule_out(slots)

    def back_off(self, discarded_s: float, call_s: float) -> None:
        """A run was discarded, and its call's path has no program: try ever more rarely (exponential backoff).

        discarded_s: seconds that the run took. call_s: of a call without a program. No more calls go by than make up
        for the run.
        """
        enough = discarded_s / (DISCARDED_SHARE * call_s) if call_s > 0.0 else inf
        self.backoff = int(min(2**self._discarded - 1, MAX_BACKOFF, max(1.0, enough)))
        self._discarded += 1

    def accept_run(self) -> None:
        """A run's outcomes held: reset the backoff."""
        self._discarded = 0

    def describe(self) -> dict[str, Any]:
        """The compiled path for the report: what it is, and the outcomes that tell its calls from others."""
        program, shards = self.variant.executable.program, self.variant.executable.shards
        folded = {*program.known.scalars, *program.known.arrays}
        name, shared = self.trace.inputs.name, cache.shared_with(self.kept)
        return {
            "state": "given up" if self.stage is Stage.GIVEN_UP else "in use",
            "replays": self.replays,
            "operations": program.operations,
            "work": work.groups(self.trace.tape.nodes),
            "compile_s": self.variant.executable.seconds,
            "found_on_disk": self.found_on_disk,
            "shared": None if shared is None else str(shared),
            "kept_bytes": cache.size_of(self.kept) if self.kept else None,
            "unkept": None if self.kept else self.unkept,
            "inputs": len(self.trace.inputs.slots),
            "constants": sorted({name(slot) for slot in folded}),
            "outcomes": [
                f"line {outcome.where[1]}: {outcome.expected!r}"
                for outcome in self.trace.tape.outcomes
                if outcome.expected is not None
            ],
            "apart": self.apart,
            "devices": 1 if shards is None else len(shards.devices),
            "undivided": self.variant.executable.undivided or None,
        }


def shape_of(trace: Trace) -> tuple[Any, ...]:
    """A key that is equal for two recordings of the same path."""
    operations = [(node.rule.name, node.shape, str(node.dtype), node.where) for node in trace.tape.nodes]
    draws = [(draw.owner, draw.method) for draw in trace.draws]
    return operations, draws, [(outcome.where, repr(outcome.expected)) for outcome in trace.tape.outcomes]
