"""NumPy's functions that a compiled program calls as they are: see accel.rules.hosted."""

from __future__ import annotations

import numpy as np

from accel.rules.hosted import on_host

on_host(
    np,
    """
    argpartition: a
    histogramdd: sample *bins weights
    partition: a
    poly: seq_of_zeros
    polydiv: u v
    roots: p
    unique_all: x
    unique_counts: x
    unique_inverse: x
    unique_values: x
    """,
)
on_host(
    np.linalg,
    """
    eig: a
    eigvals: a
    lstsq: a b
    """,
)
