"""The program of several paths: which of them a call may take, and which of them a run shows that it has taken.

Sets of paths are bit masks, as in accel.compiler.merge.inputs. Guards and host outcomes leave the paths that the call
may take. The outcomes of the run leave one of those, or none: then the call takes a path that this program does not
have.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.backend.executable import Executable
from accel.backend.job import samples_of
from accel.compiler.lower import agrees
from accel.compiler.merge import ABSENT, Member, MergedTrace
from accel.dispatch.replay.commit import StagedOutputs
from accel.dispatch.replay.draws import drawn_nodes
from accel.dispatch.replay.guards import INPUTS, GuardFailure, Guards
from accel.dispatch.replay.host import HostTape
from accel.dispatch.replay.variant import Computed, HostError, Launchable, SideExit, forms_of
from accel.ir.tape import needed_by
from accel.platform import interrupts
from accel.record import Trace
from accel.record.state.inputs import Inputs


class Matched(list[Any]):
    """The values of a merged trace's slots. paths: those that the call may take."""

    def __init__(self, values: list[Any], paths: int) -> None:
        super().__init__(values)
        self.paths = paths


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

    def left(self, paths: int, values: list[Any]) -> tuple[int, Hashable]:
        """Return the paths whose assumptions hold, and where the last paths were ruled out.

        Errors of their computation are passed on.
        """
        if not self._expected:
            return paths, None
        host, place = self._host.evaluate(values), None
        for index, expected in self._expected:
            for value, of in expected:
                if paths & of and not agrees(host[index], value):
                    paths, place = paths & ~of, self._places[index]
        return paths, place


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

    def guarded(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], int]:
        """The slots' values, and the paths of which all guards hold."""
        values, paths = self.trace.inputs.fetch(args, kwargs)
        for guards, of in self._guards:
            if paths & of and not guards.hold(values):
                paths &= ~of
        return values, paths

    def match(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Matched | GuardFailure:
        """The slots' values if the call may take any of the paths, else that none matches."""
        values, paths = self.guarded(args, kwargs)
        place: Hashable = INPUTS
        if paths:
            try:
                paths, place = self._outcomes.left(paths, values)
            except Exception as error:  # not answered here: the program's own code raises it when it runs
                interrupts.pass_on(error)
                return GuardFailure(f"{type(error).__name__} while evaluating scalars", type(error).__name__)
        if not paths:
            return GuardFailure("differs from all paths of the program", place)
        # what only paths read that are ruled out by now may be of another type than the program takes there
        for place, of in self._of_some:
            if not paths & of:
                values[place] = ABSENT
        return Matched(values, paths)


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
        some = {node.index for node in program.host if node.index in trace.of_some}
        self._members = [_Place(each, each.placement.nodes & some) for each in trace.members]
        positions = {id(outcome): position for position, outcome in enumerate(trace.tape.outcomes)}
        at = [positions[id(outcome)] for outcome in program.outcomes]
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
        try:
            values.paths, _ = self._drawn.left(values.paths, values)
        except Exception as error:
            interrupts.pass_on(error)
            raise HostError(f"{type(error).__name__}: {error}") from error
        return SideExit(0, [], on_host=True) if not values.paths else None

    def _staged(self, run: Computed) -> StagedOutputs | SideExit:
        assert isinstance(run.values, Matched)
        agree = (run.outcomes == self._expected) | self._free
        held = agree.all(axis=1)
        taken = next((path for path, holds in enumerate(held) if holds and run.values.paths >> path & 1), None)
        if taken is None:
            rows = agree[[bool(run.values.paths >> path & 1) for path in range(len(agree))]]
            return SideExit(_left_at(rows), run.outcomes.tolist())
        place = self._members[taken]
        # computing it may have failed although nobody is to read it: so it does for NumPy
        if any(run.host[index] is ABSENT for index in place.host):
            raise HostError("computing it from this call's numbers raised")
        made, changed = [run.made[at] for at in place.arrays], [run.made[self._count + at] for at in place.changed]
        positions = *place.arrays, *(self._count + at for at in place.changed)
        own, changed, unfetched = self._outputs(made, changed, place.forms, positions)
        numbers, values = [run.numbers[at] for at in place.numbers], place.values(run.values)
        return StagedOutputs(place.trace, values, own, changed, numbers, run.given, unfetched=unfetched)


class _Place:
    """Positions of a call's values and outputs among those of all paths.

    host: indices of the nodes that Python computes before launch for this call, but not for all.
    """

    def __init__(self, of: Member, host: Collection[int]) -> None:
        placement = of.placement
        self.host = sorted(host)
        self.trace: Trace = of.trace
        places = placement.outputs
        self.arrays, self.numbers, self.changed = places.arrays, places.numbers, places.changed
        self.forms = forms_of(of.trace.outputs.arrays)
        self.values: Any = operator.itemgetter(*placement.slots)
