"""Paths: the ways that calls of one target take, each recorded once, then compiled, and which one is likely next."""

from __future__ import annotations

import time
from collections.abc import Collection, MutableMapping
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from accel import config, logs
from accel.backend import cache
from accel.dispatch.speed import Speed
from accel.reasons import Refusal
from accel.reports.ledger import open_ledger

if TYPE_CHECKING:
    from accel.backend.background import Compile

SPAN_SAMPLES = 8
"""Replays after which a path is looked at for arrays that most of them had to copy."""

SPAN_SAMPLES_FOUND = 64
"""The same where the program was on disk: an earlier run saw no need, and before other programs are loaded many do."""

MAX_RESPECIALIZED = 3
"""Times that a path is compiled again because a constant changed; after that nothing of it is constant."""

LOOK_BACK = 8
"""Paths taken last by which the next one is foretold."""

LONGEST_REST = 1023
"""Calls on NumPy between two runs of a program whose last runs were all discarded."""

REMEMBERED = 1000
"""Sequences of paths that are kept for that."""


class Stage(Enum):
    """Where a path stands. Its first calls are watched, then its program is pending, then its calls are replayed."""

    WATCHED = "watched"
    PENDING = "pending"
    COMPILED = "compiled"
    GIVEN_UP = "given up"


class Forecast:
    """Which path is likely next: the one that came after the same last paths before.

    Programs are periodic: a filter every sixth step, a smaller time step after it. A path that its outcomes refute has
    cost a whole run.
    """

    def __init__(self) -> None:
        self._recent: tuple[int, ...] = ()
        self._after: MutableMapping[tuple[int, ...], Path] = WeakValueDictionary()  # paths are replaced by others

    def order(self, paths: list[Path]) -> list[Path]:
        """The paths, the likely one first."""
        if len(paths) < 2:
            return list(paths)
        likely = self._after.get(self._recent)
        if likely is None or likely is paths[0] or likely not in paths:
            return list(paths)
        return [likely, *(path for path in paths if path is not likely)]

    def followed(self, path: Path) -> None:
        """Learn which path a call took."""
        if len(self._after) > REMEMBERED:
            self._after.clear()
        self._after[self._recent] = path
        self._recent = (*self._recent, id(path))[-LOOK_BACK:]


class Path:
    """One recorded path of a target.

    name: the target's, for messages. stage: changed by `start`, `finish`, `respecialize` and `give_up` alone. observed:
    calls while it was watched. latest: see `keep_forms`. constants: values seen so far, of slots that may be folded.
    varying: slots that may not. spanned: slots whose arrays the program takes from spans. pending: the program that is
    being compiled; again: the same for one with spans, while the one without runs. numpy_call_s: seconds of the last
    call on NumPy; least_numpy_s: of the shortest; waited_s: of all since it was recorded. found_on_disk, kept, unkept:
    of its program (see `Compile`). replays, checked_at: replays of the program, and at the last check. resting: calls
    that are left to NumPy before its program is tried again.
    """

    def __init__(self, trace: Any, name: str) -> None:
        from accel.dispatch.replay import Matcher
        from accel.lower.folding import foldable

        self.trace = trace
        self.name = name
        self.matcher = Matcher(trace)
        self.stage = Stage.WATCHED
        self.observed = 0
        self.constants: dict[int, Any] = {}
        self.varying: set[int] = set()
        self.spanned: frozenset[int] = frozenset()
        self._spans_tried = False
        self.latest: list[Any] = []
        self.variant: Any = None
        self.found_on_disk = False
        self.kept: tuple[tuple[str, str], ...] = ()
        self.unkept = ""
        self.pending: Compile | None = None
        self.again: Compile | None = None
        self._respecialized = 0
        self.numpy_call_s = 0.0
        self.least_numpy_s = inf
        self.waited_s = 0.0
        self.replays = 0
        self.checked_at = 0
        self.resting = 0
        self._discarded = 0  # runs in a row
        self.speed = Speed()
        self.outcomes = [outcome for outcome in trace.tape.outcomes if not outcome.node.host]
        self._candidates = foldable(trace)

    def is_of(self, trace: Any) -> bool:
        """Whether another call's recording took the same path."""
        return _shape_of(trace) == _shape_of(self.trace)

    def observe(self, values: list[Any]) -> None:
        """Watch one more call's inputs, before the call."""
        from accel.record.inputs import same_scalar

        for slot in self._candidates - self.varying:
            value = values[slot]
            if slot not in self.constants:
                self.constants[slot] = value.copy() if isinstance(value, np.ndarray) else value
            elif isinstance(value, np.ndarray):
                if value.tobytes() != self.constants[slot].tobytes():
                    self._vary((slot,))
            elif not same_scalar(value, self.constants[slot]):
                self._vary((slot,))
        self.observed += 1

    def named(self, names: Collection[str]) -> tuple[int, ...]:
        """The slots of these names that are taken for constant."""
        return tuple(slot for slot in self.constants if self.trace.inputs.name(slot) in names)

    def keep_forms(self, values: list[Any]) -> None:
        """Have a call's inputs, less their contents, at hand for a program that is compiled outside any call."""
        from accel.backend.compile import stand_ins

        self.latest = stand_ins(values)

    def _vary(self, slots: tuple[int, ...]) -> None:
        """What changed once is never folded again."""
        self.varying.update(slots)
        for slot in slots:
            self.constants.pop(slot, None)

    def _known(self) -> Any:
        """What the next program takes for constant."""
        from accel.lower import Known
        from accel.lower.folding import not_worth_folding

        arrays = {slot: value for slot, value in self.constants.items() if isinstance(value, np.ndarray)}
        scalars = {slot: value for slot, value in self.constants.items() if slot not in arrays}
        for slot in not_worth_folding(self.trace, Known(scalars, arrays)):
            del scalars[slot], self.constants[slot]
        return Known(scalars, arrays)

    def note_numpy(self, seconds: float, *, quiet: bool) -> None:
        """Note what a call on NumPy took; quiet: while nothing was compiled, so that it tells NumPy's speed."""
        self.numpy_call_s = seconds
        self.least_numpy_s = min(self.least_numpy_s, seconds)
        self.wait(seconds)
        if quiet:
            self.speed.numpy_s.add(seconds)

    def wait(self, seconds: float) -> None:
        """Note what calls have taken without the program."""
        self.waited_s += seconds
        if self.pending is not None:
            self.pending.miss(seconds)

    def gained_s(self, seconds: float) -> float:
        """What a compiled call of so many seconds took less than NumPy does, by the least that is known of that."""
        if len(self.speed.numpy_s):
            return self.speed.gained_s(seconds)
        return self.least_numpy_s - seconds if self.least_numpy_s < inf else 0.0

    # -- its program --------------------------------------------------------------------------------------------------

    def start(self, values: list[Any]) -> None:
        """Compile the path: in the background, or at once."""
        self.pending = self._compile(values)
        self.stage = Stage.PENDING

    def is_ready(self) -> bool:
        """Whether the pending program is there, or will never be."""
        return self.pending is not None and self.pending.done()

    def give_up(self) -> None:
        """Leave its calls to NumPy for good."""
        self.stage = Stage.GIVEN_UP

    def _compile(self, values: list[Any]) -> Compile:
        from accel.backend import background
        from accel.backend.compile import stand_ins

        started = time.perf_counter()
        arguments = self.trace, self._known(), stand_ins(values), self.spanned
        try:
            if config.current().ahead_of_time:
                return background.in_background(*arguments, missed_s=self.numpy_call_s)
            return background.at_once(*arguments)
        finally:
            open_ledger(self.name).charge("loading", time.perf_counter() - started)

    def give_up_if_overdue(self) -> Refusal | None:
        """Why the path's program is waited for no longer, where compiling it takes longer than it may."""
        limit = config.current().max_compile_s
        if self.pending is None or not self.pending.seconds() > limit:
            return None
        pending, self.pending = self.pending, None
        pending.abandon()
        return Refusal("limit.compile", "", f"more than {limit:g} s")

    def finish(self) -> Refusal | None:
        """Run as the program that is ready from now on; what kept it from being one, if anything did.

        Raises SettingError where the settings name no device that there is.
        """
        from accel.rules.rule import Unsupported

        assert self.pending is not None
        pending, self.pending = self.pending, None
        try:
            self._install(pending)
        except Unsupported as gap:
            return Refusal(gap.reason, "", gap.detail)
        except config.SettingError:
            raise
        except Exception as error:
            return Refusal("compile.failed", "", f"{type(error).__name__}: {error}")
        return None

    def _install(self, made: Compile) -> None:
        """The first replays of a program are compared, whatever those of another one showed."""
        from accel.dispatch.replay import Variant

        self.variant = Variant(self.trace, made.result())
        self._spans_tried |= bool(self.variant.executable.spans)
        self.found_on_disk, self.kept, self.unkept = made.found_on_disk, made.kept, made.unkept
        self.stage = Stage.COMPILED
        self.replays = self.checked_at = 0
        self.speed.compiled_s.clear()

    def respecialize(self, changed: tuple[int, ...]) -> None:
        """Constants changed: the program will not do, and the next one takes them as inputs."""
        self._respecialized += 1
        self._vary(changed)
        if self._respecialized >= MAX_RESPECIALIZED:
            self._vary(tuple(self.constants))
        self.variant = self.again = None
        self.stage = Stage.WATCHED

    def vary_named(self, names: Collection[str]) -> None:
        """Constants of these names changed on another path: what is not compiled yet takes them as inputs at once."""
        if self.stage is Stage.WATCHED:
            self._vary(self.named(names))
        elif self.stage is Stage.PENDING and self.named(names) and self.pending is not None and self.pending.withdraw():
            self._vary(self.named(names))
            self.pending, self.stage = None, Stage.WATCHED

    def reconsider(self, values: list[Any]) -> bool:
        """Compile again, with spans, where large arrays keep coming so that they have to be copied.

        Returns whether the program with spans has just taken the place of the one without.
        """
        if self.again is not None:
            return self.again.done() and self._renew()
        samples = SPAN_SAMPLES_FOUND if self.found_on_disk else SPAN_SAMPLES
        if self.replays % samples or self._spans_tried:
            return False
        from accel.backend import background

        executable, changed = self.variant.executable, {slot for slot, _ in self.trace.outputs.changed}
        copied = {executable.program.slots[at] for at, count in executable.copied.items() if 2 * count > samples}
        executable.copied.clear()
        copied -= changed  # a program has to copy them anyway, and aligned memory makes the faster copy
        if copied and not background.busy():
            self.spanned, self._spans_tried = frozenset(copied), True
            self.again = self._compile(values)
        return False

    def _renew(self) -> bool:
        assert self.again is not None
        again, self.again = self.again, None
        try:
            self._install(again)
        except Exception as error:
            self.spanned = frozenset()
            logs.LOGGER.info("%s could not be compiled with spans: %s", self.name, error)
            return False
        return True

    def rest(self) -> None:
        """A run was discarded for a path that cannot be compiled: after several in a row try ever more rarely."""
        self.resting = min(2**self._discarded - 1, LONGEST_REST)
        self._discarded += 1

    def held(self) -> None:
        """A run's outcomes held."""
        self._discarded = 0

    def describe(self) -> dict[str, Any]:
        """The compiled path for the report: what it is, and by what a call is known to be one of its calls."""
        program = self.variant.executable.program
        folded = {*program.known.scalars, *program.known.arrays}
        name = self.trace.inputs.name
        return {
            "state": "given up" if self.stage is Stage.GIVEN_UP else "in use",
            "replays": self.replays,
            "operations": program.operations,
            "compile_s": self.variant.executable.seconds,
            "found_on_disk": self.found_on_disk,
            "kept_bytes": cache.size_of(self.kept) if self.kept else None,
            "unkept": None if self.kept else self.unkept,
            "inputs": len(self.trace.inputs.slots),
            "constants": sorted({name(slot) for slot in folded}),
            "outcomes": [f"line {outcome.where[1]}: {outcome.expected!r}" for outcome in self.trace.tape.outcomes],
        }


def _shape_of(trace: Any) -> tuple[Any, ...]:
    """What recordings of one path have in common."""
    operations = [(node.rule.name, node.shape, str(node.dtype), node.where) for node in trace.tape.nodes]
    return operations, [(outcome.where, repr(outcome.expected)) for outcome in trace.tape.outcomes]


def continues(other: Path, path: Path, place: int, value: Any) -> bool:
    """Whether `other` is the path that parts from `path` at device outcome `place`, taking `value` there."""
    if len(other.outcomes) <= place:
        return False
    for mine, theirs in zip(path.outcomes[:place], other.outcomes[:place], strict=True):
        if mine.where != theirs.where or mine.expected != theirs.expected:
            return False
    at = other.outcomes[place]
    return at.where == path.outcomes[place].where and float(at.expected) == value
