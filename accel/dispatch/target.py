"""Targets: how one call of an accelerated function runs. The only place that decides what a refusal leads to.

The life of a target: the first call is timed on NumPy, and the next one is recorded. During some more calls on NumPy,
accel observes which inputs never change. Then the path is compiled, and calls are replayed if guards and outcomes hold.
The budget (accel.dispatch.costs.budget) limits what this may cost.

Each call enters and leaves by `answer`. Whatever fails in between, the program's function runs exactly once, and the
program sees no error of accel's.
"""

from __future__ import annotations

import threading
import time
from types import FunctionType
from typing import TYPE_CHECKING, Any

from accel import config, logs
from accel.dispatch import late
from accel.dispatch.attempts import Attempts
from accel.dispatch.call import THREAD, Call, is_fault
from accel.dispatch.checks import Checks
from accel.dispatch.compiling import OBSERVED, Compiling, is_compiling
from accel.dispatch.costs import budget
from accel.dispatch.costs.account import Account, is_limited
from accel.dispatch.known import KnownPaths
from accel.dispatch.paths import Path, Stage
from accel.dispatch.preconditions import OFF, unmet_precondition
from accel.process.ending import let_go_at_exit
from accel.reasons import Refusal
from accel.reports import timeline
from accel.reports.ledger import Ledger, State, current_run, open_ledger

if TYPE_CHECKING:
    from accel.dispatch.replay import Attempt, SideExit
    from accel.record import Trace

COUNTING_S = 3e-6
"""Seconds that it takes to count a call that is not examined further."""


class Refused(RuntimeError):
    """Raised in mode "strict" if a target could not be accelerated, or was demoted."""


class Target:
    """A function that a catalogue or a decorator names, with its paths.

    rtol, mode: its own, or None for those in the settings. final: it stays on NumPy for good. paths: its recorded
    paths. account: what its calls take. attempts: its recordings that led to no program.
    """

    def __init__(self, function: FunctionType, name: str, rtol: float | None, mode: str | None = None) -> None:
        self.function = function
        self.name = name
        self.rtol = rtol
        self._mode = mode
        self.final = False
        self.paths = KnownPaths()
        self.account = Account(name)
        self.rest = self.account.rest
        self.attempts = Attempts()
        self.last_refusal: Refusal | None = None
        self._compiling = Compiling(name, self.paths)
        self._checks = Checks(name)
        self._lock = threading.Lock()
        self._thread = 0

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.name)

    @property
    def mode(self) -> str:
        """The target's own mode, or the one in the settings."""
        return self._mode or config.current().mode

    @property
    def tolerance(self) -> float:
        """The relative error that a comparison allows."""
        return self.rtol if self.rtol is not None else config.current().rtol

    @property
    def is_calling_itself(self) -> bool:
        """Whether a call of the target is under way in this thread. A recursive call is part of it: it runs plainly."""
        return self._thread == threading.get_ident()

    @property
    def is_observing(self) -> bool:
        """Whether a path is observed, to be compiled later."""
        return not self.final and self.paths.are_observed

    # -- the way in and out -------------------------------------------------------------------------------------------

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer one call, compiled or by NumPy.

        Raises what the program's own code raises, and in mode "strict" Refused; nothing else.
        """
        try:
            mode = self.mode
            stays = mode == "off" or (self.final and mode != "strict")
        except Exception:  # it comes up again where it is caught
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
                else:
                    self.account.begin_rest(COUNTING_S, spent)
            except Exception:  # the program must not see an error only because a count is missing
                pass

    def _answer_or_fall_back(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call, by NumPy if accel fails."""
        call: Call | None = None
        inside, locked = THREAD.inside, False
        try:
            call = Call(self.function, args, kwargs)
            call.began = time.perf_counter()
            if self.final or (not self.paths and self.attempts.skip()):
                return self._run_refused_before(call)
            if inside:
                return call.run()
            locked = self._lock.acquire(blocking=False)
            if not locked:
                self._refuse(unmet_precondition(self.mode) or Refusal("environment.busy"))
                return self._run_numpy(call)
            self._thread = threading.get_ident()
            THREAD.inside = True
            return self._dispatch(call)
        except BaseException as error:
            if call is not None and error is call.raised:
                raise
            if isinstance(error, Refused) or not is_fault(error):
                raise
            fault = error
        finally:
            THREAD.inside = inside
            if locked:
                self._thread = 0
                self._lock.release()
        return self._after_fault(call, fault, args, kwargs)

    def _after_fault(self, call: Call | None, fault: BaseException, args: Any, kwargs: Any) -> Any:
        """What the program gets after a fault of accel's: NumPy's answer, for this call and for all that follow."""
        self.final = True
        try:
            self._retire(fault)
        except Exception:  # the report is of no importance now
            pass
        if call is None or not (call.done or call.raised):
            return self.function(*args, **kwargs)
        if call.raised is not None:
            raise call.raised
        return call.result

    def _retire(self, fault: BaseException) -> None:
        """Stay on NumPy for good, and say why."""
        from accel.record.recording import gap_text

        self._say_demoted(Refusal("accel.fault", "", gap_text(fault)))

    # -- which way a call takes ---------------------------------------------------------------------------------------

    def _dispatch(self, call: Call) -> Any:
        """Answer a call that no other call of the target is under way around."""
        self._enter_rested()
        refusal = unmet_precondition(self.mode)
        if refusal is not None:
            return self._run_refused(call, refusal)
        if self._is_limited:
            if not self.account.knows_numpy:  # before anything is compiled
                return self._run_numpy(call, timed=not is_compiling())
            if self.account.is_small and not self.paths.with_program:  # but the next call may have larger arrays
                return self._postpone(call, "speed.small")
        for path in self.paths.likely_first():
            values = path.matcher.match(call.args, call.kwargs)
            if isinstance(values, list):
                return self._follow(path, values, call)
        refusal = self.attempts.refusal_of(call)
        if refusal is not None:
            return self._run_refused(call, refusal)
        return self._new_path(call)

    def _follow(self, path: Path, values: list[Any], call: Call) -> Any:
        """Answer a call that matches a known path."""
        if path.stage is Stage.GIVEN_UP:
            THREAD.inside = False  # nested targets may be accelerated
            return self._run_refused_before(call)
        if path.stage is not Stage.COMPILED:
            return self._run_without_program(path, values, call)
        if path.backoff:
            path.backoff -= 1
            return self._run_refused_before(call)
        return self._replay(path, values, call, siblings=True)

    def _new_path(self, call: Call) -> Any:
        """Answer a call that matches no known path: record it, if that is allowed now."""
        if self.attempts.skip():
            THREAD.inside = False
            return self._run_refused_before(call)
        if self._is_limited and not self.account.covers_recording():
            THREAD.inside = False  # the budget may cover nested targets
            return self._postpone(call, "wait.budget")
        if not self.paths.make_room():
            return self._run_refused(call, Refusal("limit.variants", "", self.paths.why_many()))
        return self._record(call)

    @property
    def _is_limited(self) -> bool:
        return is_limited(self.mode)

    # -- on NumPy -----------------------------------------------------------------------------------------------------

    def _run_numpy(self, call: Call, *, timed: bool = False) -> Any:
        """Answer the call on NumPy. timed: whether its time may be compared with those of compiled calls."""
        looked_s = time.perf_counter() - call.began
        try:
            return call.run()
        finally:
            if call.seconds is not None:
                self.account.count_numpy(call, looked_s, timed=timed)
                if self._is_limited and not self.paths.with_program:
                    self.account.begin_rest(looked_s, call.seconds)

    def _enter_rested(self) -> None:
        """Account for the calls of a rest. Their time counts for a path that waits to be compiled, too."""
        calls, seconds = self.account.add_rested()
        if calls:
            self._compiling.note_missed(self.paths.waiting, seconds, calls)

    def _postpone(self, call: Call, reason: str) -> Any:
        """Answer the call on NumPy for now. This is no refusal, and does not occur in mode "strict"."""
        if self.last_refusal is None or self.last_refusal.reason != reason:
            self._note(Refusal(reason))
        return self._run_numpy(call, timed=not is_compiling())

    def _run_refused(self, call: Call, refusal: Refusal) -> Any:
        self._refuse(refusal)
        THREAD.inside = False  # nested targets may be accelerated even though this one is not
        return self._run_numpy(call)

    def _run_refused_before(self, call: Call) -> Any:
        """Answer a call on NumPy for a reason given at an earlier one. Mode "strict" raises that reason again."""
        if self.mode == "strict" and self.last_refusal is not None:
            raise Refused(self.last_refusal.message(self.name))
        return self._run_numpy(call)

    def _run_without_program(self, path: Path, values: list[Any], call: Call) -> Any:
        """Answer a call of a path without a program: observe its inputs, start compiling if due, run NumPy."""
        if path.stage is Stage.OBSERVING:
            self._compiling.observe(path, values, call, limited=self._is_limited)
        if path.is_ready():
            self._finish(path)
            return self._follow(path, values, call)
        overdue = path.give_up_if_overdue()
        if overdue is not None:
            self._give_up(path, overdue)
        if budget.for_later_runs:
            by_turns = path.observed % 2 and path.observed <= 2 * OBSERVED
            if path.stage is Stage.OBSERVING and (by_turns or not path.trace.inlined):
                return self._record_again(call)
            THREAD.inside = False  # nested targets get programs of their own: a later run may want those first
        quiet = not is_compiling()
        result = self._run_numpy(call, timed=quiet)
        seconds = call.seconds or 0.0
        path.note_numpy(seconds, quiet=quiet)
        self._compiling.note_missed(path, seconds)
        if not quiet and path.speed.knows_numpy:
            self.ledger.charge("slowdown", seconds - path.speed.numpy_s.median())
        return result

    # -- recording ----------------------------------------------------------------------------------------------------

    def _record(self, call: Call, *, again: bool = False) -> Any:
        """Record the call. again: it matches a path already, so that only another path than the known ones is kept."""
        current_run().charge("loading", late.load())
        from accel.lower.passes.arrange import is_worth
        from accel.record import Passed, Recorded, Rerun, record

        self.attempts.count += 1
        recorded: Recorded | Rerun | Passed
        limit, started = config.current().max_nodes, time.perf_counter()
        try:
            recorded = record(self.function, call.args, call.kwargs, max_nodes=limit, worth=is_worth)
            call.result, call.done = recorded.result, True
        except (Rerun, Passed) as stopped:  # leave the handler, so that the program's error gets no context of accel's
            recorded = stopped
        spent = time.perf_counter() - started
        if isinstance(recorded, Rerun):
            self.account.charge_undone(spent)
            self._note_refused(recorded.refusal, recorded.trace)
            call.began = time.perf_counter()
            return self._run_numpy(call)
        self.account.count_recorded(spent)
        if isinstance(recorded, Passed):
            call.raised = recorded.error
            self.final = self.attempts.are_used_up and not self.paths
            self._note(recorded.refusal)
            raise call.raised
        if recorded.refusal is not None:
            self._note_refused(recorded.refusal, recorded.trace)
        else:
            assert recorded.trace is not None
            if not again or not self.paths.hold_trace(recorded.trace):
                self._add_path(recorded.trace, spent)
        return call.result

    def _record_again(self, call: Call) -> Any:
        """Record a call that matches a path already: it may turn out to take a rare one, which a later run may meet."""
        self.attempts.count -= 1
        return self._record(call, again=True)

    def _add_path(self, trace: Trace, spent: float) -> None:
        self.paths.add(trace, self.name)
        let_go_at_exit(self)
        self.ledger.waits = lambda: None if self.final else self.paths.wait_reason()
        timeline.note_event(timeline.RECORDED, self.name, f"{len(trace.tape.nodes)} operations", spent)
        logs.LOGGER.info("%s recorded, %d operations", self.name, len(trace.tape.nodes))

    def _note_refused(self, refusal: Refusal, trace: Trace | None) -> None:
        """Note a recording that was refused. Known paths stay compiled; recording is retried ever more rarely."""
        self.attempts.note(refusal, trace)
        if self.attempts.are_used_up and not self.paths:
            self.final = True
        self._refuse(refusal)

    def let_go(self) -> None:
        """At the end of the process: drop all recordings and programs. Calls run on NumPy from now on."""
        self.final = True
        self.paths.clear()
        self.attempts = Attempts()

    # -- programs -----------------------------------------------------------------------------------------------------

    def compile_remaining(self) -> None:
        """At the end of a process that compiles for later runs: compile what this one had no occasion to.

        That is: paths that were called too few times; and paths whose program takes for constant what changed while
        another path ran, as a later run may try them after the change.
        """
        for path in () if self.final else self._compiling.start_remaining():
            self._finish(path)

    def _finish(self, path: Path) -> None:
        refusal = self._compiling.finish(path)
        if refusal is not None:
            self._give_up(path, refusal)

    def _give_up(self, path: Path, refusal: Refusal) -> None:
        path.give_up()
        if self.attempts.are_used_up and self.paths.are_given_up:
            self.final = True
        self._refuse(refusal)

    # -- replaying ----------------------------------------------------------------------------------------------------

    def _replay(self, path: Path, values: list[Any], call: Call, *, siblings: bool) -> Any:
        """Answer a call by the path's program. siblings: whether a side exit may lead to another compiled path."""
        from accel.dispatch.replay import HostError, SideExit, StaleConstants

        try:
            attempt = path.variant.run(values)
        except HostError as error:  # it depends on the numbers of this call: the next call may have others
            return self._run_refused(call, Refusal("rule.parameter", "", f"a number of this call: {error}"))
        except Exception as error:
            if not is_fault(error):
                raise
            self._give_up(path, Refusal("compile.failed", "", f"{type(error).__name__}: {error}"))
            return self._run_numpy(call)
        if isinstance(attempt, StaleConstants):
            self._compiling.respecialize(path, attempt.slots, values, call)
            return self._run_without_program(path, values, call)
        if isinstance(attempt, SideExit):
            return self._side_exit(path, attempt, call, siblings)
        path.accept_run()
        if self._checks.are_due(path, self.mode):
            return self._check(path, attempt, call)
        path.variant.commit(attempt, call)
        self._count_replay(path, values, time.perf_counter() - call.began)
        return call.result

    def _count_replay(self, path: Path, values: list[Any], seconds: float) -> None:
        self.ledger.count_compiled(seconds, path.gained_s(seconds))
        THREAD.counted_s += seconds
        path.replays += 1
        self.paths.note_taken(path)
        if not is_compiling():
            path.speed.compiled_s.add(seconds)
        if path.reconsider(values):
            self._compiling.note_compiled(path)
        if path.pending_spans is None and not budget.for_later_runs:
            slower = path.speed.evidence_of_slowness()
            if slower is not None:
                self._give_up_as_slower(path, slower)

    def _give_up_as_slower(self, path: Path, detail: str) -> None:
        path.give_up()
        if self.paths.are_given_up:
            self.final = True
            self.ledger.state = State.INLINED if self.ledger.inlined_calls else State.DEMOTED
        self._refuse(Refusal("speed.slower", "", detail))

    def _side_exit(self, path: Path, exit: SideExit, call: Call, siblings: bool) -> Any:
        """An outcome differs: the call takes another path, a known one or a new one."""
        self.account.charge_discarded(call)
        for other in self.paths.after(exit, path) if siblings else ():
            values = other.matcher.match(call.args, call.kwargs)
            if isinstance(values, list):
                if other.stage is not Stage.COMPILED:
                    return self._follow(other, values, call)
                return self._replay(other, values, call, siblings=False)
        known = set(self.paths)
        result = self._new_path(call)
        if known.issuperset(self.paths):
            path.back_off()
        return result

    def _check(self, path: Path, attempt: Attempt, call: Call) -> Any:
        """Run NumPy too. Its results stand; the replay's are compared with them."""
        refusal = self._checks.compare(path, attempt, call, self.tolerance)
        if call.raised is None:
            self.paths.note_taken(path)
        if refusal is not None:
            self._demote(refusal)
        if call.raised is not None:
            raise call.raised
        return call.result

    # -- refusals -----------------------------------------------------------------------------------------------------

    def _refuse(self, refusal: Refusal) -> None:
        self._note(refusal)
        if self.mode == "strict":
            raise Refused(refusal.message(self.name))

    def _note(self, refusal: Refusal | None) -> None:
        if refusal is None:
            return
        self.last_refusal = refusal
        if self.ledger.refuse(refusal):
            kind = timeline.DEMOTED if refusal.reason == "speed.slower" else timeline.REFUSED
            timeline.note_event(kind, self.name, f"[{refusal.reason}] {refusal.where or refusal.detail}")
            logs.LOGGER.info("%s", refusal.message(self.name))

    def _demote(self, refusal: Refusal) -> None:
        """Stay on NumPy for good. Mode "verify" goes on: NumPy's results stand, and there may be more to find."""
        self.final = self.mode != "verify"
        self._say_demoted(refusal)
        if self.mode == "strict":
            raise Refused(refusal.message(self.name, "was taken back to NumPy"))

    def _say_demoted(self, refusal: Refusal) -> None:
        """Note that the target was taken back to NumPy, and say so the first time."""
        self.last_refusal = refusal
        first = self.ledger.state is not State.DEMOTED
        self.ledger.demote(refusal)
        if first:
            timeline.note_event(timeline.DEMOTED, self.name, refusal.why)
            logs.LOGGER.warning("%s", refusal.message(self.name, "was taken back to NumPy"))
