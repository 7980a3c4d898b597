"""Operators with their ufuncs, and checks of operands that all kinds of calls share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from accel.ir.overlap import may_share
from accel.ir.tape import Node, Storage, nodes_in
from accel.ir.views import Chain
from accel.record.state.recording import Recording
from accel.record.state.wrapper import unwrap
from accel.record.values.arrays import RecordedArray, RecordedScalar, as_static, as_template
from accel.record.values.wrapping import known, remember
from accel.rules import core, scalars
from accel.rules.rule import Rule, Unsupported, own_rule, truth_of
from accel.rules.tables import ufuncs

Operations = Mapping[str, tuple[Callable[..., Any], np.ufunc]]

BINARY: Operations = {
    "add": (operator.add, np.add),
    "sub": (operator.sub, np.subtract),
    "mul": (operator.mul, np.multiply),
    "truediv": (operator.truediv, np.true_divide),
    "floordiv": (operator.floordiv, np.floor_divide),
    "mod": (operator.mod, np.remainder),
    "pow": (operator.pow, np.power),
    "matmul": (operator.matmul, np.matmul),
    "and": (operator.and_, np.bitwise_and),
    "or": (operator.or_, np.bitwise_or),
    "xor": (operator.xor, np.bitwise_xor),
    "lshift": (operator.lshift, np.left_shift),
    "rshift": (operator.rshift, np.right_shift),
}

COMPARE: Operations = {
    "lt": (operator.lt, np.less),
    "le": (operator.le, np.less_equal),
    "eq": (operator.eq, np.equal),
    "ne": (operator.ne, np.not_equal),
    "gt": (operator.gt, np.greater),
    "ge": (operator.ge, np.greater_equal),
}

UNARY: Operations = {
    "neg": (operator.neg, np.negative),
    "abs": (abs, np.absolute),
    "invert": (operator.invert, np.invert),
}


STORED = frozenset(
    """a_max a_min constant_values default end_values fill_value funclist initial max min src start stop val vals
    values""".split()
)
"""Names of parameters of NumPy's functions whose values are cast to the result's dtype."""


def check_casts(recording: Recording, value: object, dtype: np.dtype[Any]) -> None:
    """Let replays check that numbers which are cast to integers fit: those of a value, and of lists and tuples in it.

    XLA and NumPy differ where floats do not; Python's integers raise in NumPy, and wrap in XLA.
    """
    if dtype.kind not in "iu":
        return
    for part in flat((value,)):
        node = as_template(part) if issubclass(type(part), (RecordedArray, RecordedScalar)) else None
        if not isinstance(node, Node) or node.dtype is None:
            continue
        if node.dtype.kind in "fc":
            # NumPy stores a number as Python's: it has to fit
            wide = core.cast_through(dtype) if issubclass(type(part), RecordedArray) else dtype
            recording.writer.assume(core.FITS, (node, wide), (np.asarray(unwrap(part)), wide))
        elif node.scalar is int:
            assume_in_range(recording, node, dtype)
        elif issubclass(type(part), RecordedScalar) and not np.can_cast(node.dtype, dtype):
            assume_in_range(recording, node, dtype, unwrap(part))  # NumPy's raise like Python's where they are stored


def refuse_shared(target: RecordedArray, others: Iterable[Any]) -> None:
    """Refuse what NumPy reads in the memory of the target while it writes there, without a copy."""
    for other in others:
        if issubclass(type(other), RecordedArray) and may_share(target._plain_, other._plain_):
            raise Unsupported("alias.overlap", "an array that is written is read through another view meanwhile")


def view(recording: Recording, value: Any, storage: Storage, chain: Chain) -> Any:
    """The recorded form of an array that looks at a storage through a chain of views, one for each array."""
    seen = known(recording, value)
    return remember(recording, RecordedArray(recording, value, storage, chain)) if seen is None else seen


def all_host(template: Any) -> bool:
    """Whether Python computes all values in a template before launch."""
    return all(node.host for node in nodes_in(template))


_TYPE_VARIES = frozenset({operator.pow, pow})
"""Functions of Python numbers the type of whose result depends on the values (2 ** -1, (-8.0) ** 0.5)."""

HAS_TYPE = own_rule("has_type", lambda value, kind: type(value) is kind)


def host_node(
    recording: Recording, function: Callable[..., Any], args: Any, kwargs: dict[str, Any], result: object
) -> Node:
    """The node of what Python computes before launch. NumPy takes Python's integers of 2**63 and more as uint64."""
    node = recording.writer.node(scalars.host_rule(function), args, kwargs, result, host=True)
    of_integers = any(operand.scalar is int for operand in nodes_in((args, kwargs)))
    if function in _TYPE_VARIES or (of_integers and isinstance(result, np.integer)):
        recording.writer.assume(HAS_TYPE, (node, type(result)), host=True)
    return node


def flat(values: Any) -> Any:
    """Values, and the members of lists and tuples among them."""
    for value in values:
        if type(value) in (list, tuple):
            yield from flat(value)
        else:
            yield value


def ufunc_kwargs(ufunc: np.ufunc, operands: tuple[Any, ...], dtype: object) -> dict[str, Any]:
    """The loop that NumPy chose, as a keyword of the rule."""
    loop = ufuncs.loop_of(ufunc, [unwrap(operand) for operand in operands], as_static(dtype))
    for operand, kind in zip(operands, loop, strict=False):
        _check_range(operand, kind)
    return {"loop": loop}


def _check_range(operand: Any, dtype: np.dtype[Any]) -> None:
    """A Python integer that its loop's dtype cannot hold raises in NumPy; XLA would wrap it."""
    if not issubclass(type(operand), RecordedScalar) or type(operand._plain_) is not int or dtype.kind not in "iu":
        return
    node = as_template(operand)
    if isinstance(node, Node):
        assume_in_range(operand._recording_, node, dtype)


def assume_in_range(recording: Recording, node: Node, dtype: np.dtype[Any], value: object = None) -> None:
    """value: the plain number, where NumPy may have stored it although it does not fit."""
    info = np.iinfo(dtype)
    if dtype != np.int64 or node.dtype == np.uint64:
        high = info.max if node.host else min(info.max, np.iinfo(np.int64).max)
        plainly = None if value is None else (value, info.min, high)
        recording.writer.assume(scalars.IN_RANGE, (node, info.min, high), plainly, host=node.host)


def assume_holds(
    recording: Recording, rule: Rule, bound: dict[str, Any], template: dict[str, Any], result: object
) -> None:
    """Let replays check what the rule's lowering takes for granted of its arguments."""
    if rule.recorded.holds is None:
        return
    arrays = {
        name: unwrap(value) if name in rule.sequences else np.asarray(unwrap(value))
        for name, value in bound.items()
        if name in rule.operands
    }
    first = result[0] if isinstance(result, tuple) and result else result
    shape = np.shape(first) if isinstance(first, (np.ndarray, np.generic)) else ()
    holds = rule.recorded.holds(**{**bound, **arrays}, shape=shape)
    if holds is None:
        return
    node = recording.writer.node(truth_of(rule), (), {**template, "shape": shape}, True)
    recording.writer.outcome(node, bool(holds))  # other calls may well be able to go on where this one cannot
    if not holds:
        raise Unsupported("rule.parameter", f"{rule.name}: {rule.recorded.otherwise}")
