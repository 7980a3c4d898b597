"""Rules: one row per NumPy, SciPy or math function, and how JAX computes it."""

from __future__ import annotations

import functools

from accel.rules.rule import fill


def load(*, everything: bool = False) -> None:
    """Fill the table: every module of rows registers itself on import. Does not import JAX.

    everything: also the rows of libraries that nobody has imported; others are there once somebody has.
    """
    _load_numpy()
    fill(everything=everything)


@functools.cache
def _load_numpy() -> None:
    from accel.rules.tables import (  # noqa: F401
        creation,
        functions,
        indices,
        inplace,
        linalg,
        order,
        polynomials,
        reductions,
        refused,
        shaping,
        statics,
        ufunc_methods,
    )
