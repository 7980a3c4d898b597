"""Known paths: all recorded paths of one target, and which of them a call may take."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from accel.dispatch.paths.exits import starts_at_side_exit
from accel.dispatch.paths.figures import figures
from accel.dispatch.paths.joining import joins_more, may_start
from accel.dispatch.paths.path import RecordedPath, shape_of
from accel.dispatch.paths.prediction import PathPredictor
from accel.dispatch.paths.program import Program
from accel.dispatch.paths.stages import Stage
from accel.platform import config
from accel.platform.reasons import Refusal
from accel.policy import prices
from accel.policy.account import expected_gain_s

if TYPE_CHECKING:
    from accel.dispatch.replay import SideExit
    from accel.ir.tape import Outcome
    from accel.record import Trace

MOST_JOINED = 32
"""Maximum number of paths with one program that count as one for the limit on paths. Matching them takes time, too."""

REPLACE_AFTER, MOST_IN_VAIN = 32, 2
"""Number of calls beyond the limit on variants after which a new path replaces the least recently used one. It doubles
each time that this one has been replayed less often; after MOST_IN_VAIN times, each call may take a path of its own."""

MOST_STRANGERS = 2
"""Number of a run's recorded paths that may be missing on disk, before no more are expected to be there."""

WAITING = (Stage.OBSERVING, Stage.PENDING)
"""The stages of a path that is to get a program."""

MOST_SCATTERED = 3
"""Number of never repeated paths, differing in one number only, after which no more are recorded."""

MOST_APART = 5
"""MOST_SCATTERED of a target without a program, in which no run was discarded. A guess: a number of a short cycle has
come again by then, since ever more calls lie between its recordings."""


SMALL_COUNT = 4
"""Maximum of a whole number that is taken to come again. Guess."""


class KnownPaths:
    """The recorded paths of one target, the most recently used first.

    joint: the program of several of them, if there is one.
    """

    def __init__(self) -> None:
        self._beyond_limit, self._in_vain = 0, 0
        self._recurs = False  # a call recorded again took a known path
        self.clear()

    def __iter__(self) -> Iterator[RecordedPath]:
        return iter(tuple(self._paths))

    def __len__(self) -> int:
        return len(self._paths)

    # -- which one a call takes ---------------------------------------------------------------------------------------

    def likely_first(self) -> list[Program]:
        """The programs of all paths, that of the predicted one first."""
        if len(self._paths) < 2:
            return self.programs
        likely = self._predictor.predicted()
        order = [] if likely is None or likely not in self._paths else [likely.program]
        return list(dict.fromkeys((*order, *self.programs)))

    @property
    def programs(self) -> list[Program]:
        """The programs of all paths, each once."""
        if len(self._paths) == 1 and self.joint is None:  # as of most functions: each call asks
            return [self._paths[0].program]
        # outcomes tell which path a call takes: better than to take it for one that has no program
        joint = () if self.joint is None else (self.joint,)
        return list(dict.fromkeys((*joint, *(path.program for path in self._paths))))

    @property
    def alone(self) -> list[RecordedPath]:
        """The paths that do not share a program."""
        return [path for path in self._paths if not path.is_joined]

    def expected(self, program: Program) -> RecordedPath:
        """The recorded path that a call is likely to take which the program computes."""
        likely = self._predictor.predicted() if program is self.joint else None
        return program.whole if likely is None or not likely.is_joined else likely

    def note_taken(self, path: RecordedPath) -> None:
        """A call has been replayed by the program of this path."""
        if len(self._paths) > 1:  # one alone need not be predicted
            self._predictor.note_taken(path)
        if path in self._unmet:
            self._unmet.remove(path)
        if path in self._paths and path is not self._paths[0]:
            self._paths.remove(path)
            self._paths.insert(0, path)

    def note_exit_to(self, program: Program) -> None:
        """A run was discarded, and its call takes a path that is not compiled: next time it may be predicted."""
        self._predictor.note_taken(program.whole)

    def after(self, exit: SideExit, program: Program) -> Iterator[Program]:
        """The programs of the known paths that a side exit leads to."""
        if program is self.joint:
            yield from (path.program for path in self.alone)
            return
        path = program.whole
        position = exit.position
        if not exit.on_host:  # the program checks no outcomes that lowering has folded: its numbering is not the path's
            position = path.outcomes.index(program.variant.executable.program.outcomes[position])
        for other in self:
            if other is not path and starts_at_side_exit(other, path, exit, position):
                yield other.program

    # -- adding one ---------------------------------------------------------------------------------------------------

    def make_room(self) -> bool:
        """Whether one more path may be recorded; now and then in place of the least recently used one."""
        if not self.are_full:
            return True
        self._beyond_limit += 1
        if self._beyond_limit < REPLACE_AFTER * 2**self._in_vain:
            return False
        self._beyond_limit = 0
        replaced = (self.alone or self._paths)[-1]
        if replaced.replays < REPLACE_AFTER:
            self._in_vain += 1
        self._paths.remove(replaced)
        return True

    @property
    def are_full(self) -> bool:
        """Whether as many paths are known as are kept."""
        return self._count >= config.current().max_variants

    @property
    def keep_changing(self) -> bool:
        """Whether each call may take a path of its own."""
        return self._in_vain >= MOST_IN_VAIN

    @property
    def _count(self) -> int:
        """The number of paths; many that have one program count as MOST_JOINED of them do."""
        alone = len(self.alone)
        return alone + math.ceil((len(self._paths) - alone) / MOST_JOINED)

    def hold_trace(self, trace: Trace) -> bool:
        """Whether a known path does the same as the one that `trace` recorded. Their guards may differ."""
        return shape_of(trace) in [shape_of(path.trace) for path in self._paths]

    def add(self, trace: Trace, name: str) -> RecordedPath:
        """Add a recorded path of the target of that name. Returns it."""
        self._paths.insert(0, Program(RecordedPath(trace, name)).whole)
        return self._paths[0]

    def note_unmet(self, known: Collection[RecordedPath]) -> None:
        """A run was discarded, and its call recorded. known: the paths before that."""
        self._unmet += [path for path in self._paths if path not in known]
        del self._unmet[:-MOST_SCATTERED]

    def note_again(self, *, found: bool) -> None:
        """A call that matches a path without a program has been recorded again. found: it took another path."""
        self._recurs |= not found

    @property
    def longest(self) -> int | None:
        """The operations of the longest path; None while there is none."""
        return max((len(path.trace.tape.nodes) for path in self._paths), default=None)

    @property
    def scattering(self) -> Refusal | None:
        """The refusal for a number that was another one in each of the last recordings: none of them was of use.

        They followed discarded runs, or there is no program yet.
        """
        unmet = self._unmet if len(self._unmet) >= MOST_SCATTERED else self._apart()
        if not unmet:
            return None
        first, *others = (_numbers(path.trace.tape.outcomes) for path in unmet)
        for where, number in first.items():
            numbers = [number, *(other[where] for other in others if where in other)]
            if len(set(numbers)) == len(unmet):
                detail = f"line {where[1]} gave {', '.join(map(str, numbers))}"
                return Refusal("shape.scattered", "", detail, (where,))
        return None

    def may_scatter(self, path: RecordedPath) -> bool:
        """Whether a number that Python needed of the path's arrays has not come twice yet: it may never do so."""
        if self._recurs or self.with_program:
            return False
        mine = {where: number for where, number in _numbers(path.outcomes).items() if not _is_small(number)}
        others = [_numbers(other.outcomes) for other in self._paths if other is not path]
        come_twice = any(other.get(where) == number for where, number in mine.items() for other in others)
        return bool(mine) and not come_twice

    def _apart(self) -> list[RecordedPath]:
        """The last recorded paths of a target without a program, if no call is known to have taken one of them again.

        A path that Python chose by a number would have been matched. One that data chose is matched by any call.
        """
        last = self._paths[:MOST_APART]
        if len(last) < MOST_APART or self._recurs or self.with_program:
            return []
        chosen_by_data = all(path.outcomes for path in last)
        return last if chosen_by_data or not any(path.observed for path in last) else []

    def let_go(self) -> None:
        """At the end of the process: drop all paths, with their recordings and programs.

        A path and its program refer to each other: without that, they are freed at once. Else the garbage collector has
        to find them among all objects of the process.
        """
        for path in self._paths:
            del path.program
        self.clear()

    def clear(self) -> None:
        self._paths: list[RecordedPath] = []
        self._unmet: list[RecordedPath] = []  # recorded after a run was discarded, and not taken since
        self.joint: Program | None = None
        self._predictor = PathPredictor()

    # -- one program for several --------------------------------------------------------------------------------------

    def use(self, joint: Program) -> None:
        """This program replays the calls of several paths from now on."""
        if self.joint is not None and self.joint is not joint:
            self.joint.withdraw()
        self.joint = joint

    def dissolve(self, why: str) -> None:
        """Give the paths that share a program programs of their own."""
        joint, self.joint = self.joint, None
        assert joint is not None
        for path in joint.paths:
            if path.program is joint:
                path.apart = why
                Program(path)

    # -- their programs -----------------------------------------------------------------------------------------------

    @property
    def with_program(self) -> list[Program]:
        """Programs that have been compiled, in use or given up."""
        return [program for program in self.programs if program.has_program]

    def ready(self) -> Iterator[Program]:
        """Programs that have become ready. To use one may change the others: each is asked when it is reached."""
        return (program for program in self.programs if program.is_ready())

    @property
    def waiting(self) -> Program | None:
        """The first program that is to be compiled."""
        return next((path.program for path in self.alone if path.stage in WAITING), None)

    @property
    def waiting_count(self) -> int:
        """The number of such paths."""
        return sum(path.stage in WAITING for path in self.alone)

    @property
    def awaits_known_paths(self) -> bool:
        """Whether an earlier run's program computes paths that are not known yet: all they need is to be recorded.

        It is not asked for any more once too many paths have turned up that the earlier run had not recorded.
        """
        if self.joint is None:
            return False
        known = {path.key for path in self._paths}
        return not known.issuperset(self.joint.on_disk) and len(known - self.joint.on_disk) <= MOST_STRANGERS

    def price_of_another_s(self, recording_s: float) -> float:
        """Return the seconds that calls of a further kind have to miss before one of them is recorded.

        That is the time of a recording, doubled by each path that already waits. It is at least the time that such
        calls have to miss before the joint program is compiled again with them.
        """
        again_s = 0.0 if self.joint is None else self.joint.whole.price_s
        return max(recording_s * float(2**self.waiting_count), again_s)

    @property
    def are_observed(self) -> bool:
        """Whether any of them is observed for being compiled."""
        return any(path.stage is Stage.OBSERVING for path in self.alone)

    @property
    def are_pending(self) -> bool:
        """Whether a program of any of them is being compiled."""
        return any(path.program.pending is not None for path in self._paths)

    @property
    def are_given_up(self) -> bool:
        """Whether all of them stay on NumPy for good."""
        return all(path.stage is Stage.GIVEN_UP for path in self._paths)

    def is_worth_compiling(self, path: RecordedPath, certain_s: float = 0.0, before_s: float = 0.0) -> bool:
        """Whether the path's calls have lost what compiling it costs, or are certain to lose more (see policy.prices).

        certain_s: seconds that calls to come are certain to lose without a program. before_s: those that calls lost
        before it was recorded.
        """
        # one after the other: the next joins what the one before has brought together
        if not may_start(self) or (self.joint is not None and self.joint.pending is not None):
            return False
        if not self.with_program and any(other.stage is Stage.PENDING for other in self.alone):
            return False
        # a path that joins a program of more paths has the whole compiled again: most of their operations are the same
        again_s = self.joint.whole.price_s if self.joint is not None and joins_more(path, self) else 0.0
        price_s = max(path.price_s, again_s)
        if self.with_program:  # as many kinds again are likely to come, each of which has all compiled anew
            certain_s /= len(self._paths)
        lost_s = path.lost_s + expected_gain_s(before_s)
        return prices.are_paid(price_s, lost_s, certain_s, is_recorded=True)

    def stop_folding(self, names: Collection[str], changed_in: Program) -> None:
        """Constants of these names have changed in one program: those not compiled yet take them as inputs too."""
        own = [path.program for path in self.alone]
        for other in (*own, *(program.joint for program in own if program.joint is not None)):
            slots = other.whole.folded_slots(names)
            if other is not changed_in and (other.stage is Stage.OBSERVING or (slots and other.observe_again())):
                other.whole.constants.rule_out(slots)

    def varying_names(self) -> set[str]:
        """The names of numbers that have changed in any of them."""
        return {path.trace.inputs.name(slot) for path in self._paths for slot in path.constants.varying}

    # -- for messages and the report ----------------------------------------------------------------------------------

    def why_many(self) -> str:
        """The input or line at which the paths part."""
        answers = [_answers(path) for path in self._paths]
        counts = Counter(
            f"line {line} = {value}" for each in answers for line in each for value in dict.fromkeys(each[line])
        )
        # an outcome that all paths share does not tell them apart
        rare = [text for text, count in counts.items() if count < len(self._paths)]
        if not rare:  # a line that is asked again and again, as in a sort
            lines = dict.fromkeys(line for each in answers for line in each)
            rare = [f"line {line}" for line in lines if any(each.get(line) != answers[0].get(line) for each in answers)]
        return "paths differ at " + ", ".join(rare[:3]) if rare else "arguments of many shapes or types"

    def wait_reason(self) -> Refusal | None:
        """Reason why no program has answered any call so far; None if a path was given up, which has its own reason."""
        if any(path.stage is Stage.GIVEN_UP for path in self._paths):
            return None
        if any(path.is_joined or path.stage is Stage.COMPILED for path in self._paths):
            # each call took another way than those before; of a single one, the program came after the last call
            return Refusal("wait.path", "", self.why_many()) if len(self._paths) > 1 else Refusal("wait.compile")
        if any(path.stage is Stage.PENDING for path in self.alone):
            return Refusal("wait.compile")
        # more of them would not help
        known_s = [path.numpy_call_s for path in self._paths if path.numpy_call_s]
        small = known_s and all(expected_gain_s(seconds) <= 0.0 for seconds in known_s)
        return Refusal("speed.small" if small else "wait.calls")

    def describe(self) -> list[dict[str, Any]]:
        """The compiled programs for the report: what each is, and which outcomes tell its calls from others."""
        return list(map(figures, self.with_program))


def _numbers(outcomes: Iterable[Outcome]) -> dict[tuple[Any, int], float]:
    """The numbers that outcomes expect, by the lines that needed them."""
    return {outcome.where[:2]: outcome.expected for outcome in outcomes if type(outcome.expected) in (int, float)}


def _is_small(number: float) -> bool:
    """Whether a number is so small a count that it is likely to come again, as that of substeps."""
    return type(number) is int and abs(number) <= SMALL_COUNT


def _answers(path: RecordedPath) -> dict[int, list[str]]:
    """Return a path's assumptions, by line."""
    found: dict[int, list[str]] = {}
    for outcome in path.trace.tape.outcomes:
        found.setdefault(outcome.where[1], []).append(repr(outcome.expected))
    return found
