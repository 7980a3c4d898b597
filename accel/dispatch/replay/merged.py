"""The program of several paths: which of them a call may take, and which of them a run shows that it has taken.

Sets of paths are bit masks, as in accel.merge.inputs. Guards and host outcomes leave the paths that the call may take.
The outcomes of the run leave one of those, or none: then the call takes a path that this program does not have.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from accel.backend.compile import Executable
from accel.backend.job import samples_of
from accel.dispatch.replay.commit import StagedOutputs
from accel.dispatch.replay.draws import drawn_nodes
from accel.dispatch.replay.guards import GuardFailure, Guards
from accel.dispatch.replay.host import HostTape
from accel.dispatch.replay.variant import Computed, HostError, Launcher, SideExit, forms_of
from accel.ir.tape import needed_by
from accel.lower import agrees
from accel.merge import ABSENT, Member, MergedTrace
from accel.process import interrupts
from accel.record.inputs import Inputs


class Matched(list[Any]):
    """The values of a merged trace's slots. paths: those that the call may take."""

    def __init__(self, values: list[Any], paths: int) -> None:
        super().__init__(values)
        self.paths = paths


class HostOutcomes:
    """What the paths assume of numbers that Python computes before launch.

    drawn: of those that are known once a run has made its draws; else of all others.
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

    def left(self, paths: int, values: list[Any]) -> int:
        """Those of some paths whose assumptions hold. What computing the numbers raises is raised."""
        if not self._expected:
            return paths
        host = self._host.evaluate(values)
        for index, expected in self._expected:
            for value, of in expected:
                if paths & of and not agrees(host[index], value):
                    paths &= ~of
        return paths


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
        if paths:
            try:
                paths = self._outcomes.left(paths, values)
            except Exception as error:  # not answered here: the program's own code raises it when it runs
                interrupts.pass_on(error)
                return GuardFailure(f"{type(error).__name__} while evaluating scalars")
        if not paths:
            return GuardFailure("differs from all paths of the program")
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


class MergedVariant(Launcher):
    """The program of several paths."""

    def __init__(self, trace: MergedTrace, executable: Executable) -> None:
        super().__init__(executable, trace.draws, trace.of_some)
        self._drawn = HostOutcomes(trace, drawn=True)
        program = executable.program
        self._count = len(trace.outputs.arrays)
        some = {node.index for node in program.host if node.index in trace.of_some}
        self._members = [_Place(member, some) for member in trace.members]
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
            values.paths = self._drawn.left(values.paths, values)
        except Exception as error:
            interrupts.pass_on(error)
            raise HostError(f"{type(error).__name__}: {error}") from error
        return None if values.paths else SideExit(0, [], on_host=True)

    def _staged(self, run: Computed) -> StagedOutputs | SideExit:
        assert isinstance(run.values, Matched)
        held = ((run.outcomes == self._expected) | self._free).all(axis=1)
        taken = next((path for path, holds in enumerate(held) if holds and run.values.paths >> path & 1), None)
        if taken is None:
            return SideExit(0, run.outcomes.tolist())
        place = self._members[taken]
        # computing it may have failed although nobody is to read it: so it does for NumPy
        if any(run.host[index] is ABSENT for index in place.host):
            raise HostError("computing it from this call's numbers raised")
        own = self._own([run.made[at] for at in place.arrays], place.forms)
        changed = [np.asarray(run.made[self._count + at]) for at in place.changed]
        numbers = [run.numbers[at] for at in place.numbers]
        return StagedOutputs(place.trace, place.values(run.values), own, changed, numbers, run.given)


class _Place:
    """What one path finds where among the values and outputs of all.

    host: indices of what Python computes for this path, but not for all, before launch. some: those of any path.
    """

    def __init__(self, member: Member, some: Collection[int]) -> None:
        self.host = sorted(member.placement.nodes.intersection(some))
        self.trace, places = member.trace, member.placement.outputs
        self.arrays, self.numbers, self.changed = places.arrays, places.numbers, places.changed
        self.forms = forms_of(member.trace.outputs.arrays)
        self.values: Any = operator.itemgetter(*member.placement.slots)
