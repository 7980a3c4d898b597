"""The state of an ensemble and its observations as a dataset or a file: by xarray, or in NumPy's own format."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line asks for names of files before the program imports NumPy
    import numpy as np

MEMBER, ROUND = "member", "round"

SUFFIXES = (".nc", ".npz")


def has_xarray() -> bool:
    return importlib.util.find_spec("xarray") is not None


def default_path() -> Path:
    """Return the default file name for an ensemble."""
    return Path("ensemble.nc" if has_xarray() else "ensemble.npz").absolute()


def save(
    path: Path, state: Mapping[str, np.ndarray[Any, Any]], observed: Mapping[str, np.ndarray[Any, Any]], steps: int
) -> None:
    """Write a file. state: arrays with the members along the first axis; observed: arrays with the iterations along it.

    If both have a name, the observation is saved with the suffix `_observed`. Raises OSError and ValueError.
    """
    import numpy as np

    observed = {f"{name}_observed" if name in state else name: value for name, value in observed.items()}
    if path.suffix == ".npz":
        np.savez(path, **{"steps": np.array(steps), **state, **observed})  # type: ignore[arg-type]
        return
    found = dataset(state, {}, steps)
    for name, value in observed.items():
        found[name] = ((ROUND, *(f"{name}_{axis}" for axis in range(value.ndim - 1))), value)
    found.to_netcdf(path)


def dataset(state: Mapping[str, np.ndarray[Any, Any]], dims: Mapping[Any, tuple[str, ...]], steps: int) -> Any:
    """Return an `xarray.Dataset` of arrays with the members along their first axis; see `Ensemble.to_xarray`.

    Raises ImportError if xarray is not installed, and ValueError for names of dimensions that do not fit.
    """
    import numpy as np
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
