"""Exits: whether a path is the one that a side exit of another path's program leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel.dispatch.paths.path import RecordedPath
from accel.ir.loop import body_of
from accel.rules import core

if TYPE_CHECKING:
    from accel.dispatch.replay import SideExit
    from accel.ir.tape import Node


def _ends_loop(node: Node) -> bool:
    """Whether a value says that a loop by data was left as it was recorded."""
    return node.rule is core.PICK and body_of(node.args[0]) is not None


def parts_by_draws(other: RecordedPath, path: RecordedPath, exit: SideExit) -> bool:
    """Whether `other` is like `path` up to the outcome by which this side exit's draws leave it."""
    position, value = exit.position, exit.value
    mine, theirs = path.drawn_outcomes, other.drawn_outcomes
    if len(theirs) <= position:
        return False
    before = zip(mine[:position], theirs[:position], strict=True)
    return (
        all(one.where == another.where and one.expected == another.expected for one, another in before)
        and theirs[position].where == mine[position].where
        and bool(theirs[position].expected == value)
    )


def starts_at_side_exit(other: RecordedPath, path: RecordedPath, position: int, value: object) -> bool:
    """Whether `other` is the path of a side exit: like `path` up to device outcome `position`, with `value` there."""
    if len(other.outcomes) <= position:
        return False
    # up to there both must have taken the same branches
    for mine, theirs in zip(path.outcomes[:position], other.outcomes[:position], strict=True):
        if mine.where != theirs.where or mine.expected != theirs.expected:
            return False
    at = other.outcomes[position]
    if other.outcomes[position].where == path.outcomes[position].where and _ends_loop(path.outcomes[position].node):
        return True  # its rounds took a way, or came to a number, that the other may have
    return bool(at.where == path.outcomes[position].where and float(at.expected) == value)
