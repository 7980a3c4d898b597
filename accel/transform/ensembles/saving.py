"""Save the state of an ensemble and its observations: NetCDF through xarray, or NumPy's own format."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line asks for names of files before the program imports NumPy
    import numpy as np

ROUND = "round"

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

    from accel.transform.ensembles.dataset import dataset

    observed = {f"{name}_observed" if name in state else name: value for name, value in observed.items()}
    if path.suffix == ".npz":
        np.savez(path, **{"steps": np.array(steps), **state, **observed})  # type: ignore[arg-type]
        return
    found = dataset(state, {}, steps)
    for name, value in observed.items():
        found[name] = ((ROUND, *(f"{name}_{axis}" for axis in range(value.ndim - 1))), value)
    found.to_netcdf(path)
