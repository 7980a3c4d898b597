"""Likeness: what two rounds of a loop must have in common, for one of them to stand for the other."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from accel.ir.tape import Node
from accel.ir.template import form
from accel.record.run.loops.state import State

if TYPE_CHECKING:
    from accel.record.run.loops.heads import Head, Run


def difference(run: Run, head: Head, after: State) -> str:
    """Why the state after a round that begins at a head is another one than there; empty if it is the same."""
    if head.state is None:
        return run.unknown
    before = head.state
    if before.form != after.form:
        return "something that is not recorded changes from round to round"
    for was, now in zip(before.made, after.made, strict=True):
        # what changes must be of this call: otherwise the caller would have it in one round, and not in another
        is_own = min(was, now) > run.began and (now > head.serial or now in before.made)
        if was != now and not is_own:
            return "it is not the same memory in each round"
    if any(was - now not in (0, 1) for was, now in zip(before.counts, after.counts, strict=True)):
        return "a range gives several elements in a round"
    return ""


def do_the_same(one: Node, other: Node) -> bool:
    """Whether two operations do the same, with other values."""
    return one.rule is other.rule and kind_of(one) == kind_of(other) and statics(one) == statics(other)


def kind_of(node: Node) -> Hashable:
    return node.shape, node.dtype, node.scalar, node.host


def statics(node: Node) -> Hashable:
    """A key of an operation's arguments but for its values."""
    found: Hashable = form((node.args, node.kwargs), _leaf, (Node, np.ndarray))
    return found


def _leaf(leaf: object) -> Hashable:
    return (str(leaf.dtype), leaf.shape, leaf.tobytes()) if isinstance(leaf, np.ndarray) else None
