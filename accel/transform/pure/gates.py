"""Gates: masks that keep unread elements out of derivatives.

NumPy code computes everywhere and selects afterwards: `np.where(x > 0, np.log(x), 0)`. A dropped element still has a
derivative, perhaps an infinity. Reverse mode multiplies it by the zero that comes from the selection: 0 * inf is NaN.
So a *gate* stands before such operations. It returns its operand, and passes derivatives only where a reader selects
the result.

`live_masks` finds the elements that are read, from the end of the tape backwards. A selection reads each operand under
its condition. An elementwise operation reads its operands where its own result is read. A view passes the mask on to
its source.

Stills are elements that do not vary with the leaves, because a selection has put a constant there. NumPy code avoids
singular points: `np.sqrt(np.maximum(x, 0))`, `np.arccos(np.clip(x, -1, 1))`. Where the constant is taken, the result is
constant, too, and its derivative is 0. But the root of the constant has an infinite derivative, and 0 * inf is NaN, in
forward and reverse mode. So gates stand before and behind such operations.

The varying elements are found from the beginning of the tape onwards. Unknown elements count as varying.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.ir.template import leaves
from accel.ir.views import Broadcast, ComplexPart, Diagonal, Step
from accel.rules import core
from accel.rules.lowering import jnp, lax

MOST = 6
"""Maximum conditions in a value's mask. More are left out, as if the value was read where they fail."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition under which one reader reads a value.

    node: the reader, whose rule reads operand `key` under a condition; None for everywhere. form: shape of the reader's
    condition. turns: the views that lead from there to the value.
    """

    node: int | None
    key: Hashable
    form: tuple[int, ...]
    turns: tuple[tuple[str, Any], ...] = ()

    def turned(self, way: str, about: Any) -> Condition:
        return Condition(self.node, self.key, self.form, (*self.turns, (way, about)))


Mask = frozenset[Condition]
"""Conditions that all hold where a value is read. Empty: it is read everywhere."""

EVERYWHERE: Mask = frozenset()


def live_masks(body: Sequence[Node], roots: Sequence[Node]) -> dict[int, Mask]:
    """Return, by index of an operation, the mask of the elements of its value that are read."""
    live: dict[int, Mask] = {node.index: EVERYWHERE for node in roots}
    for node in reversed(body):
        if node.dtype is not None and node.dtype.kind not in "fc":
            continue  # no derivative comes through truths and whole numbers
        own = live.get(node.index, EVERYWHERE)
        for key, operand in operands_of(node):
            mask = _read_by(node, own, key, operand)
            known = live.get(operand.index)
            live[operand.index] = mask if known is None else known & mask
    return live


def operands_of(node: Node) -> Iterator[tuple[Hashable, Node]]:
    """Yield the operands of an operation, each with the position or name of its argument, and its place in a list
    argument."""
    for name, argument in (*enumerate(node.args), *node.kwargs.items()):
        if isinstance(argument, (list, tuple)):
            yield from (((name, place), each) for place, part in enumerate(argument) for each in leaves(part, Node))
        else:
            yield from ((name, each) for each in leaves(argument, Node))


def _read_by(node: Node, own: Mask, key: Hashable, operand: Node) -> Mask:
    """Return the mask under which an operation reads an operand. own: the mask of the operation's own value."""
    through = _through(node, own, key, operand)
    mask = through if through is not None else EVERYWHERE
    if selects(node, key):
        form = operand.shape if node.rule is not core.PHI else node.shape
        if form == operand.shape:
            mask = mask | {Condition(node.index, key, operand.shape)}
    return limited(mask)


def limited(mask: Mask) -> Mask:
    """Return a mask of at most MOST conditions."""
    return mask if len(mask) <= MOST else frozenset(sorted(mask, key=repr)[:MOST])


def selects(node: Node, key: Hashable) -> bool:
    """Return whether an operation reads an operand only where it selects it."""
    if node.rule is core.PHI:
        return isinstance(key, tuple)
    reads = node.rule.locality.reads
    if reads is None or (reads.given is not None and node.kwargs.get(reads.given) is None):
        return False
    return (key[0] if isinstance(key, tuple) else key) in reads.operands


def _through(node: Node, own: Mask, key: Hashable, operand: Node) -> Mask | None:
    if is_elementwise(node):
        return own if operand.shape == node.shape else None
    way = _WAYS.get(node.rule)
    return None if way is None else way(node, own or _everywhere(node), key, operand)


def is_elementwise(node: Node) -> bool:
    """Return whether each element of the result depends only on operand elements at the same index."""
    return bool(node.rule.locality.elementwise) or node.rule in (core.CAST, core.SELECT, core.PHI, core.SCALAR)


def _everywhere(node: Node) -> Mask:
    return frozenset({Condition(None, None, node.shape)})


def _turned(mask: Mask, way: str, about: Any) -> Mask:
    return frozenset(each.turned(way, about) for each in mask)


def _of_read(node: Node, own: Mask, key: Hashable, operand: Node) -> Mask | None:
    step: Step = node.args[1]
    if isinstance(step, (Broadcast, Diagonal, ComplexPart)):
        return None
    return _turned(own, "seen", (step, operand.shape))


def _of_write(node: Node, own: Mask, key: Hashable, operand: Node) -> Mask | None:
    step: Step = node.args[1]
    if isinstance(step, ComplexPart):
        return None
    if key == 0:
        return _turned(own, "overwritten", step)
    seen = np.broadcast_to(False, node.shape)
    return _turned(own, "read", step) if step.read(seen).shape == operand.shape else None


def _of_reshape(node: Node, own: Mask, key: Hashable, operand: Node) -> Mask | None:
    return _turned(own, "reshaped", operand.shape) if node.shape != operand.shape else own


_WAYS: dict[Any, Callable[[Node, Mask, Hashable, Node], Mask | None]] = {
    core.READ: _of_read,
    core.WRITE: _of_write,
    core.RESHAPE: _of_reshape,
}

_TURNS: dict[str, Callable[[Any, Any], Any]] = {
    "seen": lambda mask, about: about[0].write(np.zeros(about[1], bool) if _is_plain(mask) else _none(about[1]), mask),
    "overwritten": lambda mask, step: step.write(mask, _nowhere(mask)),
    "read": lambda mask, step: step.read(mask),
    "reshaped": lambda mask, shape: mask.reshape(shape),
}


def _is_plain(mask: object) -> bool:
    return isinstance(mask, np.ndarray)


def _none(shape: tuple[int, ...]) -> Any:
    from jax import numpy as jnp

    return jnp.zeros(shape, bool)


def _nowhere(mask: Any) -> Any:
    return np.zeros((), bool) if _is_plain(mask) else _none(())


def condition_value(condition: Condition, of_node: Callable[[int, Hashable, tuple[int, ...]], Any]) -> Any:
    """Return the mask of one condition. of_node: returns the mask of an operation's operand, in the operand's shape."""
    if condition.node is None:
        mask: Any = np.ones(condition.form, bool)
    else:
        mask = of_node(condition.node, condition.key, condition.form)
    for way, about in condition.turns:
        mask = _TURNS[way](mask, about)
    return mask


def read_truths(
    node: Node, key: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any], shape: tuple[int, ...]
) -> Any:
    """Return where a selection of these arguments reads the operand `key`: bools of shape `shape`.

    An element that is broadcast is read if one of its copies is.
    """
    reads = node.rule.locality.reads
    assert reads is not None
    name, *place = key if isinstance(key, tuple) else (key,)
    mask = reads.masks(*args, **kwargs)[reads.operands.index(name)]
    return _summed_up(jnp.asarray(mask[place[0]] if place else mask), shape)


def _summed_up(mask: Any, shape: tuple[int, ...]) -> Any:
    """Reduce truths over a broadcast shape to the operand's own shape."""
    wide = (1,) * (mask.ndim - len(shape)) + shape
    copied = zip(mask.shape, wide[len(wide) - mask.ndim :], strict=True)
    axes = tuple(axis for axis, (many, own) in enumerate(copied) if own == 1 != many)
    return jnp.broadcast_to(mask.any(axes, keepdims=True), wide).reshape(shape)


def gate(value: Any, mask: Any) -> Any:
    """Return `value`, of `mask`'s shape. Derivatives pass only where the mask holds."""
    return lax.select(mask, value, lax.stop_gradient(value))


# -- elements that do not vary ----------------------------------------------------------------------------------------


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
