"""Divided programs: one for several devices is run on made-up numbers, and compared with the one for one device.

XLA's partitioner has been seen to divide programs wrongly, without an error. One such program made many small writes to
parts of a divided array, and read it again and again. No rule is known for which programs this happens. So a program is
used only if its results are those of one device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accel.compiler.lower import PACKS
from accel.compiler.lower.written import View, place_of
from accel.platform import config
from accel.platform.distances import distance

if TYPE_CHECKING:
    from accel.backend.executable import Executable

LIMITS = {config.FLOAT64: 1e-10, config.FLOAT32: 1e-4, config.MIXED: 1e-4}
"""Largest accepted difference by precision, relative to an array's largest magnitude: sums have another order."""


def problem(divided: Executable, alone: Executable, samples: Sequence[Any]) -> str:
    """Describe the difference between a divided program and the one for one device; "" if there is none.

    samples: as of `compile_trace`.
    """
    random, program = np.random.default_rng(0), divided.program
    given = [_made_up(samples[slot], random) for slot in program.slots]
    scalars = {pack: np.ones(len(nodes), PACKS[pack]) for pack, nodes in program.scalars.items() if nodes}
    limit = LIMITS[divided.precision]
    views = alone.program.written
    for found, expected in zip(*(_results(each, views, given, scalars) for each in (divided, alone)), strict=True):
        error = _error(found, expected)
        if not error <= limit:
            return f"XLA divides it wrongly: on made-up numbers its results differ by {error:.1g}"
    return ""


def _made_up(like: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    """Numbers about 1, no two of them alike."""
    numbers = random.random(like.shape) + 0.5
    if like.dtype.kind == "b":
        return np.asarray(numbers > 1.0)
    if like.dtype.kind == "c":
        return np.asarray(numbers + 1j * random.random(like.shape)).astype(like.dtype)
    return np.asarray(numbers).astype(like.dtype)


def _results(
    executable: Executable, views: Mapping[int, Sequence[View]], given: Sequence[Any], scalars: dict[str, Any]
) -> list[NDArray[Any]]:
    """Run the program and return its results.

    views: of some results. A program that gives those as a whole is asked for the views alone.
    """
    made, packs = executable(given, scalars)
    found: list[Any] = []
    for position, each in enumerate(made):
        if position not in views:
            found.append(each)
        elif isinstance(each, list):
            found += each
        else:
            ones = defaultdict[int, int](lambda: 1)  # as all scalars are here
            found += [place_of(view, each.shape, ones).read(each) for view in views[position]]
    return executable.fetched([*found, *packs.values()])


def _error(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """The largest difference, relative to the largest finite magnitude; infinite where anything else differs."""
    if expected.dtype.kind not in "fc":
        return 0.0 if np.array_equal(found, expected) else np.inf
    difference, scale = distance(found, expected)
    return difference / max(scale, float(np.finfo(expected.dtype).tiny))
