"""Targets: what one call of an accelerated function does. The only place that decides what a refusal leads to.

A target's life: its first calls are recorded; the next few run on NumPy while their inputs are watched for what never
changes; then its paths are compiled, and calls are replayed where guards and outcomes hold.
"""

from __future__ import annotations

import statistics
import threading
import time
from types import FunctionType
from typing import TYPE_CHECKING, Any

from accel import config, logs, timeline
from accel.dispatch.checks import Checks
from accel.dispatch.hindrances import hindrance
from accel.dispatch.paths import Forecast, Path, continues
from accel.ledger import Ledger, State, current_run, open_ledger
from accel.reasons import Refusal

if TYPE_CHECKING:
    from accel.record.recording import Recording
    from accel.replay import Parted

OBSERVED = 2
"""Calls on NumPy after a recording, during which inputs show whether they change."""

WORTHWHILE = 0.1
"""Seconds on NumPy that a further path has taken, to those that compiling it will take, before it is compiled."""

MAX_ATTEMPTS = 12
"""Recordings that may end in a refusal before the target stays on NumPy, where no path of it compiled."""

REPLACE_AFTER = 32
"""Calls beyond the limit on variants after which a new path takes the place of the one not followed for longest."""

LONGEST_PAUSE = 1024
"""Calls on NumPy between two recordings that may end in a refusal; at once where the first one was a long one."""

COSTLY = 4
"""A recording that ran into a limit counts as so many more: it was a long one, and the next would be too."""


class Refused(RuntimeError):
    """In mode "strict": a target could not be accelerated, or was demoted."""


class _Thread(threading.local):
    inside = False
    """Whether a target's call is under way in this thread: nested targets then run plainly."""
    counted_s = 0.0
    """Seconds of this thread that stand in some target's ledger: the caller of a nested target leaves them out."""


_thread = _Thread()


class Target:
    """A function that the catalogue or a decorator names, and what became of it."""

    def __init__(self, function: FunctionType, name: str, rtol: float | None, mode: str | None = None) -> None:
        self.function = function
        self.name = name
        self.rtol = rtol
        self._mode = mode
        self.final = False
        self.paths: list[Path] = []
        self.refused: list[Any] = []
        self.attempts = 0
        self.repeats = 0
        self.calls_to_skip = 0
        self.beyond_limit = 0
        self._began = 0.0
        self._forecast = Forecast()
        self._checks = Checks(name)
        self.last_refusal: Refusal | None = None
        self._lock = threading.Lock()

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.name)

    @property
    def mode(self) -> str:
        """The target's own mode, or the one in force."""
        return self._mode or config.current().mode

    # -- a call -------------------------------------------------------------------------------------------------------

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer one call, compiled or by NumPy."""
        if self.final:
            return self._unexplained(args, kwargs)
        if _thread.inside:
            return self.function(*args, **kwargs)
        if self.calls_to_skip > 0 and not self.paths:
            return self._skip(args, kwargs)
        if not self._lock.acquire(blocking=False):
            self._refuse(hindrance(self.mode) or Refusal("environment.busy"))
            return self._plain(args, kwargs, timed=False)
        _thread.inside = True
        try:
            return self._call(args, kwargs)
        finally:
            _thread.inside = False
            self._lock.release()

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._began = time.perf_counter()
        reason = hindrance(self.mode)
        if reason is not None:
            return self._stay(args, kwargs, reason)
        for path in self._forecast.order(self.paths):
            values = path.matcher.match(args, kwargs)
            if isinstance(values, list):
                return self._follow(path, values, args, kwargs)
        for refused, refusal in self.refused:
            if isinstance(refused.match(args, kwargs), list):
                self.repeats += 1
                self.calls_to_skip = max(self.calls_to_skip, min(self.repeats, LONGEST_PAUSE))
                return self._stay(args, kwargs, refusal)
        return self._new_path(args, kwargs)

    def _new_path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record a path that none of the known ones is, within the limit on them."""
        if self.calls_to_skip > 0:
            return self._skip(args, kwargs)
        if len(self.paths) >= config.current().max_variants:
            self.beyond_limit += 1
            if self.beyond_limit % REPLACE_AFTER:
                return self._stay(args, kwargs, Refusal("limit.variants", "", self._what_multiplies()))
            self.paths.pop()  # the one not followed for longest
        return self._record(args, kwargs)

    def _stay(self, args: tuple[Any, ...], kwargs: dict[str, Any], refusal: Refusal) -> Any:
        self._refuse(refusal)
        _thread.inside = False  # nested targets may be accelerated where this one is not
        try:
            return self._plain(args, kwargs, timed=False)
        finally:
            _thread.inside = True

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, timed: bool = True) -> Any:
        before, started = _thread.counted_s, time.perf_counter()
        try:
            return self.function(*args, **kwargs)
        finally:
            spent = time.perf_counter() - started
            self.ledger.count_numpy(spent if timed else None, spent - (_thread.counted_s - before))
            _thread.counted_s = before + spent

    def _skip(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.calls_to_skip -= 1
        return self._unexplained(args, kwargs)

    def _unexplained(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that stays on NumPy for a reason given at an earlier one: mode "strict" gives it again."""
        if self.mode == "strict" and self.last_refusal is not None:
            raise Refused(self.last_refusal.message(self.name))
        return self._plain(args, kwargs, timed=False)

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

    # -- recording ----------------------------------------------------------------------------------------------------

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from accel.lower.arrangement import is_worth
        from accel.record import Recorded, Rerun, record

        self.attempts += 1
        recorded: Recorded | Rerun
        recordings: list[Recording] = []
        limit, started = config.current().max_nodes, time.perf_counter()
        try:
            recorded = record(self.function, args, kwargs, max_nodes=limit, watch=recordings.append, worth=is_worth)
        except Rerun as rerun:  # outside this handler, so that what the plain call raises has no context of ours
            recorded = rerun
        except BaseException:  # the program's own, past an effect that could not be undone
            self._count_recorded(started)
            self.final = self.attempts >= MAX_ATTEMPTS and not self.paths
            for recording in recordings:
                self._note(recording.refusal)
            raise
        if isinstance(recorded, Rerun):
            self._note_refusal(recorded.refusal, recorded.trace)
            return self._plain(args, kwargs, timed=False)
        spent = self._count_recorded(started)
        if recorded.refusal is not None:
            self._note_refusal(recorded.refusal, recorded.trace)
        else:
            self.paths.insert(0, Path(recorded.trace, self.name))
            self.ledger.waits = self._waits
            timeline.note_event(timeline.RECORDED, self.name, f"{len(recorded.trace.tape.nodes)} operations", spent)
            logs.LOGGER.info("%s recorded, %d operations", self.name, len(recorded.trace.tape.nodes))
        return recorded.result

    def _count_recorded(self, started: float) -> float:
        """Enter a recorded call into the ledger; the seconds that it took."""
        spent = time.perf_counter() - started
        self.ledger.count_numpy(None, spent)
        _thread.counted_s += spent
        return spent

    def _note_refusal(self, refusal: Refusal, trace: Any) -> None:
        """A recording that led to no program: known paths stay compiled; this one is retried ever more rarely."""
        from accel.replay import Matcher

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

    def _follow(self, path: Path, values: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if path.dead:
            return self._unexplained(args, kwargs)
        if path.variant is None:
            return self._wait(path, values, args, kwargs)
        return self._replay(path, values, args, kwargs, siblings=True)

    def _wait(self, path: Path, values: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A path without a program yet: watch its inputs, start compiling, go on in NumPy."""
        if path.pending is None and path.observed < OBSERVED:
            path.observe(values)
        elif path.pending is None:
            path.observe(values)
            if self._is_due(path):
                path.start(values, self._programs())
        if path.pending is not None and path.pending.done():
            self._finish(path)
            if path.variant is not None:
                return self._follow(path, values, args, kwargs)
        else:
            overdue = path.give_up_if_overdue()
            if overdue is not None:
                self._give_up(path, overdue)
        quiet = not _compiling()
        started = time.perf_counter()
        result = self._plain(args, kwargs, timed=quiet)
        path.numpy_call_s = time.perf_counter() - started
        path.waited_s += path.numpy_call_s
        if quiet:
            path.speed.numpy_s.add(path.numpy_call_s)
        return result

    def _is_due(self, path: Path) -> bool:
        """Whether to compile the path. A further one has to show first that it is taken often enough to be worth it."""
        if not config.current().ahead_of_time:
            return True
        known = [other.variant for other in self.paths if other.variant is not None]
        if not known:
            return all(other.pending is None for other in self.paths)
        return path.waited_s >= WORTHWHILE * statistics.fmean(variant.executable.seconds for variant in known)

    def _programs(self) -> int:
        """Paths that are compiled or about to be."""
        return sum(path.variant is not None or path.pending is not None for path in self.paths)

    def _finish(self, path: Path) -> None:
        refusal = path.finish()
        if refusal is not None:
            self._give_up(path, refusal)
            return
        for inlined in path.trace.inlined:
            inlined.ledger.count_inlined()
        self._note_compiled(path.variant.executable)

    def _note_compiled(self, executable: Any) -> None:
        ledger, operations = self.ledger, executable.program.operations
        ledger.compile_s += executable.seconds
        ledger.variants = sum(path.variant is not None for path in self.paths)
        ledger.describe = self._describe
        timeline.note_event(timeline.COMPILE, self.name, f"{operations} operations", executable.seconds)
        _note_device()
        text = "%s compiled in %.2f s: %d operations, %d folded"
        logs.LOGGER.info(text, self.name, executable.seconds, operations, executable.program.folded)

    def _give_up(self, path: Path, refusal: Refusal) -> None:
        path.dead = True
        if all(other.dead for other in self.paths) and self.attempts >= MAX_ATTEMPTS:
            self.final = True
        self._refuse(refusal)

    def _respecialize(
        self, path: Path, changed: tuple[int, ...], values: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A constant changed: compile again with it as an input."""
        names = [path.trace.inputs.name(slot) for slot in changed]
        logs.LOGGER.info("%s is compiled again: %s changed", self.name, ", ".join(names))
        path.respecialize(changed)
        path.start(values, self._programs())
        return self._wait(path, values, args, kwargs)

    # -- replaying ----------------------------------------------------------------------------------------------------

    def _replay(
        self, path: Path, values: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, siblings: bool
    ) -> Any:
        from accel.replay import Changed, Parted, Unfit

        try:
            attempt = path.variant.run(values)
        except Unfit as error:  # numbers of this call; the next one may have others
            return self._stay(args, kwargs, Refusal("rule.parameter", "", f"a number of this call: {error}"))
        except Exception as error:
            self._give_up(path, Refusal("compile.failed", "", f"{type(error).__name__}: {error}"))
            return self._plain(args, kwargs, timed=False)
        if isinstance(attempt, Changed):
            return self._respecialize(path, attempt.slots, values, args, kwargs)
        if isinstance(attempt, Parted):
            return self._other_path(path, attempt, args, kwargs, siblings)
        if self._checks.are_due(path, self.mode):
            return self._check(path, attempt, args, kwargs, time.perf_counter() - self._began)
        result = path.variant.commit(attempt)
        self._count_replay(path, values, time.perf_counter() - self._began)
        return result

    def _count_replay(self, path: Path, values: list[Any], seconds: float) -> None:
        self.ledger.count_compiled(seconds, path.speed.saved_s(seconds))
        _thread.counted_s += seconds
        path.replays += 1
        self._forecast.followed(path)
        if not _compiling():
            path.speed.compiled_s.add(seconds)
        if path is not self.paths[0]:
            self.paths.remove(path)
            self.paths.insert(0, path)
        if path.reconsider(values):
            self._note_compiled(path.variant.executable)
        if path.again is None:
            slower = path.speed.found_slower()
            if slower is not None:
                self._give_up_as_slower(path, slower)

    def _give_up_as_slower(self, path: Path, detail: str) -> None:
        path.dead = True
        if all(other.dead for other in self.paths):
            self.final = True
            ledger = self.ledger
            ledger.state = State.INLINED if ledger.inlined_calls else State.DEMOTED
        self._refuse(Refusal("speed.slower", "", detail))

    def _other_path(
        self, path: Path, found: Parted, args: tuple[Any, ...], kwargs: dict[str, Any], siblings: bool
    ) -> Any:
        """An outcome differs: the call takes another path, a known one or a new one."""
        place, outcomes = found.place, found.outcomes
        differing = path.variant.executable.program.outcomes[place]
        if siblings:
            for other in self.paths:
                if other is not path and continues(other, path, path.outcomes.index(differing), outcomes[place]):
                    values = other.matcher.match(args, kwargs)
                    if isinstance(values, list):
                        if other.variant is None or other.dead:
                            return self._follow(other, values, args, kwargs)
                        return self._replay(other, values, args, kwargs, siblings=False)
        return self._new_path(args, kwargs)

    # -- checking -----------------------------------------------------------------------------------------------------

    def _check(self, path: Path, attempt: Any, args: tuple[Any, ...], kwargs: dict[str, Any], replay_s: float) -> Any:
        """Run NumPy too; its results stand, and the replay's are compared with them."""
        from accel.verify import Comparison, Snapshot

        started = time.perf_counter()
        snapshot = Snapshot(path.variant, attempt.values)
        self._checks.time_copies(path.variant.executable, attempt)
        before = time.perf_counter()
        try:
            result = self.function(*args, **kwargs)
        except Exception as error:
            what = f"NumPy raised {type(error).__name__}: {error}; the replay raised nothing"
            self.ledger.count_numpy(None, time.perf_counter() - started)
            self._demote(Refusal("verify.mismatch", "", what))
            raise
        numpy_s = time.perf_counter() - before
        comparison = Comparison(path.variant, attempt, result, snapshot, self.tolerance)
        logs.LOGGER.debug("%s compared with NumPy, largest error %.2g", self.name, comparison.error)
        refusal = self._checks.judge(comparison, self.tolerance)
        if not _compiling():
            path.speed.numpy_s.add(numpy_s)
        path.replays += 1
        self._forecast.followed(path)
        path.checked_at = path.replays
        self._checks.last_s = time.perf_counter() - started
        self.ledger.count_checked(replay_s, self._checks.last_s, None if _compiling() else numpy_s)
        _thread.counted_s += replay_s + self._checks.last_s
        if refusal is not None:
            self._demote(refusal)
        return result

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

    def _waits(self) -> Refusal | None:
        """What calls wait for where no path has a program yet, nor was given up."""
        if self.final or any(path.dead or path.variant is not None for path in self.paths):
            return None
        observed = any(path.observed > OBSERVED for path in self.paths)
        return Refusal("wait.compile" if observed else "wait.calls")

    def _describe(self) -> list[dict[str, Any]]:
        """The target's variants for the report: what each is, and by what a call is known to be one of its calls."""
        return [path.describe() for path in self.paths if path.variant is not None]


def _compiling() -> bool:
    from accel import background

    return background.busy()


def _note_device() -> None:
    from accel.devices import device

    run = current_run()
    if run.device is None:
        place = device(config.current().platform)
        run.platform, run.device = place.platform, place.device_kind
