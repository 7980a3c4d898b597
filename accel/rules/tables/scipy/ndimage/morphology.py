"""scipy.ndimage's morphology: minima and maxima over the cells of a structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import ndimage

from accel.ndimage.errors import NotCovered
from accel.ndimage.table import lowering
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


# -- of truths --------------------------------------------------------------------------------------------------------


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


# -- of numbers -------------------------------------------------------------------------------------------------------


def _least(input: Array, **about: Any) -> Any:
    return _filtered("minimum_filter", input=input, **about)


def _largest(input: Array, size: Any = None, footprint: Any = None, origin: Any = 0, **about: Any) -> Any:
    at = _per_axis(origin, input.ndim)
    if footprint is not None:
        footprint = np.asarray(footprint)
        if footprint.ndim != input.ndim:
            raise Unsupported("rule.parameter", "a footprint of other axes than the input's")
        shape, footprint = footprint.shape, footprint[(slice(None, None, -1),) * footprint.ndim]
    else:
        shape = tuple(_per_axis(size, input.ndim))
    return _filtered("maximum_filter", input=input, size=size, footprint=footprint, origin=_turned(shape, at), **about)


def _opening(input: Array, **about: Any) -> Any:
    return _largest(_least(input, **about), **about)


def _closing(input: Array, **about: Any) -> Any:
    return _least(_largest(input, **about), **about)


def _laplace(input: Array, **about: Any) -> Any:
    return _largest(input, **about) + _least(input, **about) - input - input


_GREY: dict[Any, Callable[..., Any]] = {
    ndimage.grey_erosion: _least,
    ndimage.grey_dilation: _largest,
    ndimage.grey_opening: _opening,
    ndimage.grey_closing: _closing,
    ndimage.morphological_gradient: lambda input, **about: _largest(input, **about) - _least(input, **about),
    ndimage.morphological_laplace: _laplace,
    ndimage.white_tophat: lambda input, **about: input - _opening(input, **about),
    ndimage.black_tophat: lambda input, **about: _closing(input, **about) - input,
}


def _grey_row(compute: Callable[..., Any]) -> Callable[..., Any]:
    def lower(
        *,
        input: Array,
        size: Any = None,
        footprint: Any = None,
        mode: str = "reflect",
        cval: float = 0.0,
        origin: Any = 0,
    ) -> Any:
        if input.dtype.kind not in "fiu" or input.dtype == np.float16 or not input.ndim:
            raise Unsupported("rule.parameter", "grey morphology of truths, halves or complex numbers")
        if (size is None) == (footprint is None):
            raise Unsupported("rule.parameter", "grey morphology by a structure, or by both a size and a footprint")
        return compute(input, size=size, footprint=footprint, mode=mode, cval=cval, origin=origin)

    return lower


for _function, _compute in _GREY.items():
    add_rule(_function, _grey_row(_compute), "input | size footprint mode cval origin")
