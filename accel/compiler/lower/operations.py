"""Operations: one operation of a tape, by its rule's lowering in a traced program."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.compiler.lower import exact
from accel.ir.tape import Node
from accel.platform.reasons import source_line
from accel.rules import core
from accel.rules.lowering import Array
from accel.rules.rule import Rule, Unsupported
from accel.rules.tracing import stored


def compute(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One operation in a traced program, checked; Unsupported with its place in the user's program."""
    if node.endangered:
        args = (*args[:2], stored(as_array(args[2])), *args[3:])
    try:
        value = apply(node, args, kwargs)
    except Unsupported as gap:
        raise Unsupported(gap.reason, f"{node.rule.name} at {source_line(*node.where)}: {gap.detail}") from gap
    except Exception as error:
        raise Unsupported(
            "lower.failed", f"{node.rule.name} at {source_line(*node.where)}: {type(error).__name__}: {error}"
        ) from error
    return check(node, value)


def apply(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One operation by its rule's lowering."""
    rule: Rule = node.rule
    if rule.lower is None:
        raise Unsupported("rule.missing", rule.name)
    if exact.is_numpys(node):
        arrays = {name: as_array(value) for name, value in kwargs.items()}
        return exact.by_numpy(node, as_array(args), arrays)
    kwargs = {name: as_array(value) if name in rule.operands else value for name, value in kwargs.items()}
    kwargs.update((name, _cast_all(kwargs[name], node.dtype)) for name in rule.cast if name in kwargs)
    return rule.lower(*args, **kwargs)


def _cast_all(value: object, dtype: object) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_cast_all(part, dtype) for part in value)
    return value if value is None else core.cast(value, dtype)


def as_array(value: object) -> Any:
    """Operands of functions are arrays, whatever they were in NumPy."""
    if isinstance(value, (list, tuple)):
        return type(value)(as_array(part) for part in value)
    if isinstance(value, (np.ndarray, np.generic)):
        from jax import numpy as jnp

        return jnp.asarray(value)
    return value


def check(node: Node, value: Array | bool | tuple[Any, ...]) -> Any:
    """The value, if it has the shape and dtype that NumPy produced there."""
    if node.dtype is None:  # several results: each is checked where it is picked
        return value
    from jax import numpy as jnp

    value = jnp.asarray(value)
    if value.shape != node.shape or value.dtype != node.dtype:
        raise Unsupported(
            "lower.mismatch",
            f"{node.rule.name} at {source_line(*node.where)}: NumPy gives {node.dtype}{list(node.shape)}, "
            f"JAX {value.dtype}{list(value.shape)}",
        )
    return value
