"""NumPy's functions that a compiled program calls as they are: see accel.rules.hosted."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre, polynomial

from accel.rules.hosted import on_host

on_host(
    np,
    """
    apply_along_axis: arr
    apply_over_axes: a
    argpartition: a
    ediff1d: ary to_end to_begin
    geomspace: start stop
    histogramdd: sample *bins weights
    packbits: a
    partition: a
    poly: seq_of_zeros
    polyadd: a1 a2
    polyder: p
    polydiv: u v
    polyint: p k
    polymul: a1 a2
    polysub: a1 a2
    roots: p
    unique_all: x
    unique_counts: x
    unique_inverse: x
    unique_values: x
    unpackbits: a
    """,
)
on_host(
    np.linalg,
    """
    cond: x
    eig: a
    eigvals: a
    lstsq: a b
    matrix_power: a
    matrix_rank: A
    multi_dot: *arrays
    tensorinv: a
    tensorsolve: a b
    """,
)

for _module, _kind in (
    (polynomial, "poly"),
    (chebyshev, "cheb"),
    (legendre, "leg"),
    (laguerre, "lag"),
    (hermite, "herm"),
    (hermite_e, "herme"),
):
    on_host(
        _module,
        f"""
        {_kind}der: c
        {_kind}fit: x y w
        {_kind}grid2d: x y c
        {_kind}int: c
        {_kind}roots: c
        {_kind}val: x c
        {_kind}val2d: x y c
        {_kind}vander: x
        {_kind}vander2d: x y
        """,
    )
