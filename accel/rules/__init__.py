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
    # ruff: noqa: F401
    from accel.rules.tables import along_axes, elementwise, on_host, refused, statics, ufunc_methods
    from accel.rules.tables.algebra import convolution, fourier, linalg, polynomials, subscripts
    from accel.rules.tables.arrays import choices, creation, indices, inplace, sets, shaping
    from accel.rules.tables.statistics import nans, quantiles, reductions, samples, sorting
