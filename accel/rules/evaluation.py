"""Evaluation: one operation of a tape by NumPy itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.ir.template import fill
from accel.rules.rule import Rule
from accel.rules.special import WritesInto


def evaluate(node: Node, value_of: Callable[[Node], Any]) -> Any:
    """One operation by NumPy itself."""
    rule: Rule = node.rule
    args, kwargs = fill((node.args, node.kwargs), value_of, Node)
    if isinstance(rule.recorded.special, WritesInto):  # NumPy changes the first operand, and gives nothing
        changed = kwargs[rule.operands[0]] = np.array(kwargs[rule.operands[0]])
        _call(rule, args, kwargs)
        return changed
    return _call(rule, args, kwargs)


def _call(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    # The tape has arguments by name. Some functions take theirs by position alone.
    if rule.signature is not None and not args:
        bound = inspect.BoundArguments(rule.signature, kwargs)
        return rule.function(*bound.args, **bound.kwargs)
    return rule.function(*args, **kwargs)
