"""Executables: compiled programs, each with what a run of it needs."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accel.backend import resident
from accel.backend.machines import crew
from accel.backend.machines.common import CommonProgram
from accel.backend.shards import Shards, launching
from accel.compiler.kernels.segments import Segmented
from accel.compiler.lower import Known, LoweredProgram
from accel.compiler.lower.written import Written
from accel.platform import callbacks, config, memory, underflow
from accel.platform.alignment import aligned_copy, is_aligned
from accel.platform.clocks import time

_executables: weakref.WeakValueDictionary[int, Executable] = weakref.WeakValueDictionary()
"""All executables of this process."""

_numbers = itertools.count()

_REFUSED_COPY = "Disallowed host-to-device transfer"
"""JAX's message about an argument that is no array of its own, where `jax.transfer_guard` forbids copies."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Executable:
    """A compiled program.

    constants: already on the device, which is `device`. seconds: the time of lowering and compiling. on_cpu: whether
    the device is the host, which shares its memory with NumPy. key: of its entry in the disk cache, or None. unkept:
    why it has none, so that every start of the program compiles it anew; "" if it has one, or if the disk cache is
    off. precision: in which it computes. shards: how its arrays are divided among several devices, or None; undivided:
    why not, where the settings ask for it.
    """

    program: LoweredProgram
    compiled: Any
    constants: list[Any]
    seconds: float
    on_cpu: bool
    key: str | None = None
    unkept: str = ""
    precision: str = config.FLOAT64
    device: Any = None
    shards: Shards | None = None
    undivided: str = ""

    def __post_init__(self) -> None:
        _executables[next(_numbers)] = self

    def __call__(self, arrays: Sequence[Any], scalars: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Run it. Returns, as device values, the new and changed arrays, and the packed outcomes and numbers."""
        return self.run(self.prepare_arrays(arrays), scalars)

    def run_checked(
        self, arrays: Sequence[Any], scalars: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], Sequence[Any]]:
        """Run it as `__call__` does. Returns also those arrays that are known to have no NaN and no infinity."""
        if not isinstance(self.compiled, Segmented):
            return *self(arrays, scalars), ()
        _check_crew()
        (made, packs), finite = self.compiled.run(arrays, self.constants, scalars)
        return made, packs, finite

    def prepare_arrays(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays as the program takes them: of XLA's on the CPU, those that are not aligned are copied."""
        if not self.on_cpu or isinstance(self.compiled, Segmented):
            return list(arrays)
        return [each if is_aligned(each) else aligned_copy(each) for each in arrays]

    def run(self, arguments: list[Any], scalars: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Run it on prepared arrays; returns as `__call__` does."""
        _check_crew()
        if isinstance(self.compiled, Segmented):
            return self.compiled(arguments, self.constants, scalars)  # type: ignore[no-any-return]
        import jax

        if self.shards is not None:
            return self._run_divided(self.shards, arguments, scalars)
        with callbacks.allowed(), jax.enable_x64(True):
            if not self.on_cpu:
                # explicitly: the program may have forbidden other copies (`jax.transfer_guard`)
                arguments, scalars = self._handed(arguments, scalars)
            try:
                made, packs = self.compiled(arguments, self.constants, scalars)
            except RuntimeError as error:
                if not self.on_cpu or _REFUSED_COPY not in str(error):
                    raise
                # what JAX takes for a copy is none: the program reads NumPy's memory
                with jax.transfer_guard("allow"):
                    made, packs = self.compiled(arguments, self.constants, scalars)
            underflow.note()
            if callbacks.are_used():
                jax.block_until_ready((made, packs))  # it lets other threads run Python meanwhile, which callbacks do
        return made, packs

    def _run_divided(
        self, shards: Shards, arguments: list[Any], scalars: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Run it on several devices, to its end."""
        import jax

        if isinstance(self.compiled, CommonProgram):
            with launching():
                return self.compiled.run(arguments, scalars)
        places = [shards.of(array.shape) for array in arguments]
        with jax.enable_x64(True), launching():
            given = jax.device_put((arguments, scalars), (places, shards.everywhere))
            made, packs = self.compiled(given[0], self.constants, given[1])
            jax.block_until_ready((made, packs))
        return made, packs

    @property
    def keeps(self) -> bool:
        """Whether inputs and outputs may stay on the device from run to run."""
        return not self.on_cpu and self.shards is None

    def on_device(self, arrays: Sequence[Any]) -> list[int]:
        """The positions of arrays that need not be handed over."""
        return resident.current.there(arrays, self.device) if self.keeps else []

    def _handed(self, arguments: list[Any], scalars: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """A run's arguments on the device."""
        import jax

        resident.current.possible = True
        if not resident.current.is_open:
            handed: tuple[list[Any], dict[str, Any]] = jax.device_put((arguments, scalars), self.device)
            return handed
        return resident.current.hand(arguments, self.device), jax.device_put(scalars, self.device)

    def placed(self, constant: Any) -> Any:
        """A constant as its runs take it."""
        if isinstance(self.compiled, Segmented):
            return constant
        import jax

        with jax.enable_x64(True):
            return jax.device_put(constant, self.device)

    def with_constants(self, changed: Mapping[int, Any]) -> Executable | None:
        """The executable with these arrays in place of constants, by slot; None where that is another program.

        Constants are arguments of the compiled program (see accel.compiler.lower.arguments): it is shared, with what is
        counted of it. That takes as long as NumPy takes to compute what follows from the new ones. Raises
        accel.compiler.lower.OtherWay where another side of a branch follows from them.
        """
        program = self.program
        if program.fingerprint is None or self.shards is not None:
            return None
        known = Known(program.known.scalars, {**program.known.arrays, **changed})
        found = program.renewal.constants(known, changed)
        if found is None:
            return None
        constants, placed = list(program.constants), list(self.constants)
        for place, constant in found.items():
            constants[place], placed[place] = constant, self.placed(constant)
        return replace(self, program=replace(program, known=known, constants=constants), constants=placed)

    def fetched(self, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        """Device values as ndarrays, not to be written to."""
        if self.on_cpu:
            return [np.asarray(array) for array in arrays]
        import jax

        found: list[np.ndarray[Any, Any]] = jax.device_get(list(arrays))
        return found

    def time_copies(self, given: Sequence[Any], made: Sequence[Any], changed: Sequence[Any]) -> float:
        """Seconds that the copies around one run take: inputs to the device, results and changed arrays back.

        On the CPU, only arrays that are changed in place are copied and, for XLA, inputs that are not aligned.
        """
        if isinstance(self.compiled, CommonProgram):
            return self.compiled.copied_s
        if self.on_cpu:
            by_xla = not isinstance(self.compiled, Segmented)
            copied = [each for each in given if by_xla and not is_aligned(each)]
            started = time.perf_counter()
        else:
            import jax

            # the results have been copied to the host already: put back untimed, so that their copy can be timed below
            with jax.enable_x64(True):
                copied = jax.block_until_ready(jax.device_put(list(made), self.device))
                started = time.perf_counter()
                places = [self.device if self.shards is None else self.shards.of(each.shape) for each in given]
                jax.block_until_ready(list(map(jax.device_put, given, places)))
        contents = [each.contents if isinstance(each, Written) else (each,) for each in changed]
        for each in itertools.chain(self.fetched(copied), *contents):
            np.array(each)
        return time.perf_counter() - started


def _check_crew() -> None:
    """Raise if a rank is lost. Programs for one device, too, are no way around it."""
    if crew.current is not None:
        crew.current.check()


def leak_executables() -> None:
    """At exit: keep XLA's objects from being destroyed one by one, which would take longer than the rest of the exit.

    They hold nothing but memory, which the system frees at once. Traces are let go: the garbage collector would walk
    through them several times at the end.
    """
    with contextlib.suppress(Exception):
        kept = [(each.compiled, each.constants) for each in _executables.values()]
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


def shared(array: Any, shape: tuple[int, ...], typestr: str) -> np.ndarray[Any, Any]:
    """A finished result of an executable `on_cpu` as a writable ndarray of the same memory.

    shape, typestr: the array's. The ndarray keeps the memory alive, and nothing else uses it. XLA's buffers are aligned
    to 64 bytes, so that an array which is passed to the next call need not be copied.
    """
    if isinstance(array, np.ndarray):
        return array
    # an empty array has no memory to share
    if 0 in shape:
        return np.array(array)
    return memory.array_at(array.unsafe_buffer_pointer(), shape, typestr, owner=array)
