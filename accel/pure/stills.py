"""Stills: where a value does not move with the leaves, because a selection has put a constant there.

NumPy code keeps away from singular points: `np.sqrt(np.maximum(x, 0))`, `np.arccos(np.clip(x, -1, 1))`. Where the
constant is taken, the result is constant, too, and its derivative is 0. But the root of the constant has an infinite
one, and 0 * inf is NaN, in either mode. So before and behind such operations stand gates (see accel.pure.gates).

Where a value moves is found from the beginning of the tape onwards. What is not known counts as moving.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from accel.ir.tape import Node
from accel.ir.views import Broadcast, ComplexPart, Diagonal
from accel.pure.gates import EVERYWHERE, Condition, Mask, is_elementwise, limited, operands_of, selects
from accel.rules import core


def moving_masks(body: Sequence[Node], still: Container[int]) -> dict[int, Mask]:
    """For each operation of a body that may be singular where it stands still: where it moves, by index.

    still: indices of operands that are constants.
    """
    moves: dict[int, Mask | None] = {}  # None: nowhere
    found: dict[int, Mask] = {}
    for node in body:
        mask = moves[node.index] = _of(node, moves, still)
        if mask and node.rule.slope.singular:
            found[node.index] = mask
    return found


def _of(node: Node, moves: dict[int, Mask | None], still: Container[int]) -> Mask | None:
    """Where an operation's value moves."""
    if node.dtype is None or node.dtype.kind not in "fc":
        return None if node.dtype is not None else EVERYWHERE
    parts = list(_parts(node, moves, still))
    if not parts:
        return None
    return frozenset.intersection(*parts)


def _parts(node: Node, moves: dict[int, Mask | None], still: Container[int]) -> Iterator[Mask]:
    """Where the value moves by each of its operands."""
    for key, operand in operands_of(node):
        mask = None if operand.index in still else moves.get(operand.index, _of_input(operand))
        if mask is not None:
            yield _handed_on(node, key, operand, mask)


def _of_input(operand: Node) -> Mask | None:
    return EVERYWHERE if operand.dtype is None or operand.dtype.kind in "fc" else None


def _handed_on(node: Node, key: Any, operand: Node, mask: Mask) -> Mask:
    """Where a value moves by an operand that moves where `mask` holds."""
    if node.rule is core.READ and not isinstance(node.args[1], (Broadcast, Diagonal, ComplexPart)) and key == 0:
        return frozenset(each.turned("read", node.args[1]) for each in mask)
    if node.rule is core.RESHAPE:
        return frozenset(each.turned("reshaped", node.shape) for each in mask)
    if node.rule is core.PHI or not is_elementwise(node) or operand.shape != node.shape:
        return EVERYWHERE
    return limited(mask | {Condition(node.index, key, node.shape)}) if selects(node, key) else mask
