"""Evaluation: one operation of a tape by NumPy itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.ir.loop import LoopBody, body_of
from accel.ir.tape import Node
from accel.ir.template import fill
from accel.rules import core
from accel.rules.rule import Rule
from accel.rules.special import WritesInto


def evaluate(node: Node, value_of: Callable[[Node], Any]) -> Any:
    """One operation by NumPy itself."""
    rule: Rule = node.rule
    body = body_of(node)
    if body is not None:
        return _evaluate_iterations(body, *fill(node.args, value_of, Node))
    args, kwargs = fill((node.args, node.kwargs), value_of, Node)
    if isinstance(rule.recorded.special, WritesInto):  # NumPy changes the first operand, and gives nothing
        changed = kwargs[rule.operands[0]] = np.array(kwargs[rule.operands[0]])
        call(rule, args, kwargs)
        return changed
    return call(rule, args, kwargs)


def _evaluate_iterations(body: LoopBody, begin: Any, entry: Any, moving: list[Any], fixed: list[Any]) -> list[Any]:
    """All iterations of a loop by data, as `accel.compiler.lower.looping` has them in a traced program."""
    asked, holds, count = bool(begin) == body.stay, entry is None or bool(entry), 0
    while asked and holds and count < body.limit:
        values = dict(zip((node.index for node in body.parameters), (*moving, *fixed), strict=True))
        for node in body.operations:
            values[node.index] = evaluate(node, functools.partial(_known, values))
        moving = [values[node.index] for node in body.updates]
        asked = bool(values[body.asked.index]) == body.stay
        assumed = [values[node.index] for node in body.assumed]
        holds = any(core.agree(*_known_of(assumed, kind)) for kind in body.kinds)
        count += 1
    return [*moving, np.bool_(holds and not asked), np.bool_(holds and asked and count == body.limit)]


def _known(values: dict[int, Any], operand: Node) -> Any:
    return values[operand.index]


def _known_of(assumed: list[Any], kind: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """The assumptions of a kind of iterations: the values, and what they must be."""
    pairs = [(value, wanted) for value, wanted in zip(assumed, kind, strict=True) if wanted is not None]
    return [value for value, _ in pairs], [wanted for _, wanted in pairs]


def call(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function of a rule."""
    return rule.function(*args, **kwargs) if args else call_by_name(rule, kwargs)


def call_by_name(rule: Rule, kwargs: dict[str, Any]) -> Any:
    """A rule's function with arguments by name, as the tape has them. Some functions take theirs by position alone."""
    if rule.signature is None:
        return rule.function(**kwargs)
    bound = inspect.BoundArguments(rule.signature, kwargs)
    parameters, more = rule.signature.parameters, {}
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):  # which `bound.kwargs` does not have
        more = {name: value for name, value in kwargs.items() if name not in parameters}
    return rule.function(*bound.args, **bound.kwargs, **more)
