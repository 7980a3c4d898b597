"""Ledgers: counts and times of each target. Every call updates them, so updates are cheap; the report reads them.

There is one ledger per target name, for the life of the process or until `reset()`.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from accel.platform import timeline
from accel.platform.clocks import time
from accel.platform.entries import COSTS as COSTS
from accel.platform.entries import CountedLater, CountedTransfers, FieldDifferences
from accel.platform.entries import Difference as Difference
from accel.platform.entries import State as State
from accel.platform.entries import real_costs as real_costs
from accel.platform.reasons import Refusal

SAMPLES = 512
"""Number of recent call times to keep per target, for compiled calls and for calls on NumPy each."""

MAX_KINDS = 64
"""Maximum number per target of pairs of field and verdict whose worst difference is kept, and of distinct refusals.
Details of a refusal may differ in every call."""

LEAST_WORK_S, MOST_STRETCH = 0.02, 8.0
"""Processor seconds of calls below which nothing is known of other programs, and the most that they are taken to
stretch time by: a program that waits for something else looks the same. Guesses."""

BUSY = 1.5
"""Stretch of NumPy's calls by other programs above which nobody can tell what NumPy would have taken: they may have
come and gone. At 3.2, a run of PyGCM that lost 8 s seemed to have lost 15; at 6.7, one that gained 2 seemed to have
gained 35."""


_samples = functools.partial(deque[float], maxlen=SAMPLES)


@dataclass(slots=True, eq=False)
class Ledger:
    """Counts and times of one target. All times are in seconds.

    calls: direct calls, compiled or not. inlined_calls: calls that were recorded as part of another target's; not among
    `calls`. variants: compiled programs. compile_s: time spent compiling, in whatever process. numpy_s, compiled_s: the
    times of recent calls, the latest last. numpy_total_s, compiled_total_s: the sums over all calls, without the time
    of other targets called inside them. gained_s: time saved by compiled calls, before costs: the least, by samples of
    NumPy's time. spread_s: by how much it may have been more. unsampled_calls: compiled calls of which there were too
    few samples. costs: by kind (see COSTS). comparisons: their number. compared_s: seconds of the calls that ran twice
    for comparison. max_rel_error: the largest relative error in a comparison; None before the first. copy_s: the time
    of copies to the device and back per call, measured in comparisons. differences: those beyond the tolerance, by
    field and verdict. doubtful_since: number of the first call whose result may be wrong, because a later comparison
    found a mismatch; or None. describe: returns the target's compiled paths for the report. waits: returns the refusal
    that its calls wait on, or None. transfers: the data copied by each of its programs so far. held_rounds: for an
    outlined loop, the number of iterations after which the device kept the loop's state. not_held: the number of other
    iterations, by reason, from the first run of a program on. counted_later: the calls of targets of this name that are
    not entered one by one.
    """

    target: str
    state: State = State.UNCALLED
    calls: int = 0
    compiled_calls: int = 0
    numpy_calls: int = 0
    inlined_calls: int = 0
    variants: int = 0
    compile_s: float = 0.0
    numpy_s: deque[float] = field(default_factory=_samples)
    compiled_s: deque[float] = field(default_factory=_samples)
    max_rel_error: float | None = None
    refusals: Counter[Refusal] = field(default_factory=Counter)
    numpy_total_s: float = 0.0
    compiled_total_s: float = 0.0
    gained_s: float = 0.0
    spread_s: float = 0.0
    unsampled_calls: int = 0
    comparisons: int = 0
    compared_s: float = 0.0
    costs: Counter[str] = field(default_factory=Counter)
    copy_s: deque[float] = field(default_factory=_samples)
    differences: dict[tuple[str, str], FieldDifferences] = field(default_factory=dict)
    doubtful_since: int | None = None
    describe: Callable[[], list[dict[str, Any]]] | None = None
    waits: Callable[[], Refusal | None] | None = None
    transfers: list[CountedTransfers] = field(default_factory=list)
    held_rounds: int = 0
    not_held: Counter[str] = field(default_factory=Counter)
    counted_later: list[CountedLater] = field(default_factory=list)

    def count_later(self, calls: CountedLater) -> None:
        """Let `settle` find these calls."""
        if calls not in self.counted_later:
            self.counted_later.append(calls)

    def settle(self) -> None:
        """Enter the calls that are not entered yet."""
        for each in tuple(self.counted_later):
            each.enter(self)
        self.counted_later[:] = [each for each in self.counted_later if not each.is_over]

    def count_rested(self, calls: int, seconds: float) -> None:
        """Count calls that have gone straight to NumPy. seconds: of all of them."""
        self.calls += calls
        self.numpy_calls += calls
        self.numpy_total_s += seconds

    def count_numpy(self, seconds: float | None = None, own_s: float | None = None) -> None:
        """Count a call that NumPy answered.

        seconds: its time; None if it is no fair sample, for example while recording. own_s: its time without other
        targets called inside it; default `seconds`.
        """
        self.calls += 1
        self.numpy_calls += 1
        if seconds is not None:
            self.numpy_s.append(seconds)
        spent = own_s if own_s is not None else seconds or 0.0
        self.numpy_total_s += spent
        if self.state is State.UNCALLED:
            self.state = State.NUMPY
        if timeline.calls is not None:
            timeline.note_call(self.target, timeline.NUMPY, spent)

    def count_compiled(
        self, seconds: float, gained_s: float = 0.0, spread_s: float = 0.0, unsampled: int = 0, *, calls: int = 1
    ) -> None:
        """Count calls that a compiled program answered, in `seconds` together.

        By how much these sums have grown: gained_s, saved against NumPy; spread_s, by how much it may have been more
        or less; unsampled, calls with too few samples to tell.
        """
        self.spread_s += spread_s
        self.unsampled_calls += unsampled
        self.calls += calls
        self.compiled_calls += calls
        self.compiled_s.append(seconds / calls)
        self.compiled_total_s += seconds
        self.gained_s += gained_s
        _run.compiled_s += seconds
        _run.gained_s += gained_s
        if self.state is not State.DEMOTED:
            self.state = State.COMPILED
        if timeline.calls is not None:
            timeline.note_call(self.target, timeline.COMPILED, seconds)

    def count_compared(self, seconds: float, numpy_s: float, *, quiet: bool = True) -> None:
        """Count a call that ran twice for comparison: compiled and on NumPy, in `seconds` in all.

        numpy_s: NumPy's part of `seconds`. quiet: True if that is a fair sample of NumPy's speed.
        """
        self.calls += 1
        self.compiled_calls += 1
        self.comparisons += 1
        self.numpy_total_s += numpy_s
        self.compared_s += seconds
        _run.compared_s += seconds
        self.charge("comparing", seconds - numpy_s)
        if quiet:
            self.numpy_s.append(numpy_s)
        if self.state is not State.DEMOTED:  # mode "verify" goes on comparing a demoted target
            self.state = State.COMPILED
        if timeline.calls is not None:
            timeline.note_call(self.target, timeline.COMPARED, seconds)

    def charge(self, cost: str, seconds: float) -> None:
        """Add `seconds` to a cost, one of COSTS. Negative seconds correct earlier charges."""
        self.costs[cost] += seconds  # type: ignore[assignment]  # a Counter of floats
        _run.charge(cost, seconds)

    @property
    def saved_s(self) -> float:
        """Seconds gained, minus all costs of the target."""
        return self.gained_s - sum(real_costs(self.costs).values())

    @property
    def saved_share(self) -> float:
        """Time saved by compiled calls, as a share of their estimated time on NumPy; 0 before the first."""
        usual_s = self.compiled_total_s + self.gained_s
        return max(0.0, self.gained_s / usual_s) if usual_s > 0.0 else 0.0

    @property
    def spent_s(self) -> float:
        """Seconds of all calls, costs included, without other targets called inside them."""
        costs = real_costs(self.costs)
        costs.pop("slowdown", None)  # the calls that were slowed down count in full on NumPy
        numpy_s = max(0.0, self.numpy_total_s)  # calls at rest are sampled: after a few, the sum may lie below 0
        return numpy_s + self.compiled_total_s + sum(costs.values())

    def count_inlined(self) -> None:
        """Count a call that was recorded as part of another target's call, and compiled into its program."""
        self.inlined_calls += 1
        if self.state in (State.UNCALLED, State.NUMPY):
            self.state = State.INLINED

    def compared(self, rel_error: float) -> None:
        """Record the relative error of one comparison with NumPy. NaN counts as infinite."""
        error = float("inf") if rel_error != rel_error else rel_error
        self.max_rel_error = error if self.max_rel_error is None else max(self.max_rel_error, error)

    def differ(self, difference: Difference, verdict: str) -> bool:
        """Record a difference beyond the tolerance. Returns whether it is the first of its field and verdict."""
        known = self.differences.get((difference.field, verdict))
        if known is None:
            if len(self.differences) >= MAX_KINDS:
                return False
            known = self.differences[difference.field, verdict] = FieldDifferences(difference, verdict)
        known.count += 1
        if not difference.error <= known.worst.error:
            known.worst = difference
        return known.count == 1

    def doubt(self, call: int) -> None:
        """Record that results may be wrong from this call on, counted from 1."""
        self.doubtful_since = call if self.doubtful_since is None else min(call, self.doubtful_since)

    def refuse(self, refusal: Refusal) -> bool:
        """Count a call, or a path, that stays on NumPy. Returns whether the reason is new at that line."""
        if refusal in self.refusals:
            self.refusals[refusal] += 1
            return False
        # whatever its detail, which may differ in every call: the log would repeat itself
        new = all((each.reason, each.where) != (refusal.reason, refusal.where) for each in self.refusals)
        if len(self.refusals) >= MAX_KINDS:
            refusal = Refusal(refusal.reason, refusal.where)
        self.refusals[refusal] += 1
        return new

    def demote(self, refusal: Refusal) -> None:
        """Record that the target was returned to NumPy for good, because of `refusal`."""
        self.refuse(refusal)
        self.state = State.DEMOTED


@dataclass(slots=True, eq=False)
class RunLedger:
    """Counts and times of the whole run rather than one target.

    started: `time.perf_counter()` when accounting began. platform, device: where programs run; None before the first
    program. devices: the largest number of devices of one program. precisions: those of the programs so far. step: the
    target that is called once in every step of the program; None if no catalogue names it. loops: the targets of
    outlined loops of the program itself. beforehand: True in a run by `accel compile`, in which calls waited for
    programs. finishing: programs that are compiled after the run's end, for later runs. expected_s, expected_gain_s:
    processor seconds that the run takes on NumPy, and that programs on disk are likely to gain, by earlier runs of the
    program; 0 if unknown. sampled_s, worked_s: wall time and processor time of calls on NumPy. launched_s: seconds in
    compiled programs. compiled_s: seconds of all compiled calls. gained_s, compared_s: sums over all targets. costs: by
    kind, sums over all targets, including costs that belong to none. notes: sentences for the report, in order of time.
    """

    started: float = field(default_factory=time.perf_counter)
    platform: str | None = None
    device: str | None = None
    devices: int = 1
    precisions: list[str] = field(default_factory=list)
    step: str | None = None
    loops: list[str] = field(default_factory=list)
    beforehand: bool = False
    finishing: int = 0
    expected_s: float = 0.0
    expected_gain_s: float = 0.0
    sampled_s: float = 0.0
    worked_s: float = 0.0
    launched_s: float = 0.0
    compiled_s: float = 0.0
    gained_s: float = 0.0
    compared_s: float = 0.0
    costs: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def charge(self, cost: str, seconds: float) -> None:
        """Add `seconds` to a cost that belongs to no single target; see `Ledger.charge`."""
        self.costs[cost] += seconds  # type: ignore[assignment]

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        """Charge the seconds of a block as loading, without what it charges as that itself."""
        before, started = self.costs["loading"], time.perf_counter()
        try:
            yield
        finally:
            self.charge("loading", time.perf_counter() - started - (self.costs["loading"] - before))

    @property
    def pace(self) -> str | None:
        """The target whose calls are the program's steps: its own loop, once iterations of it are compiled, or
        `step`."""
        books = [open_ledger(name) for name in self.loops]
        compiled = max(books, key=lambda book: book.compiled_calls, default=None)
        return compiled.target if compiled is not None and compiled.compiled_calls else self.step

    def fair_s(self, wall_s: float, worked_s: float) -> float:
        """Note a call on NumPy: wall time, and processor time of its thread. Returns the seconds of a fair sample.

        Other programs interrupt some calls and not others. A sample is the call's processor time, stretched as much as
        all of NumPy's calls are.
        """
        self.sampled_s += wall_s
        self.worked_s += worked_s
        return worked_s * self.stretch if self.worked_s >= LEAST_WORK_S else wall_s

    @property
    def stretch(self) -> float:
        """Wall time of NumPy's calls as a multiple of processor time, from 1 on: other programs are at work."""
        if self.worked_s < LEAST_WORK_S:
            return 1.0
        return min(MOST_STRETCH, max(1.0, self.sampled_s / self.worked_s))

    @property
    def is_busy(self) -> bool:
        """Whether other programs use the machine so much that nobody can tell what NumPy would have taken."""
        return self.stretch > BUSY

    @property
    def cost_s(self) -> float:
        """The sum of all costs."""
        return sum(real_costs(self.costs).values())

    @property
    def saved_s(self) -> float:
        """Seconds gained, minus all costs."""
        return self.gained_s - self.cost_s

    def note(self, sentence: str) -> None:
        """Add `sentence` to the report, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    @property
    def wall_s(self) -> float:
        """Seconds since accounting began."""
        return time.perf_counter() - self.started


_KEPT = "platform device devices precisions step loops beforehand expected_s expected_gain_s sampled_s worked_s notes"
"""Fields of a run's ledger that stay when its counts begin again."""

_ledgers: dict[str, Ledger] = {}
_run = RunLedger()


def open_ledger(target: str) -> Ledger:
    """Return the ledger of `target`, created at first use, with all calls entered."""
    # asked in every call: `setdefault` alone would make a ledger each time
    book = _ledgers.get(target) or _ledgers.setdefault(target, Ledger(target))
    if book.counted_later:
        book.settle()
    return book


def ledgers() -> tuple[Ledger, ...]:
    """Return every ledger, ordered by target."""
    return tuple(open_ledger(target) for target in sorted(_ledgers))


def compiled_targets() -> list[str]:
    """The targets that have compiled calls, those with most time in them first. Any thread may ask."""
    found = [book for book in list(_ledgers.values()) if book.state is State.COMPILED]
    return [book.target for book in sorted(found, key=lambda book: -book.compiled_total_s)]


def close(targets: Iterable[str]) -> None:
    """Leave these targets out of reports until their ledgers are opened again."""
    for target in targets:
        _ledgers.pop(target, None)


def current_run() -> RunLedger:
    """Return the figures of the whole run."""
    return _run


def begin_again() -> None:
    """Reset calls, times and refusals. Recordings and compiled programs of targets stay.

    States stay, too: which functions are absent, left out, or returned to NumPy for good, and why.
    """
    global _run
    for name, before in [(book.target, book) for book in ledgers()]:
        book = _ledgers[name] = Ledger(name)
        for kept in ("describe", "waits", "variants", "counted_later", "transfers"):
            setattr(book, kept, getattr(before, kept))
        book.doubtful_since = None if before.doubtful_since is None else 1
        for each in book.transfers:
            each.begin_again()
        # only the user's or the catalogue's choice keeps it on NumPy
        is_left_out = bool(before.refusals) and all(each.reason.startswith("choice.") for each in before.refusals)
        if is_left_out or before.state in (State.ABSENT, State.DEMOTED):
            book.state, book.refusals = before.state, Counter(dict.fromkeys(before.refusals, 1))
    timeline.forget()
    _run = RunLedger(**{name: getattr(_run, name) for name in _KEPT.split()})


def reset() -> None:
    """Forget everything counted so far. A ledger that is still referenced is no longer reported."""
    global _run
    _ledgers.clear()
    timeline.reset()
    _run = RunLedger()
