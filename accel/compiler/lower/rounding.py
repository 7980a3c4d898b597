"""Rounding: `+ - * / sqrt` of a compiled program give NumPy's own bits.

XLA's code generator contracts `a*b - c*d` into a fused multiply-add. Its algebra rewrites `x / 3.0` as a product, `(x +
1e16) - 1e16` as `x`, `(a / b) / c` as `a / (b*c)`. Each leaves out a rounding that NumPy makes. If two products are
equal, NumPy has 0, and the contracted difference is 1e-17 of either sign: its square root may be NaN.

So a program is traced once more. A result that XLA could merge with a reader is hidden from it: its bits are combined,
by exclusive or, with a zero that XLA cannot know. That costs one vector instruction. Barriers do not help, as they are
gone before code is generated.

tests/rounding tries random expressions against NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accel.compiler.lower.accurate import accurate
from accel.compiler.lower.precision.evaluation import ReducedEvaluation, retraced
from accel.compiler.lower.precision.widths import AsTraced
from accel.platform.config import FLOAT64
from accel.rules.core import cast
from accel.rules.lowering import number

MERGED = frozenset(
    "add cumprod div dot_general exp integer_pow mul pow reduce_prod rsqrt scatter-add sqrt square sub".split()
)
"""Operations that XLA contracts or rewrites with what reads them, whatever moves, choices and signs stand between. It
adds the terms of a scatter to the other operand of a sum, one by one: large terms that cancel take it with them."""

NEVER_NEGATIVE = frozenset("abs integer_pow mul square".split())
"""Operations whose integers XLA takes for positive: any power, and products of equal numbers. They may wrap."""

SIGNED = {"ge": 1, "gt": 0, "le": 0, "lt": 1}
"""Comparisons with zero that XLA answers without a look where it takes the other operand for positive, as `x * x >= 0`
and `maximum(x, 1) >= 0`, though it may be NaN. By name: which operand is zero."""


def rounded_as_numpy(function: Callable[..., Any], always_of: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, a function of JAX's, with NumPy's rounding.

    always_of: takes the function's arguments; returns one of them, a truth that XLA cannot know to be true.
    """
    return retraced(function, lambda *given: _Rounding(always_of(*given)).closed)


class _Rounding(ReducedEvaluation):
    """Goes through the operations of one traced program and hides results."""

    def __init__(self, always: Any) -> None:
        from jax import lax

        super().__init__(AsTraced(FLOAT64))
        bits = (np.dtype(f"i{size}") for size in (2, 4, 8))
        # two zeros of each size: hidden twice by the same one, a value would be seen again
        self._zeros = {
            each.itemsize: [lax.select(always, each.type(0), each.type(bit)) for bit in (1, 2)] for each in bits
        }

    def step(self, eqn: Any, given: Sequence[Any]) -> Sequence[Any]:
        """The results of one operation."""
        from jax import numpy as jnp

        name = eqn.primitive.name
        if name == "convert_element_type" and given[0].dtype.kind == "b":
            return [cast(given[0], eqn.outvars[0].aval.dtype)]  # XLA takes 0 * NaN for 0 if 0 is a converted truth
        found = accurate(name, given[0], self._hidden) if len(given) == 1 else None
        if found is not None:
            return [found]
        if name == "div":
            given = [jnp.broadcast_to(given[0], eqn.outvars[0].aval.shape), _dependent(*given)]
        elif name in ("add", "sub") or (name == "mul" and given[0].dtype.kind == "c"):
            # XLA takes `x + 0.0` and `x - -0.0` for `x`, which may be -0.0, and `z * 1` for `z`: NumPy's is NaN if z is
            # infinite
            given = [self._hidden(value, 1) if value.dtype.kind in "fc" else value for value in given]
        elif name in SIGNED and given[0].dtype.kind == "f":
            given = [value if side == SIGNED[name] else self._hidden(value, 1) for side, value in enumerate(given)]
        results = super().step(eqn, given)
        dtypes = [var.aval.dtype for var in eqn.outvars]
        if name == "dot_general" and dtypes[0].kind == "f" and _has_rows_of_one(eqn):
            results = [results[0] + self._hidden(number(0, results[0]))]  # NumPy adds to 0.0, whatever the sign
        is_same = name == "xor" and eqn.invars[0] is eqn.invars[1]  # XLA knows that it is 0, and so its quotients
        if is_same or (name in NEVER_NEGATIVE and dtypes[0].kind == "i") or (name in MERGED and dtypes[0].kind in "fc"):
            return [self._hidden(result) for result in results]
        return results

    def _hidden(self, x: Any, which: int = 0) -> Any:
        """`x`, so that XLA cannot see how it was computed. Truths stay as they are. which: of two zeros."""
        from jax import lax

        if x.dtype.kind == "c":
            return lax.complex(self._hidden(lax.real(x), which), self._hidden(lax.imag(x), which))
        if x.dtype.kind in "iu":
            return lax.bitwise_xor(x, lax.convert_element_type(self._zeros[8][which], x.dtype))
        if x.dtype.kind != "f" or x.dtype.itemsize not in self._zeros:
            return x
        zero = self._zeros[x.dtype.itemsize][which]
        return lax.bitcast_convert_type(lax.bitcast_convert_type(x, zero.dtype) ^ zero, x.dtype)


def _dependent(x: Any, y: Any) -> Any:
    """`y`, by which `x` is divided, so that it depends on `x`.

    XLA multiplies by the reciprocal of a divisor that repeats, hidden or not. Where `x` is NaN, the quotient is too.
    """
    from jax import numpy as jnp

    return jnp.where(x != x, x, y) if y.dtype.kind == "f" else y


def _has_rows_of_one(eqn: Any) -> bool:
    """Whether each sum of a matrix product has one term: XLA leaves out the sum."""
    summed = eqn.params["dimension_numbers"][0][0]
    return bool(summed) and all(eqn.invars[0].aval.shape[dim] == 1 for dim in summed)
