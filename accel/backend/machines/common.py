"""Programs that all ranks run together, as seen by rank 0.

Rank 0 traces a program, and exports it. All ranks compile the exported program with the same divisions, so that they
compute the same. Each run sends every rank its parts of the inputs, and takes back its parts of the results.
"""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.backend.machines import chatter
from accel.backend.machines.crew import Crew
from accel.backend.machines.pieces import Layout, first_copies, whole
from accel.backend.options import compile_with
from accel.backend.shards import Shards
from accel.platform.clocks import time

FIRST_RUNS = 2
"""Number of first runs of a program in which JAX may connect devices and print about it. The first one is the trial
run."""


class BuildFailed(Exception):
    """Another rank could not build the program."""


@dataclass(frozen=True, slots=True)
class Build:
    """An order to a rank to build a program. Picklable.

    number: of the program. exported: the result of `jax.export`, a function of the constants and of the arguments.
    constants: the rank's parts of them. forms: shape and dtype of the constants, and of the arguments. devices: their
    number. axis, length: of the division.
    """

    number: int
    exported: bytes
    constants: list[list[NDArray[Any]]]
    forms: tuple[list[tuple[tuple[int, ...], str]], list[tuple[tuple[int, ...], str]]]
    devices: int
    axis: int
    length: int
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunOrder:
    """An order to a rank to run a program. parts: the rank's parts of each argument. dropped: programs to delete."""

    number: int
    parts: list[list[NDArray[Any]]]
    dropped: list[int]


_numbers = itertools.count()
_dropped: deque[int] = deque()
"""Programs that rank 0 has deleted since the last run."""


@dataclass(eq=False)
class CommonProgram:
    """A program that all ranks run. copied_s: seconds that sending and fetching took in the last run."""

    number: int
    crew: Crew
    compiled: Any
    constants: list[Any]
    layouts: Mapping[int, list[Layout]]
    out_tree: Any
    copied_s: float = 0.0
    _runs: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        # not at exit, where all that lives is let go of, and handlers of the program's may still run it
        weakref.finalize(self, _dropped.append, self.number).atexit = False

    def run(self, arrays: Sequence[Any], scalars: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Run the program. Returns the results as ndarrays. Ends the job if a rank is lost. The caller holds
        `launching()`."""
        import jax

        began = time.perf_counter()
        given = [np.asarray(each) for each in jax.tree_util.tree_leaves((list(arrays), dict(scalars)))]
        dropped = [_dropped.popleft() for _ in range(len(_dropped))]
        message = {
            rank: RunOrder(self.number, [each.cut(array) for each, array in zip(layouts, given, strict=True)], dropped)
            for rank, layouts in self.layouts.items()
        }
        self._runs += 1
        with chatter.held_back(self._runs <= FIRST_RUNS):
            (results, ran_s), answers = self.crew.run(_others(message), lambda: self._own(message[0].parts))
        pieces = [*zip(*answers.values(), strict=True)] or [()] * len(results)
        made = [
            whole(each.shape, each.dtype, [*first_copies(each), *itertools.chain(*others)])
            for each, others in zip(results, pieces, strict=True)
        ]
        self.copied_s = time.perf_counter() - began - ran_s
        found: tuple[list[Any], dict[str, Any]] = jax.tree_util.tree_unflatten(self.out_tree, made)
        return found

    def _own(self, parts: Sequence[Sequence[NDArray[Any]]]) -> tuple[list[Any], float]:
        """Run rank 0's part. Returns its results, and its time in seconds."""
        import jax

        began = time.perf_counter()
        with jax.enable_x64(True):
            given = [layout.placed(each) for layout, each in zip(self.layouts[0], parts, strict=True)]
            results: list[Any] = jax.block_until_ready(self.compiled(self.constants, given))
        return results, time.perf_counter() - began


def _others(message: Mapping[int, Any]) -> dict[int, Any]:
    return {rank: each for rank, each in message.items() if rank}


def build(
    crew: Crew,
    function: Callable[..., Any],
    arguments: tuple[Any, Any],
    constants: Sequence[NDArray[Any]],
    shards: Shards,
    options: Mapping[str, Any],
) -> CommonProgram:
    """Compile a program on all ranks. function: takes arrays, constants and scalars.

    arguments: the forms of arrays and scalars, as `jax.ShapeDtypeStruct` with shardings. Raises BuildFailed, RankLost,
    and any exception of JAX.
    """
    import jax
    from jax import export

    forms, tree = jax.tree_util.tree_flatten(arguments)
    out_tree: list[Any] = []

    def flat(constants: list[Any], leaves: list[Any]) -> list[Any]:
        given, scalars = jax.tree_util.tree_unflatten(tree, leaves)
        found, out_tree[:] = _flattened(function(given, constants, scalars))
        return found

    fixed = [np.asarray(each) for each in constants]
    about = [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=shards.of(each.shape)) for each in fixed]
    exported = bytes(export.export(jax.jit(flat))(about, forms).serialize())
    ranks = sorted({device.process_index for device in shards.devices})
    layouts = {rank: [Layout(each.shape, each.sharding, rank) for each in forms] for rank in ranks}
    of_constants = {rank: [Layout(each.shape, each.sharding, rank) for each in about] for rank in ranks}
    number = next(_numbers)

    def message(rank: int) -> Build:
        cut = [layout.cut(each) for layout, each in zip(of_constants[rank], fixed, strict=True)]
        described = _described(about), _described(forms)
        return Build(number, exported, cut, described, len(shards.devices), shards.axis, shards.length, dict(options))

    messages = {rank: message(rank) for rank in ranks}
    try:
        (compiled, placed), problem = crew.build(_others(messages), lambda: built(messages[0], shards))
    except BaseException:
        _dropped.append(number)
        raise
    made = CommonProgram(number, crew, compiled, placed, layouts, out_tree[0])
    if problem:
        raise BuildFailed(problem)
    return made


def _flattened(results: Any) -> tuple[list[Any], list[Any]]:
    import jax

    found, tree = jax.tree_util.tree_flatten(results)
    return found, [tree]


def _described(forms: Sequence[Any]) -> list[tuple[tuple[int, ...], str]]:
    return [(each.shape, np.dtype(each.dtype).str) for each in forms]


def built(told: Build, shards: Shards) -> tuple[Any, list[Any]]:
    """Compile an exported program for the devices of all ranks. Returns it, and the constants on this rank's
    devices."""
    import jax
    from jax import export

    with jax.enable_x64(True):
        about = [
            [jax.ShapeDtypeStruct(shape, np.dtype(dtype), sharding=shards.of(shape)) for shape, dtype in forms]
            for forms in told.forms
        ]
        call = export.deserialize(bytearray(told.exported)).call
        compiled = compile_with(jax.jit(call).lower(*about), told.options)
        rank = jax.process_index()
        layouts = [Layout(each.shape, each.sharding, rank) for each in about[0]]
        return compiled, [layout.placed(parts) for layout, parts in zip(layouts, told.constants, strict=True)]
