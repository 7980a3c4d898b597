"""Datasets: an ensemble's state for xarray, where that is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

MEMBER = "member"


def dataset(state: Mapping[str, np.ndarray[Any, Any]], dims: Mapping[Any, tuple[str, ...]], steps: int) -> Any:
    """Return an `xarray.Dataset` of arrays with the members along their first axis; see `Ensemble.to_xarray`.

    Raises ImportError if xarray is not installed, and ValueError for names of dimensions that do not fit.
    """
    import xarray

    variables = {name: ((MEMBER, *_dims_of(name, array.shape[1:], dims)), array) for name, array in state.items()}
    members = len(next(iter(state.values()))) if state else 0
    return xarray.Dataset(variables, {MEMBER: np.arange(members)}, {"steps": steps})


def _dims_of(name: str, shape: tuple[int, ...], dims: Mapping[Any, tuple[str, ...]]) -> tuple[str, ...]:
    found = dims.get(name, dims.get(shape))
    if found is None:
        return tuple(f"{name}_{axis}" for axis in range(len(shape)))
    if len(found) != len(shape):
        raise ValueError(f"{name} has {len(shape)} axes, not {', '.join(found)}")
    return tuple(found)
