"""Targets: how one call of an accelerated function runs. The only place that decides what a refusal leads to.

The life of a target: the first call is timed on NumPy, and the next one is recorded. During some more calls on NumPy,
accel observes which inputs never change. Then the path is compiled, and calls are replayed if guards and outcomes hold.
The budget (accel.dispatch.budget) limits what this may cost.

Each call enters and leaves by `answer`. Whatever fails in between, the program's function runs exactly once, and the
program sees no error of accel's.
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
from accel.dispatch.paths import Path, PathPredictor, Stage, starts_at_side_exit
from accel.dispatch.preconditions import OFF, unmet_precondition
from accel.dispatch.rest import Rest
from accel.reasons import Refusal
from accel.reports import timeline
from accel.reports.ledger import Ledger, State, current_run, open_ledger

if TYPE_CHECKING:
    from accel.dispatch.replay import Attempt, Matcher, SideExit
    from accel.record import Trace

OBSERVED = 2
"""Calls on NumPy after a recording, during which accel observes which inputs change."""

MIN_OBSERVED = 2
"""The fewest observed calls: one call alone cannot show a change."""

MAX_OBSERVED = 12
"""In a process that compiles for later runs, a path waits until nested targets have programs of their own, but no
longer than this many calls."""

COMPILE_THRESHOLD = 0.1
"""A further path is compiled once its calls have taken this share of its expected compile time."""

FIRST_COMPILE_THRESHOLD = 0.01
"""The same share for a target's first path."""

IMPORT_JAX_GAIN_S = 0.25
"""Nothing is compiled or loaded from disk, and JAX is not imported, before programs could have saved this many
seconds."""

EXPECTED_GAIN_SHARE, LAUNCH_S = 2 / 3, 1e-4
"""What a program is expected to save per call: this share of the call's time on NumPy, less these seconds for launching
the program."""

COMPILE_S, COMPILE_NODE_S = 0.1, 0.004
"""The expected compile time in seconds: a fixed part, and a part for each operation."""

RECORDING_SLOWDOWN = 5.0
"""A target's first recorded call takes about this many times as long as a call on NumPy."""

MAX_ATTEMPTS = 12
"""A target without any compiled path stays on NumPy for good after this many recordings."""

REPLACE_AFTER = 32
"""After this many calls beyond the limit on variants, a new path replaces the least recently used one."""

COUNTING_S = 3e-6
"""The seconds that it takes to count a call that is not examined."""

RELIABLE_CALL_S = 1e-3
"""A first call of at least this many seconds is a fair sample of later ones. A shorter one may have spent most of its
time on set-up."""

MAX_SKIPPED = 1024
"""The most calls on NumPy between two recordings that end in a refusal. A recording that hit a limit is followed by
this many at once."""

LIMIT_PENALTY = 4
"""A recording that hit a limit counts as this many more attempts: it took long, and the next one would too."""


class Refused(RuntimeError):
    """Raised in mode "strict" if a target could not be accelerated, or was demoted."""


class Target:
    """A function that a catalogue or a decorator names, with its paths.

    rtol, mode: its own, or None for those in the settings. final: it stays on NumPy for good. paths: the most recently
    used first. refused: recordings that ended in a refusal, by which such calls are recognised. attempts: recordings so
    far, with penalties. repeats: calls that were recognised as refused. calls_to_skip: calls until the next recording.
    beyond_limit: calls beyond the limit on variants.
    """

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
        self._predictor = PathPredictor()
        self._checks = Checks(name)
        self.last_refusal: Refusal | None = None
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
    def is_calling_itself(self) -> bool:
        """Whether this thread is in a call of this target. Recursive calls bypass accel, and so need no more frames."""
        return self._thread == threading.get_ident()

    # -- the way in and out -------------------------------------------------------------------------------------------

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer one call, by a compiled program or by NumPy.

        Raises only what the program's own code raises and, in mode "strict", Refused.
        """
        try:
            mode = self.mode
            stays = mode == "off" or (self.final and mode != "strict")
        except Exception:  # the fault occurs again in `_answer_or_fall_back`, which handles it
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
                ledger = self._settled_ledger()
                ledger.count_numpy(None, own_s)
                if mode == "off":
                    ledger.refuse(OFF)
                else:
                    self._begin_rest(COUNTING_S, spent)
            except Exception:  # the program must not see an error only because a count is missing
                pass

    def _settled_ledger(self) -> Ledger:
        """The ledger, including the calls of a rest. Their time counts for a path that waits to be compiled, too."""
        taken, seconds = self.rest.taken, self.rest.seconds
        if taken:
            self._numpy_total_s += seconds
            waiting = next((path for path in self.paths if path.stage in (Stage.OBSERVING, Stage.PENDING)), None)
            if waiting is not None:
                waiting.wait(seconds)
                _add_potential_gain(EXPECTED_GAIN_SHARE * seconds - LAUNCH_S * taken)
        return self.ledger

    def _begin_rest(self, looked_s: float, call_s: float) -> None:
        """Send as many calls straight to NumPy as pay for examining this one."""
        if budget.for_later_runs:
            return
        self.rest.begin(looked_s, call_s)
        rests = self.ledger.rests
        if self.rest.left > 0 and self.rest not in rests:
            rests.append(self.rest)

    def _answer_or_fall_back(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call; if accel itself fails, NumPy answers, and the target stays on NumPy for good.

        Errors of the program's own code, `Refused`, and interrupts are raised.
        """
        call: Call | None = None
        inside, locked = THREAD.inside, False
        try:
            call = Call(self.function, args, kwargs)
            call.began = time.perf_counter()
            if self.final or (self.calls_to_skip > 0 and not self.paths):
                self.calls_to_skip -= not self.final
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
        """Answer a call in which accel failed. The function does not run again if it has run already."""
        self.final = True
        try:
            self._retire(fault)
        except Exception:  # the answer matters more than the report
            pass
        if call is None or not (call.done or call.raised):
            return self.function(*args, **kwargs)
        if call.raised is not None:
            raise call.raised
        return call.result

    def _retire(self, fault: BaseException) -> None:
        """Demote the target because of a fault in accel, and log why."""
        from accel.record.recording import gap_text

        refusal = Refusal("accel.fault", "", gap_text(fault))
        self.ledger.demote(refusal)
        self.last_refusal = refusal
        timeline.note_event(timeline.DEMOTED, self.name, refusal.why)
        logs.LOGGER.warning("%s", refusal.message(self.name, "was taken back to NumPy"))

    # -- a call -------------------------------------------------------------------------------------------------------

    def _dispatch(self, call: Call) -> Any:
        """Choose how the call runs: by a known path, as one refused before, or as a new path."""
        reason = unmet_precondition(self.mode)
        if reason is not None:
            return self._run_refused(call, reason)
        if self._has_budget:
            samples = 1 if self._numpy_s > RELIABLE_CALL_S else 2
            if self._timed < samples:  # NumPy's own time is needed before anything is compiled
                return self._run_numpy(call, timed=not _is_compiling())
            if self._numpy_s < rest.SMALL_CALL_S and not self._has_programs:  # but the next call may have larger arrays
                return self._postpone(call, "speed.small")
        for path in self._predictor.order(self.paths):
            values = path.matcher.match(call.args, call.kwargs)
            if isinstance(values, list):
                return self._follow(path, values, call)
        for refused, refusal in self.refused:
            if isinstance(refused.match(call.args, call.kwargs), list):
                self.repeats += 1
                self.calls_to_skip = max(self.calls_to_skip, min(self.repeats, MAX_SKIPPED))
                return self._run_refused(call, refusal)
        return self._new_path(call)

    def _new_path(self, call: Call) -> Any:
        """Record a call that matches no known path, if budget and limits allow it."""
        if self.calls_to_skip > 0:
            self.calls_to_skip -= 1
            return self._run_refused_before(call)
        if not self._budget_covers(self._recording_estimate_s()):
            THREAD.inside = False  # nested targets are smaller: the budget may cover them
            return self._postpone(call, "wait.budget")
        if len(self.paths) >= config.current().max_variants:
            self.beyond_limit += 1
            if self.beyond_limit % REPLACE_AFTER:
                return self._run_refused(call, Refusal("limit.variants", "", self._why_many_paths()))
            self.paths.pop()  # the least recently used
        return self._record(call)

    def _postpone(self, call: Call, reason: str) -> Any:
        """Run a call on NumPy because it is too early to compile: it is noted, but mode "strict" does not raise."""
        if self.last_refusal is None or self.last_refusal.reason != reason:
            self._note(Refusal(reason))
        return self._run_numpy(call, timed=not _is_compiling())

    def _run_refused(self, call: Call, refusal: Refusal) -> Any:
        """Run a call on NumPy because of a refusal. In mode "strict" raises Refused."""
        self._refuse(refusal)
        THREAD.inside = False  # nested targets may be accelerated where this one is not
        return self._run_numpy(call)

    def _run_numpy(self, call: Call, *, timed: bool = False) -> Any:
        """Run a call on NumPy. timed: whether its time is a fair sample of NumPy's speed."""
        looked_s = time.perf_counter() - call.began
        try:
            return call.run()
        finally:
            if call.seconds is not None:
                ledger = self._settled_ledger()
                ledger.count_numpy(call.seconds if timed else None, call.own_s)
                ledger.charge("guards", looked_s)
                self._numpy_s = call.seconds
                self._timed += 1
                self._numpy_total_s += call.seconds
                if self._has_budget and not self._has_programs:
                    self._begin_rest(looked_s, call.seconds)

    def _run_refused_before(self, call: Call) -> Any:
        """Run a call on NumPy for the reason that an earlier call was refused for. In mode "strict" raises Refused."""
        if self.mode == "strict" and self.last_refusal is not None:
            raise Refused(self.last_refusal.message(self.name))
        return self._run_numpy(call)

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

    def _why_many_paths(self) -> str:
        """Where the known paths differ, in words: lines whose outcomes are not common to all, or else arguments."""
        counts: dict[str, int] = {}
        for path in self.paths:
            for outcome in path.trace.tape.outcomes:
                place = f"line {outcome.where[1]} = {outcome.expected!r}"
                counts[place] = counts.get(place, 0) + 1
        rare = [place for place, count in counts.items() if count < len(self.paths)]
        return "paths differ at " + ", ".join(rare[:3]) if rare else "arguments of many shapes or types"

    # -- what it may cost ---------------------------------------------------------------------------------------------

    @property
    def _has_budget(self) -> bool:
        """Whether the budget applies. It does not if the user wants every call compiled or compared at any cost."""
        return self.mode == "auto" and config.current().ahead_of_time

    def _budget_covers(self, estimate_s: float) -> bool:
        return not self._has_budget or budget.covers(self.ledger, estimate_s, self._numpy_s, self._numpy_total_s)

    @property
    def _has_programs(self) -> bool:
        return any(path.variant is not None for path in self.paths)

    def _recording_estimate_s(self) -> float:
        if self._recording_s is not None:
            return self._recording_s
        return RECORDING_SLOWDOWN * self._numpy_s

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
        except (Rerun, Passed) as stopped:  # leave the handler, so that the program's error gets no context of accel's
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
            return self._run_numpy(call)
        self._count_recorded(spent)
        if recorded.refusal is not None:
            self._note_refusal(recorded.refusal, recorded.trace)
        else:
            assert recorded.trace is not None
            self._add_path(recorded.trace, spent)
        return call.result

    def _record_again(self, call: Call) -> Any:
        """Record a call that matches a path already: it may turn out to take a rare one, which a later run may meet."""
        self.attempts -= 1
        return self._record(call)

    def _add_path(self, trace: Trace, spent: float) -> None:
        if budget.for_later_runs and any(path.has_same_trace(trace) for path in self.paths):
            return
        self.paths.insert(0, Path(trace, self.name))
        self.ledger.waits = self._waits
        timeline.note_event(timeline.RECORDED, self.name, f"{len(trace.tape.nodes)} operations", spent)
        logs.LOGGER.info("%s recorded, %d operations", self.name, len(trace.tape.nodes))

    def _count_recorded(self, spent: float) -> None:
        """Enter a recorded call into the ledger: as a call on NumPy, and what it took on top of that as a cost."""
        usual = min(spent, self._numpy_s)
        self._recording_s = spent - usual
        self.ledger.count_numpy(None, usual)
        self.ledger.charge("recording", spent - usual)
        THREAD.counted_s += spent

    def _note_refusal(self, refusal: Refusal, trace: Trace | None) -> None:
        """Note a recording that was refused. Known paths stay compiled; recording is retried ever more rarely."""
        from accel.dispatch.replay import Matcher

        if trace is not None and all(outcome.node.host for outcome in trace.tape.outcomes):
            self.refused.append((Matcher(trace), refusal))
            if len(self.refused) > 4 * config.current().max_variants:
                self.refused.pop(0)
        costly = refusal.reason.startswith("limit.")
        self.attempts += LIMIT_PENALTY if costly else 0
        self.calls_to_skip = MAX_SKIPPED if costly else min(2 ** max(0, self.attempts - 4), MAX_SKIPPED)
        if self.attempts >= MAX_ATTEMPTS and not self.paths:
            self.final = True
        self._refuse(refusal)

    # -- following a path ---------------------------------------------------------------------------------------------

    def _follow(self, path: Path, values: list[Any], call: Call) -> Any:
        if path.stage is Stage.GIVEN_UP:
            return self._run_refused_before(call)
        if path.stage is not Stage.COMPILED:
            return self._run_without_program(path, values, call)
        if path.backoff:
            path.backoff -= 1
            return self._run_refused_before(call)
        return self._replay(path, values, call, siblings=True)

    def _run_without_program(self, path: Path, values: list[Any], call: Call) -> Any:
        """Run a call whose path has no program yet: observe its inputs, start compiling if it is due, run NumPy."""
        if path.stage is Stage.OBSERVING:
            path.observe(values)
            if budget.for_later_runs:
                path.keep_samples(values)
                self._let_others_observe(path, call)
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
            if path.stage is Stage.OBSERVING and (by_turns or not path.trace.inlined):
                return self._record_again(call)
            THREAD.inside = False  # nested targets get programs of their own, which a later run may need first
        quiet = not _is_compiling()
        result = self._run_numpy(call, timed=quiet)
        seconds = call.seconds or 0.0
        _add_potential_gain(EXPECTED_GAIN_SHARE * seconds - LAUNCH_S)
        path.note_numpy(seconds, quiet=quiet)
        if not quiet and path.speed.knows_numpy:
            self.ledger.charge("slowdown", seconds - path.speed.numpy_s.median())
        return result

    def _let_others_observe(self, path: Path, call: Call) -> None:
        """Let other paths that the call matches observe it too: a later run may record one of them first."""
        for other in self.paths:
            if other is not path and other.stage is Stage.OBSERVING and other.observed < MIN_OBSERVED:
                values = other.matcher.match(call.args, call.kwargs)
                if isinstance(values, list):
                    other.observe(values)
                    other.keep_samples(values)

    def _start(self, path: Path, values: list[Any], call: Call) -> None:
        """Start compiling the path. If the call waits for the compile, that time is not counted as the call's own."""
        started = time.perf_counter()
        path.start(values)
        waited = time.perf_counter() - started
        call.began += waited
        THREAD.counted_s += waited

    def _is_due(self, path: Path) -> bool:
        """Whether to compile the path now: once its calls have taken a share of what compiling takes."""
        if budget.for_later_runs:
            return path.observed > MAX_OBSERVED or not any(nested.is_observing for nested in path.trace.inlined)
        if not self._has_budget:
            _add_potential_gain(inf)
        if not config.current().ahead_of_time:
            return True
        if _add_potential_gain(0.0) < IMPORT_JAX_GAIN_S:
            return False
        known = [other.variant for other in self.paths if other.variant is not None]
        if known:
            expected, share = statistics.fmean(variant.executable.seconds for variant in known), COMPILE_THRESHOLD
        else:
            if any(other.stage is Stage.PENDING for other in self.paths):
                return False
            expected, share = COMPILE_S + COMPILE_NODE_S * len(path.trace.tape.nodes), FIRST_COMPILE_THRESHOLD
        return path.waited_s >= share * expected

    def compile_remaining(self) -> None:
        """Compile the paths that are left, at the end of a process that compiles for later runs.

        These are paths that were called too few times, and paths whose program folded an input that changed while
        another path ran: a later run may try such a path after the change.
        """
        changed = {path.trace.inputs.name(slot) for path in self.paths for slot in path.varying}
        for path in () if self.final else tuple(self.paths):
            too_few = path.stage is Stage.OBSERVING and path.observed >= MIN_OBSERVED
            slots = path.folded_slots(changed) if path.stage is Stage.COMPILED else ()
            if slots:
                path.respecialize(slots)
            if slots or too_few:
                path.start(path.samples)
                self._finish(path)

    @property
    def is_observing(self) -> bool:
        """Whether a path still has to be compiled."""
        return not self.final and any(path.stage is Stage.OBSERVING for path in self.paths)

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
        """Compile the path again with these constants as inputs, because they changed. The call runs on NumPy."""
        names = [path.trace.inputs.name(slot) for slot in changed]
        logs.LOGGER.info("%s is compiled again: %s changed", self.name, ", ".join(names))
        path.respecialize(changed)
        for other in self.paths:
            if other is not path:
                other.stop_folding(names)
        self._start(path, values, call)
        return self._run_without_program(path, values, call)

    # -- replaying ----------------------------------------------------------------------------------------------------

    def _replay(self, path: Path, values: list[Any], call: Call, *, siblings: bool) -> Any:
        """Answer a call by the path's program. siblings: whether other paths may be tried if an outcome differs."""
        from accel.dispatch.replay import HostError, SideExit, StaleConstants

        try:
            attempt = path.variant.run(values)
        except HostError as error:  # it concerns the numbers of this call only
            return self._run_refused(call, Refusal("rule.parameter", "", f"a number of this call: {error}"))
        except Exception as error:
            if not is_fault(error):
                raise
            self._give_up(path, Refusal("compile.failed", "", f"{type(error).__name__}: {error}"))
            return self._run_numpy(call)
        if isinstance(attempt, StaleConstants):
            return self._respecialize(path, attempt.slots, values, call)
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
        self._predictor.note_taken(path)
        if not _is_compiling():
            path.speed.compiled_s.add(seconds)
        if path is not self.paths[0]:
            self.paths.remove(path)
            self.paths.insert(0, path)
        if path.reconsider(values):
            self._note_compiled(path)
        if path.pending_spans is None and not budget.for_later_runs:
            slower = path.speed.evidence_of_slowness()
            if slower is not None:
                self._give_up_as_slower(path, slower)

    def _give_up_as_slower(self, path: Path, detail: str) -> None:
        path.give_up()
        if all(other.stage is Stage.GIVEN_UP for other in self.paths):
            self.final = True
            ledger = self.ledger
            ledger.state = State.INLINED if ledger.inlined_calls else State.DEMOTED
        self._refuse(Refusal("speed.slower", "", detail))

    def _side_exit(self, path: Path, side_exit: SideExit, call: Call, siblings: bool) -> Any:
        """Answer a call whose run was discarded because an outcome differs: on a known path, or on a new one."""
        now = time.perf_counter()
        self.ledger.charge("discarded", now - call.began)
        call.began = now
        place, outcomes = side_exit.place, side_exit.outcomes
        differing = path.variant.executable.program.outcomes[place]
        if siblings:
            for other in self.paths:
                if other is not path and starts_at_side_exit(
                    other, path, path.outcomes.index(differing), outcomes[place]
                ):
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

    # -- checking -----------------------------------------------------------------------------------------------------

    def _check(self, path: Path, attempt: Attempt, call: Call) -> Any:
        """Run the call on NumPy too, and compare the attempt with it. NumPy's results are the call's."""
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
        self._predictor.note_taken(path)
        path.checked_at = path.replays
        self._checks.last_s = replay_s + check_s - numpy_s
        self.ledger.count_checked(replay_s + check_s, numpy_s, quiet=quiet)
        THREAD.counted_s += replay_s + check_s - numpy_s

    @property
    def tolerance(self) -> float:
        """The relative error that comparisons allow."""
        return self.rtol if self.rtol is not None else config.current().rtol

    def _demote(self, refusal: Refusal) -> None:
        """Take the target back to NumPy for good.

        In mode "verify" comparing goes on, to find other differences: the program gets NumPy's results anyway.
        """
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
        """What the target's calls wait for; None once a path has a program or was given up."""
        if self.final or any(path.stage in (Stage.COMPILED, Stage.GIVEN_UP) for path in self.paths):
            return None
        pending = any(path.stage is Stage.PENDING for path in self.paths)
        return Refusal("wait.compile" if pending else "wait.calls")

    def _describe(self) -> list[dict[str, Any]]:
        """The target's compiled paths for the report (see `Path.describe`)."""
        return [path.describe() for path in self.paths if path.variant is not None]


def _is_compiling() -> bool:
    if not late.loaded:
        return False
    from accel.backend import background

    return background.busy()


def _add_potential_gain(seconds: float) -> float:
    """Add the seconds that a program would have saved for a call. Returns the sum over all targets so far."""
    from accel.backend import background

    return background.add_potential_gain(max(0.0, seconds))


def _note_device() -> None:
    from accel.backend.devices import device

    run = current_run()
    if run.device is None:
        place = device(config.current().platform)
        run.platform, run.device = place.platform, place.device_kind
