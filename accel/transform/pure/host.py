"""Compute Python's numbers by JAX, so that a pure function has derivatives with respect to scalar parameters.

If Python could raise, a check is added. It is False where the program's own call would have ended in an exception.
Python's integers do not wrap around, and JAX's do: another check is False where one becomes too large.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accel.compiler.lower.operations import as_array, compute
from accel.ir.tape import Node
from accel.platform.reasons import source_line
from accel.record.values.operands import HAS_TYPE
from accel.rules import core, scalars
from accel.rules.lowering import jnp
from accel.rules.rule import Rule, Unsupported, lookup
from accel.rules.scalars import PYTHON, PythonRow
from accel.rules.tables import ufuncs


def _remainder(x: Any, y: Any) -> Any:
    return jnp.fmod(x, y)


_MORE: dict[Any, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    math.pow: (PYTHON[operator.pow].rule.lower, PYTHON[operator.pow].checks),  # type: ignore[dict-item]
    pow: (PYTHON[operator.pow].rule.lower, PYTHON[operator.pow].checks),  # type: ignore[dict-item]
    math.fmod: (_remainder, PYTHON[operator.mod].checks),
    bool: (lambda x: x != 0, ()),
}
"""Python functions that only run on the host: their JAX equivalents, and conditions on their operands."""


def computed(node: Node, operands: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Compute a host number by JAX. Returns it with its checks. Raises Unsupported."""
    if node.dtype is None or node.shape or node.dtype.kind == "O":
        raise Unsupported("pure.host", f"{node.rule.name} at {source_line(*node.where)}")
    if node.rule is HAS_TYPE:  # of a power: its own check says that it is the number that was recorded
        return True, []
    if node.rule.lower is not None:
        return compute(node, operands, kwargs), []
    row = PYTHON.get(node.rule.function) if _is_hashable(node.rule.function) else None
    lower, checks, after = _of_row(row) if row is not None else _of_more(node)
    if lower is None:
        return _of_numpy(node, operands, kwargs), []
    operands = tuple(as_array(each) for each in operands)
    if kwargs or any(not _is_number(each) for each in operands):
        raise Unsupported("pure.host", f"{node.rule.name} at {source_line(*node.where)}")
    truths = [check.lower(*operands) for check in checks if check.operands == () and check.lower is not None]
    value = core.cast(lower(*operands), node.dtype)
    if after is not None:
        truths.append(after.lower(value))
    truths += _stay_whole(node, operands, value)
    return jnp.asarray(value, np.dtype(node.dtype)).reshape(()), truths


def _stay_whole(node: Node, operands: Sequence[Any], value: Any) -> list[Any]:
    """Return checks that Python's integers are small enough for JAX to compute and compare them exactly."""
    function = node.rule.function
    if node.scalar is int:
        wraps = scalars.UNWRAPPED.get(operator.pow if function is pow else function)
        return [scalars.EXACT.function(value) if wraps is None else wraps.function(*operands)]
    kinds = [each.scalar if isinstance(each, Node) else type(each) for each in node.args]
    if function in scalars.COMPARISONS and set(kinds) == {int, float}:
        return [scalars.EXACT.function(operands[kinds.index(int)])]
    return []


def _of_row(row: PythonRow) -> tuple[Any, Any, Any]:
    return row.rule.lower, row.checks, row.after


def _of_more(node: Node) -> tuple[Any, Any, Any]:
    found = _MORE.get(node.rule.function) if _is_hashable(node.rule.function) else None
    return (None, (), None) if found is None else (*found, None)


def _of_numpy(node: Node, operands: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute a NumPy function of numbers alone, by its rule. Raises Unsupported."""
    function = node.rule.function
    if isinstance(function, np.ufunc) and not kwargs:
        rule = ufuncs.rule_for(function)
        loop = ufuncs.loop_of(function, [_like(each) for each in node.args], None)
        value = rule.lower(*operands, loop=loop) if rule.lower is not None else None
    else:
        value = _by_row(lookup(function), operands, kwargs)
    if value is None or isinstance(value, tuple):
        raise Unsupported("pure.host", f"{node.rule.name} at {source_line(*node.where)}")
    return core.cast(value, node.dtype).reshape(())


def _by_row(rule: Rule | None, operands: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if rule is None or rule.lower is None or rule.signature is None or rule.recorded.holds is not None:
        return None
    bound = rule.signature.bind(*operands, **kwargs).arguments
    if not bound.keys() <= {*rule.operands, *rule.static}:
        return None
    return rule.lower(**{name: jnp.asarray(each) if name in rule.operands else each for name, each in bound.items()})


def _like(operand: Any) -> Any:
    """Return a number of the operand's type, by which NumPy chooses its loop."""
    return (operand.scalar or np.dtype(operand.dtype).type)(1) if isinstance(operand, Node) else operand


def _is_hashable(function: object) -> bool:
    try:
        hash(function)
    except TypeError:
        return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float, complex)) or hasattr(value, "dtype")
