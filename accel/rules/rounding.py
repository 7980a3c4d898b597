"""Rounding: how a program gives a rounded result NumPy's own bits, where a jump reads it.

XLA's algebra and code generator leave roundings out: a product that is added becomes one instruction with the sum,
`x / 3.0` a product with the reciprocal, `x * 0.1 * 3.0` a product with 0.3. That is a difference in the last place,
until something jumps there: `np.floor(x / 0.01)` of cells on a grid is another one at every twentieth point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from accel.ir.tape import Node
from accel.rules.columns import Contraction
from accel.rules.core import cast
from accel.rules.lowering import jnp, lax, where
from accel.rules.tracing import current

if TYPE_CHECKING:
    from jax import Array


def rounded(x: Array) -> Any:
    """Hide how `x`, real floats, was computed, so that XLA cannot simplify or contract across it.

    An exclusive or with zero; it costs one instruction for each vector. Barriers are gone before code is generated.
    """
    always = current().rounded_by
    if always is None or x.dtype.kind != "f":
        return x
    bits = np.dtype(f"i{x.dtype.itemsize}")
    # XLA cannot know that it is zero, so it cannot drop the exclusive or, nor look through it
    zero = lax.select(always, bits.type(0), bits.type(1))
    return lax.bitcast_convert_type(lax.bitcast_convert_type(x, bits) ^ zero, x.dtype)


def divisor(y: Array, x: Array) -> Any:
    """`y`, by which `x` of the same dtype is divided: no number or row, whose reciprocal XLA would multiply by."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    x, y = jnp.broadcast_to(x, shape), jnp.broadcast_to(y, shape)
    # it depends on x, so that XLA sees neither number nor row; where x is NaN, the quotient is NaN in any case
    return where(x != x, x, y)


def keeps(node: Node) -> bool:
    """Whether XLA might compute the operation's result together with what reads it."""
    contraction: Contraction = node.rule.numerics.contraction
    if contraction is Contraction.SUM:
        # merged where one operand is a single number
        return not all(isinstance(operand, Node) and operand.shape for operand in node.args[:2])
    return contraction is not Contraction.NONE


def kept_apart(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The operands of an operation, from which XLA then computes nothing but that operation."""
    if node.rule.numerics.contraction is not Contraction.QUOTIENT or kwargs["loop"][0].kind != "f":
        return args
    x, y = (cast(each, dtype) for each, dtype in zip(args, kwargs["loop"], strict=False))
    return x, divisor(y, x)
