"""Recorded paths: what one recording has shown, and what the calls that take it have shown since."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from accel.backend.disk import cache
from accel.dispatch.paths.constants import COMPARED_CALLS, PathConstants
from accel.platform import config
from accel.policy import prices
from accel.policy.speed import Speed

if TYPE_CHECKING:
    from accel.dispatch.paths.program import Program
    from accel.dispatch.paths.stages import Stage
    from accel.record import Trace

START_ANYWAY_S = 0.25
"""A path that takes longer to describe is started once the budget covers that."""

COMES_WITHIN_S = 2.0
"""Seconds of a path's calls on NumPy within which a program on disk is loaded."""


class RecordedPath:
    """One recorded path of a target: its guards, its tape, what it commits, and figures of its calls.

    trace: the recording. A merged trace stands for several paths as one; see `Program.whole`.
    matcher: its guards. outcomes, drawn_outcomes: those known after a launch, and those known once a run has drawn.
    name: the target's, for messages.
    program: the program that its calls take, which may not be compiled yet.
    constants: the inputs that have not changed so far, and may be folded.
    observed: calls observed so far, before there was a program.
    numpy_call_s: seconds of the last call on NumPy. waited_s: of all calls since the recording that had no program.
    lost_s: what a program is expected to save of these.
    replays: by its program. compared_at: the value of `replays` at the last comparison.
    start_s: seconds that it takes to describe it to whoever compiles it. may_start: whether that may be done.
    apart: why it has a program of its own though it might have one with others; "" if nothing speaks against that.
    """

    program: Program

    def __init__(self, trace: Trace, name: str, foldable: frozenset[int] | None = None) -> None:
        """foldable: slots that may be constant; None to look for them."""
        from accel.compiler.lower import folding
        from accel.dispatch.replay.draws import drawn_outcomes

        self.name = name
        self.observed = 0
        self.apart = ""
        self.numpy_call_s = 0.0
        self.waited_s = 0.0
        self.lost_s = 0.0
        self.replays = 0
        self.compared_at = 0
        price = prices.describing if trace.key is None else prices.loading
        self.start_s = price.of(len(trace.tape.nodes))
        self.may_start = self.start_s <= START_ANYWAY_S
        self.speed = Speed()
        # the others depend on scalars alone, and are guards: the matcher checks them before a run
        self.outcomes = [outcome for outcome in trace.tape.outcomes if not outcome.node.host]
        self.drawn_outcomes = drawn_outcomes(trace)
        self.constants = PathConstants(folding.foldable(trace) if foldable is None else foldable)
        self.read_as(trace)

    def read_as(self, trace: Trace) -> None:
        """Match calls with this trace from now on: the same tape, perhaps of more paths than before."""
        from accel.dispatch.replay import Matcher

        self.trace = trace
        self.matcher = Matcher(trace)

    @property
    def stage(self) -> Stage:
        """The stage of its program."""
        return self.program.stage

    @property
    def is_joined(self) -> bool:
        """Whether it has a program together with others."""
        return self.program.is_merged

    @functools.cached_property
    def key(self) -> str | None:
        """The path's key on disk; None where no other process could find it, or the disk is not used."""
        from accel.backend.job import key_of_path

        return key_of_path(self.trace) if cache.is_used() else None

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
    def is_seen(self) -> bool:
        """Whether a call of this run seems to have taken it: it was recorded then, or observed."""
        return self.trace.key is None or self.observed > 0 or self.is_joined

    @property
    def is_coming(self) -> bool:
        """Whether its program is likely to come from disk within its next few calls."""
        return self.is_on_disk and self.waited_s < COMES_WITHIN_S

    @property
    def price_s(self) -> float:
        """Seconds that compiling it in the worker costs the user's program; 0 if it is on disk."""
        return 0.0 if self.is_on_disk else prices.burden_s(self.compile_s)

    @property
    def compile_s(self) -> float:
        """Seconds that compiling it is likely to take in the worker."""
        return prices.compiling.of(len(self.trace.tape.nodes))

    # -- its calls ----------------------------------------------------------------------------------------------------

    def observe(self, values: list[Any]) -> None:
        """Note the inputs of one more call, before it runs: an input that differs is no constant."""
        looks_at_all = self.observed < COMPARED_CALLS or not self.observed & (self.observed - 1)
        self.constants.compare(values, looks_at_all=looks_at_all)
        self.observed += 1

    def folded_slots(self, names: Collection[str]) -> tuple[int, ...]:
        """The slots with one of these names that are folded, or may be."""
        return self.constants.named(names, self.trace.inputs.name)

    def note_numpy(self, seconds: float, *, quiet: bool) -> None:
        """Note the time of a call on NumPy. quiet: nothing was being compiled, so that it is a fair sample of NumPy."""
        self.numpy_call_s = seconds
        if quiet:
            self.speed.numpy_s.add(seconds)

    def note_compared(self) -> None:
        """A replay has been compared with NumPy."""
        self.replays += 1
        self.compared_at = self.replays

    def forget_replays(self) -> None:
        """A new program: times of the earlier one say nothing about it. Of its replays, one is compared at once.

        A path of which none has been compared has two compared.
        """
        self.replays, self.compared_at = min(self.replays, 1), 0
        self.speed.forget_replays()


def shape_of(trace: Trace) -> tuple[Any, ...]:
    """A key that is equal for two recordings of the same path."""
    operations = [(node.rule.name, node.shape, str(node.dtype), node.where) for node in trace.tape.nodes]
    draws = [(draw.owner, draw.method) for draw in trace.draws]
    return operations, draws, [(outcome.where, repr(outcome.expected)) for outcome in trace.tape.outcomes]
