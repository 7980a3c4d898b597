"""Dispatch: what one call of a target does. The only place that decides what a refusal leads to.

A target's life: its first calls are recorded; the next few run on NumPy while their inputs are watched for what never
changes; then its paths are compiled, and calls are replayed where guards and outcomes hold.
"""

from __future__ import annotations

import copy
import os
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import wrapt

from accel import config, logs, timeline
from accel.ledger import Ledger, State, current_run, open_ledger
from accel.paths import Forecast, Path, continues
from accel.reasons import Refusal

if TYPE_CHECKING:
    from accel.replay import Parted

OBSERVED = 2
"""Calls on NumPy after a recording, during which inputs show whether they change."""

WORTHWHILE = 0.1
"""Seconds on NumPy that a further path has taken, to those that compiling it will take, before it is compiled."""

FIRST_CHECKS = 2
"""Replays of a new variant that are always compared with NumPy."""

RAREST = 10
"""However little a target saves, it is compared again when a path has been replayed so many times as often."""

NEAR_POINTS = 1e-3
"""The share of all compared points that may differ because a comparison lay near its threshold."""

NEAR_FREE = 16
"""So many points may in any case."""

NAMED = 3
"""Fields that a warning names, the worst ones; the report holds the others."""

COPIES_TIMED = 8
"""Comparisons of a target in which copies to the device and back are timed."""

SPAN_SAMPLES = 8
"""Replays after which a path is looked at for arrays that most of them had to copy."""

SPEED_SAMPLES = 8
"""Replays before a variant's speed is judged."""

PLAINLY_SLOWER = 1.5
"""Half as many samples are enough where the best compiled one took so many times as long as NumPy's worst."""

LOST_S = 0.5
"""So are the fewest if they cost the program so many seconds, each as much as the best."""

FEWEST_SAMPLES = 3
"""Of two, one may have waited for its compile, the other for a busy machine."""

STRIKES = 2
"""Judgements, each on times of its own, that find a variant slower before it is demoted."""

NUMPY_SAMPLES = 3
"""Calls of NumPy's own that are timed before a variant's speed is judged; comparisons give what is missing."""

MAX_ATTEMPTS = 12
"""Recordings that may end in a refusal before the target stays on NumPy, where no path of it compiled."""

REPLACE_AFTER = 32
"""Calls beyond the limit on variants after which a new path takes the place of the one not followed for longest."""

LONGEST_PAUSE = 1024
"""Calls on NumPy between two recordings that may end in a refusal; at once where the first one was a long one."""

COSTLY = 4
"""A recording that ran into a limit counts as so many more: it was a long one, and the next would be too."""

MAX_RESPECIALIZED = 3
"""Times that a path is compiled again because a constant changed; after that nothing of it is constant."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Refused(RuntimeError):
    """In mode "strict": a target could not be accelerated, or was demoted."""


class _Thread(threading.local):
    inside = False
    """Whether a target's call is under way in this thread: nested targets then run plainly."""
    counted_s = 0.0
    """Seconds of this thread that stand in some target's ledger: the caller of a nested target leaves them out."""


_thread = _Thread()
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True
    current_run().note("a forked child process stays on NumPy: JAX's threads do not survive a fork")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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
        self.check_s = 0.0
        self.points = 0
        self.near_points = 0
        self._explained: dict[str, float] = {}
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
            self._refuse(Refusal("environment.busy"))
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
        self.last_refusal = refusal
        if self.ledger.refuse(refusal):
            kind = timeline.DEMOTED if refusal.reason == "speed.slower" else timeline.REFUSED
            timeline.note_event(kind, self.name, f"[{refusal.reason}] {refusal.where or refusal.detail}")
            logs.LOGGER.info("%s", refusal.message(self.name))
        if self.mode == "strict":
            raise Refused(refusal.message(self.name))

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
        from accel.lower import is_worth
        from accel.record import Recorded, Rerun, record

        self.attempts += 1
        recorded: Recorded | Rerun
        started = time.perf_counter()
        try:
            recorded = record(self.function, args, kwargs, max_nodes=config.current().max_nodes, worth=is_worth)
        except Rerun as rerun:  # outside this handler, so that what the plain call raises has no context of ours
            recorded = rerun
        except BaseException:  # the program's own, past an effect that could not be undone
            self._count_recorded(started)
            self.final = self.attempts >= MAX_ATTEMPTS and not self.paths
            raise
        if isinstance(recorded, Rerun):
            self._note_refusal(recorded.refusal, recorded.trace)
            return self._plain(args, kwargs, timed=False)
        spent = self._count_recorded(started)
        if recorded.refusal is not None:
            self._note_refusal(recorded.refusal, recorded.trace)
        else:
            self.paths.insert(0, Path(recorded.trace))
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
                self._start(path, values)
        if path.pending is not None and path.pending.done():
            self._finish(path)
            if path.variant is not None:
                return self._follow(path, values, args, kwargs)
        elif path.pending is not None and time.perf_counter() - path.started > config.current().max_compile_s:
            path.pending = None
            _abandon_compiling()
            self._give_up(path, Refusal("limit.compile", "", f"more than {config.current().max_compile_s:g} s"))
        quiet = not _compiling()
        started = time.perf_counter()
        result = self._plain(args, kwargs, timed=quiet)
        path.numpy_call_s = time.perf_counter() - started
        path.waited_s += path.numpy_call_s
        if quiet:
            path.numpy_s.add(path.numpy_call_s)
        return result

    def _is_due(self, path: Path) -> bool:
        """Whether to compile the path. A further one has to show first that it is taken often enough to be worth it."""
        if not config.current().ahead_of_time:
            return True
        known = [other.variant for other in self.paths if other.variant is not None]
        if not known:
            return all(other.pending is None for other in self.paths)
        return path.waited_s >= WORTHWHILE * statistics.fmean(variant.executable.seconds for variant in known)

    def _start(self, path: Path, values: list[Any]) -> None:
        path.started = time.perf_counter()
        path.pending = self._compile(path, values)

    def _compile(self, path: Path, values: list[Any]) -> Future[Any]:
        """The path's program, in the background or at once."""
        from accel import compile as compiling

        arguments = path.trace, path.known(), values, path.spanned
        if config.current().ahead_of_time:
            before = sum(other.variant is not None or other.pending is not None for other in self.paths)
            return compiling.in_background(*arguments, worth=path.numpy_call_s, before=before)
        made: Future[Any] = Future()
        try:
            made.set_result(compiling.compile_trace(*arguments))
        except Exception as error:
            made.set_exception(error)
        return made

    def _finish(self, path: Path) -> None:
        from accel.rules.rule import Unsupported

        pending, path.pending = path.pending, None
        try:
            executable = pending.result()  # type: ignore[union-attr]
        except Unsupported as gap:
            self._give_up(path, Refusal(gap.reason, "", gap.detail))
        except config.SettingError:
            raise
        except Exception as error:
            self._give_up(path, Refusal("compile.failed", "", f"{type(error).__name__}: {error}"))
        else:
            for inlined in path.trace.inlined:
                inlined.ledger.count_inlined()
            self._install(path, executable)

    def _install(self, path: Path, executable: Any) -> None:
        """Let the path run as this program from now on; its first replays are compared."""
        from accel.replay import Variant

        path.variant = Variant(path.trace, executable)
        path.replays = path.checked_at = 0
        path.compiled_s.clear()
        ledger = self.ledger
        ledger.compile_s += executable.seconds
        ledger.variants = sum(other.variant is not None for other in self.paths)
        ledger.describe = self._describe
        timeline.note_event(
            timeline.COMPILE, self.name, f"{executable.program.operations} operations", executable.seconds
        )
        _note_device()
        logs.LOGGER.info(
            "%s compiled in %.2f s: %d operations, %d folded",
            self.name,
            executable.seconds,
            executable.program.operations,
            executable.program.folded,
        )

    def _reconsider(self, path: Path, values: list[Any]) -> None:
        """Compile a path again whose large arrays keep coming so that they have to be copied: with spans for them."""
        if path.again is not None:
            if path.again.done():
                self._renew(path)
            return
        executable, changed = path.variant.executable, {slot for slot, _ in path.trace.outputs.changed}
        copied = {executable.program.slots[at] for at, count in executable.copied.items() if 2 * count > SPAN_SAMPLES}
        executable.copied.clear()
        copied -= changed  # a program has to copy them anyway, and aligned memory makes the faster copy
        if copied and not path.spanned and not _compiling():
            path.spanned = frozenset(copied)
            path.again = self._compile(path, values)

    def _renew(self, path: Path) -> None:
        """Put the program with spans in the place of the one without."""
        again, path.again = path.again, None
        try:
            executable = again.result()  # type: ignore[union-attr]
        except Exception as error:
            logs.LOGGER.info("%s could not be compiled with spans: %s", self.name, error)
        else:
            self._install(path, executable)

    def _give_up(self, path: Path, refusal: Refusal) -> None:
        path.dead = True
        if all(other.dead for other in self.paths) and self.attempts >= MAX_ATTEMPTS:
            self.final = True
        self._refuse(refusal)

    def _respecialize(
        self, path: Path, changed: tuple[int, ...], values: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A constant changed: compile again with it as an input."""
        path.respecialized += 1
        names = [path.trace.inputs.name(slot) for slot in changed]
        logs.LOGGER.info("%s is compiled again: %s changed", self.name, ", ".join(names))
        path.vary(changed)
        if path.respecialized >= MAX_RESPECIALIZED:
            path.vary(tuple(path.constants))
        path.variant = path.again = None
        self._start(path, values)
        return self._wait(path, values, args, kwargs)

    # -- replaying ----------------------------------------------------------------------------------------------------

    def _replay(
        self, path: Path, values: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, siblings: bool
    ) -> Any:
        from accel.replay import Changed, Parted

        try:
            attempt = path.variant.run(values)
        except Exception as error:
            self._give_up(path, Refusal("compile.failed", "", f"{type(error).__name__}: {error}"))
            return self._plain(args, kwargs, timed=False)
        if isinstance(attempt, Changed):
            return self._respecialize(path, attempt.slots, values, args, kwargs)
        if isinstance(attempt, Parted):
            return self._other_path(path, attempt, args, kwargs, siblings)
        if self._to_be_checked(path):
            return self._check(path, attempt, args, kwargs, time.perf_counter() - self._began)
        result = path.variant.commit(attempt)
        self._count_replay(path, values, time.perf_counter() - self._began)
        return result

    def _count_replay(self, path: Path, values: list[Any], seconds: float) -> None:
        numpy_s = path.numpy_s.median() if len(path.numpy_s) else None
        self.ledger.count_compiled(seconds, 0.0 if numpy_s is None else numpy_s - seconds)
        _thread.counted_s += seconds
        path.replays += 1
        self._forecast.followed(path)
        if not _compiling():
            path.compiled_s.add(seconds)
        if path is not self.paths[0]:
            self.paths.remove(path)
            self.paths.insert(0, path)
        if path.replays % SPAN_SAMPLES == 0:
            self._reconsider(path, values)
        if numpy_s is None or path.again is not None:
            return
        if len(path.compiled_s) >= SPEED_SAMPLES or self._is_plainly_slower(path):
            self._judge_speed(path, numpy_s)

    def _is_plainly_slower(self, path: Path) -> bool:
        """Whether a few samples are enough: the best of the compiled ones is far beyond NumPy's worst."""
        if len(path.numpy_s) < NUMPY_SAMPLES or len(path.compiled_s) < FEWEST_SAMPLES:
            return False
        worst, best, samples = max(path.numpy_s), min(path.compiled_s), len(path.compiled_s)
        enough = samples >= SPEED_SAMPLES // 2 or samples * (best - worst) > LOST_S
        return enough and best > PLAINLY_SLOWER * worst

    def _judge_speed(self, path: Path, numpy_s: float) -> None:
        compiled_s = path.compiled_s.median()
        if compiled_s <= numpy_s:
            path.slower = 0
            path.compiled_s.clear()
        else:
            path.slower += 1
            if path.slower < STRIKES and not self._is_plainly_slower(path):
                # a busy machine may have decided: measure both again
                path.numpy_s.clear()
                path.compiled_s.clear()
                return
            detail = f"{compiled_s * 1e6:.0f} us compiled against {numpy_s * 1e6:.0f} us"
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

    def _to_be_checked(self, path: Path) -> bool:
        if self.mode == "verify" or path.replays < FIRST_CHECKS:
            return True
        if len(path.numpy_s) < NUMPY_SAMPLES:
            return not _compiling()
        if path.replays >= RAREST * max(1, path.checked_at):
            return True
        share = config.current().check_share
        return all(each.checking_s + self.check_s < share * each.saved_s for each in (self.ledger, current_run()))

    def _check(self, path: Path, attempt: Any, args: tuple[Any, ...], kwargs: dict[str, Any], replay_s: float) -> Any:
        """Run NumPy too; its results stand, and the replay's are compared with them."""
        from accel.verify import Comparison, Snapshot

        started = time.perf_counter()
        snapshot = Snapshot(path.variant, attempt.values)
        self._time_copies(path, attempt)
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
        refusal = self._judge(comparison)
        if not _compiling():
            path.numpy_s.add(numpy_s)
        path.replays += 1
        self._forecast.followed(path)
        path.checked_at = path.replays
        self.check_s = time.perf_counter() - started
        self.ledger.count_checked(replay_s, self.check_s, None if _compiling() else numpy_s)
        _thread.counted_s += replay_s + self.check_s
        if refusal is not None:
            self._demote(refusal)
        return result

    def _time_copies(self, path: Path, attempt: Any) -> None:
        copy_s, executable = self.ledger.copy_s, path.variant.executable
        if len(copy_s) < COPIES_TIMED:
            arrays = [attempt.values[slot] for slot in executable.program.slots]
            copy_s.append(executable.time_copies(arrays, attempt.made, attempt.changed))

    def _judge(self, comparison: Any) -> Refusal | None:
        """Enter what a comparison found into the ledger; what demotes the target, if anything does."""
        from accel.verify import Verdict

        ledger, verdict, beyond = self.ledger, comparison.judge(self._explained), comparison.beyond
        self.points += comparison.points
        if verdict in (Verdict.WITHIN, Verdict.MISMATCH):
            ledger.compared(comparison.error)
        if verdict is Verdict.THRESHOLD:
            self.near_points += sum(difference.points for difference in beyond)
            if self.near_points > max(NEAR_FREE, NEAR_POINTS * self.points):
                verdict = Verdict.MISMATCH
        new = [difference for difference in beyond if ledger.differ(difference, str(verdict))]
        if verdict is not Verdict.MISMATCH:
            for difference in new:
                logs.LOGGER.info("%s differs from NumPy, %s: %s", self.name, verdict, difference.detail)
            return None
        places = "; ".join(difference.detail for difference in beyond[:NAMED])
        if len(beyond) > NAMED:
            places += f"; and {len(beyond) - NAMED} more fields, see the report"
        detail = f"{places}; relative error {comparison.error:.2g}, tolerance {self.tolerance:.2g}"
        if self.near_points > NEAR_FREE:
            detail += f"; {self.near_points} of {self.points} points compared so far lay near a threshold, too many"
        return Refusal("verify.mismatch", "", detail)

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

    def _describe(self) -> list[dict[str, Any]]:
        """The target's variants for the report: what each is, and by what a call is known to be one of its calls."""
        return [_description(path) for path in self.paths if path.variant is not None]


def _description(path: Path) -> dict[str, Any]:
    program = path.variant.executable.program
    folded = {*program.known.scalars, *program.known.arrays}
    name = path.trace.inputs.name
    return {
        "state": "given up" if path.dead else "in use",
        "replays": path.replays,
        "operations": program.operations,
        "compile_s": path.variant.executable.seconds,
        "inputs": len(path.trace.inputs.slots),
        "constants": sorted({name(slot) for slot in folded}),
        "outcomes": [f"line {outcome.where[1]}: {outcome.expected!r}" for outcome in path.trace.tape.outcomes],
    }


_OFF, _TRACED, _RAISING = (Refusal(reason) for reason in ("mode.off", "environment.traced", "fp.errstate"))


def hindrance(mode: str) -> Refusal | None:
    """What keeps every call on NumPy at the moment."""
    if _forked or mode == "off":
        return _OFF
    if sys.gettrace() is not None:
        return _TRACED
    if any(value not in ("ignore", "warn") for value in np.geterr().values()) or _warnings_raise():
        return _RAISING
    return None


def _warnings_raise() -> bool:
    """Whether a RuntimeWarning, by which NumPy tells of floating-point events, would be raised as an error."""
    for action, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if action == "error":
                return True
            if message is None and module is None and not line:
                return False
    return False


def _abandon_compiling() -> None:
    from accel import compile as compiling

    compiling.abandon()


def _compiling() -> bool:
    from accel import compile as compiling

    return compiling.busy()


def _note_device() -> None:
    from accel.devices import device

    run = current_run()
    if run.device is None:
        place = device(config.current().platform)
        run.platform, run.device = place.platform, place.device_kind


class _BoundAccelerated(wrapt.BoundFunctionWrapper):
    """A target's wrapper bound to an object: copied and pickled as a bound method is."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return getattr(copy.deepcopy(self.__self__, memo), self.__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (self.__self__, self.__name__)


class Accelerated(wrapt.FunctionWrapper):
    """A target's wrapper: binds as the function does, pickles and copies by reference."""

    __bound_function_wrapper__ = _BoundAccelerated

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __init__(self, function: Any, target: Target) -> None:
        super().__init__(function, _answer_for(target))
        self._self_target = target

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By module and qualified name, as functions are."""
        return self.__wrapped__.__qualname__


def _answer_for(target: Target) -> Callable[..., Any]:
    def answer(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return target.call(args if instance is None else (instance, *args), kwargs)

    return answer


def accelerate(
    fn: Function | None = None, *, name: str | None = None, rtol: float | None = None, mode: str | None = None
) -> Function | Callable[[Function], Function]:
    """Accelerate one function: a decorator, with and without arguments.

    fn: a function, method, static or class method written in Python. name: in the report; default module and
    qualified name. rtol: relative error that comparisons with NumPy allow; default `Settings.rtol`. mode: "off",
    "auto", "verify" or "strict" for this function alone; default `Settings.mode`, asked at every call.
    Raises TypeError for what is no Python function, and SettingError for a mode that there is not.

    >>> import accel
    >>> @accel.accelerate
    ... def double(x):
    ...     return 2.0 * x
    """
    if mode is not None:
        config.check("mode", mode)
    if fn is None:
        return lambda function: accelerate(function, name=name, rtol=rtol, mode=mode)  # type: ignore[return-value]
    if isinstance(fn, (staticmethod, classmethod)):
        inner = accelerate(fn.__func__, name=name, rtol=rtol, mode=mode)
        return type(fn)(inner)
    function = getattr(fn, "__wrapped__", fn) if isinstance(fn, Accelerated) else fn
    if not isinstance(function, FunctionType):
        raise TypeError(f"accelerate takes a function written in Python, not {type(fn).__name__}")
    target = Target(function, name or f"{function.__module__}.{function.__qualname__}", rtol, mode)
    open_ledger(target.name)
    return Accelerated(function, target)
