"""Values that are known before launch, without running the program: draws may take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from accel.ir.tape import Node, needed_by
from accel.rules import core
from accel.rules.evaluation import evaluate

MOST_EARLY = 16
"""Maximum number of operations on arrays that NumPy does for the arguments of one draw. Guess: the program may do them
again, so there should be few."""


def are_early(nodes: Iterable[Node], most: int = MOST_EARLY) -> bool:
    """Whether all of them are known before launch.

    That is what Python computes, arrays of inputs as they were, and what NumPy makes of both in `most` operations.
    """
    seen: set[int] = set()
    stack, computed = list(nodes), 0
    while stack:
        node = stack.pop()
        if node.index in seen or is_given(node):
            continue
        seen.add(node.index)
        computed += node.rule is not core.READ
        # what a choice of the program's decides is known too late
        if node.rule in (core.CHOICE, core.PHI) or computed > most:
            return False
        stack += node.operands()
    return True


def is_given(node: Node) -> bool:
    """Whether Python has the value: a number that it computes, or what comes in from outside."""
    return node.host or node.is_input


def is_reproduced(node: Node, value: Any, value_of: Callable[[int], Any]) -> bool:
    """Whether NumPy computes `value` again, to the last bit, for an early node.

    value_of: the values that slots have had. How NumPy sums may depend on how arrays lie in memory, and a rule may
    stand for a function by others: a draw must get the very numbers that the program's own code would give it.
    """
    found: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for each in needed_by([node]):
            if each.is_input:
                found[each.index] = value_of(each.args[0])
            else:
                found[each.index] = evaluate(each, lambda operand: found[operand.index])
    made = found[node.index]
    if isinstance(value, np.ndarray):
        return type(made) is np.ndarray and is_same_array(made, value)
    return type(made) is type(value) and is_same_array(np.asarray(made), np.asarray(value))


def is_same_array(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays are the same to the last bit."""
    return bool(one.dtype == other.dtype) and one.shape == other.shape and one.tobytes() == other.tobytes()
