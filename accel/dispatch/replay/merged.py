"""The program of several paths: which of them a call may take, and which of them a run shows that it has taken.

Sets of paths are bit masks, as in accel.merge.inputs. Guards and host outcomes leave the paths that the call may take.
The outcomes of the run leave one of those, or none: then the call takes a path that this program does not have.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.backend.executable import Executable
from accel.backend.job import samples_of
from accel.dispatch.replay.commit import StagedOutputs
from accel.dispatch.replay.draws import drawn_nodes
from accel.dispatch.replay.guards import INPUTS, GuardFailure, Guards
from accel.dispatch.replay.host import HostTape
from accel.dispatch.replay.variant import Computed, HostError, Launchable, SideExit, forms_of
from accel.ir.overlap import may_share
from accel.ir.tape import Node, needed_by
from accel.lower import agrees
from accel.merge import ABSENT, Accepted, Member, MergedTrace
from accel.process import interrupts
from accel.record import Trace
from accel.record.state.inputs import Inputs

MOST_WALKS = 10_000
"""Maximum number of run results that are remembered, each with the crossing that it took."""


class Matched(list[Any]):
    """The values of a merged trace's slots. paths: those that the call may take.

    guarded: those of which all guards hold, though what Python computes may rule them out: the call may cross them.
    host: what Python has computed for this, by index of the node.
    """

    def __init__(self, values: list[Any], paths: int, guarded: int, host: Mapping[int, Any]) -> None:
        super().__init__(values)
        self.paths = paths
        self.guarded = guarded
        self.host = host


class HostOutcomes:
    """Assumptions of the paths about numbers that Python computes before launch.

    drawn: whether these are the numbers known once a run has made its draws, or all others.
    """

    def __init__(self, trace: MergedTrace, *, drawn: bool) -> None:
        by_draws = drawn_nodes(trace.tape.nodes, trace.draws)
        expected: dict[int, list[tuple[Any, int]]] = {}
        for path, member in enumerate(trace.members):
            for index, value in member.placement.on_host.items():
                if (index in by_draws) is drawn:
                    expected.setdefault(index, []).append((value, 1 << path))
        self._expected = [(index, _by_value(values)) for index, values in sorted(expected.items())]
        self._host = HostTape(needed_by([trace.tape.nodes[index] for index in expected]), trace.of_some)
        self._places = {index: trace.tape.nodes[index].where for index in expected}

    def left(self, paths: int, values: list[Any]) -> tuple[int, Mapping[int, Any], Hashable]:
        """Return the paths whose assumptions hold, the numbers, and where the last paths were ruled out.

        Errors of their computation are passed on.
        """
        if not self._expected:
            return paths, {}, None
        host, place = self._host.evaluate(values), None
        for index, expected in self._expected:
            for value, of in expected:
                if paths & of and not agrees(host[index], value):
                    paths, place = paths & ~of, self._places[index]
        return paths, host, place


class MergedMatcher:
    """Decides which paths of a merged trace a call may take, as `Matcher` does for one path."""

    def __init__(self, trace: MergedTrace) -> None:
        self.trace = trace
        self._guards: list[tuple[Guards, int]] = []
        for path, member in enumerate(trace.members):
            self._add(Guards(member.trace, member.placement.slots), 1 << path)
        self._outcomes = HostOutcomes(trace, drawn=False)
        inputs = trace.inputs
        readers = [(place, slot.paths) for place, slot in enumerate(inputs.slots, Inputs.ROOTS)]
        self._of_some = [(place, of) for place, of in readers if of != inputs.all_paths]

    def _add(self, guards: Guards, path: int) -> None:
        for position, (known, paths) in enumerate(self._guards):
            if known == guards:
                self._guards[position] = known, paths | path
                return
        self._guards.append((guards, path))

    def match(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Matched | GuardFailure:
        """The slots' values if the call may take any of the paths, else that none matches."""
        values, paths = self.trace.inputs.fetch(args, kwargs)
        for guards, of in self._guards:
            if paths & of and not guards.hold(values):
                paths &= ~of
        guarded: int = paths
        host: Mapping[int, Any] = {}
        place: Hashable = INPUTS
        if paths:
            try:
                paths, host, place = self._outcomes.left(paths, values)
            except Exception as error:  # not answered here: the program's own code raises it when it runs
                interrupts.pass_on(error)
                return GuardFailure(f"{type(error).__name__} while evaluating scalars", type(error).__name__)
        if not paths and not self._may_cross(guarded, host):
            return GuardFailure("differs from all paths of the program", place)
        needed = guarded if self.trace.crossings.exist else paths
        # what only paths read that are ruled out by now may be of another type than the program takes there
        for place, of in self._of_some:
            if not needed & of:
                values[place] = ABSENT
        return Matched(values, paths, guarded, host)

    def _may_cross(self, guarded: int, host: Mapping[int, Any]) -> bool:
        """Whether the call may go from one path to another, as far as is known before the run."""
        crossings, members = self.trace.crossings, self.trace.members
        return crossings.may_be(guarded, lambda member, node: host.get(members[member].placement.node_of[node.index]))


def _by_value(values: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Expected values with the paths that expect each."""
    found: dict[str, tuple[Any, int]] = {}
    for value, path in values:
        key = repr(value)
        found[key] = value, path | (found[key][1] if key in found else 0)
    return list(found.values())


def _left_at(agree: NDArray[np.bool_]) -> int:
    """The outcome at which a run has left all paths. agree: for each path that it might have taken, which ones agree.

    That is the first by which no path goes on. Else each leaves at another one, and it is the last of these.
    """
    strange = ~agree.any(axis=0)
    return int(strange.argmax()) if strange.any() else int(agree.argmin(axis=1).max())


class MergedVariant(Launchable):
    """The program of several paths."""

    def __init__(self, trace: MergedTrace, executable: Executable) -> None:
        super().__init__(executable, trace.draws, trace.of_some)
        self._drawn = HostOutcomes(trace, drawn=True)
        program = executable.program
        self._count = len(trace.outputs.arrays)
        self._trace = trace
        self._some = {node.index for node in program.host if node.index in trace.of_some}
        self._members = [_Place(each, each.placement.nodes & self._some) for each in trace.members]
        # by what a run has shown; None where no walk is that
        self._walks: dict[Hashable, tuple[Accepted, _Place] | None] = {}
        self._decided = sorted({index for each in trace.members for index in each.placement.on_host})
        positions = {id(outcome): position for position, outcome in enumerate(trace.tape.outcomes)}
        at = [positions[id(outcome)] for outcome in program.outcomes]
        self._at = {position: place for place, position in enumerate(at)}
        # a row for each path: what it expects of each outcome, and whether it expects anything
        outcomes = [member.placement.outcomes for member in trace.members]
        self._expected = np.array([[float(own.get(each, 0)) for each in at] for own in outcomes])
        self._free = np.array([[each not in own for each in at] for own in outcomes], bool)
        samples = samples_of(trace)
        of_some = [slot for slot in program.slots if trace.inputs.paths_of(slot) != trace.inputs.all_paths]
        self._any = {slot: np.zeros(samples[slot].shape, samples[slot].dtype) for slot in of_some}

    def _given(self, values: list[Any]) -> list[Any]:
        slots = self._program.slots
        return [self._any[slot] if values[slot] is ABSENT else values[slot] for slot in slots]

    def _parted(self, values: list[Any]) -> SideExit | None:
        assert isinstance(values, Matched)
        before = values.paths  # none where the call may only cross: then nothing is drawn
        try:
            values.paths, _, _ = self._drawn.left(before, values)
        except Exception as error:
            interrupts.pass_on(error)
            raise HostError(f"{type(error).__name__}: {error}") from error
        return SideExit(0, [], on_host=True) if before and not values.paths else None

    def _staged(self, run: Computed) -> StagedOutputs | SideExit:
        assert isinstance(run.values, Matched)
        agree = (run.outcomes == self._expected) | self._free
        held = agree.all(axis=1)
        taken = next((path for path, holds in enumerate(held) if holds and run.values.paths >> path & 1), None)
        place = self._crossed(run, run.values) if taken is None else self._members[taken]
        if place is None:
            possible = run.values.paths or run.values.guarded
            rows = agree[[bool(possible >> path & 1) for path in range(len(agree))]]
            return SideExit(_left_at(rows), run.outcomes.tolist())
        # computing it may have failed although nobody is to read it: so it does for NumPy
        if any(run.host[index] is ABSENT for index in place.host):
            raise HostError("computing it from this call's numbers raised")
        made, changed = [run.made[at] for at in place.arrays], [run.made[self._count + at] for at in place.changed]
        positions = *place.arrays, *(self._count + at for at in place.changed)
        own, changed, unfetched = self._outputs(made, changed, place.forms, positions)
        numbers, values = [run.numbers[at] for at in place.numbers], place.values(run.values)
        return StagedOutputs(place.trace, values, own, changed, numbers, run.given, unfetched=unfetched)

    def _crossed(self, run: Computed, values: Matched) -> _Place | None:
        """Return the place of a call that crosses from one path to another; None if no known crossing fits."""
        if not self._trace.crossings.exist:
            return None
        shown = _Shown(self._trace, values.host, self._at, run.outcomes)
        key = values.guarded, run.outcomes.tobytes(), tuple(repr(values.host.get(index)) for index in self._decided)
        if key not in self._walks:
            if len(self._walks) >= MOST_WALKS:
                self._walks.clear()
            found = self._trace.crossings.accepted(values.guarded, shown.of)
            self._walks[key] = None if found is None else (found, _Place(found, found.host & self._some))
        walk = self._walks[key]
        return walk[1] if walk is not None and shown.holds(walk[0], values) else None

    @property
    def crossed(self) -> int:
        """The ways from one path to another that runs have taken."""
        return sum(walk is not None for walk in self._walks.values())


class _Shown:
    """Values seen in a run that paths make assumptions about. at: by position, its place among the program's
    outcomes."""

    def __init__(
        self, trace: MergedTrace, host: Mapping[int, Any], at: Mapping[int, int], outcomes: NDArray[Any]
    ) -> None:
        self._trace, self._host, self._at, self._outcomes = trace, host, at, outcomes

    def of(self, member: int, node: Node) -> Any:
        """Return the value seen for a member's node; None if it is not known."""
        placement = self._trace.members[member].placement
        index = placement.node_of[node.index]
        if index in self._host:
            return self._host[index]
        position = placement.observed.get(index)
        return None if position is None else self._device(position)

    def _device(self, position: int) -> Any:
        at = self._at.get(position)
        # the program does not compute what depends on constants alone: that is as it was recorded
        return self._trace.tape.outcomes[position].expected if at is None else self._outcomes[at]

    def holds(self, walk: Accepted, values: Matched) -> bool:
        """Whether the run has taken a walk."""
        return (
            not walk.members & ~values.guarded
            and all(index in self._host and agrees(self._host[index], value) for index, value in walk.on_host.items())
            and all(self._device(position) == float(value) for position, value in walk.outcomes.items())
            # one recording has written to what another has read: neither has made sure that this is not the same memory
            and not any(
                may_share(values[written], values[other])
                for written in walk.changed
                for other in walk.arrays
                if written != other
            )
        )


class _Place:
    """Positions of a call's values and outputs among those of all paths.

    host: indices of the nodes that Python computes before launch for this call, but not for all.
    """

    def __init__(self, of: Member | Accepted, host: Iterable[int]) -> None:
        placement = of.placement if isinstance(of, Member) else of
        self.host = sorted(host)
        self.trace: Trace = of.trace
        places = placement.outputs
        self.arrays, self.numbers, self.changed = places.arrays, places.numbers, places.changed
        self.forms = forms_of(of.trace.outputs.arrays)
        self.values: Any = operator.itemgetter(*placement.slots)
