"""Operations: one operation of a tape, by its rule's lowering in a traced program, or by NumPy itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.ir.loop import Body, body_of
from accel.ir.tape import Node
from accel.ir.template import fill
from accel.reasons import source_line
from accel.rules import core, fusion, rounding
from accel.rules.rule import Rule, Unsupported
from accel.rules.special import WritesInto

if TYPE_CHECKING:
    from jax import Array


def compute(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any], shape: tuple[int, ...] | None = None) -> Any:
    """One operation in a traced program, checked; Unsupported with its place in the user's program.

    shape: the result's, where it is not the node's.
    """
    if node.endangered:
        args = (*args[:2], fusion.snapshot(as_array(args[2])))
    if node.exact:  # before and after: XLA must merge it neither with what it reads nor with what reads it
        args = rounding.kept_apart(node, args, kwargs)
    try:
        value = apply(node, args, kwargs)
    except Unsupported as gap:
        raise Unsupported(gap.reason, f"{node.rule.name} at {source_line(*node.where)}: {gap.detail}") from gap
    except Exception as error:
        raise Unsupported(
            "lower.failed", f"{node.rule.name} at {source_line(*node.where)}: {type(error).__name__}: {error}"
        ) from error
    if node.exact and rounding.keeps(node):
        value = rounding.rounded(value)
    return check(node, value, node.shape if shape is None else shape)


def compute_inside(
    node: Node, args: tuple[Any, ...], kwargs: dict[str, Any], shape: tuple[int, ...] | None = None
) -> Any:
    """One operation in a loop's rounds."""
    with fusion.inside():
        return compute(node, args, kwargs, shape)


def apply(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One operation by its rule's lowering."""
    rule: Rule = node.rule
    if rule.lower is None:
        raise Unsupported("rule.missing", rule.name)
    kwargs = {name: as_array(value) if name in rule.operands else value for name, value in kwargs.items()}
    kwargs.update((name, _cast_all(kwargs[name], node.dtype)) for name in rule.cast if name in kwargs)
    for name in rule.locality.scattered:  # XLA would compute the operand again at each of the places
        if isinstance(kwargs.get(name), jax_array()):
            kwargs[name] = fusion.materialize(kwargs[name])
    return rule.lower(*args, **kwargs)


@functools.cache
def jax_array() -> Any:
    import jax

    return jax.Array


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


def check(node: Node, value: Array | bool | tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """The value, if it has the shape and dtype that NumPy produced there."""
    if node.dtype is None:  # several results: each is checked where it is picked
        return value
    from jax import numpy as jnp

    value = jnp.asarray(value)
    if value.shape != shape or value.dtype != node.dtype:
        raise Unsupported(
            "lower.mismatch",
            f"{node.rule.name} at {source_line(*node.where)}: NumPy gives {node.dtype}{list(shape)}, "
            f"JAX {value.dtype}{list(value.shape)}",
        )
    return value


def evaluate(node: Node, value_of: Callable[[Node], Any]) -> Any:
    """One operation by NumPy itself."""
    rule: Rule = node.rule
    body = body_of(node)
    if body is not None:
        return _evaluate_rounds(body, *fill(node.args, value_of, Node))
    args, kwargs = fill((node.args, node.kwargs), value_of, Node)
    if isinstance(rule.recorded.special, WritesInto):  # NumPy changes the first operand, and gives nothing
        changed = kwargs[rule.operands[0]] = np.array(kwargs[rule.operands[0]])
        _call(rule, args, kwargs)
        return changed
    return _call(rule, args, kwargs)


def _evaluate_rounds(body: Body, begin: Any, entry: Any, moving: list[Any], fixed: list[Any]) -> list[Any]:
    """All rounds of a loop by data, as `accel.lower.looping` has them in a traced program."""
    asked, holds, count = bool(begin) == body.stay, entry is None or bool(entry), 0
    while asked and holds and count < body.limit:
        values = {node.index: given for node, given in zip(body.parameters, (*moving, *fixed), strict=True)}
        for node in body.operations:
            values[node.index] = evaluate(node, lambda operand, known=values: known[operand.index])
        moving = [values[node.index] for node in body.updates]
        asked = bool(values[body.asked.index]) == body.stay
        assumed = [values[node.index] for node in body.assumed]
        holds = any(core.agree(*_known_of(assumed, kind)) for kind in body.kinds)
        count += 1
    return [*moving, np.bool_(holds and not asked)]


def _known_of(assumed: list[Any], kind: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """What a kind of rounds assumes: the values, and what they have to be."""
    pairs = [(value, wanted) for value, wanted in zip(assumed, kind, strict=True) if wanted is not None]
    return [value for value, _ in pairs], [wanted for _, wanted in pairs]


def _call(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    # The tape has arguments by name. Some functions take theirs by position alone.
    if rule.signature is not None and not args:
        bound = inspect.BoundArguments(rule.signature, kwargs)
        return rule.function(*bound.args, **bound.kwargs)
    return rule.function(*args, **kwargs)
