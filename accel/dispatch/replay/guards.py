"""Guards: which recorded paths a call may take, before anything is run.

Those of one input alone are compiled into one function (accel.record.state.inputs); those between inputs are in
`Guards`. Outcomes that depend on scalars alone are evaluated on the host.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from accel.compiler.lower import agrees
from accel.compiler.lower.program import Lowerable
from accel.compiler.merge import ABSENT, Matched, MergedTrace
from accel.compiler.merge.sides import assumed_on_host, of_some
from accel.dispatch.replay.draws import drawn_nodes
from accel.dispatch.replay.host import HostTape
from accel.ir.overlap import are_apart
from accel.ir.tape import Outcome, needed_by
from accel.platform import interrupts
from accel.record import Trace
from accel.record.state.inputs import Inputs

IDENTITY, INPUTS = "identity", "inputs"
"""The places of guards on which objects are the same, and of those of the inputs of several paths."""


@dataclass(slots=True)
class GuardFailure:
    """Why a call does not match a path: a guard, in words. place: the same for all calls that fail at that guard."""

    why: str
    place: Hashable


class Guards:
    """Guards between inputs: which of them are one object, and that nothing shares memory with an array written to.

    The program is made for what the recording saw. Where it saw two objects, a write to one does not show in the other.
    """

    def __init__(self, trace: Trace, slots: Sequence[int] | None = None) -> None:
        """slots: where the values of the trace's slots stand among those that are checked; None: where they are."""

        def placed(own: Iterable[int]) -> list[int]:
            return list(own) if slots is None else [slots[slot] for slot in own]

        self._same = [tuple(placed(pair)) for pair in (*trace.aliases, *trace.same)]
        self._changed = set(placed(slot for slot, _ in trace.outputs.changed))
        self._arrays = self._changed | set(placed(trace.array_slots))
        objects = set(trace.objects) if trace.outputs.writes or trace.identity else set()
        if trace.identity:
            objects |= set(trace.array_slots)
        # slots that must hold different objects. It does not matter if nothing is written to them or tested with `is`
        self._objects = sorted(set(placed(objects))) if len(objects) > 1 else []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guards) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def hold(self, values: list[Any]) -> bool:
        """Whether the slots' values satisfy all of them."""
        for left, right in self._same:
            if values[left] is not values[right]:
                return False
        if self._objects and len({id(values[slot]) for slot in self._objects}) != len(self._objects):
            return False
        # f(a, b) with `a += 1; return a + b`: recorded with separate arrays, it must not be replayed for f(x, x[:])
        return not self._changed or are_apart({slot: values[slot] for slot in self._arrays}, self._changed)


class HostOutcomes:
    """Assumptions of a trace's paths about numbers that Python computes before launch.

    drawn: whether these are the numbers known once a run has made its draws, or all others.
    """

    def __init__(self, trace: Lowerable, *, drawn: bool) -> None:
        by_draws = drawn_nodes(trace.tape.nodes, trace.draws)
        assumed = [(each, of) for each, of in assumed_on_host(trace) if (each.node.index in by_draws) is drawn]
        self._assumed = [(outcome.node.index, outcome, paths) for outcome, paths in assumed]
        self._host = HostTape(needed_by([outcome.node for outcome, _ in assumed]), of_some(trace))
        self.are_any = bool(assumed)

    def left(self, paths: int, values: list[Any]) -> tuple[int, Ruled | None]:
        """Return the paths whose assumptions hold; if none do, where the last ones were ruled out.

        Errors of their computation are passed on.
        """
        if not self.are_any:
            return paths, None
        host = self._host.evaluate(values)
        for position, (index, outcome, of) in enumerate(self._assumed):
            if paths & of and not agrees(host[index], outcome.expected):
                paths &= ~of
                if not paths:
                    return 0, Ruled(position, host[index], outcome)
        return paths, None


class Ruled(NamedTuple):
    """The assumption that ruled a call's last paths out. position: among all. value: what it is in this call."""

    position: int
    value: Any
    outcome: Outcome


class Matcher:
    """Decides which paths of a trace a call may take. It needs no program: one may still be on its way."""

    def __init__(self, trace: Trace | MergedTrace) -> None:
        self.trace = trace
        self._is_merged = isinstance(trace, MergedTrace)
        self._guards: list[tuple[Guards, int]] = []
        self._of_some: list[tuple[int, int]] = []
        # what is drawn is known once the run has begun, which checks what depends on it
        self._outcomes = HostOutcomes(trace, drawn=False)
        if not isinstance(trace, MergedTrace):
            self._guards.append((Guards(trace), 1))
            return
        for path, member in enumerate(trace.members):
            self._add(Guards(member.trace, member.placement.slots), 1 << path)
        readers = [(place, slot.paths) for place, slot in enumerate(trace.inputs.slots, Inputs.ROOTS)]
        self._of_some = [(place, of) for place, of in readers if of != trace.inputs.all_paths]

    def _add(self, guards: Guards, path: int) -> None:
        for position, (known, paths) in enumerate(self._guards):
            if known == guards:
                self._guards[position] = known, paths | path
                return
        self._guards.append((guards, path))

    def guarded(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], int] | GuardFailure:
        """The slots' values, and the paths of which all guards hold; else the guard that failed."""
        # in this order: each kind of guard may rely on the values that the one before has checked
        if isinstance(self.trace, MergedTrace):
            values, paths = self.trace.inputs.fetch(args, kwargs)
            if not paths:
                return GuardFailure("its inputs differ from those of all paths of the program", INPUTS)
        else:
            (values, failed), paths = self.trace.inputs.fetch(args, kwargs), 1
            if failed is not None:
                return GuardFailure(f"{failed.name} differs from the recording", failed.name)
        for guards, of in self._guards:
            if paths & of and not guards.hold(values):
                paths &= ~of
        if not paths:
            return GuardFailure("which arguments are identical or share memory differs from the recording", IDENTITY)
        return values, paths

    def match(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any] | GuardFailure:
        """The slots' values if the call may take any of the paths, else the guard that failed."""
        found = self.guarded(args, kwargs)
        if not isinstance(found, tuple):
            return found
        values, paths = found
        if not self._is_merged and not self._outcomes.are_any:
            return values
        try:
            paths, ruled = self._outcomes.left(paths, values)
        except Exception as error:  # not answered here: the program's own code raises it when it runs
            interrupts.pass_on(error)
            return GuardFailure(f"{type(error).__name__} while evaluating scalars", type(error).__name__)
        if ruled is not None:
            where, expected = ruled.outcome.where, ruled.outcome.expected
            return GuardFailure(f"a value at line {where[1]} was {ruled.value!r}, not {expected!r}", where)
        if not self._is_merged:
            return values
        # what only paths read that are ruled out by now may be of another type than the program takes there
        for place, of in self._of_some:
            if not paths & of:
                values[place] = ABSENT
        return Matched(values, paths)
