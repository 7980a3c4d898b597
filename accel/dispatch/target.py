"""Targets: what one call of an accelerated function does. The only place that decides what a refusal leads to.

A target's life: its first call shows what NumPy takes; the next is recorded; some more run on NumPy while their inputs
are watched for what never changes; then its paths are compiled, and calls are replayed where guards and outcomes hold.
What that may cost is a matter of its budget.

`answer` is the one way in, and the one way out: whatever fails in between, the program's function runs exactly once,
and the program sees nothing of it.
"""

from __future__ import annotations

import statistics
import threading
import time
from math import inf
from types import FunctionType
from typing import TYPE_CHECKING, Any

from accel import config, logs
from accel.dispatch import budget, late, rest
from accel.dispatch.call import THREAD, Call, is_fault
from accel.dispatch.checks import Checks
from accel.dispatch.paths import Forecast, Path, Stage, continues
from accel.dispatch.preconditions import OFF, hindrance
from accel.dispatch.rest import Rest
from accel.reasons import Refusal
from accel.reports import timeline
from accel.reports.ledger import Ledger, State, current_run, open_ledger

if TYPE_CHECKING:
    from accel.dispatch.replay import Attempt, Matcher, Parted
    from accel.record import Trace

OBSERVED = 2
"""Calls on NumPy after a recording, during which inputs show whether they change."""

ENOUGH = 2
"""Calls that have to be observed at the least: in one nothing changes."""

LONGEST_WATCH = 12
"""Calls, in a process that compiles for later runs, that a path waits for nested targets to get their programs."""

WORTHWHILE = 0.1
"""Seconds on NumPy that a further path has taken, to those that compiling it will take, before it is compiled."""

FIRST_WORTHWHILE = 0.01
"""The same for a target's first path."""

WORTH_STARTING_S = 0.25
"""Seconds that programs might have gained by now, before JAX is imported for one that is on disk, or the first is
compiled."""

GAINFUL_SHARE, GAINFUL_S = 2 / 3, 1e-4
"""What a program is expected to gain of a call: this share of its time on NumPy, less what starting it takes."""

COMPILE_S, COMPILE_NODE_S = 0.1, 0.004
"""What compiling takes, about: in all, and for each operation."""

RECORDED_AS_LONG = 5.0
"""How many times as long as on NumPy a first recorded call takes, about."""

MAX_ATTEMPTS = 12
"""Recordings that may end in a refusal before the target stays on NumPy, where no path of it compiled."""

REPLACE_AFTER = 32
"""Calls beyond the limit on variants after which a new path takes the place of the one not followed for longest."""

COUNTED_S = 3e-6
"""What counting a call takes that is not looked at."""

CERTAIN_S = 1e-3
"""Seconds of a first call from which it tells what later ones take; a short one may have taken most of it to begin."""

LONGEST_PAUSE = 1024
"""Calls on NumPy between two recordings that may end in a refusal; at once where the first one was a long one."""

COSTLY = 4
"""A recording that ran into a limit counts as so many more: it was a long one, and the next would be too."""


class Refused(RuntimeError):
    """In mode "strict": a target could not be accelerated, or was demoted."""


class Target:
    """A function that the catalogue or a decorator names, and what became of it."""

    def __init__(self, function: FunctionType, name: str, rtol: float | None, mode: str | None = None) -> None:
        self.function = function
        self.name = name
        self.rtol = rtol
        self._mode = mode
        self.final = False
        self.paths: list[Path] = []
        self.refused: list[tuple[Matcher, Refusal]] = []
        self.attempts = 0
        self.repeats = 0
        self.calls_to_skip = 0
        self.rest = Rest()
        self.beyond_limit = 0
        self._numpy_s = 0.0
        self._timed = 0
        self._numpy_total_s = 0.0
        self._recording_s: float | None = None
        self._forecast = Forecast()
        self._checks = Checks(name)
        self.last_refusal: Refusal | None = None
        self._lock = threading.Lock()
        self._thread = 0

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.name)

    @property
    def mode(self) -> str:
        """The target's own mode, or the one in force."""
        return self._mode or config.current().mode

    @property
    def is_calling_itself(self) -> bool:
        """Whether this thread is in a call of it: further ones are part of that call, and cost it no more frames."""
        return self._thread == threading.get_ident()

    # -- the way in and out -------------------------------------------------------------------------------------------

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer one call, compiled or by NumPy.

        Raises what the program's own code raises, and in mode "strict" Refused; nothing else.
        """
        try:
            mode = self.mode
            stays = mode == "off" or (self.final and mode != "strict")
        except Exception:  # it comes again where it is caught
            stays = False
        if not stays:
            return self._take_up(args, kwargs)
        before, started = THREAD.counted_s, time.perf_counter()
        try:
            return self.function(*args, **kwargs)
        finally:  # nothing is wanted of such a call but that it is counted
            spent = time.perf_counter() - started
            own_s, THREAD.counted_s = spent - (THREAD.counted_s - before), before + spent
            try:
                ledger = self._settled()
                ledger.count_numpy(None, own_s)
                if mode == "off":
                    ledger.refuse(OFF)
                else:
                    self._begin_rest(COUNTED_S, spent)
            except Exception:  # a count that is missing is no matter of the program's
                pass

    def _settled(self) -> Ledger:
        """The ledger, with the calls entered that a rest has taken: they count for what waits to be compiled too."""
        taken, seconds = self.rest.taken, self.rest.seconds
        if taken:
            self._numpy_total_s += seconds
            waiting = next((path for path in self.paths if path.stage in (Stage.WATCHED, Stage.PENDING)), None)
            if waiting is not None:
                waiting.wait(seconds)
                _expect(GAINFUL_SHARE * seconds - GAINFUL_S * taken)
        return self.ledger

    def _begin_rest(self, looked_s: float, call_s: float) -> None:
        """Leave so many calls to NumPy as bear out what looking at this one took."""
        if budget.for_later_runs:
            return
        self.rest.begin(looked_s, call_s)
        rests = self.ledger.rests
        if self.rest.left > 0 and self.rest not in rests:
            rests.append(self.rest)

    def _take_up(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call of a target that is not at rest."""
        call: Call | None = None
        inside, locked = THREAD.inside, False
        try:
            call = Call(self.function, args, kwargs)
            call.began = time.perf_counter()
            if self.final or (self.calls_to_skip > 0 and not self.paths):
                self.calls_to_skip -= not self.final
                return self._unexplained(call)
            if inside:
                return call.run()
            locked = self._lock.acquire(blocking=False)
            if not locked:
                self._refuse(hindrance(self.mode) or Refusal("environment.busy"))
                return self._plain(call)
            self._thread = threading.get_ident()
            THREAD.inside = True
            return self._take(call)
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
        """What the program gets where accel failed: NumPy's answer, at this call and at all that follow."""
        self.final = True
        try:
            self._retire(fault)
        except Exception:  # the books are of no importance now
            pass
        if call is None or not (call.done or call.raised):
            return self.function(*args, **kwargs)
        if call.raised is not None:
            raise call.raised
        return call.result

    def _retire(self, fault: BaseException) -> None:
        """Stay on NumPy for good, and say why."""
        from accel.record.recording import gap_text

        refusal = Refusal("accel.fault", "", gap_text(fault))
        self.ledger.demote(refusal)
        self.last_refusal = refusal
        timeline.note_event(timeline.DEMOTED, self.name, refusal.why)
        logs.LOGGER.warning("%s", refusal.message(self.name, "was taken back to NumPy"))

    # -- a call -------------------------------------------------------------------------------------------------------

    def _take(self, call: Call) -> Any:
        reason = hindrance(self.mode)
        if reason is not None:
            return self._stay(call, reason)
        if self._is_frugal:
            if self._timed < (1 if self._numpy_s > CERTAIN_S else 2):  # what NumPy takes, before anything is compiled
                return self._plain(call, timed=not _is_compiling())
            if self._numpy_s < rest.SMALLEST_S and not self._has_programs:  # but the next call may have larger arrays
                return self._pass_over(call, "speed.small")
        for path in self._forecast.order(self.paths):
            values = path.matcher.match(call.args, call.kwargs)
            if isinstance(values, list):
                return self._follow(path, values, call)
        for refused, refusal in self.refused:
            if isinstance(refused.match(call.args, call.kwargs), list):
                self.repeats += 1
                self.calls_to_skip = max(self.calls_to_skip, min(self.repeats, LONGEST_PAUSE))
                return self._stay(call, refusal)
        return self._new_path(call)

    def _new_path(self, call: Call) -> Any:
        """Record a path that none of the known ones is, within the limits on them."""
        if self.calls_to_skip > 0:
            self.calls_to_skip -= 1
            return self._unexplained(call)
        if not self._covers(self._recording_estimate_s()):
            THREAD.inside = False  # it may cover nested targets
            return self._pass_over(call, "wait.budget")
        if len(self.paths) >= config.current().max_variants:
            self.beyond_limit += 1
            if self.beyond_limit % REPLACE_AFTER:
                return self._stay(call, Refusal("limit.variants", "", self._what_multiplies()))
            self.paths.pop()  # the one not followed for longest
        return self._record(call)

    def _pass_over(self, call: Call, reason: str) -> Any:
        """Leave a call to NumPy for now, which is no refusal; mode "strict" knows no such calls."""
        if self.last_refusal is None or self.last_refusal.reason != reason:
            self._note(Refusal(reason))
        return self._plain(call, timed=not _is_compiling())

    def _stay(self, call: Call, refusal: Refusal) -> Any:
        self._refuse(refusal)
        THREAD.inside = False  # nested targets may be accelerated where this one is not
        return self._plain(call)

    def _plain(self, call: Call, *, timed: bool = False) -> Any:
        """Have NumPy answer. timed: whether the time is worth comparing with."""
        looked_s = time.perf_counter() - call.began
        try:
            return call.run()
        finally:
            if call.seconds is not None:
                ledger = self._settled()
                ledger.count_numpy(call.seconds if timed else None, call.own_s)
                ledger.charge("guards", looked_s)
                self._numpy_s = call.seconds
                self._timed += 1
                self._numpy_total_s += call.seconds
                if self._is_frugal and not self._has_programs:
                    self._begin_rest(looked_s, call.seconds)

    def _unexplained(self, call: Call) -> Any:
        """A call that stays on NumPy for a reason given at an earlier one: mode "strict" gives it again."""
        if self.mode == "strict" and self.last_refusal is not None:
            raise Refused(self.last_refusal.message(self.name))
        return self._plain(call)

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

    def _what_multiplies(self) -> str:
        """The input or line at which the known paths part."""
        counts: dict[str, int] = {}
        for path in self.paths:
            for outcome in path.trace.tape.outcomes:
                place = f"line {outcome.where[1]} = {outcome.expected!r}"
                counts[place] = counts.get(place, 0) + 1
        rare = [place for place, count in counts.items() if count < len(self.paths)]
        return "paths differ at " + ", ".join(rare[:3]) if rare else "arguments of many shapes or types"

    # -- what it may cost ---------------------------------------------------------------------------------------------

    @property
    def _is_frugal(self) -> bool:
        """Whether there is a budget: not where the user wants each call compiled or compared, whatever it costs."""
        return self.mode == "auto" and config.current().ahead_of_time

    def _covers(self, estimate_s: float) -> bool:
        return not self._is_frugal or budget.covers(self.ledger, estimate_s, self._numpy_s, self._numpy_total_s)

    @property
    def _has_programs(self) -> bool:
        return any(path.variant is not None for path in self.paths)

    def _recording_estimate_s(self) -> float:
        if self._recording_s is not None:
            return self._recording_s
        return RECORDED_AS_LONG * self._numpy_s

    # -- recording ----------------------------------------------------------------------------------------------------

    def _record(self, call: Call) -> Any:
        current_run().charge("loading", late.load())
        from accel.lower.passes.loops import is_worth
        from accel.record import Passed, Recorded, Rerun, record

        self.attempts += 1
        recorded: Recorded | Rerun | Passed
        limit, started = config.current().max_nodes, time.perf_counter()
        try:
            recorded = record(self.function, call.args, call.kwargs, max_nodes=limit, worth=is_worth)
            call.result, call.done = recorded.result, True
        except (Rerun, Passed) as stopped:  # left at once, so that what the program raises has no context of ours
            recorded = stopped
        spent = time.perf_counter() - started
        if isinstance(recorded, Passed):
            call.raised = recorded.error
            self._count_recorded(spent)
            self.final = self.attempts >= MAX_ATTEMPTS and not self.paths
            self._note(recorded.refusal)
            raise call.raised
        if isinstance(recorded, Rerun):
            self._recording_s = spent
            self.ledger.charge("recording", spent)
            self._note_refusal(recorded.refusal, recorded.trace)
            call.began = time.perf_counter()
            return self._plain(call)
        self._count_recorded(spent)
        if recorded.refusal is not None:
            self._note_refusal(recorded.refusal, recorded.trace)
        else:
            assert recorded.trace is not None
            self._keep(recorded.trace, spent)
        return call.result

    def _record_again(self, call: Call) -> Any:
        """Record a call that may take a watched path, or a rare one, which a later run may come upon."""
        self.attempts -= 1
        return self._record(call)

    def _keep(self, trace: Trace, spent: float) -> None:
        if budget.for_later_runs and any(path.is_of(trace) for path in self.paths):
            return
        self.paths.insert(0, Path(trace, self.name))
        self.ledger.waits = self._waits
        timeline.note_event(timeline.RECORDED, self.name, f"{len(trace.tape.nodes)} operations", spent)
        logs.LOGGER.info("%s recorded, %d operations", self.name, len(trace.tape.nodes))

    def _count_recorded(self, spent: float) -> None:
        """Enter a recorded call into the ledger: NumPy's call that it is, and what it took longer."""
        usual = min(spent, self._numpy_s)
        self._recording_s = spent - usual
        self.ledger.count_numpy(None, usual)
        self.ledger.charge("recording", spent - usual)
        THREAD.counted_s += spent

    def _note_refusal(self, refusal: Refusal, trace: Trace | None) -> None:
        """A recording that led to no program: known paths stay compiled; this one is retried ever more rarely."""
        from accel.dispatch.replay import Matcher

        if trace is not None and all(outcome.node.host for outcome in trace.tape.outcomes):
            self.refused.append((Matcher(trace), refusal))
            if len(self.refused) > 4 * config.current().max_variants:
                self.refused.pop(0)
        costly = refusal.reason.startswith("limit.")
        self.attempts += COSTLY if costly else 0
        self.calls_to_skip = LONGEST_PAUSE if costly else min(2 ** max(0, self.attempts - 4), LONGEST_PAUSE)
        if self.attempts >= MAX_ATTEMPTS and not self.paths:
            self.final = True
        self._refuse(refusal)

    # -- following a path ---------------------------------------------------------------------------------------------

    def _follow(self, path: Path, values: list[Any], call: Call) -> Any:
        if path.stage is Stage.GIVEN_UP:
            return self._unexplained(call)
        if path.stage is not Stage.COMPILED:
            return self._wait(path, values, call)
        if path.resting:
            path.resting -= 1
            return self._unexplained(call)
        return self._replay(path, values, call, siblings=True)

    def _wait(self, path: Path, values: list[Any], call: Call) -> Any:
        """A path without a program yet: watch its inputs, start compiling, go on in NumPy."""
        if path.stage is Stage.WATCHED:
            path.observe(values)
            if budget.for_later_runs:
                path.keep_forms(values)
                self._watch_others(path, call)
            if path.observed > OBSERVED and self._is_due(path):
                self._start(path, values, call)
        if path.is_ready():
            self._finish(path)
            return self._follow(path, values, call)
        overdue = path.give_up_if_overdue()
        if overdue is not None:
            self._give_up(path, overdue)
        if budget.for_later_runs:
            by_turns = path.observed % 2 and path.observed <= 2 * OBSERVED
            if path.stage is Stage.WATCHED and (by_turns or not path.trace.inlined):
                return self._record_again(call)
            THREAD.inside = False  # nested targets get programs of their own, which a later run may want first
        quiet = not _is_compiling()
        result = self._plain(call, timed=quiet)
        seconds = call.seconds or 0.0
        _expect(GAINFUL_SHARE * seconds - GAINFUL_S)
        path.note_numpy(seconds, quiet=quiet)
        if not quiet and path.speed.knows_numpy:
            self.ledger.charge("slowdown", seconds - path.speed.numpy_s.median())
        return result

    def _watch_others(self, path: Path, call: Call) -> None:
        """Have the other paths that wait watch a call too: a later run may have recorded them first."""
        for other in self.paths:
            if other is not path and other.stage is Stage.WATCHED and other.observed < ENOUGH:
                values = other.matcher.match(call.args, call.kwargs)
                if isinstance(values, list):
                    other.observe(values)
                    other.keep_forms(values)

    def _start(self, path: Path, values: list[Any], call: Call) -> None:
        """Have the path compiled. Where the call waits for that, it is no part of what the call itself takes."""
        started = time.perf_counter()
        path.start(values)
        waited = time.perf_counter() - started
        call.began += waited
        THREAD.counted_s += waited

    def _is_due(self, path: Path) -> bool:
        """Whether to compile the path: not before it has taken NumPy a share of what that takes."""
        if budget.for_later_runs:
            return path.observed > LONGEST_WATCH or not any(nested.is_watching for nested in path.trace.inlined)
        if not self._is_frugal:
            _expect(inf)
        if not config.current().ahead_of_time:
            return True
        if _expect(0.0) < WORTH_STARTING_S:
            return False
        known = [other.variant for other in self.paths if other.variant is not None]
        if known:
            expected, share = statistics.fmean(variant.executable.seconds for variant in known), WORTHWHILE
        else:
            if any(other.stage is Stage.PENDING for other in self.paths):
                return False
            expected, share = COMPILE_S + COMPILE_NODE_S * len(path.trace.tape.nodes), FIRST_WORTHWHILE
        return path.waited_s >= share * expected

    def compile_rest(self) -> None:
        """At the end of a process that compiles for later runs: compile what this one had no occasion to.

        That is: paths that were called too few times; and paths whose program takes for constant what changed while
        another path ran, as a later run may try them after the change.
        """
        changed = {path.trace.inputs.name(slot) for path in self.paths for slot in path.varying}
        for path in () if self.final else tuple(self.paths):
            too_few = path.stage is Stage.WATCHED and path.observed >= ENOUGH
            slots = path.named(changed) if path.stage is Stage.COMPILED else ()
            if slots:
                path.respecialize(slots)
            if slots or too_few:
                path.start(path.latest)
                self._finish(path)

    @property
    def is_watching(self) -> bool:
        """Whether a path waits to be compiled."""
        return not self.final and any(path.stage is Stage.WATCHED for path in self.paths)

    def _finish(self, path: Path) -> None:
        refusal = path.finish()
        if refusal is not None:
            self._give_up(path, refusal)
            return
        for inlined in path.trace.inlined:
            inlined.ledger.count_inlined()
        self._note_compiled(path)

    def _note_compiled(self, path: Path) -> None:
        executable = path.variant.executable
        ledger, operations = self.ledger, executable.program.operations
        ledger.compile_s += executable.seconds
        ledger.variants = sum(path.variant is not None for path in self.paths)
        ledger.describe = self._describe
        timeline.note_event(timeline.COMPILE, self.name, f"{operations} operations", executable.seconds)
        _note_device()
        text = "%s compiled in %.2f s: %d operations, %d folded"
        logs.LOGGER.info(text, self.name, executable.seconds, operations, executable.program.folded)

    def _give_up(self, path: Path, refusal: Refusal) -> None:
        path.give_up()
        if self.attempts >= MAX_ATTEMPTS and all(other.stage is Stage.GIVEN_UP for other in self.paths):
            self.final = True
        self._refuse(refusal)

    def _respecialize(self, path: Path, changed: tuple[int, ...], values: list[Any], call: Call) -> Any:
        """A constant changed: compile again with it as an input."""
        names = [path.trace.inputs.name(slot) for slot in changed]
        logs.LOGGER.info("%s is compiled again: %s changed", self.name, ", ".join(names))
        path.respecialize(changed)
        for other in self.paths:
            if other is not path:
                other.vary_named(names)
        self._start(path, values, call)
        return self._wait(path, values, call)

    # -- replaying ----------------------------------------------------------------------------------------------------

    def _replay(self, path: Path, values: list[Any], call: Call, *, siblings: bool) -> Any:
        from accel.dispatch.replay import Changed, Parted, Unfit

        try:
            attempt = path.variant.run(values)
        except Unfit as error:  # numbers of this call; the next one may have others
            return self._stay(call, Refusal("rule.parameter", "", f"a number of this call: {error}"))
        except Exception as error:
            if not is_fault(error):
                raise
            self._give_up(path, Refusal("compile.failed", "", f"{type(error).__name__}: {error}"))
            return self._plain(call)
        if isinstance(attempt, Changed):
            return self._respecialize(path, attempt.slots, values, call)
        if isinstance(attempt, Parted):
            return self._other_path(path, attempt, call, siblings)
        path.held()
        if self._checks.are_due(path, self.mode):
            return self._check(path, attempt, call)
        path.variant.commit(attempt, call)
        self._count_replay(path, values, time.perf_counter() - call.began)
        return call.result

    def _count_replay(self, path: Path, values: list[Any], seconds: float) -> None:
        self.ledger.count_compiled(seconds, path.gained_s(seconds))
        THREAD.counted_s += seconds
        path.replays += 1
        self._forecast.followed(path)
        if not _is_compiling():
            path.speed.compiled_s.add(seconds)
        if path is not self.paths[0]:
            self.paths.remove(path)
            self.paths.insert(0, path)
        if path.reconsider(values):
            self._note_compiled(path)
        if path.again is None and not budget.for_later_runs:
            slower = path.speed.found_slower()
            if slower is not None:
                self._give_up_as_slower(path, slower)

    def _give_up_as_slower(self, path: Path, detail: str) -> None:
        path.give_up()
        if all(other.stage is Stage.GIVEN_UP for other in self.paths):
            self.final = True
            ledger = self.ledger
            ledger.state = State.INLINED if ledger.inlined_calls else State.DEMOTED
        self._refuse(Refusal("speed.slower", "", detail))

    def _other_path(self, path: Path, found: Parted, call: Call, siblings: bool) -> Any:
        """An outcome differs: the call takes another path, a known one or a new one."""
        now = time.perf_counter()
        self.ledger.charge("discarded", now - call.began)
        call.began = now
        place, outcomes = found.place, found.outcomes
        differing = path.variant.executable.program.outcomes[place]
        if siblings:
            for other in self.paths:
                if other is not path and continues(other, path, path.outcomes.index(differing), outcomes[place]):
                    values = other.matcher.match(call.args, call.kwargs)
                    if isinstance(values, list):
                        if other.stage is not Stage.COMPILED:
                            return self._follow(other, values, call)
                        return self._replay(other, values, call, siblings=False)
        known = set(self.paths)
        result = self._new_path(call)
        if known.issuperset(self.paths):
            path.rest()
        return result

    # -- checking -----------------------------------------------------------------------------------------------------

    def _check(self, path: Path, attempt: Attempt, call: Call) -> Any:
        """Run NumPy too; its results stand, and the replay's are compared with them."""
        from accel.dispatch.verify import Comparison, Snapshot

        started = time.perf_counter()
        replay_s = started - call.began
        snapshot = Snapshot(path.variant, attempt.values)
        self._checks.time_copies(path.variant.executable, attempt)
        try:
            call.run()
        except Exception as error:
            what = f"NumPy raised {type(error).__name__}: {error}; the replay raised nothing"
            self.ledger.count_numpy(None, time.perf_counter() - started)
            self._demote(Refusal("verify.mismatch", "", what))
            raise
        comparison = Comparison(path.variant, attempt, call.result, snapshot, self.tolerance)
        logs.LOGGER.debug("%s compared with NumPy, largest error %.2g", self.name, comparison.error)
        refusal = self._checks.judge(comparison, self.tolerance)
        self._count_check(path, call, replay_s, time.perf_counter() - started)
        if refusal is not None:
            self._demote(refusal)
        return call.result

    def _count_check(self, path: Path, call: Call, replay_s: float, check_s: float) -> None:
        numpy_s, quiet = call.seconds or 0.0, not _is_compiling()
        if quiet:
            path.speed.numpy_s.add(numpy_s)
        path.replays += 1
        self._forecast.followed(path)
        path.checked_at = path.replays
        self._checks.last_s = replay_s + check_s - numpy_s
        self.ledger.count_checked(replay_s + check_s, numpy_s, quiet=quiet)
        THREAD.counted_s += replay_s + check_s - numpy_s

    @property
    def tolerance(self) -> float:
        """The relative error that a comparison allows."""
        return self.rtol if self.rtol is not None else config.current().rtol

    def _demote(self, refusal: Refusal) -> None:
        """For good; but in mode "verify", where NumPy's results stand anyway, comparing goes on to find the others."""
        self.final = self.mode != "verify"
        self.last_refusal = refusal
        ledger = self.ledger
        first = ledger.state is not State.DEMOTED
        ledger.demote(refusal)
        message = refusal.message(self.name, "was taken back to NumPy")
        if first:
            timeline.note_event(timeline.DEMOTED, self.name, refusal.why)
            logs.LOGGER.warning("%s", message)
        if self.mode == "strict":
            raise Refused(message)

    # -- for the report -----------------------------------------------------------------------------------------------

    def _waits(self) -> Refusal | None:
        """What calls wait for where no path has a program yet, nor was given up."""
        if self.final or any(path.stage in (Stage.COMPILED, Stage.GIVEN_UP) for path in self.paths):
            return None
        pending = any(path.stage is Stage.PENDING for path in self.paths)
        return Refusal("wait.compile" if pending else "wait.calls")

    def _describe(self) -> list[dict[str, Any]]:
        """The target's variants for the report: what each is, and by what a call is known to be one of its calls."""
        return [path.describe() for path in self.paths if path.variant is not None]


def _is_compiling() -> bool:
    if not late.loaded:
        return False
    from accel.backend import background

    return background.busy()


def _expect(seconds: float) -> float:
    """Note what a call would have gained by a program. Returns what all of them would have until now."""
    from accel.backend import background

    return background.expect(max(0.0, seconds))


def _note_device() -> None:
    from accel.backend.devices import device

    run = current_run()
    if run.device is None:
        place = device(config.current().platform)
        run.platform, run.device = place.platform, place.device_kind
