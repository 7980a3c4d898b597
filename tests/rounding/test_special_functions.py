"""SciPy's special functions have its digits near roots, poles, halves and whole numbers, and where they overflow.

XLA's `gammaln(1.0)` is 5e-7 in float32, where it is 0; its `psi(1.46163213)` is 6e-8 off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.rounding.bits import differs_in_kind, variant_mismatches

ROOTS = [1.4616321449683623, -0.504083008264455, -1.5734984731623905, -2.610720868444144, -3.635293366436901]
"""Of `psi`."""

OF_ONE = "gammaln psi log_expit entr i0 exp10 erf erfc expit logit ndtr ndtri erfinv gamma i0e i1 i1e".split()
OF_TWO = "xlogy xlog1py".split()
UNITS = {"erfc": 600.0}
"""Differences in units in the last place, where they are above 16: SciPy's own error for large arguments."""


def grid(dtype: Any) -> Any:
    """Edges, and neighbours of them at all distances."""
    centres = [*np.arange(-20.0, 40.0, 0.5), *ROOTS, 88.9, 91.8, 100.0, 170.0, 171.6, 0.3, 0.65, 0.99, -100.5]
    steps = [0.0, *(sign * 10.0**-power for power in range(1, 12) for sign in (-1.0, 1.0))]
    near = np.add.outer(np.array(centres, dtype), np.array(steps, dtype)).ravel()
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, -1e-30, *ROOTS], dtype)
    return np.concatenate([edges, np.nextafter(near, dtype(np.inf)), near, np.nextafter(near, dtype(-np.inf))])


def operands_of(name: str, dtype: Any) -> tuple[Any, ...]:
    if name in OF_ONE:
        return (grid(dtype),)
    some = grid(dtype)[::61]
    return tuple(each.ravel() for each in np.meshgrid(some, some))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO])
def test_values_are_scipys(name: str, dtype: Any, foreground: None, optimized: None) -> None:
    ufunc = getattr(special, name)
    smallest = 4 * np.finfo(dtype).tiny  # either may have 0 for smaller ones

    def differ(found: Any, expected: Any) -> Any:
        are_tiny = np.maximum(np.abs(found), np.abs(expected)) < smallest
        return differs_in_kind(found, expected, UNITS.get(name, 16.0)) & ~are_tiny

    program = (lambda x: ufunc(x)) if ufunc.nin == 1 else (lambda x, y: ufunc(x, y))
    with np.errstate(all="ignore"):
        assert not list(variant_mismatches(program, lambda _: operands_of(name, dtype), 1, differ))


def rows(x: Any) -> Any:
    found = np.empty_like(x)
    for row in range(len(x)):
        found[row] = special.psi(x[row]) - special.gammaln(x[row])
    return found


def test_values_of_rows_in_a_loop_are_scipys(foreground: None, optimized: None) -> None:
    def draw(number: int) -> tuple[Any]:
        return (np.random.default_rng(number).choice(ROOTS, (40, 50)) + 1e-9,)

    assert not list(variant_mismatches(rows, draw, 3))
