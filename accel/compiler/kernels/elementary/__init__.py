"""Elementary functions of float64 and float32, in vector instructions, by published formulas.

Each result is within 1 unit in the last place of the true value. Docstrings give the largest observed error; for
subnormal results it is at most 0.75. Special values, signs of zero and subnormal numbers are NumPy's. A result depends
on its operands alone, not on the other lanes. float32 is computed in float64 and rounded once.

pairs          polynomials, unevaluated sums of two numbers, powers of two
exponentials   exp exp2 expm1 sinh cosh tanh
logarithms     log log2 log10 log1p asinh acosh atanh
powers         pow cbrt hypot
trigonometric  sin cos tan
circular       asin acos atan atan2
errors         erf erfc
singles        shorter formulas for float32
calls          their definitions, once per module
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from accel.compiler.kernels.elementary import circular, errors, exponentials, logarithms, powers, singles, trigonometric
from accel.compiler.kernels.elementary.calls import Except, call
from accel.compiler.kernels.ir import Value

Formulas = Mapping[str, Callable[..., Value | Except]]


def _by_name(*formulas: Callable[..., Value | Except]) -> Formulas:
    return {{"power": "pow"}.get(each.__name__, each.__name__): each for each in formulas}


FORMULAS: Formulas = _by_name(
    *(exponentials.exp, exponentials.exp2, exponentials.expm1),
    *(exponentials.sinh, exponentials.cosh, exponentials.tanh),
    *(logarithms.log, logarithms.log2, logarithms.log10, logarithms.log1p),
    *(logarithms.asinh, logarithms.acosh, logarithms.atanh),
    *(powers.power, powers.cbrt, powers.hypot),
    *(trigonometric.sin, trigonometric.cos, trigonometric.tan),
    *(circular.asin, circular.acos, circular.atan, circular.atan2),
    *(errors.erf, errors.erfc),
)

SINGLES: Formulas = _by_name(
    *(singles.exp, singles.exp2, singles.expm1, singles.sinh, singles.cosh, singles.tanh),
    *(singles.log, singles.log2, singles.log10, singles.power, singles.sin, singles.cos),
)
"""Shorter formulas, for float32."""


def _called(name: str, *operands: Value) -> Value:
    formula = FORMULAS[name] if operands[0].dtype.itemsize == 8 else SINGLES.get(name, FORMULAS[name])
    return call(name, formula, *operands)


FUNCTIONS: Mapping[str, Callable[..., Value]] = {name: functools.partial(_called, name) for name in FORMULAS}
"""Functions by their names in lax; log2, log10 and hypot by NumPy's."""
