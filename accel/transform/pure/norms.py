"""Norms: roots of sums of squares, such as wind speed. Their derivative is 0 where all terms are 0.

There the root has an infinite derivative and the squares have the derivative 0, and their product is NaN. The norm
itself rises on either side, so a central difference is 0, and so is the derivative here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.rules import core
from accel.rules.lowering import jnp, lax
from accel.rules.rule import Rule, lookup
from accel.rules.tables import ufuncs

MOST_TERMS = 16
"""Maximum depth to which a sum of squares is searched."""


@functools.cache
def _rules() -> dict[Rule, str]:
    names = {"sqrt", "power", "hypot", "add", "multiply", "square"}
    found = {ufuncs.rule_for(getattr(np, name)): name for name in names}
    total = lookup(np.sum)
    return found if total is None else {**found, total: "sum"}


def is_norm(node: Node) -> bool:
    """Return whether an operation on floats is a norm of its operands."""
    name = _rules().get(node.rule)
    if node.dtype is None or node.dtype.kind != "f":
        return False
    if name == "power":
        return _is_number(node.args[1], 0.5) and _is_of_squares(node.args[0])
    return name == "hypot" or (name == "sqrt" and _is_of_squares(node.args[0]))


def _is_of_squares(value: Any, depth: int = 0) -> bool:
    """Return whether a value is a sum of squares, which is 0 only where all of them are."""
    if not isinstance(value, Node) or depth > MOST_TERMS:
        return False
    deeper = depth + 1
    name = _rules().get(value.rule)
    if value.rule is core.CAST:
        return _is_of_squares(value.args[0], deeper)
    if name == "sum":
        return _is_of_squares(value.args[0] if value.args else value.kwargs.get("a"), deeper)
    if name == "add":
        return all(_is_of_squares(each, deeper) for each in value.args[:2])
    if name == "multiply":
        one, other = value.args[:2]
        if isinstance(one, Node) and one is other:
            return True
        return any(_is_positive(a) and _is_of_squares(b, deeper) for a, b in ((one, other), (other, one)))
    return name == "square" or (name == "power" and _is_number(value.args[1], 2))


def _is_number(value: Any, wanted: float) -> bool:
    return isinstance(value, (int, float)) and value == wanted


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and value > 0


def computed(node: Node, operands: tuple[Any, ...], compute: Callable[..., Any]) -> Any:
    """Compute the norm, with derivatives that are 0 where it is 0. compute: the operation, as a function of its
    operands.

    Where all terms are 0, the operation gets a 1 instead, and the result is replaced by the 0 that it would have been.
    """
    arrays = [jnp.broadcast_to(jnp.asarray(each), node.shape) for each in operands[: _arity(node)]]
    is_zero = functools.reduce(lambda one, other: one & other, (each == 0 for each in arrays))
    given = [lax.select(is_zero, jnp.ones_like(each), each) for each in arrays]
    found = compute(*given, *operands[len(given) :])
    return lax.select(is_zero, jnp.zeros_like(found), found)


def _arity(node: Node) -> int:
    return 2 if _rules()[node.rule] == "hypot" else 1
