"""The prognostic fields of PyGCM, and the errors between two saved sets of them.

u, v m/s; h geopotential height m; T_s, Ts K; q kg/kg; cloud_cover 0..1; h_ice m; uo, vo m/s; eta m. All (n_lat, n_lon).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import relative_error
from benchmarks.lockstep import Child, ChildFailed

FIELDS = {"atmosphere": ("u", "v", "h", "T_s", "q", "cloud_cover", "h_ice"), "ocean": ("uo", "vo", "eta", "Ts")}
"""Attributes to compare, by the part of the model that holds them."""


def field_errors(expected: Child, found: Child, step: int) -> dict[str, float]:
    """Error of every prognostic field after `step` steps, relative to the field's largest magnitude."""
    return errors_between(fields_file(expected, step), fields_file(found, step))


def fields_file(child: Child, step: int) -> Path:
    """Where a child saved its fields after `step` steps."""
    path = child.folder / f"fields_{step}.npz"
    if not path.exists():
        raise ChildFailed(f"the {child.name} child did not reach step {step}: all have to run equally far")
    return path


def errors_between(expected: Path, found: Path, prefixed: bool = False) -> dict[str, float]:
    """Errors of the prognostic fields in two saved files; a field that only one of them has counts as infinite.

    `prefixed` files name a field `PART.NAME`, the others `NAME`.
    """
    return {
        name: math.inf if ours is None or theirs is None else relative_error(theirs, ours)
        for name, ours, theirs in _both(expected, found, prefixed)
    }


def other_bits(expected: Path, found: Path, prefixed: bool = False) -> dict[str, int]:
    """Number of elements of each field in two saved files that differ in any bit, or in dtype or shape."""
    return {name: differing_elements(ours, theirs) for name, ours, theirs in _both(expected, found, prefixed)}


def differing_elements(ours: np.ndarray | None, theirs: np.ndarray | None) -> int:
    """Number of elements that differ in any bit; all of them where there is one array, or another dtype or shape."""
    if ours is None or theirs is None or (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return max(np.size(each) for each in (ours, theirs) if each is not None)
    first, second = (
        np.frombuffer(each.tobytes(), np.uint8).reshape(each.size, each.itemsize) for each in (ours, theirs)
    )
    return int((first != second).any(axis=1).sum())


def _both(expected: Path, found: Path, prefixed: bool) -> Iterator[tuple[str, np.ndarray | None, np.ndarray | None]]:
    """Each field's name, and its arrays in two saved files, one of which may lack it."""
    names = {name: f"{part}.{name}" if prefixed else name for part, fields in FIELDS.items() for name in fields}
    with np.load(expected) as ours, np.load(found) as theirs:
        for name, key in names.items():
            if key in ours or key in theirs:
                yield name, ours.get(key), theirs.get(key)
