"""Variants: a path's compiled program, and one run of it. Nothing that a run does shows before it is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from accel.backend import resident
from accel.backend.executable import Executable, shared
from accel.backend.job import samples_of
from accel.compiler.lower import PACKS, LoweredProgram
from accel.compiler.lower.program import Fixed, Lowerable, OutputNumber, Packed
from accel.compiler.lower.written import OnHost, Written
from accel.compiler.merge import ABSENT, Matched, MergedTrace, paths_of
from accel.compiler.merge.sides import DeviceOutcomes, Side, of_some, sides_of
from accel.dispatch.replay.commit import StagedOutputs
from accel.dispatch.replay.draws import Drawn, Draws
from accel.dispatch.replay.guards import HostOutcomes
from accel.dispatch.replay.host import HostTape
from accel.dispatch.replay.kept import Unfetched
from accel.ir.bits import Content, same_scalar
from accel.ir.tape import needed_by
from accel.platform import ending, interrupts
from accel.platform.clocks import time
from accel.platform.ledger import current_run

if TYPE_CHECKING:
    from accel.record import Trace


class Constants:
    """The inputs that a program folded as constants: finds those whose values are no longer the same."""

    def __init__(self, program: LoweredProgram) -> None:
        self._scalars = list(program.known.scalars.items())
        self._arrays = [(slot, Content(array)) for slot, array in program.known.arrays.items()]

    def replace(self, arrays: Mapping[int, NDArray[Any]]) -> None:
        """Compare some slots with other arrays from now on."""
        self._arrays = [(slot, Content(arrays[slot]) if slot in arrays else known) for slot, known in self._arrays]

    def changed_scalars(self, values: list[Any]) -> tuple[int, ...]:
        """Slots of scalars that differ from the folded value in type or bits."""
        different = [
            slot
            for slot, known in self._scalars
            if (now := values[slot]) is not known and not same_scalar(now, known)  # most are one object: that is quick
        ]
        return tuple([slot for slot in different if values[slot] is not ABSENT])

    def changed_arrays(self, values: list[Any]) -> tuple[int, ...]:
        """Slots of arrays that differ from the folded value. All of their memory is read."""
        return tuple(
            [slot for slot, known in self._arrays if (now := values[slot]) is not ABSENT and not known.is_same(now)]
        )

    def refresh(self, values: list[Any]) -> None:
        """Bring those that are compared up to date."""
        for slot, _ in self._arrays:
            if values[slot] is not ABSENT:
                resident.current.refresh(values[slot])


@dataclass(slots=True)
class SideExit:
    """A run whose outcomes differ from those that the paths assumed: its call takes another path.

    position: index of the first outcome that differs. value: of that outcome in this run. on_host: it follows from what
    was drawn: the program was not even launched.
    """

    position: int
    value: Any = None
    on_host: bool = False


@dataclass(slots=True)
class StaleConstants:
    """A run that the program is not valid for: inputs in these slots were folded as constants, and have changed."""

    slots: tuple[int, ...]


class HostError(Exception):
    """Computing the program's scalars from this call's numbers raised, or gave an integer of more than 64 bits."""


@dataclass(slots=True)  # and not frozen: it is made in every run
class Computed:
    """Results of one run, before it is known which path it took.

    values: of the slots. given: the arrays that the program took. host: what Python computed, by index. made: new
    arrays, then changed ones. numbers, outcomes: those of the program, in order. finite: as of StagedOutputs.
    """

    values: list[Any]
    given: list[Any]
    host: Mapping[int, Any]
    made: list[Any]
    numbers: list[Any]
    outcomes: NDArray[Any]
    finite: Sequence[Any]


@dataclass(slots=True)
class Launches:
    """Number of launches of a program. fetched: how often these of its results were asked for, by their positions.

    spared: how often an array was on the device already, by its position among those that the program takes.
    renewed: bytes of constants that were put there in the place of others.
    """

    count: int = 0
    fetched: Counter[tuple[int, ...]] = field(default_factory=Counter)
    spared: Counter[int] = field(default_factory=Counter)
    renewed: int = 0

    def count_fetched(self, positions: tuple[int, ...]) -> None:
        self.fetched[positions] += 1


def constant_bytes(values: Sequence[Any], placed: Sequence[Any], there: Sequence[Any]) -> int:
    """Bytes of those constants that were put on the device. placed: the same there, or nothing where several machines
    have them; there: those that were there before."""
    kept = {id(each) for each in there}
    spared = {position for position, each in enumerate(placed) if id(each) in kept}
    return sum(np.asarray(each).nbytes for position, each in enumerate(values) if position not in spared)


class Variant:
    """The compiled program of a trace, of one path or of several, and what decides whether a run of it is valid."""

    def __init__(self, trace: Lowerable, executable: Executable) -> None:
        program = executable.program
        self.trace = cast("Trace", trace)  # or as much as a run needs of it
        self.executable = executable
        self._program = program
        some = of_some(trace)
        self._draws = Draws(trace.draws, some)
        self._drawn = HostOutcomes(trace, drawn=True)
        self._constants = Constants(program)
        host = needed_by(program.host)  # with the fixed nodes that they need
        self._host = HostTape(host, some)
        self._prepared: tuple[Mapping[int, Any], dict[str, Any]] | None = None
        self.launches = Launches()
        self._outcomes = DeviceOutcomes(trace, program.outcomes)
        self._sides = sides_of(trace, program.host)
        self._is_merged = isinstance(trace, MergedTrace)
        self._unread: dict[int, NDArray[Any]] = {}

    def renew(self, executable: Executable, arrays: Mapping[int, NDArray[Any]]) -> bool:
        """Go on with other constants, if nothing else of the program has been decided anew. arrays: those, by slot."""
        if executable.program.renewal is not self._program.renewal:
            return False
        self.launches.renewed += constant_bytes(
            executable.program.constants, executable.constants, self.executable.constants
        )
        self.executable, self._program = executable, executable.program
        self._constants.replace(arrays)
        self._prepared = None
        return True

    def run(self, values: list[Any]) -> StagedOutputs | SideExit | StaleConstants:
        """Run the program on the slots' values. Raises HostError.

        Folded scalars are compared first: that is quick, and saves a run in vain. Folded arrays are compared while the
        device computes, which costs no time of its own. The program does not read them, and its results are discarded
        if they have changed.
        """
        changed = self._constants.changed_scalars(values)
        if changed:
            return StaleConstants(changed)
        drawn = self._draw(values)
        try:
            with ending.compiled_code:
                given = (None if drawn is None else self._parted(values)) or self._launch(values)
        except BaseException as error:
            if drawn is not None:
                drawn.put_back()
            if isinstance(error, ending.EndedError):
                raise HostError(str(error)) from error
            raise
        if drawn is not None and isinstance(given, StagedOutputs):
            given.drawn = drawn
        elif drawn is not None:
            drawn.put_back()
        return given

    def _draw(self, values: list[Any]) -> Drawn | None:
        """Make the draws. Raises HostError."""
        try:
            return self._draws.make(values)
        except Exception as error:
            interrupts.pass_on(error)
            raise HostError(f"{type(error).__name__}: {error}") from error

    def _parted(self, values: list[Any]) -> SideExit | None:
        """The side exit of a run whose draws show that the call takes another path. Raises HostError."""
        try:
            paths, ruled = self._drawn.left(paths_of(values), values)
        except Exception as error:
            interrupts.pass_on(error)
            raise HostError(f"{type(error).__name__}: {error}") from error
        if isinstance(values, Matched):
            values.paths = paths
        return None if ruled is None else SideExit(ruled.position, ruled.value, on_host=True)

    def _launch(self, values: list[Any]) -> StagedOutputs | SideExit | StaleConstants:
        program = self._program
        host, scalars = self._prepare(values)
        given = self._given(values)
        self.launches.count += 1
        launched = time.perf_counter()
        if resident.current.is_open:
            self._constants.refresh(values)
            self.launches.spared.update(self.executable.on_device(given))
        made, packs, finite = self.executable.run_checked(given, scalars)
        changed = self._constants.changed_arrays(values)
        if changed:
            _wait_for([*made, *packs.values()])  # until then it reads the caller's arrays
            return StaleConstants(changed)
        packed = dict(zip(packs, self.executable.fetched(list(packs.values())), strict=True))
        _wait_for(made)
        for position, views in program.written.items():
            made[position] = Written(views, self.executable.fetched(made[position]), host)
        current_run().launched_s += time.perf_counter() - launched
        numbers = [_number(source, packed, host) for source in program.numbers]
        outcomes = packed.get("f", _NO_OUTCOMES)[: len(program.outcomes)]
        return self._staged(Computed(values, given, host, made, numbers, outcomes, finite))

    def _given(self, values: list[Any]) -> list[Any]:
        """The arrays that the program takes; any where the paths that read one are not taken."""
        given = [values[slot] for slot in self._program.slots]
        if self._is_merged:
            for position, slot in enumerate(self._program.slots):
                if values[slot] is ABSENT:
                    given[position] = self._any(slot)
        return given

    def _any(self, slot: int) -> NDArray[Any]:
        """An array of the form that the program takes in a slot."""
        if slot not in self._unread:
            like = samples_of(self.trace)[slot]
            self._unread[slot] = np.zeros(like.shape, like.dtype)
        return self._unread[slot]

    def _staged(self, run: Computed) -> StagedOutputs | SideExit:
        """The outputs, if the outcomes are those of a path that the call may take. Raises HostError."""
        paths = paths_of(run.values)
        taken = self._outcomes.taken(run.outcomes, paths)
        if taken is None:
            position = self._outcomes.left_at(run.outcomes, paths)
            return SideExit(position, run.outcomes[position].item())
        side, made, numbers, values = self._sides[taken], run.made, run.numbers, run.values
        if self._is_merged:
            # computing it may have failed although nobody is to read it: so it does for NumPy
            if any(run.host[index] is ABSENT for index in side.host):
                raise HostError("computing it from this call's numbers raised")
            made, numbers = [made[at] for at in side.arrays], [numbers[at] for at in side.numbers]
            values = side.values(values)
        new = len(side.forms)
        own, changed, unfetched = self._kept(made[:new], made[new:], side)
        return StagedOutputs(side.trace, values, own, changed, numbers, run.given, run.finite, unfetched=unfetched)

    def _prepare(self, values: list[Any]) -> tuple[Mapping[int, Any], dict[str, Any]]:
        """The values of the host nodes, and the same packed by dtype for the program. Raises HostError.

        Those of the last run are reused if it read the same objects.
        """
        try:
            host = self._host.evaluate(values)
            if self._prepared is None or self._prepared[0] is not host:
                scalars = {
                    pack: np.array([_or_any(host[node.index]) for node in nodes], PACKS[pack])
                    for pack, nodes in self._program.scalars.items()
                    if nodes
                }
                self._prepared = host, scalars
        except Exception as error:
            interrupts.pass_on(error)
            raise HostError(f"{type(error).__name__}: {error}") from error
        return self._prepared

    def _kept(self, made: list[Any], changed: list[Any], side: Side) -> tuple[list[Any], list[Any], Unfetched | None]:
        """A path's new arrays and new contents of changed ones, and what is left to be fetched of them."""
        if not resident.current.is_open or not self.executable.keeps:
            self.launches.count_fetched(side.arrays)
            whole = iter(self.executable.fetched([each for each in changed if not isinstance(each, Written)]))
            contents = [each if isinstance(each, Written) else next(whole) for each in changed]
            return self._own(made, side), contents, None
        counts = [partial(self.launches.count_fetched, (position,)) for position in side.arrays]
        return [resident.room(*form) for form in side.forms], changed, Unfetched(made, changed, counts)

    def _own(self, made: list[Any], side: Side) -> list[Any]:
        """The new arrays as ndarrays that the caller may write to."""
        if not self.executable.on_cpu:
            # a copy from the device; on the CPU, the result's own memory is handed over
            return [np.array(array) for array in self.executable.fetched(made)]
        return [shared(array, *form) for array, form in zip(made, side.forms, strict=True)]


_NO_OUTCOMES = np.empty(0)


def _or_any(number: Any) -> Any:
    """A number for the program; any where the path that computes it is not taken."""
    return 0 if number is ABSENT else number


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
    for result in results:
        if type(result) is np.ndarray:  # of kernels, or of a program of several machines, which has waited
            continue
        for array in result if isinstance(result, list) else (result,):
            if not isinstance(array, np.ndarray):
                array.block_until_ready()
