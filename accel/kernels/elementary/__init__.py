"""Elementary functions of float64 and float32, in vector instructions, by published formulas.

Each is within 1 unit in the last place of the true value, with NumPy's special values, signs of zero and subnormal
numbers. float32 is computed in float64 and rounded once.

pairs          polynomials, sums of two numbers that stand for one, powers of two
exponentials   exp exp2 expm1 sinh cosh tanh
logarithms     log log2 log10 log1p asinh acosh atanh
powers         pow cbrt hypot
trigonometric  sin cos tan
circular       asin acos atan atan2
calls          their definitions, once a module
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from accel.kernels.elementary import circular, exponentials, logarithms, powers, trigonometric
from accel.kernels.elementary.calls import call
from accel.kernels.ir import Value

FORMULAS = {
    "pow": powers.power,
    **{
        formula.__name__: formula
        for formula in (
            *(exponentials.exp, exponentials.exp2, exponentials.expm1),
            *(exponentials.sinh, exponentials.cosh, exponentials.tanh),
            *(logarithms.log, logarithms.log2, logarithms.log10, logarithms.log1p),
            *(logarithms.asinh, logarithms.acosh, logarithms.atanh),
            *(powers.cbrt, powers.hypot),
            *(trigonometric.sin, trigonometric.cos, trigonometric.tan),
            *(circular.asin, circular.acos, circular.atan, circular.atan2),
        )
    },
}

FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    name: functools.partial(call, name, formula) for name, formula in FORMULAS.items()
}
"""By the names that lax has for them; log2, log10 and hypot by NumPy's."""
