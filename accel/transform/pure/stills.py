"""Stills: elements that do not vary with the leaves, because a selection has put a constant there.

NumPy code avoids singular points: `np.sqrt(np.maximum(x, 0))`, `np.arccos(np.clip(x, -1, 1))`. Where the constant is
taken, the result is constant, too, and its derivative is 0. But the root of the constant has an infinite derivative,
and 0 * inf is NaN, in forward and reverse mode. So gates stand before and behind such operations (see
accel.transform.pure.gates).

The varying elements are found from the beginning of the tape onwards. Unknown elements count as varying.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from accel.ir.tape import Node
from accel.ir.views import Broadcast, ComplexPart, Diagonal
from accel.rules import core
from accel.transform.pure.gates import EVERYWHERE, Condition, Mask, is_elementwise, limited, operands_of, selects


def moving_masks(body: Sequence[Node], still: Container[int]) -> dict[int, Mask]:
    """Return, by index of an operation that may be singular at constants, the mask of the elements that vary.

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
    """Return the mask of the elements of an operation's value that vary."""
    if node.dtype is None or node.dtype.kind not in "fc":
        return None if node.dtype is not None else EVERYWHERE
    parts = list(_parts(node, moves, still))
    if not parts:
        return None
    return frozenset.intersection(*parts)


def _parts(node: Node, moves: dict[int, Mask | None], still: Container[int]) -> Iterator[Mask]:
    """Yield the masks of elements that vary because of each operand."""
    for key, operand in operands_of(node):
        mask = None if operand.index in still else moves.get(operand.index, _of_input(operand))
        if mask is not None:
            yield _handed_on(node, key, operand, mask)


def _of_input(operand: Node) -> Mask | None:
    return EVERYWHERE if operand.dtype is None or operand.dtype.kind in "fc" else None


def _handed_on(node: Node, key: Any, operand: Node, mask: Mask) -> Mask:
    """Return where a value varies because of an operand that varies where `mask` holds."""
    if node.rule is core.READ and not isinstance(node.args[1], (Broadcast, Diagonal, ComplexPart)) and key == 0:
        return frozenset(each.turned("read", node.args[1]) for each in mask)
    if node.rule is core.RESHAPE:
        return frozenset(each.turned("reshaped", node.shape) for each in mask)
    if node.rule is core.PHI or not is_elementwise(node) or operand.shape != node.shape:
        return EVERYWHERE
    return limited(mask | {Condition(node.index, key, node.shape)}) if selects(node, key) else mask
