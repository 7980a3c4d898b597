"""Targets: an accelerated function, and the way in and out of its calls.

The life of a target: the first call is timed on NumPy, and the next one is recorded. During some more calls on NumPy,
accel observes which inputs never change. Then the path is compiled, and calls are replayed if guards and outcomes hold.
The budget (accel.policy.budget) limits what this may cost.

`Target.answer` is the boundary of a call; accel.dispatch.routing is the way in between. Whatever fails there, the
program's function runs exactly once, and the program sees no error of accel's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from accel.backend import resident
from accel.dispatch.compiling import Compiling
from accel.dispatch.earlier import TARGETS, Earlier
from accel.dispatch.numpy_calls import NumPyCalls
from accel.dispatch.paths.path import RecordedPath
from accel.dispatch.preconditions import OFF, unmet_precondition
from accel.dispatch.recordings import Recordings
from accel.dispatch.routing import Routing
from accel.dispatch.state import TargetState
from accel.platform.clocks import time
from accel.platform.ending import let_go_at_exit
from accel.platform.interrupts import pass_on
from accel.platform.ledger import Ledger, open_ledger
from accel.platform.reasons import Refusal, Refused
from accel.platform.tracebacks import Again
from accel.policy.call import THREAD, Call, is_fault

COUNTING_S = 3e-6
"""Seconds that it takes to count a call that is not examined further."""

FAULT_CALLERS = 4
"""Maximum number of accel's own lines in the report of a fault: a fault may not come again."""


class Target:
    """A function that a catalogue or a decorator names, with its paths.

    function: runs a call plainly. recorded: the function that is recorded: the same, but for that of a loop's
    iterations. effects: whether replays may show text. state: settings and books; paths, account and parts are its.
    recordings: records calls.
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
        """rtol, mode: its own, or None for those in the settings. in_parts: if calls without a program run in parts
        (see accel.policy.parts), the code by which its programs are known."""
        self.function: Callable[..., Any] = function
        self.recorded = function
        self.name = name
        self.effects = effects
        self.state = state = TargetState(name, rtol, mode, in_parts)
        self.paths, self.account, self.parts = state.paths, state.account, state.parts
        self.rest = state.account.rest
        self._refusals = state.refusals
        self._earlier = Earlier(name, function, in_parts, effects)
        compiling = Compiling(state, self._earlier)
        self.recordings = Recordings(state, compiling, self._earlier, function, effects)
        self._numpy = NumPyCalls(state)
        self._routing = Routing(state, compiling, self.recordings, self._numpy)
        self.streak = self._routing.replaying.streak
        self._turn = state.turn
        self._thread = 0
        self._plain: WeakKeyDictionary[RecordedPath, str | None] = WeakKeyDictionary()
        TARGETS[name] = self
        let_go_at_exit(self)

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.name)

    @property
    def is_calling_itself(self) -> bool:
        """Whether a call of the target is under way in this thread. A recursive call is part of it: it runs plainly."""
        return self._thread == threading.get_ident()

    @property
    def is_observing(self) -> bool:
        """Whether a path is observed, to be compiled later."""
        return not self.state.final and self.paths.are_observed

    # -- the way in and out -------------------------------------------------------------------------------------------

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer one call, compiled or by NumPy.

        Raises what the program's own code raises, and in mode "strict" Refused; nothing else.
        """
        state = self.state
        try:
            mode = state.mode
            # in mode "strict" even a call of a demoted target takes the long way, which raises Refused
            stays = mode == "off" or (state.final and mode != "strict")
        except Exception as error:  # it comes up again where it is caught
            pass_on(error)
            stays = False
        before, started = THREAD.counted_s, time.perf_counter()
        within = THREAD.inside and started < THREAD.opens_at and not stays  # part of the call around it
        try:
            return self.function(*args, **kwargs) if stays else self._answer_or_fall_back(args, kwargs)
        finally:  # the call has been answered: it only has to be counted
            if not within:
                spent = time.perf_counter() - started
                own_s, THREAD.counted_s = spent - (THREAD.counted_s - before), before + spent
                try:
                    if stays:
                        self._count_plain(spent, own_s, mode)
                    else:  # what stands in no account yet is accel's own work
                        self.ledger.charge("guards", own_s)
                except Exception as error:  # the program must not see an error only because a count is missing
                    pass_on(error)

    def _count_plain(self, spent: float, own_s: float, mode: str) -> None:
        """Count a call of a target that stays on NumPy."""
        self._numpy.enter_rested()
        ledger = self.ledger
        ledger.count_numpy(None, own_s)
        if mode == "off":
            ledger.refuse(OFF)
        self.state.look_again(spent)
        self.account.begin_rest(COUNTING_S, spent)

    def _answer_or_fall_back(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call, by NumPy if accel fails."""
        call: Call | None = None
        inside, opens_at = THREAD.inside, THREAD.opens_at
        try:
            call = Call(self.function, args, kwargs)
            call.began = time.perf_counter()
            # nothing to match the call against, and nothing to record now: spare it its turn and the preconditions
            if self.state.final or (not self.paths and self.recordings.skip()):
                self._refusals.raise_if_strict()
                return self._numpy.whole(call)
            # part of an outer target's call, which is recorded or compared as a whole
            if inside and call.began < opens_at:
                if resident.current.is_held:
                    resident.current.bring_up_to_date("NumPy runs it")
                try:  # untimed: the time is the outer call's
                    return self.function(*args, **kwargs)
                except BaseException as error:
                    call.raised = error
                    raise
            # it never waits for its turn: see `TargetState`
            if not self._turn.take(call):
                self._refusals.refuse(unmet_precondition(self.state.mode) or Refusal("environment.busy"))
                return self._numpy.whole(call)
            self._thread = threading.get_ident()
            THREAD.inside, THREAD.opens_at = True, inf
            return self._routing.answer(call)
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
        self.state.stay_on_numpy()
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
        if call.raised is not None:  # not by `Call.answer`, which may be what has failed
            with Again(call.raised) as error:
                raise error
        return call.result

    # -- from outside -------------------------------------------------------------------------------------------------

    def why_not_plain(self) -> str | None:
        """Why calls need arrays on the host even if a program answers them; None if they do not."""
        from accel.dispatch.replay.kept import why_not_plain

        if self.state.final or not self.paths.with_program or self.rest.untimed > 0:
            return "it has no program"
        for path in self.paths:
            if path not in self._plain:
                self._plain[path] = why_not_plain(path.trace)
        return next(filter(None, map(self._plain.__getitem__, self.paths)), None)

    def compile_remaining(self) -> None:
        """Compile what this process had no occasion to. Called at the end of a process that compiles for later runs.

        Paths that were called too few times are compiled. So are paths whose program has constants that changed while
        another path ran: a later run may try them after the change.
        """
        if not self.state.final:
            self._routing.compile_remaining()

    def let_go(self) -> None:
        """At the end of the process: drop all recordings and programs. Calls run on NumPy from now on.

        Of a loop, recordings are kept that nothing was compiled of. They took long, and a later run's first program has
        the kinds of iterations that this one met. It is compiled once all runs together have lost what that costs.
        """
        if self.parts.used and not self.state.final:
            self._earlier.keep_for_later_runs(self.paths)
            self.parts.note_end()
        self.state.stay_on_numpy()
        self.streak.forget()
        self.paths.let_go()
        self.recordings.forget()
