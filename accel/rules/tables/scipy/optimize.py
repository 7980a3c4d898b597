"""scipy.optimize's functions that call none of the program's."""

from __future__ import annotations

from scipy import optimize

from accel.rules.hosted import on_host

on_host(
    optimize,
    """
    linear_sum_assignment: cost_matrix
    nnls: A b
    """,
)
