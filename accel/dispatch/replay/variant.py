"""A variant: a path's compiled program, and one run of it. Nothing that a run does shows before it is committed."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.backend.compile import Executable, shared
from accel.dispatch.replay.commit import PendingCall, StagedOutputs, commit
from accel.dispatch.replay.host import HostTape
from accel.ir.tape import needed_by
from accel.lower import PACKS, Program
from accel.lower.program import Fixed, OnHost, OutputNumber, Packed
from accel.process import interrupts
from accel.record import Trace
from accel.record.inputs import Content, same_scalar


class Constants:
    """The inputs that a program folded as constants: finds those whose values are no longer the same."""

    def __init__(self, program: Program) -> None:
        self._scalars = list(program.known.scalars.items())
        self._arrays = [(slot, Content(array)) for slot, array in program.known.arrays.items()]

    def changed_scalars(self, values: list[Any]) -> tuple[int, ...]:
        """Slots of scalars that differ from the folded value in type or bits."""
        return tuple([slot for slot, known in self._scalars if not same_scalar(values[slot], known)])

    def changed_arrays(self, values: list[Any]) -> tuple[int, ...]:
        """The same for arrays. All of their memory is read."""
        return tuple([slot for slot, known in self._arrays if not known.is_same(values[slot])])


@dataclass(slots=True)
class SideExit:
    """A run whose outcomes differ from those that the path assumed: its call takes another path.

    position: index of the first outcome that differs. outcomes: the values of all of them in this run.
    """

    position: int
    outcomes: list[Any]


@dataclass(slots=True)
class StaleConstants:
    """A run that the program is not valid for: inputs in these slots were folded as constants, and have changed."""

    slots: tuple[int, ...]


class HostError(Exception):
    """Computing the program's scalars from this call's numbers raised, or gave an integer of more than 64 bits."""


class Variant:
    """A compiled program, with what decides whether a run is valid, and with the outputs that a run commits."""

    def __init__(self, trace: Trace, executable: Executable) -> None:
        self.trace = trace
        self.executable = executable
        program = executable.program
        self._program = program
        self._constants = Constants(program)
        host = needed_by(program.host)  # with the fixed nodes that they need
        self._host = HostTape(host)
        self._read = sorted({node.args[0] for node in host if node.is_input})
        self._prepared: tuple[list[Any], dict[int, Any], dict[str, Any]] | None = None
        # compared as one vector; the program returns all outcomes as float64, branches as 0.0 and 1.0
        self._expected = np.array([float(outcome.expected) for outcome in program.outcomes])
        self._made = [(node.shape, np.dtype(node.dtype).str) for node in trace.outputs.arrays]

    def run(self, values: list[Any]) -> StagedOutputs | SideExit | StaleConstants:
        """Run the program on the slots' values. Raises HostError.

        Folded scalars are compared first: that is quick, and saves a run in vain. Folded arrays are compared while the
        device computes, which costs no time of its own: the program does not read them, and its results are discarded
        if they have changed.
        """
        program = self._program
        changed = self._constants.changed_scalars(values)
        if changed:
            return StaleConstants(changed)
        host, scalars = self._prepare(values)
        made, packs = self.executable([values[slot] for slot in program.slots], scalars)
        changed = self._constants.changed_arrays(values)
        if changed:
            _wait_for([*made, *packs.values()])  # until then it reads the caller's arrays
            return StaleConstants(changed)
        packed = {pack: np.asarray(vector) for pack, vector in packs.items()}
        _wait_for(made)
        side_exit = self._side_exit(packed)
        if side_exit is not None:
            return side_exit
        count = len(self._made)
        return StagedOutputs(
            values,
            self._own(made[:count]),
            [np.asarray(array) for array in made[count:]],
            [_number(source, packed, host) for source in program.numbers],
        )

    def _side_exit(self, packed: Mapping[str, Any]) -> SideExit | None:
        """The side exit if an outcome is not the one that the path assumed. The first floats are the outcomes."""
        if not len(self._expected):
            return None
        outcomes = packed["f"][: len(self._expected)]
        assert outcomes.shape == self._expected.shape, "NumPy would broadcast, and hide a difference"
        differs = outcomes != self._expected
        return SideExit(int(differs.argmax()), outcomes.tolist()) if differs.any() else None

    def _prepare(self, values: list[Any]) -> tuple[dict[int, Any], dict[str, Any]]:
        """The values of the host nodes, and the same packed by dtype for the program. Raises HostError.

        Those of the last run are reused if it read the same objects.
        """
        read = [values[slot] for slot in self._read]
        # numbers are immutable: the same objects have the same values
        if self._prepared is not None and all(map(operator.is_, read, self._prepared[0])):
            return self._prepared[1:]
        try:
            host = self._host.evaluate(values) if self._program.host else {}
            scalars = {
                pack: np.array([host[node.index] for node in nodes], PACKS[pack])
                for pack, nodes in self._program.scalars.items()
                if nodes
            }
        except Exception as error:
            interrupts.pass_on(error)
            raise HostError(f"{type(error).__name__}: {error}") from error
        self._prepared = read, host, scalars
        return host, scalars

    def _own(self, made: list[Any]) -> list[Any]:
        """The new arrays as ndarrays that the caller may write to."""
        if not self.executable.on_cpu:
            # a copy from the device; on the CPU, the result's own memory is handed over
            return [np.array(array) for array in made]
        return [shared(array, *form) for array, form in zip(made, self._made, strict=True)]

    def commit(self, staged: StagedOutputs, call: PendingCall | None = None) -> Any:
        """Make a run's outputs the call's; see `accel.dispatch.replay.commit`."""
        return commit(self.trace.outputs, staged, call)


def _number(source: OutputNumber, packed: Mapping[str, Any], host: Mapping[int, Any]) -> Any:
    match source:
        case Packed(pack, position):
            return packed[pack][position]
        case OnHost(index):
            return host[index]
        case Fixed(value):
            return value


def _wait_for(results: list[Any]) -> None:
    """Wait until the program has written its results. Before that, it may still read the caller's arrays."""
    for array in results:
        array.block_until_ready()
