"""Rules: one row per NumPy, SciPy or math function, and how JAX computes it."""

from __future__ import annotations

import functools


@functools.cache
def load() -> None:
    """Fill the table: every module of rows registers itself on import. Does not import JAX."""
    from accel.rules.tables import (  # noqa: F401
        creation,
        functions,
        indices,
        inplace,
        linalg,
        ndimage,
        order,
        polynomials,
        reductions,
        refused,
        shaping,
        statics,
        ufunc_methods,
    )
