"""Guards: whether a call matches a recorded path, before anything is run.

Those of one input alone are compiled into one function (accel.record.state.inputs); those between inputs are in
`Guards`. Outcomes that depend on scalars alone are evaluated on the host.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accel.compiler.lower import agrees
from accel.dispatch.replay.draws import drawn_nodes
from accel.dispatch.replay.host import HostTape
from accel.ir.overlap import may_share
from accel.ir.tape import needed_by
from accel.platform import interrupts
from accel.record import Trace

IDENTITY, INPUTS = "identity", "inputs"
"""The places of guards on which objects are the same, and of those of any of several paths' inputs."""


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
        self._changed = placed(slot for slot, _ in trace.outputs.changed)
        self._others = placed(trace.array_slots)
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
        for slot in self._changed:
            written = values[slot]
            for other in self._others:
                if other != slot and may_share(written, values[other]):
                    return False
        return True


class Matcher:
    """Decides whether a call matches a trace. It needs no program: calls are matched while one is compiled, too."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._guards = Guards(trace)
        # what is drawn is known once the run has begun, which checks what depends on it
        drawn = drawn_nodes(trace.tape.nodes, trace.draws)
        outcomes = [each for each in trace.tape.outcomes if each.node.host and each.node.index not in drawn]
        self._outcomes = [(outcome.node.index, outcome.expected, outcome.where) for outcome in outcomes]
        self._host = HostTape(needed_by([outcome.node for outcome in outcomes]))

    def match(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any] | GuardFailure:
        """The slots' values if the call matches, else the guard that failed."""
        # in this order: each kind of guard may rely on the values that the one before has checked
        values, failed = self.trace.inputs.fetch(args, kwargs)
        if failed is not None:
            return GuardFailure(f"{failed.name} differs from the recording", failed.name)
        if not self._guards.hold(values):
            return GuardFailure("which arguments are identical or share memory differs from the recording", IDENTITY)
        if self._outcomes:
            try:
                host_values = self._host.evaluate(values)
            except Exception as error:  # not answered here: the program's own code raises it when it runs
                interrupts.pass_on(error)
                return GuardFailure(f"{type(error).__name__} while evaluating scalars", type(error).__name__)
            for index, expected, where in self._outcomes:
                if not agrees(host_values[index], expected):
                    why = f"a value at line {where[1]} was {host_values[index]!r}, not {expected!r}"
                    return GuardFailure(why, where)
        return values
