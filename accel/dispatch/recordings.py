"""Recordings: whether a call is recorded, what that leads to, and when the next recording may be made.

A refused recording costs as much as several calls and gains nothing. So further refusals double the number of calls
until the next one, and a call that is like a refused one is not recorded again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING

from accel.backend import resident
from accel.dispatch import late
from accel.dispatch.compiling import OBSERVED, Compiling
from accel.dispatch.earlier import Earlier
from accel.dispatch.paths.path import RecordedPath
from accel.dispatch.paths.stages import Stage
from accel.dispatch.state import TargetState
from accel.platform import config, logs, timeline, tuning
from accel.platform.clocks import time
from accel.platform.ledger import current_run
from accel.platform.reasons import Refusal
from accel.policy import account, budget, prices
from accel.policy.account import LONGEST_RECORDING_S
from accel.policy.call import Call, note_counted

if TYPE_CHECKING:
    from accel.dispatch.replay import Matcher
    from accel.record import Result, Trace

MAX_RECORDINGS = 12
"""Recordings that may end in a refusal before the target stays on NumPy, if none of its paths was compiled."""

FREE_RECORDINGS = 4
"""Number of recordings from which each refusal doubles the calls until the next one. Before, that is one call."""

MAX_SKIPPED = 1024
"""Maximum number of calls on NumPy between two recordings that may be refused. After a long recording, this number at
once."""

LIMIT_PENALTY = 4
"""A recording that ran into a limit counts as this many more: it was a long one, and the next would be too."""

BROKEN_OFF_FACTOR = 3.0
"""Factor on the recording time after which a loop's iteration is recorded again, if its recording was broken off for
time. The longer the run, the longer a recording may take. With this factor all of them take at most half as long again
as the last."""

REFUSED_PER_PATH = 4
"""Number of refused calls whose guards are kept, for each path that a target may have."""

FIRST_AGAIN = 8
"""The first of the calls that match a path without a program that is recorded again."""

LIFT_AFTER, LIFTED_CALL_S = 3, 5e-3
"""Number of refused calls, none accepted, and seconds of a call from which parts of a function are outlined. The first
one or two may have been refused for what only the first call does."""

CELLS = {"code.elements"}
"""Reasons that do not change from call to call: no further recording is made."""

OnRefused = Callable[[Sequence[Refusal], float], bool]
"""Is given the refusals of a target's recordings, and the seconds that one call takes. Says whether parts of the target
are targets themselves now."""


class Recordings:
    """Records calls of one target.

    count: recordings so far, successful ones too, with penalties. calls_to_skip: calls that go to NumPy before the next
    one. broken_off_s: seconds after which the last one was broken off; 0 if it was not. on_refused: outlines parts of
    the function once it is refused as a whole; None if nothing is to be outlined.
    """

    def __init__(
        self, state: TargetState, compiling: Compiling, earlier: Earlier, function: FunctionType, effects: bool
    ) -> None:
        """function: the recorded one. effects: whether replays may show text."""
        self.count = 0
        self.calls_to_skip = 0
        self.broken_off_s = 0.0
        self.on_refused: OnRefused | None = None
        self._state = state
        self._compiling = compiling
        self._earlier = earlier
        self._function = function
        self._effects = effects
        self._known: list[tuple[Matcher, Refusal]] = []  # guards of calls that are known to be refused
        self._repeats = 0
        self._refused: list[Refusal] = []
        self._refused_calls = 0  # like a refused recording's, those too that were not recorded for that
        self._without_program = 0

    # -- whether to record --------------------------------------------------------------------------------------------

    @property
    def are_used_up(self) -> bool:
        """Whether no more should be made while no path is known."""
        return self.count >= MAX_RECORDINGS

    def skip(self) -> bool:
        """Whether this call goes to NumPy because of earlier refusals."""
        if self.calls_to_skip <= 0:
            return False
        self.calls_to_skip -= 1
        return True

    def refusal_of(self, call: Call) -> Refusal | None:
        """Why an earlier call like this one was refused; None if none was."""
        for matcher, refusal in self._known:
            if isinstance(matcher.match(call.args, call.kwargs), list):
                self._repeats += 1
                # matching takes time too: each call that is recognised lets one more of the next calls go by unmatched.
                # Where paths are known all calls are matched, and only calls of new kinds would go by
                if not self._state.paths:
                    self.calls_to_skip = max(self.calls_to_skip, min(self._repeats, MAX_SKIPPED))
                self._outline_if_refused()
                return refusal
        return None

    def why_not(self) -> Refusal | None:
        """Why a call that matches no known path is not recorded now; None if it is to be."""
        state, account, parts, paths = self._state, self._state.account, self._state.parts, self._state.paths
        limited = state.is_limited
        comes_later = not paths and (parts.come_first or not parts.pay_for_a_retry)
        # the next may take so long: it has to have a better chance than one that was broken off
        too_short = parts.used and account.longest_recording_s < BROKEN_OFF_FACTOR * self.broken_off_s
        if limited and (comes_later or account.pauses or too_short):
            return Refusal("wait.calls")
        scattering = self._scattering()
        if scattering is not None:
            return scattering
        if limited and not paths and not budget.for_later_runs:
            why = self._earlier.why_wait(account.call_s, account.total_s, parts.telling)
            if why is not None:
                self._outline_if_refused()
                return why
        affordable = not limited or self._covers_recording
        if not affordable or not all(map(self._compiling.may_start, paths)):
            return Refusal("wait.budget")
        if limited and paths and not self._pays_for_another():
            return Refusal("wait.calls")
        if limited and account.is_too_long:
            return Refusal("wait.budget")
        # asked last, because it may drop another path
        return None if paths.make_room() else Refusal("limit.variants", "", paths.why_many())

    @property
    def _covers_recording(self) -> bool:
        account, parts = self._state.account, self._state.parts
        certain_s = parts.certain_miss_s(sum(prices.program_s(account.recording_s)))
        return account.covers_recording(paid=parts.pay, certain_s=certain_s)

    def _pays_for_another(self) -> bool:
        """Whether calls of new kinds come often enough for another recording."""
        paths = self._state.paths
        price_s = paths.price_of_another_s(self._state.account.recording_s)
        recorded = max(self.count, len(paths))  # earlier runs' count as well
        return self._state.parts.pay_for_another(price_s, recorded, awaited=paths.awaits_known_paths)

    def may_be_another(self, path: RecordedPath) -> bool:
        """Whether to record a call again that matches a path: without its program nobody knows whether it takes that.

        The more paths are known before they are compiled, the more of them get one program at once.
        """
        paths, parts = self._state.paths, self._state.parts
        if budget.for_later_runs:
            # without nested targets, each call is recorded again; with some, every second of the first calls: those
            # between run on NumPy, where the nested targets get programs of their own
            by_turns = path.observed % 2 and path.observed <= 2 * OBSERVED
            return path.stage is Stage.OBSERVING and bool(by_turns or not path.trace.inlined)
        scattering = self._scattering()
        if scattering is not None:
            self._state.refusals.refuse(scattering)
            return False
        if not path.outcomes or not self._state.is_limited or len(paths) >= config.current().max_variants:
            return False
        if paths.may_scatter(path) and self._covers_recording:
            return True
        if parts.used:  # a program's side exits tell the paths apart, once it is there
            soon = bool(paths.with_program) or paths.are_pending or path.is_on_disk
            return not soon and parts.pay_for_rerecording(self._state.account.recording_s, paths.waiting_count - 1)
        self._without_program += 1
        # ever more rarely: at the 8th, 16th, 32nd, ... such call
        calls = self._without_program
        return calls >= FIRST_AGAIN and not calls & (calls - 1) and self._covers_recording

    # -- recording ----------------------------------------------------------------------------------------------------

    def record(self, call: Call, *, again: bool = False) -> bool:
        """Answer a call by recording it. Returns whether it is answered: what it returned or raised is in the call.

        again: it matches a known path, so that only another path is kept.
        """
        state = self._state
        recorded, spent = self._made(call, again)
        from accel.record import Raised, Undone

        if isinstance(recorded, Undone):
            state.account.charge_undone(spent)
            self._note_refused(recorded.refusal, recorded.trace, spent)
            call.began = time.perf_counter()  # the recording has been charged: it must not count as examining the call
            return False
        state.account.count_recorded(spent)
        if isinstance(recorded, Raised):
            if self.are_used_up and not state.paths:
                state.stay_on_numpy()
            if recorded.refusal is not None:
                state.refusals.note(recorded.refusal)
            return True
        if recorded.refusal is not None:
            self._note_refused(recorded.refusal, recorded.trace, spent)
        elif recorded.trace is not None:
            is_new = not again or not state.paths.hold_trace(recorded.trace)
            if again:
                state.parts.note_rerecorded(found=is_new)
                state.paths.note_again(found=is_new)
            if is_new:
                if not state.paths:
                    state.parts.note_first()
                self.add(recorded.trace)
                self._earlier.forget_refused()
                self._compiling.keep(state.paths)
                operations = len(recorded.trace.tape.nodes)
                prices.recording.note(spent - state.account.call_s, operations)
                account.recorded.lengths[state.name] = max(operations, account.recorded.lengths.get(state.name, 0))
                timeline.note_event(timeline.RECORDED, state.name, f"{operations} operations", spent)
                logs.LOGGER.info("%s recorded, %d operations", state.name, operations)
        return True

    def _made(self, call: Call, again: bool) -> tuple[Result, float]:
        """Record a call. Returns what came of it, and the seconds that it took.

        The call is done then, unless the recording was undone (Undone) or the program's own code raised an error
        (Raised).
        """
        imported_s = late.import_now()
        current_run().charge("loading", imported_s)
        note_counted(imported_s)
        late.prestart()  # there will be something to compile soon
        account.recorded.note_end(imported_s)  # a step that waits for it has waited long enough
        from accel.compiler.loops import rolled
        from accel.compiler.lower.passes.arrange import is_worth
        from accel.compiler.merge.trace import MOST_GROWTH, SMALL
        from accel.record import Completed, Raised, record

        resident.current.bring_up_to_date("it is recorded")
        state = self._state
        self.count += not again
        account.recorded.count += 1
        is_bounded = state.is_limited and not budget.for_later_runs
        max_s = self._longest_s if is_bounded else math.inf
        # it ends by processor time: other programs that slow all calls down are no reason to record for longer
        worked_s = max_s / current_run().stretch
        # iterations of a loop by data that leave the tape do not make the program longer
        longest = state.paths.longest if state.parts.used else None
        started = time.perf_counter()
        recorded = record(
            self._function,
            call.args,
            call.kwargs,
            max_nodes=config.current().max_nodes,
            worth=is_worth,
            effects=self._effects,
            max_s=worked_s,
            longest=math.inf if longest is None else int(MOST_GROWTH * longest) + SMALL,
        )
        is_broken_off = recorded.refusal is not None and recorded.refusal.reason == "limit.nodes"
        self.broken_off_s = max_s if is_broken_off and time.perf_counter() - started > worked_s else 0.0
        if isinstance(recorded, Completed):
            call.result, call.done = recorded.result, True
            if recorded.trace is not None and recorded.refusal is None:
                recorded.trace = rolled(recorded.trace)
        elif isinstance(recorded, Raised):
            call.raised = recorded.error
        return recorded, time.perf_counter() - started

    @property
    def _longest_s(self) -> float:
        """Seconds after which the next recording is broken off: a call may be unlike the others, and far longer."""
        account = self._state.account
        usual_s = account.call_s + max(LONGEST_RECORDING_S, BROKEN_OFF_FACTOR * account.recording_s)
        return min(account.longest_recording_s, max(usual_s, BROKEN_OFF_FACTOR * self.broken_off_s))

    @property
    def were_taken_up(self) -> bool:
        """Whether recordings of earlier runs were looked for."""
        return self._earlier.looked

    @tuning.rare_garbage_collection()
    def take_up(self, call: Call) -> None:
        """Take up what earlier runs have recorded. What that takes does not count as the call's own time."""
        started, name = time.perf_counter(), self._state.name
        for trace in self._earlier.take_up():
            self._earlier.note_taken(self.add(trace))
            logs.LOGGER.info("%s was recorded by an earlier run, %d operations", name, len(trace.tape.nodes))
        waited = time.perf_counter() - started
        call.began += waited
        note_counted(waited)

    @tuning.rare_garbage_collection()
    def add(self, trace: Trace) -> RecordedPath:
        """Add a recorded path: of this run, or of an earlier one."""
        path = self._state.paths.add(trace, self._state.name)
        self._compiling.join_at_once(path)
        self._state.ledger.waits = lambda: None if self._state.final else self._state.paths.wait_reason()
        return path

    def _note_refused(self, refusal: Refusal, trace: Trace | None, spent: float) -> None:
        """Note a recording that was refused. Known paths stay compiled; recording is retried ever more rarely.

        trace: as far as it got; None if that describes no call.
        """
        state, parts = self._state, self._state.parts
        parts.note_refused(spent)
        is_telling = parts.is_refusal_telling
        # what calls miss says when the next is worth it, and how long that may take
        by_price = parts.used and (bool(state.paths) or self.broken_off_s > 0.0 or not is_telling)
        self._put_off(refusal, trace, skips=not by_price)
        if not is_telling:
            self.broken_off_s = 0.0
        if refusal.reason == "limit.nodes" and is_telling:
            state.account.note_in_vain(spent)
        if state.is_limited and not state.paths:
            self._earlier.note_refused(refusal, spent, state.account.call_s, trace)
        self._refused.append(refusal)
        self._outline_if_refused()
        is_same = len(self._refused) >= LIFT_AFTER and {each.reason for each in self._refused} == CELLS
        if is_same or (self.are_used_up and not state.paths):
            state.stay_on_numpy()
        state.refusals.refuse(refusal)

    def _put_off(self, refusal: Refusal, trace: Trace | None, *, skips: bool) -> None:
        """Put off further recordings. skips: whether the next calls go to NumPy for that."""
        from accel.dispatch.replay import Matcher

        # guards alone tell such calls from others only if no outcome depends on what a device would compute
        is_for_good = skips or not self.broken_off_s
        if trace is not None and is_for_good and all(outcome.node.host for outcome in trace.tape.outcomes):
            self._known.append((Matcher(trace), refusal))
            if len(self._known) > REFUSED_PER_PATH * config.current().max_variants:
                self._known.pop(0)
        if not skips:
            return
        costly = refusal.reason.startswith("limit.")
        self.count += LIMIT_PENALTY if costly else 0
        put_off = 2 ** max(0, self.count - FREE_RECORDINGS)
        self.calls_to_skip = MAX_SKIPPED if costly else min(put_off, MAX_SKIPPED)

    # -- outlining parts of the function ------------------------------------------------------------------------------

    def _outline_if_refused(self) -> None:
        """A call was refused. Have parts of the function outlined if all are: it stays on NumPy then."""
        self._refused_calls += 1
        is_long = any(each.reason == "limit.nodes" for each in self._refused)  # so is the next recording
        if not self._state.paths and (is_long or self._refused_calls >= LIFT_AFTER):
            self._outline(self._refused)

    def _scattering(self) -> Refusal | None:
        """The refusal for a number that was another one in each recording: no call needs what a further would show.

        Parts of the function are outlined then if hardly any call was replayed.
        """
        state = self._state
        scattering = state.paths.scattering if state.is_limited and not budget.for_later_runs else None
        if scattering is not None and state.ledger.compiled_calls < LIFT_AFTER:
            self._outline([scattering])
        return scattering

    def _outline(self, refusals: Sequence[Refusal]) -> None:
        """Have parts of the function outlined if its calls are long: it stays on NumPy then."""
        state = self._state
        if self.on_refused is None or (state.is_limited and state.account.call_s < LIFTED_CALL_S):
            return
        outline, self.on_refused = self.on_refused, None
        if outline(refusals, state.account.call_s):
            state.stay_on_numpy()

    def forget(self) -> None:
        """Drop what is known of refused calls."""
        self._known.clear()
