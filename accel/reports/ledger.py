"""What happened to each target: counted in the call itself, hence cheap, and read by the report.

One ledger per target for the life of the process, or until `reset()`.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from accel.reasons import Refusal
from accel.reports import timeline

SAMPLES = 512
"""Seconds per call kept per target and way of running: the most recent ones."""

MAX_FIELDS = 64
"""Fields of one target whose worst difference is kept."""

MAX_REFUSALS = 64
"""Distinct refusals kept per target with their detail; a detail that differs in every call must not grow for ever."""


class State(StrEnum):
    """Where a target stands.

    INLINED: runs as part of another target's program; direct calls, if there are any, are NumPy's.
    ABSENT: this revision of the program does not have it.
    DEMOTED: was compiled, and taken back to NumPy for good.
    """

    COMPILED = "compiled"
    NUMPY = "numpy"
    DEMOTED = "demoted"
    INLINED = "inlined"
    ABSENT = "absent"
    UNCALLED = "uncalled"


@dataclass(frozen=True, slots=True)
class Difference:
    """Where one field of a call's outputs differs most from NumPy's.

    field: as the user would write it. place: index of the worst element, "" where there is one value. what: both
    values in words. error: relative. points: elements beyond the tolerance; 0 where it is no matter of values.
    """

    field: str
    place: str
    what: str
    error: float
    points: int = 0

    @property
    def detail(self) -> str:
        """Field, place and both values."""
        return f"{self.field}{self.place}: {self.what}"


COSTS = ("recording", "loading", "comparing", "guards", "discarded", "slowdown")
"""What helping costs: recorded calls; JAX and programs that are loaded, or compiled where the program waits for
it; comparisons with NumPy; guards and lookups of calls that NumPy answered; runs whose outcomes did not hold; and
what calls on NumPy took longer because something was being compiled. Each beyond what NumPy would have taken."""


@dataclass(slots=True, eq=False)
class FieldDifferences:
    """How often comparisons found one field beyond the tolerance, the worst of these, and what was made of it."""

    worst: Difference
    verdict: str
    count: int = 0


def _samples() -> deque[float]:
    return deque(maxlen=SAMPLES)


class RestingCalls(Protocol):
    """Calls that went straight to NumPy, and are in no ledger yet. left: those that may come."""

    left: int
    taken: int

    def settle(self) -> tuple[int, float]:
        """How many there are and what they took, in s; they count as entered then."""


@dataclass(slots=True, eq=False)
class Ledger:
    """What happened to one target.

    calls: direct calls, compiled or not; `inlined_calls` (recorded as part of another target's call) come on top.
    variants: compiled programs in use. compile_s: seconds spent compiling, in whatever thread.
    numpy_s, compiled_s: wall seconds per call, most recent last. max_rel_error: the largest difference from NumPy
    that a comparison saw, relative to the array's largest magnitude; None before the first comparison.
    numpy_total_s, compiled_total_s: wall seconds of all such calls, without those of other targets inside them.
    gained_s: what compiled calls took less than NumPy does. checks: comparisons. costs: seconds that helping took, by
    kind (see COSTS). copy_s: seconds that copies to the device and back take per call,
    as measured in comparisons. found: differences beyond the tolerance, by field and verdict. describe: gives the
    target's variants for the report; waits: what its calls on NumPy wait for, where no variant is compiled yet.
    rests: calls that are not entered one by one, of each target of the name.
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
    checks: int = 0
    costs: Counter[str] = field(default_factory=Counter)
    copy_s: deque[float] = field(default_factory=_samples)
    found: dict[tuple[str, str], FieldDifferences] = field(default_factory=dict)
    describe: Callable[[], list[dict[str, Any]]] | None = None
    waits: Callable[[], Refusal | None] | None = None
    rests: list[RestingCalls] = field(default_factory=list)

    def settle(self) -> None:
        """Enter the calls that went straight to NumPy since they were entered last."""
        for rest in tuple(self.rests):
            taken, seconds = rest.settle()
            self.calls += taken
            self.numpy_calls += taken
            self.numpy_total_s += seconds
            if rest.left <= 0:
                self.rests.remove(rest)

    def count_numpy(self, seconds: float | None = None, own_s: float | None = None) -> None:
        """Count a call that NumPy answered.

        seconds: only where the time is worth comparing (not while recording). own_s: in any case, less what other
        targets took inside it; default `seconds`.
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

    def count_compiled(self, seconds: float, gained_s: float = 0.0) -> None:
        """Count a call that a compiled program answered in `seconds`, `gained_s` less than NumPy takes."""
        self.calls += 1
        self.compiled_calls += 1
        self.compiled_s.append(seconds)
        self.compiled_total_s += seconds
        self.gained_s += gained_s
        _run.gained_s += gained_s
        if self.state is not State.DEMOTED:
            self.state = State.COMPILED
        if timeline.calls is not None:
            timeline.note_call(self.target, timeline.COMPILED, seconds)

    def count_checked(self, seconds: float, numpy_s: float, *, quiet: bool = True) -> None:
        """Count a call that a compiled program answered and NumPy too, in `seconds` in all.

        numpy_s: NumPy's own part of that. quiet: whether that is worth comparing with.
        """
        self.calls += 1
        self.compiled_calls += 1
        self.checks += 1
        self.numpy_total_s += numpy_s
        self.charge("comparing", seconds - numpy_s)
        if quiet:
            self.numpy_s.append(numpy_s)
        if self.state is not State.DEMOTED:
            self.state = State.COMPILED
        if timeline.calls is not None:
            timeline.note_call(self.target, timeline.CHECKED, seconds)

    def charge(self, cost: str, seconds: float) -> None:
        """Enter what helping took beyond NumPy's time. cost: one of COSTS. seconds: less than 0 takes back."""
        self.costs[cost] += seconds  # type: ignore[assignment]  # a Counter of floats
        _run.charge(cost, seconds)

    @property
    def saved_s(self) -> float:
        """What was gained, less what that cost."""
        return self.gained_s - sum(self.costs.values())

    @property
    def spent_s(self) -> float:
        """What all of its calls took, without those of other targets inside them."""
        return self.numpy_total_s + self.compiled_total_s + sum(self.costs.values())

    def count_inlined(self) -> None:
        """Count a place in another target's program: a call that was recorded as part of that target's."""
        self.inlined_calls += 1
        if self.state in (State.UNCALLED, State.NUMPY):
            self.state = State.INLINED

    def compared(self, rel_error: float) -> None:
        """Note the relative error that one comparison with NumPy found. NaN counts as infinite."""
        error = float("inf") if rel_error != rel_error else rel_error
        self.max_rel_error = error if self.max_rel_error is None else max(self.max_rel_error, error)

    def differ(self, difference: Difference, verdict: str) -> bool:
        """Note a difference beyond the tolerance. Returns whether it is the first of its field and verdict."""
        known = self.found.get((difference.field, verdict))
        if known is None:
            if len(self.found) >= MAX_FIELDS:
                return False
            known = self.found[difference.field, verdict] = FieldDifferences(difference, verdict)
        known.count += 1
        if not difference.error <= known.worst.error:
            known.worst = difference
        return known.count == 1

    def refuse(self, refusal: Refusal) -> bool:
        """Count `refusal`: a call, or a path, that stays on NumPy. Returns whether its reason is new at that place."""
        if refusal in self.refusals:
            self.refusals[refusal] += 1
            return False
        new = all((each.reason, each.where) != (refusal.reason, refusal.where) for each in self.refusals)
        if len(self.refusals) >= MAX_REFUSALS:
            refusal = Refusal(refusal.reason, refusal.where)
        self.refusals[refusal] += 1
        return new

    def demote(self, refusal: Refusal) -> None:
        """Take the target off the compiled path for good, because of `refusal`."""
        self.refuse(refusal)
        self.state = State.DEMOTED


@dataclass(slots=True, eq=False)
class Run:
    """What is true of the whole run rather than of one target.

    started: `time.perf_counter()` when accounting began. platform, device: what programs were compiled for; None
    before anything was. notes: sentences for the report, in the order in which they became true. step: the target that
    is called once in every step of the program; None where no catalogue says so. gained_s, costs: of all targets, and
    what belongs to none; cost_s: their sum.
    """

    started: float = field(default_factory=time.perf_counter)
    platform: str | None = None
    device: str | None = None
    step: str | None = None
    gained_s: float = 0.0
    costs: Counter[str] = field(default_factory=Counter)
    cost_s: float = 0.0
    notes: list[str] = field(default_factory=list)

    def charge(self, cost: str, seconds: float) -> None:
        """As `Ledger.charge`, for what is no single target's."""
        self.costs[cost] += seconds  # type: ignore[assignment]
        self.cost_s += seconds

    @property
    def saved_s(self) -> float:
        """What was gained, less what that cost."""
        return self.gained_s - self.cost_s

    def note(self, sentence: str) -> None:
        """Add `sentence` to the report, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    @property
    def wall_s(self) -> float:
        """Seconds since accounting began."""
        return time.perf_counter() - self.started


_ledgers: dict[str, Ledger] = {}
_run = Run()


def open_ledger(target: str) -> Ledger:
    """Return the ledger of `target`, a fresh one at first."""
    book = _ledgers.get(target) or _ledgers.setdefault(target, Ledger(target))
    if book.rests:
        book.settle()
    return book


def ledgers() -> tuple[Ledger, ...]:
    """Return every open ledger, in order of target."""
    return tuple(open_ledger(target) for target in sorted(_ledgers))


def current_run() -> Run:
    """Return the account of the whole run."""
    return _run


def reset() -> None:
    """Forget everything counted so far. Wrappers that hold a ledger keep theirs, which is then no longer reported."""
    global _run
    _ledgers.clear()
    timeline.reset()
    _run = Run()
