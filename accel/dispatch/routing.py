"""Routing: which way one call of a target takes: NumPy, a recording, or a path's program.

First it is matched against the recorded paths. What happens then depends on the stage of the path's program; see
`Stage` in accel.dispatch.paths.stages. A run whose outcomes differ leads to another path. Three parts answer the call:
NumPyCalls, Recordings and Replaying.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from accel.backend import resident
from accel.dispatch.compiling import Compiling, is_quiet
from accel.dispatch.numpy_calls import NumPyCalls
from accel.dispatch.paths.program import Program
from accel.dispatch.paths.refolding import Refold
from accel.dispatch.paths.stages import Stage
from accel.dispatch.preconditions import unmet_precondition
from accel.dispatch.recordings import Recordings
from accel.dispatch.replaying import Answered, Replaying, Unanswered
from accel.dispatch.state import TargetState
from accel.platform import config, logs
from accel.platform.reasons import Refusal
from accel.policy import budget
from accel.policy.call import LONG_CALL_S, THREAD, Call

if TYPE_CHECKING:
    from accel.dispatch.replay import SideExit

SHORT_BACKOFF = 7
"""Number of calls that run on NumPy alone before a program is tried again, so that their times can be compared."""

SMALL = Refusal("speed.small")

TOGETHER = {"speed.slower": "they are slower", "verify.mismatch": "they differ from NumPy"}
"""Faults of a program of several paths, in words, by the reason for which it is given up."""


class Routing:
    """Answers the calls of one target that no other call of it is under way around."""

    def __init__(self, state: TargetState, compiling: Compiling, recordings: Recordings, numpy: NumPyCalls) -> None:
        self._state = state
        self._paths, self._account, self._parts = state.paths, state.account, state.parts
        self._refusals = state.refusals
        self._compiling = compiling
        self._recordings = recordings
        self._numpy = numpy
        self.replaying = Replaying(state)

    def answer(self, call: Call) -> Any:
        """Answer a call. Raises what the program's own code raises, and in mode "strict" Refused."""
        self._numpy.enter_rested()
        self.replaying.streak.end()
        # asked at each call: the program may set `np.errstate(all="raise")`, or a tracer, between two calls
        refusal = unmet_precondition(self._state.mode)
        if refusal is not None:
            self._refusals.refuse(refusal)
            return self._numpy.uncovered(call)
        if self._state.is_limited:
            # the first calls are only timed: the budget, and whether the function is small, are judged by these times
            if not self._account.knows_numpy:  # before anything is compiled
                THREAD.opens_at = call.began + LONG_CALL_S  # `_answer_or_fall_back` puts it back
                return self._numpy.whole(call, quiet=is_quiet())
            if self._account.is_small and not self._paths.with_program:  # but the next call may have larger arrays
                self._refusals.note_wait(SMALL)
                return self._numpy.whole(call, quiet=is_quiet())
        # reading what earlier runs have recorded costs about as much as it saves where none has compiled it
        if not self._recordings.were_taken_up:
            comes_later = self._state.is_limited and (self._parts.come_first or not budget.grants(0.0))
            if not comes_later:
                self._recordings.take_up(call)
        self._finish_ready()
        backs_off, kind = False, None
        for program in self._paths.likely_first():
            # these calls count for the paths that have no program yet: most of them take one of those
            if program.backoff.calls and self._paths.waiting is not None:
                program.backoff.calls -= 1
                backs_off = True
                continue
            values = program.whole.matcher.match(call.args, call.kwargs)
            if isinstance(values, list):
                return self._follow(program, values, call)
            if program.stage is Stage.COMPILED:
                kind = values.place
        if backs_off:
            return self._numpy.late(call)
        resident.current.bring_up_to_date("it is of a new kind")
        # no known path takes it: is it like a call whose recording was refused?
        refusal = self._recordings.refusal_of(call)
        if refusal is not None:
            self._refusals.refuse(refusal)
            return self._numpy.uncovered(call)
        self._parts.note_kind(kind)
        return self._new_path(call)

    def _finish_ready(self) -> None:
        """Put programs to use that have become ready, whichever path this call seems to take.

        Before there is a program, a call is taken for the first path that it matches: others might never be asked.
        """
        for program in self._paths.ready():
            resident.current.bring_up_to_date("a program is put to use")
            self._give_up_if(program, self._compiling.finish(program))

    def _follow(self, program: Program, values: list[Any], call: Call) -> Any:
        """Answer a call that matches a known path, as the stage of its program says."""
        if program.stage is not Stage.COMPILED or program.backoff.calls:
            resident.current.bring_up_to_date("its kind has no program yet, or its last runs were discarded")
        # first, as this may change the stage: a call that finds its program ready is already replayed
        if program.stage in (Stage.OBSERVING, Stage.PENDING):
            self._give_up_if(program, self._compiling.advance(program, values, call))
        if program.stage is Stage.GIVEN_UP:
            self._refusals.raise_if_strict()
            self._state.note_examined()
            return self._numpy.uncovered(call)
        # still OBSERVING or PENDING
        if program.stage is not Stage.COMPILED:
            if self._recordings.may_be_another(program.whole):
                return self._record(call, again=True)
            return self._numpy.without_program(program, call)
        # the last runs of its program were discarded
        if program.backoff.calls:
            program.backoff.calls -= 1
            self._refusals.raise_if_strict()
            return self._numpy.backing_off(call, is_long=program.backoff.calls > SHORT_BACKOFF)
        speed = self._paths.expected(program).speed
        if (speed.wanted or speed.pauses) and self._state.mode == "auto":
            quiet = is_quiet()
            if speed.wanted if quiet else speed.pauses:
                return self._numpy.instead_of_program(speed, call, quiet=quiet)
        return self._replay(program, values, call, siblings=True)

    def _new_path(self, call: Call, *, again: bool = False) -> Any:
        """Answer a call that matches no known path: record it, if that is allowed now.

        again: it may take a known one all the same.
        """
        if self._recordings.skip():
            self._refusals.raise_if_strict()
            return self._numpy.unmatched(call)
        why = self._recordings.why_not()
        if why is None:
            return self._record(call, again=again)
        if not why.reason.startswith("wait."):
            self._refusals.refuse(why)
            return self._numpy.unmatched(call)
        self._refusals.note_wait(why)
        return self._numpy.unmatched(call, quiet=is_quiet())  # the budget may cover nested targets

    def _record(self, call: Call, *, again: bool = False) -> Any:
        """Answer a call by recording it. again: it matches a known path."""
        return call.answer() if self._recordings.record(call, again=again) else self._numpy.uncovered(call)

    def _replay(
        self, program: Program, values: list[Any], call: Call, *, siblings: bool, left: tuple[Program, ...] = ()
    ) -> Any:
        """Answer a call by the path's program.

        siblings: whether a side exit may lead to another compiled path. left: programs that side exits have left.
        """
        if program.variant.executable.precision != config.current().precision:
            self._compiling.renew_precision(program, call)
            return self._follow(program, values, call)
        met = self.replaying.replay(program, values, call)
        if isinstance(met, Answered):
            if met.refusal is not None:
                self._give_up_if(program, met.refusal)
            return call.answer()
        from accel.dispatch.replay import SideExit

        resident.current.bring_up_to_date("its kind is another than it seemed, or constants have changed")
        if isinstance(met, SideExit):
            return self._side_exit(program, met, call, siblings, (*left, program))
        if isinstance(met, Unanswered):
            if met.for_good:
                self._give_up_if(program, met.refusal)
            else:
                self._refusals.refuse(met.refusal)
            return self._numpy.uncovered(call)
        # constants have changed
        if self._compiling.renew_constants(program, met.slots, values, call) is not Refold.OTHER_WAY:
            return self._follow(program, values, call)
        self._parts.note_kind(met.slots)
        return self._leave(program, call, again=True)

    def _side_exit(
        self, program: Program, exit: SideExit, call: Call, siblings: bool, left: tuple[Program, ...]
    ) -> Any:
        """An outcome differs: the call takes another path, a known one or a new one."""
        discarded_s = self._account.charge_discarded(call)
        for other in self._paths.after(exit, program) if siblings else ():
            if other in left:
                continue
            # like `path` up to the outcome that differs, but its guards may be others
            values = other.whole.matcher.match(call.args, call.kwargs)
            if isinstance(values, list):
                if other.stage is not Stage.COMPILED:
                    self._paths.note_exit_to(other)
                    program.backoff.note_discarded(discarded_s, self._account.call_s)
                    return self._follow(other, values, call)
                # where the draws decided it, nothing was launched: the next may well turn out to be another one too
                return self._replay(other, values, call, siblings=exit.on_host, left=left)
        self._parts.note_kind(program.left_at(exit))
        return self._leave(program, call, discarded_s)

    def _leave(self, program: Program, call: Call, discarded_s: float | None = None, *, again: bool = False) -> Any:
        """Answer a call by a new path, after a run of this one was discarded. Later calls may take that one.

        discarded_s: seconds of that run, if they have been charged. again: constants decided that: it may be known.
        """
        if discarded_s is None:
            discarded_s = self._account.charge_discarded(call)
        self._parts.note_unmatched(discarded_s)
        known = set(self._paths)
        result = self._new_path(call, again=again)
        if not again:
            self._paths.note_unmet(known)
        # nothing was recorded that the next call of this kind could take instead
        if known.issuperset(self._paths):
            program.backoff.note_discarded(discarded_s, self._account.call_s)
        return result

    def compile_remaining(self) -> None:
        """Compile the paths that had no occasion to be; see `Target.compile_remaining`."""
        for program in self._compiling.start_remaining():
            self._give_up_if(program, self._compiling.finish(program))

    def _give_up_if(self, program: Program, refusal: Refusal | None) -> None:
        """Give the path's program up, if there is a reason. A program of several paths is replaced by one for each."""
        if refusal is None:
            return
        differs, is_slower = refusal.reason == "verify.mismatch", refusal.reason == "speed.slower"
        if program is self._paths.joint:
            why = f"together {TOGETHER.get(refusal.reason, 'they have no program')}: {refusal.detail}"
            level = logging.WARNING if differs else logging.INFO
            logs.LOGGER.log(level, "%s: its paths get programs of their own: %s", self._state.name, why)
            self._paths.dissolve(why)
        elif differs:
            if self._state.mode != "verify":  # which goes on: NumPy's results stand, and there may be more to find
                self._state.stay_on_numpy()
            self._refusals.demote(refusal)
        else:
            program.give_up(is_slower=is_slower)
            if self._paths.are_given_up and is_slower:
                self._state.stay_until_second_look()
            elif self._paths.are_given_up and self._recordings.are_used_up:
                self._state.stay_on_numpy()
            self._refusals.refuse(refusal)
