"""scipy.ndimage's morphology of truths, as minima and maxima over the cells of a structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import ndimage

from accel.ndimage.errors import NotCovered
from accel.ndimage.table import lowering
from accel.rules.hosted import on_host
from accel.rules.lowering import Array, jnp, nonzero
from accel.rules.rule import Unsupported, add_rule, rule

MOST_ITERATIONS = 16


def _per_axis(value: Any, count: int) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list, np.ndarray)) else [value] * count


def _turned(shape: Any, origin: list[int]) -> list[int]:
    """The origin of a structure that is turned round: dilation looks the other way."""
    return [-at - (not size & 1) for at, size in zip(origin, shape, strict=True)]


def _filtered(name: str, **about: Any) -> Any:
    try:
        return lowering(name)(**about)
    except (KeyError, NotCovered) as gap:
        raise Unsupported("rule.parameter", f"scipy.ndimage.{name}: {gap}") from gap


@rule(ndimage.generate_binary_structure, "| rank connectivity")
def generate_binary_structure(*, rank: int, connectivity: int) -> Any:
    return jnp.asarray(ndimage.generate_binary_structure(rank, connectivity))


def _binary(input: Array, structure: Any, iterations: int, border_value: int, origin: Any, dilates: bool) -> Any:
    """The `and` (erosion) or the `or` (dilation) over the structure's cells, `iterations` times."""
    ndim = input.ndim
    cells = ndimage.generate_binary_structure(ndim, 1) if structure is None else np.asarray(structure, bool)
    if not ndim or cells.ndim != ndim or not cells.any() or input.dtype.kind == "c":
        raise Unsupported("rule.parameter", "morphology with a structure of other axes than the input's, or of nothing")
    if not 1 <= iterations <= MOST_ITERATIONS:
        raise Unsupported("rule.parameter", f"morphology with iterations={iterations}")
    at = _per_axis(origin, ndim)
    if dilates:
        cells, at = cells[(slice(None, None, -1),) * ndim], _turned(cells.shape, at)
    name = "maximum_filter" if dilates else "minimum_filter"
    x = nonzero(input).astype(np.uint8)
    about = {"footprint": cells, "mode": "constant", "cval": float(bool(border_value)), "origin": at}
    for _ in range(iterations):
        x = _filtered(name, input=x, **about)
    return x != 0


def _erosion(input: Array, **about: Any) -> Any:
    return _binary(input, dilates=False, **about)


def _dilation(input: Array, **about: Any) -> Any:
    return _binary(input, dilates=True, **about)


_BINARY: dict[Any, tuple[Callable[..., Any], ...]] = {
    ndimage.binary_erosion: (_erosion,),
    ndimage.binary_dilation: (_dilation,),
    ndimage.binary_opening: (_erosion, _dilation),
    ndimage.binary_closing: (_dilation, _erosion),
}


def _binary_row(steps: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    def lower(
        *, input: Array, structure: Any = None, iterations: int = 1, border_value: int = 0, origin: Any = 0
    ) -> Any:
        for step in steps:
            input = step(input, structure=structure, iterations=iterations, border_value=border_value, origin=origin)
        return input

    return lower


for _function, _steps in _BINARY.items():
    add_rule(_function, _binary_row(_steps), "input | structure iterations border_value origin")


on_host(
    ndimage,
    """
    black_tophat: input structure
    grey_closing: input structure
    grey_dilation: input structure
    grey_erosion: input structure
    grey_opening: input structure
    morphological_gradient: input structure
    morphological_laplace: input structure
    white_tophat: input structure
    """,
)
