"""Which numbers are worth folding: a program that takes one for constant is compiled again when it changes.

Parameters of models change rarely, and late: a tuned coefficient, a shorter time step. By then several paths have been
compiled for the old value.
"""

from __future__ import annotations

from collections.abc import Collection

from accel.lower import Known, Lowerable


def not_worth_folding(trace: Lowerable, known: Known) -> Collection[int]:
    """The slots of floats that no program gains by knowing: they meet arrays that change, in plain arithmetic alone.

    What is computed from them before that, Python computes, and only when one of them has changed.
    """
    floats: set[int] = set()
    needed: set[int] = set()
    fixed: dict[int, bool] = {}
    behind: dict[int, frozenset[int]] = {}  # the slots of floats that a node's value depends on
    for node in trace.tape.nodes:
        operands = node.operands()
        if node.is_input:
            slot = node.args[0]
            fixed[node.index] = slot in known or slot in trace.decided
            is_float = isinstance(known.scalars.get(slot), float)  # NumPy's float64 among them
            behind[node.index] = frozenset({slot} if is_float else ())
            floats |= behind[node.index]
            continue
        fixed[node.index] = all(fixed[operand.index] for operand in operands)
        behind[node.index] = frozenset().union(*(behind[operand.index] for operand in operands))
        if node.host:
            continue
        if fixed[node.index] or not node.rule.arithmetic:
            needed |= behind[node.index]
        behind[node.index] = frozenset()
    return floats - needed
