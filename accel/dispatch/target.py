"""Targets: how one call of an accelerated function runs. The only place that decides what a refusal leads to.

The life of a target: the first call is timed on NumPy, and the next one is recorded. During some more calls on NumPy,
accel observes which inputs never change. Then the path is compiled, and calls are replayed if guards and outcomes hold.
The budget (accel.policy.budget) limits what this may cost. What a path's call does depends on the path's stage;
see `Stage` in accel.dispatch.paths.path.

The way of a call: `answer` (in and out, faults), `_dispatch` (which path), then NumPy (accel.dispatch.numpy_calls),
`_record` or `_replay`. Whatever fails in between, the program's function runs exactly once, and the program sees no
error of accel's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from math import inf
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from accel.backend import resident
from accel.dispatch.compiling import OBSERVED, Compiling, is_quiet
from accel.dispatch.earlier import Earlier
from accel.dispatch.numpy_calls import NumPyCalls
from accel.dispatch.paths.known import KnownPaths
from accel.dispatch.paths.path import Path, Stage
from accel.dispatch.paths.refolds import Refold
from accel.dispatch.preconditions import OFF, unmet_precondition
from accel.dispatch.recordings import Recordings
from accel.dispatch.refusals import Refusals
from accel.dispatch.replaying import Answered, Replaying, Unanswered
from accel.platform import config, logs, timeline
from accel.platform.ending import let_go_at_exit
from accel.platform.interrupts import pass_on
from accel.platform.ledger import Ledger, State, open_ledger
from accel.platform.reasons import Refusal, Refused
from accel.platform.tracebacks import Again
from accel.policy import budget
from accel.policy.account import Account, is_limited
from accel.policy.call import LONG_CALL_S, THREAD, Call, Turn, is_fault, note_counted
from accel.policy.parts import Parts
from accel.policy.second_look import SecondLook
from accel.policy.speed import Speed

if TYPE_CHECKING:
    from accel.dispatch.replay import SideExit
    from accel.record import Trace

FIRST_AGAIN = 8
"""The first of the calls that match a path without a program that is recorded again."""

SHORT_BACKOFF = 7
"""Number of calls that run on NumPy alone before a program is tried again, so that their times can be compared."""

LIFT_AFTER, LIFTED_CALL_S = 3, 5e-3
"""Number of refused calls, none accepted, and seconds of a call from which parts of a function are outlined. The first
one or two may have been refused for what only the first call does."""

CELLS = {"code.elements"}
"""Reasons that do not change from call to call: no further recording is made."""

COUNTING_S = 3e-6
"""Seconds that it takes to count a call that is not examined further."""

FAULT_CALLERS = 4
"""Maximum number of accel's own lines in the report of a fault: a fault may not come again."""

_TARGETS: WeakValueDictionary[str, Target] = WeakValueDictionary()
"""Targets by name: recordings on disk name those that ran inside them."""


OnRefused = Callable[[Sequence[Refusal], float], bool]
"""Is given the refusals of a target's recordings, and the seconds that one call takes. Says whether parts of the target
are targets themselves now."""


class Target:
    """A function that a catalogue or a decorator names, with its paths.

    function: runs a call plainly. recorded: the function that is recorded: the same, but for that of a loop's
    iterations. rtol, mode: its own, or None for those in the settings. effects: whether replays may show text.
    in_parts: where calls without a program run in parts (see accel.policy.parts), the code by which its
    programs are known. final: it stays on NumPy for good. paths: its recorded paths. account: what its calls take.
    recordings: how many it has had, and which calls were refused. on_refused: outlines parts of the function once it is
    refused as a whole; None where nothing is to be outlined.
    """

    def __init__(
        self,
        function: FunctionType,
        name: str,
        rtol: float | None,
        mode: str | None = None,
        effects: bool = True,
        in_parts: CodeType | None = None,
    ) -> None:
        self.function = function
        self.recorded = function
        self.name = name
        self.rtol = rtol
        self._mode = mode
        self.effects = effects
        self.final = False
        self.paths = KnownPaths(in_parts=in_parts is not None)
        self.account = Account(name)
        self.rest = self.account.rest
        self.parts = Parts(name, in_parts)
        self.recordings = Recordings()
        self.on_refused: OnRefused | None = None
        self._refusals = Refusals(name, lambda: self.mode)
        self._compiling = Compiling(name, self.paths, lambda: (self.tolerance, self.unit))
        self._numpy = NumPyCalls(self.account, self.parts, self.paths, lambda: self._is_limited)
        self._replaying = Replaying(
            name,
            self.paths,
            self.account,
            self._compiling,
            lambda: self.mode,
            lambda: (self.tolerance, self.unit),
        )
        # One call of a target at a time: paths and ledgers are not made for several threads. A call that finds another
        # under way runs on NumPy. Were it to wait, a program whose threads wait for one another could stop for good.
        self._turn = Turn()
        self._thread = 0
        self._without_program = 0
        self._refused = 0
        self._refused_recordings: list[Refusal] = []
        self._second_look: SecondLook | None = None  # where it is `final` as its programs are slower
        self._plain: WeakKeyDictionary[Path, str | None] = WeakKeyDictionary()
        self._earlier = Earlier(name, in_parts, effects)
        _TARGETS[name] = self

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.name)

    @property
    def mode(self) -> str:
        """The target's own mode, or the one in the settings; "off" where these disable accel."""
        chosen = config.current()
        return (self._mode or chosen.mode) if chosen.enabled else "off"

    @property
    def tolerance(self) -> float:
        """The relative error that a comparison allows."""
        return self.rtol if self.rtol is not None else config.current().tolerance

    @property
    def unit(self) -> float | None:
        """The unit in the last place by which rounding may explain a difference; as in the settings."""
        return config.current().unit if self.rtol is None else None

    @property
    def is_calling_itself(self) -> bool:
        """Whether a call of the target is under way in this thread. A recursive call is part of it: it runs plainly."""
        return self._thread == threading.get_ident()

    @property
    def is_observing(self) -> bool:
        """Whether a path is observed, to be compiled later."""
        return not self.final and self.paths.are_observed

    @property
    def may_try_again(self) -> bool:
        """Whether programs that were slower than NumPy are tried again after some time of calls on NumPy."""
        return self._second_look is not None

    # -- the way in and out -------------------------------------------------------------------------------------------

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer one call, compiled or by NumPy.

        Raises what the program's own code raises, and in mode "strict" Refused; nothing else.
        """
        try:
            mode = self.mode
            # in mode "strict" even a call of a demoted target takes the long way, which raises Refused
            stays = mode == "off" or (self.final and mode != "strict")
        except Exception as error:  # it comes up again where it is caught
            pass_on(error)
            stays = False
        if not stays:
            return self._answer_or_fall_back(args, kwargs)
        before, started = THREAD.counted_s, time.perf_counter()
        try:
            return self.function(*args, **kwargs)
        finally:  # the call has been answered: it only has to be counted
            spent = time.perf_counter() - started
            own_s, THREAD.counted_s = spent - (THREAD.counted_s - before), before + spent
            try:
                self._enter_rested()
                self.ledger.count_numpy(None, own_s)
                if mode == "off":
                    self.ledger.refuse(OFF)
                self._look_again(spent)
                self.account.begin_rest(COUNTING_S, spent)
            except Exception as error:  # the program must not see an error only because a count is missing
                pass_on(error)

    def _answer_or_fall_back(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call, by NumPy if accel fails."""
        call: Call | None = None
        inside, opens_at = THREAD.inside, THREAD.opens_at
        try:
            call = Call(self.function, args, kwargs)
            call.began = time.perf_counter()
            # nothing to match the call against, and nothing to record now: spare it its turn and the preconditions
            if self.final or (not self.paths and self.recordings.skip()):
                self._refusals.raise_if_strict()
                return self._numpy.whole(call)
            # part of an outer target's call, which is recorded or compared as a whole
            if inside and call.began < opens_at:
                try:
                    return call.run()
                finally:  # no ledger of this target's has the time: it is the outer one's
                    THREAD.counted_s -= call.own_s
            # it never waits for its turn: see `__init__`
            if not self._turn.take(call):
                self._refusals.refuse(unmet_precondition(self.mode) or Refusal("environment.busy"))
                return self._numpy.whole(call)
            self._thread = threading.get_ident()
            THREAD.inside, THREAD.opens_at = True, inf
            return self._dispatch(call)
        except BaseException as error:
            if call is not None and error is call.raised:
                raise
            if isinstance(error, Refused) or not is_fault(error):
                raise
            fault = error
        finally:
            # no call is made here: a signal handler that raised after it would leave the rest undone
            THREAD.inside, THREAD.opens_at = inside, opens_at
            if call is not None and self._turn.holder is call:
                self._thread = 0
                del self._turn.holder
        # outside the handler, so that what the program's function raises gets no context of accel's
        return self._after_fault(call, fault, args, kwargs)

    def _after_fault(
        self, call: Call | None, fault: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Answer a call on NumPy after a fault of accel's. All calls that follow stay on NumPy, too."""
        self._stay_on_numpy()
        if resident.current.is_held:
            resident.current.bring_up_to_date("a fault")
        try:
            from accel.record.state.recording import gap_text

            self._refusals.note_demotion(Refusal("accel.fault", "", gap_text(fault, FAULT_CALLERS)))
        except Exception:  # the report is of no importance now
            pass
        if call is None or not (call.done or call.raised):
            try:
                if call is not None and call.put_back is not None:
                    call.put_back()
            except Exception:  # twice: then it is past mending, and an answer is better than none
                pass
            return self.function(*args, **kwargs)
        if call.raised is not None:
            with Again(call.raised) as error:
                raise error
        return call.result

    # -- which way a call takes ---------------------------------------------------------------------------------------

    def _dispatch(self, call: Call) -> Any:
        """Answer a call that no other call of the target is under way around."""
        self._enter_rested()
        # asked at each call: the program may set `np.errstate(all="raise")`, or a tracer, between two calls
        refusal = unmet_precondition(self.mode)
        if refusal is not None:
            self._refusals.refuse(refusal)
            return self._numpy.uncovered(call)
        if self._is_limited:
            # the first calls are only timed: the budget, and whether the function is small, are judged by these times
            if not self.account.knows_numpy:  # before anything is compiled
                THREAD.opens_at = call.began + LONG_CALL_S  # `_answer_or_fall_back` puts it back
                return self._run_first(call)
            if self.account.is_small and not self.paths.with_program:  # but the next call may have larger arrays
                self._refusals.note_wait("speed.small")
                return self._numpy.whole(call, quiet=is_quiet())
        # reading what earlier runs have recorded costs about as much as it saves where none has compiled it
        if not self._earlier.looked and not (self._is_limited and (self.parts.come_first or not budget.grants(0.0))):
            self._take_up(call)
        self._finish_ready()
        backs_off, kind = False, None
        for path in self.paths.likely_first():
            # these calls count for the paths that have no program yet: most of them take one of those
            if path.backoff and self.paths.waiting is not None:
                path.backoff -= 1
                backs_off = True
                continue
            values = path.matcher.match(call.args, call.kwargs)
            if isinstance(values, list):
                return self._follow(path, values, call)
            if path.stage is Stage.COMPILED:
                kind = values.place
        if backs_off:
            return self._numpy.late(call)
        if resident.current.is_held:
            resident.current.bring_up_to_date("it is of a new kind")
        # no known path takes it: is it like a call whose recording was refused?
        refusal = self.recordings.refusal_of(call)
        if refusal is not None:
            self._outline_refused()
            self._refusals.refuse(refusal)
            return self._numpy.uncovered(call)
        self.parts.note_kind(kind)
        return self._new_path(call)

    def why_not_plain(self) -> str | None:
        """Why calls need arrays on the host even if a program answers them; None if they do not."""
        from accel.dispatch.replay.kept import why_not_plain

        if self.final or not self.paths.with_program or self.rest.untimed > 0:
            return "it has no program"
        for path in self.paths:
            if path not in self._plain:
                self._plain[path] = why_not_plain(path.trace)
        return next(filter(None, map(self._plain.__getitem__, self.paths)), None)

    def _finish_ready(self) -> None:
        """Put programs to use that have become ready, whichever path this call seems to take.

        Before there is a program, a call is taken for the first path that it matches: others might never be asked.
        """
        for path in self.paths:
            if path.is_ready():
                if resident.current.is_held:
                    resident.current.bring_up_to_date("a program is put to use")
                self._finish(path)

    def _follow(self, path: Path, values: list[Any], call: Call) -> Any:
        """Answer a call that matches a known path, as the path's stage says."""
        if (path.stage is not Stage.COMPILED or path.backoff) and resident.current.is_held:
            resident.current.bring_up_to_date("its kind has no program yet, or its last runs were discarded")
        # first, as this may change the stage: a call that finds its program ready is already replayed
        if path.stage in (Stage.OBSERVING, Stage.PENDING):
            self._advance(path, values, call)
        if path.stage is Stage.GIVEN_UP:
            self._refusals.raise_if_strict()
            if self._second_look is not None and self._second_look.closes() and self.paths.are_given_up:
                self._rest_as_slower()
            return self._numpy.uncovered(call)
        # still OBSERVING or PENDING
        if path.stage is not Stage.COMPILED:
            return self._run_without_program(path, call)
        # the last runs of its program were discarded
        if path.backoff:
            path.backoff -= 1
            self._refusals.raise_if_strict()
            return self._numpy.backing_off(call, is_long=path.backoff > SHORT_BACKOFF)
        # not inside a round of a loop that is still to be recorded: the paths of its parts tell of which kind it is
        speed = self.paths.expected(path).speed
        if (speed.wanted or speed.pauses) and THREAD.taken is None and self.mode == "auto":
            quiet = is_quiet()
            if speed.wanted and quiet:
                return self._time_numpy(speed, call)
            if speed.pauses and not quiet:
                return self._pause(speed, call)
        return self._replay(path, values, call, siblings=True)

    def _pause(self, speed: Speed, call: Call) -> Any:
        """Answer a call on NumPy whose program is slower as long as something is compiled."""
        if resident.current.is_held:
            resident.current.bring_up_to_date("something is compiled")
        if self.parts.used:
            return self._numpy.in_parts(call)[0]
        result = self._numpy.whole(call)
        speed.note_disturbed(call.seconds or 0.0)
        return result

    def _time_numpy(self, speed: Speed, call: Call) -> Any:
        """Answer a call of a path with a program on NumPy, to time it."""
        if resident.current.is_held:
            resident.current.bring_up_to_date("NumPy's calls are timed")
        result = self._numpy.whole(call, quiet=True)
        speed.note_wanted(call.fair_s)
        return result

    def _advance(self, path: Path, values: list[Any], call: Call) -> None:
        """Take a path on towards its program, as far as this call allows. See `Stage`."""
        if path.stage is Stage.OBSERVING and self._may_start(path):
            settled = path in self._earlier.taken or (self.parts.leave_enough and self.parts.kinds_are_settled)
            limited = self._is_limited
            self._compiling.observe(path, values, call, limited=limited, settled=settled or not limited)
            self._keep([path])
        if path.is_ready():
            self._finish(path)
        else:
            path.let_others_first(self.parts.is_for_later_runs)
            overdue = path.abandon_if_overdue()
            if overdue is not None:
                self._give_up(path, overdue)

    def _may_start(self, path: Path) -> bool:
        """Whether the budget covers what it takes in this process to have a path compiled."""
        if not path.may_start:
            # they are looked through together, to give them one program
            price_s = sum(other.start_s for other in self.paths)
            covers = budget.covers(self.ledger, price_s, self.account.call_s, self.account.total_s)
            missed = self.parts.pay and self.parts.leave_enough and budget.grants(price_s)
            path.may_start = covers or missed or not self._is_limited or budget.for_later_runs
        return path.may_start

    def _new_path(self, call: Call, *, again: bool = False) -> Any:
        """Answer a call that matches no known path: record it, if that is allowed now.

        again: it may take a known one all the same.
        """
        if self.recordings.skip():
            self._refusals.raise_if_strict()
            return self._numpy.unmatched(call)
        comes_later = not self.paths and (self.parts.come_first or not self.parts.pay_for_a_retry)
        if self._is_limited and (comes_later or self.account.pauses):
            self._refusals.note_wait("wait.calls")
            return self._numpy.unmatched(call)
        if self._is_limited and self.parts.used and not self.recordings.may_take(self.account.longest_recording_s):
            self._refusals.note_wait("wait.calls")
            return self._numpy.unmatched(call)
        if self._refuse_scattered():
            return self._numpy.unmatched(call)
        in_vain = self._in_vain()
        if in_vain is not None:
            self._outline_refused()
            self._refusals.refuse(in_vain)
            return self._numpy.unmatched(call)
        if self._is_limited and not self._covers_recording:
            self._refusals.note_wait("wait.budget")
            return self._numpy.unmatched(call, quiet=is_quiet())  # the budget may cover nested targets
        if not all(map(self._may_start, self.paths)):
            self._refusals.note_wait("wait.budget")
            return self._numpy.unmatched(call)
        if self._is_limited and self.paths and not self._pays_for_another():
            self._refusals.note_wait("wait.calls")
            return self._numpy.unmatched(call)
        # asked last, because it may drop another path
        if not self.paths.make_room():
            self._refusals.refuse(Refusal("limit.variants", "", self.paths.why_many()))
            return self._numpy.unmatched(call)
        return self._record(call, again=again)

    def _in_vain(self) -> Refusal | None:
        """Why not to record what earlier runs have recorded in vain; None where it may pay."""
        if not self._is_limited or self.paths or budget.for_later_runs:
            return None
        return self._earlier.in_vain(self.recorded, self.account.call_s, self.account.total_s, self.parts.telling)

    @property
    def _covers_recording(self) -> bool:
        return self.account.covers_recording(paid=self.parts.pay)

    def _pays_for_another(self) -> bool:
        """Whether calls of new kinds come often enough for another recording."""
        price_s = self.paths.price_of_another_s(self.account.recording_s)
        recorded = max(self.recordings.count, len(self.paths))  # earlier runs' count as well
        return self.parts.pay_for_another(price_s, recorded, wanting=self.paths.are_wanting)

    @property
    def _is_limited(self) -> bool:
        return is_limited(self.mode)

    # -- on NumPy -----------------------------------------------------------------------------------------------------

    def _run_first(self, call: Call) -> Any:
        """Answer a first call, to time it."""
        return self._numpy.whole(call, quiet=is_quiet())

    def _run_without_program(self, path: Path, call: Call) -> Any:
        """Answer a call of a path that has no program yet: on NumPy, to learn how long it takes there."""
        if budget.for_later_runs:
            # without nested targets, each call is recorded again; with some, every second of the first calls: those
            # between run on NumPy, where the nested targets get programs of their own
            by_turns = path.observed % 2 and path.observed <= 2 * OBSERVED
            if path.stage is Stage.OBSERVING and (by_turns or not path.trace.inlined):
                return self._record(call, again=True)  # it may turn out to take a rare path, which a later run meets
        elif self._may_be_another(path):
            return self._record(call, again=True)
        quiet = is_quiet()
        if budget.for_later_runs:  # nested targets get programs of their own: a later run may want those first
            answer = self._numpy.uncovered
        elif not self.parts.used:
            answer = self._numpy.late
        elif path.is_coming:  # its parts need not even be recorded
            answer = self._numpy.whole
        else:
            result, missed_s = self._numpy.in_parts(call)
            self.parts.note_matched(missed_s)
            self._compiling.note_in_parts(path, call, missed_s, quiet=quiet)
            return result
        result = answer(call, quiet=quiet)
        self._compiling.note_without_program(path, call, quiet=quiet)
        return result

    def _may_be_another(self, path: Path) -> bool:
        """Whether to record a call again that matches a path: without its program nobody knows whether it takes that.

        The more paths are known before they are compiled, the more of them get one program at once.
        """
        if self._refuse_scattered():
            return False
        if not path.outcomes or not self._is_limited or len(self.paths) >= config.current().max_variants:
            return False
        if self.parts.used:  # a program's side exits tell the paths apart, once it is there
            soon = bool(self.paths.with_program) or path.is_on_disk
            return not soon and self.parts.pay_for_a_look(self.account.recording_s, self.paths.waiting_count - 1)
        self._without_program += 1
        # ever more rarely: at the 8th, 16th, 32nd, ... such call
        calls = self._without_program
        return calls >= FIRST_AGAIN and not calls & (calls - 1) and self._covers_recording

    def _enter_rested(self) -> None:
        """Account for the calls of a rest. Their time counts for a path that waits to be compiled, too."""
        calls, seconds = self.account.add_rested()
        if calls:
            self._compiling.note_missed(self.paths.waiting, seconds, calls)
            self.parts.note_rested(calls)

    # -- recording ----------------------------------------------------------------------------------------------------

    def _record(self, call: Call, *, again: bool = False) -> Any:
        """Answer a call by recording it. again: it matches a known path, so that only another path is kept."""
        longest = self.paths.longest if self.parts.used else None
        recorded, spent = self.recordings.make(
            self.recorded,
            call,
            counts=not again,
            effects=self.effects,
            longest=longest,
            max_s=self.account.longest_recording_s if self._is_limited and not budget.for_later_runs else inf,
        )
        from accel.record import Raised, Undone

        if isinstance(recorded, Undone):
            self.account.charge_undone(spent)
            self._note_refused(recorded.refusal, recorded.trace, spent)
            call.began = time.perf_counter()  # the recording has been charged: it must not count as examining the call
            return self._numpy.uncovered(call)
        self.account.count_recorded(spent)
        if isinstance(recorded, Raised):
            call.raised = recorded.error
            self.final = self.recordings.are_used_up and not self.paths
            if recorded.refusal is not None:
                self._refusals.note(recorded.refusal)
            with Again(call.raised) as error:
                raise error
        if recorded.refusal is not None:
            self._note_refused(recorded.refusal, recorded.trace, spent)
        elif recorded.trace is not None:
            is_new = not again or not self.paths.hold_trace(recorded.trace)
            if again:
                self.parts.note_look(found=is_new)
                self.paths.note_again(found=is_new)
            if is_new:
                self._add_path(recorded.trace, spent)
        return call.result

    def _add_path(self, trace: Trace, spent: float) -> None:
        self._compiling.join_at_once(self.paths.add(trace, self.name))
        self._earlier.forget_vain(self.recorded)
        self._begin_with_paths()
        self._keep(self.paths)
        operations = len(trace.tape.nodes)
        timeline.note_event(timeline.RECORDED, self.name, f"{operations} operations", spent)
        logs.LOGGER.info("%s recorded, %d operations", self.name, operations)

    def _keep(self, paths: Iterable[Path]) -> None:
        """Keep what later runs can use of paths that have programs or soon will."""
        if self._earlier.keep(self.recorded, paths):
            self.parts.note_begun()

    def _take_up(self, call: Call) -> None:
        """Take up what earlier runs have recorded. What that takes does not count as the call's own time."""
        started = time.perf_counter()
        for trace in self._earlier.take_up(self.recorded, _TARGETS.get):
            path = self.paths.add(trace, self.name)
            self._earlier.note_taken(path)
            self._compiling.join_at_once(path)
            logs.LOGGER.info("%s was recorded by an earlier run, %d operations", self.name, len(trace.tape.nodes))
        if self.paths:
            self._begin_with_paths()
        waited = time.perf_counter() - started
        call.began += waited
        note_counted(waited)

    def _begin_with_paths(self) -> None:
        let_go_at_exit(self)
        self.ledger.waits = lambda: None if self.final else self.paths.wait_reason()

    def _note_refused(self, refusal: Refusal, trace: Trace | None, spent: float) -> None:
        """Note a recording that was refused. Known paths stay compiled; recording is retried ever more rarely."""
        self.parts.note_refused(spent)
        is_telling = self.parts.is_refusal_telling
        # what calls miss says when the next is worth it, and how long that may take
        by_price = self.parts.used and (bool(self.paths) or self.recordings.broken_off_s > 0.0 or not is_telling)
        self.recordings.note_refused(refusal, trace, skips=not by_price, is_telling=is_telling)
        if refusal.reason == "limit.nodes" and is_telling:
            self.account.note_in_vain(spent)
        if self._is_limited and not self.paths:
            self._earlier.note_vain(self.recorded, refusal, spent, self.account.call_s, trace)
        if self.recordings.are_used_up and not self.paths:
            self._stay_on_numpy()
        self._refused_recordings.append(refusal)
        self._outline_refused()
        if len(self._refused_recordings) >= LIFT_AFTER and {each.reason for each in self._refused_recordings} == CELLS:
            self._stay_on_numpy()
        self._refusals.refuse(refusal)

    def _outline_refused(self) -> None:
        """A call was refused. Have parts of the function outlined if all are: it stays on NumPy then."""
        self._refused += 1
        is_long = any(each.reason == "limit.nodes" for each in self._refused_recordings)  # so is the next recording
        if not self.paths and (is_long or self._refused >= LIFT_AFTER):
            self._outline(self._refused_recordings)

    def _refuse_scattered(self) -> bool:
        """Whether a number was another one in each recording: no other call is going to need what a further shows."""
        scattering = self.paths.scattering if self._is_limited and not budget.for_later_runs else None
        if scattering is None:
            return False
        self._refusals.refuse(scattering)
        if self.ledger.compiled_calls < LIFT_AFTER:
            self._outline([scattering])
        return True

    def _outline(self, refusals: Sequence[Refusal]) -> None:
        """Have parts of the function outlined if its calls are long: it stays on NumPy then."""
        if self.on_refused is None or (self._is_limited and self.account.call_s < LIFTED_CALL_S):
            return
        outline, self.on_refused = self.on_refused, None
        if outline(refusals, self.account.call_s):
            self._stay_on_numpy()

    def let_go(self) -> None:
        """At the end of the process: drop all recordings and programs. Calls run on NumPy from now on.

        Of a loop, recordings are kept that nothing was compiled of. They took long, and a later run's first program has
        the kinds of iterations that this one met.
        """
        if self.parts.used and not self.final:
            self._earlier.keep(self.recorded, self.paths, [Stage.OBSERVING])
        self._stay_on_numpy()
        self.paths.clear()
        self.recordings = Recordings()

    # -- programs -----------------------------------------------------------------------------------------------------

    def compile_remaining(self) -> None:
        """Compile what this process had no occasion to. Called at the end of a process that compiles for later runs.

        Paths that were called too few times are compiled. So are paths whose program has constants that changed while
        another path ran: a later run may try them after the change.
        """
        for path in () if self.final else self._compiling.start_remaining():
            self._finish(path)

    def _finish(self, path: Path) -> None:
        refusal = self._compiling.finish(path)
        if refusal is not None:
            self._give_up(path, refusal)
        else:
            self._keep(self.paths)

    def _give_up(self, path: Path, refusal: Refusal) -> None:
        if path is self.paths.joint:
            logs.LOGGER.info("%s: its paths get programs of their own: %s", self.name, refusal.detail)
            self.paths.dissolve(f"together they have no program: {refusal.detail}")
            return
        path.give_up()
        if self.recordings.are_used_up and self.paths.are_given_up:
            self._stay_on_numpy()
        self._refusals.refuse(refusal)

    # -- replaying ----------------------------------------------------------------------------------------------------

    def _replay(self, path: Path, values: list[Any], call: Call, *, siblings: bool, left: tuple[Path, ...] = ()) -> Any:
        """Answer a call by the path's program.

        siblings: whether a side exit may lead to another compiled path. left: paths that side exits have led away from.
        """
        from accel.dispatch.replay import SideExit

        if path.variant.executable.precision != config.current().precision:
            if resident.current.is_held:
                resident.current.bring_up_to_date("the settings have changed")
            self._compiling.renew(path, call)
            return self._follow(path, values, call)
        met = self._replaying.replay(path, values, call)
        if not isinstance(met, Answered) and resident.current.is_held:
            resident.current.bring_up_to_date("its kind is another than it seemed, or constants have changed")
        if isinstance(met, SideExit):
            return self._side_exit(path, met, call, siblings, (*left, path))
        if isinstance(met, Unanswered):
            if met.for_good:
                self._give_up(path, met.refusal)
            else:
                self._refusals.refuse(met.refusal)
            return self._numpy.uncovered(call)
        if not isinstance(met, Answered):  # constants have changed
            found = self._compiling.renew_constants(path, met.slots, values, call)
            if found is Refold.OTHER_WAY:
                self.parts.note_kind(met.slots)
                return self._other_way(path, call)
            return self._follow(path, values, call)
        if met.slower is not None:
            self._give_up_as_slower(path, met.slower)
        if met.differs is not None:
            self._give_up_as_different(path, met.differs)
        if call.raised is not None:
            with Again(call.raised) as error:
                raise error
        return call.result

    def _other_way(self, path: Path, call: Call) -> Any:
        """Constants have changed so that the call takes another path than the program's. Later ones may take that."""
        discarded_s = self.account.charge_discarded(call)
        self.parts.note_unmatched(discarded_s)
        known = set(self.paths)
        result = self._new_path(call, again=True)
        self._back_off_unless_recorded(path, known, discarded_s)
        return result

    def _give_up_as_slower(self, path: Path, detail: str) -> None:
        if path is self.paths.joint:
            logs.LOGGER.info("%s: its paths get programs of their own: together %s", self.name, detail)
            self.paths.dissolve(f"together they are slower: {detail}")
            return
        path.give_up(is_slower=True)
        if self.paths.are_given_up:
            usual_s = max(other.speed.usual_s or self.account.call_s for other in self.paths)
            self._second_look = SecondLook(usual_s, self.ledger.numpy_total_s, self._second_look)
            self._rest_as_slower()
        self._refusals.refuse(Refusal("speed.slower", "", detail))

    def _rest_as_slower(self) -> None:
        self.final = True
        self.ledger.state = State.INLINED if self.ledger.inlined_calls else State.DEMOTED

    def _look_again(self, spent: float) -> None:
        """Examine calls again if it is time for a second look. spent: seconds of the last call."""
        look = self._second_look
        if look is None:
            return
        if look.is_time(self.ledger.numpy_total_s):
            for path in self.paths:
                path.try_again()
        elif not look.opens(spent):
            return
        self.final = False
        if self.ledger.state is State.DEMOTED:
            self.ledger.state = State.NUMPY

    def _stay_on_numpy(self) -> None:
        """Answer all further calls by NumPy, whatever they are given."""
        self.final, self._second_look = True, None

    def _give_up_as_different(self, path: Path, refusal: Refusal) -> None:
        """A comparison has shown a difference from NumPy."""
        if path is self.paths.joint:
            logs.LOGGER.warning("%s: its paths get programs of their own: %s", self.name, refusal.detail)
            self.paths.dissolve(f"together they differ from NumPy: {refusal.detail}")
            return
        if self.mode != "verify":  # which goes on: NumPy's results stand, and there may be more to find
            self._stay_on_numpy()
        self._refusals.demote(refusal)

    def _side_exit(self, path: Path, exit: SideExit, call: Call, siblings: bool, left: tuple[Path, ...]) -> Any:
        """An outcome differs: the call takes another path, a known one or a new one."""
        discarded_s = self.account.charge_discarded(call)
        for other in self.paths.after(exit, path) if siblings else ():
            if other in left:
                continue
            # like `path` up to the outcome that differs, but its guards may be others
            values = other.matcher.match(call.args, call.kwargs)
            if isinstance(values, list):
                if other.stage is not Stage.COMPILED:
                    self.paths.note_exit_to(other)
                    path.back_off(discarded_s, self.account.call_s)
                    return self._follow(other, values, call)
                # where the draws decided it, nothing was launched: the next may well turn out to be another one too
                return self._replay(other, values, call, siblings=exit.on_host, left=left)
        known = set(self.paths)
        self.parts.note_kind(path.left_at(exit))
        self.parts.note_unmatched(discarded_s)
        result = self._new_path(call)
        self.paths.note_strange(known)
        self._back_off_unless_recorded(path, known, discarded_s)
        return result

    def _back_off_unless_recorded(self, path: Path, known: set[Path], discarded_s: float) -> None:
        """A run of the path was discarded. known: the paths before its call was answered."""
        # nothing was recorded that the next call of this kind could take instead
        if known.issuperset(self.paths):
            path.back_off(discarded_s, self.account.call_s)
