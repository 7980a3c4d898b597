"""Exits: whether a path is the one that a side exit of another path's program leads to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from accel.dispatch.paths.path import RecordedPath
from accel.ir.loop import body_of
from accel.rules import core

if TYPE_CHECKING:
    from accel.dispatch.replay import SideExit
    from accel.ir.tape import Node


def starts_at_side_exit(other: RecordedPath, path: RecordedPath, exit: SideExit, position: int) -> bool:
    """Whether `other` is the path of a side exit: like `path` up to the outcome at a position, with the exit's value.

    position: among the outcomes that are known once a run has drawn, if the exit is on the host; else among the others.
    """
    mine, theirs = (each.drawn_outcomes if exit.on_host else each.outcomes for each in (path, other))
    if not _begin_alike(mine, theirs, position):
        return False
    # at the end of a loop, its iterations took a way, or came to a number, that the other may have
    if not exit.on_host and _ends_loop(mine[position].node):
        return True
    expected = theirs[position].expected
    return bool(expected == exit.value if exit.on_host else float(expected) == exit.value)


def _begin_alike(mine: Sequence[Any], theirs: Sequence[Any], position: int) -> bool:
    """Whether two paths have the same outcomes up to a position, and one of the same line there."""
    if len(theirs) <= position or theirs[position].where != mine[position].where:
        return False
    before = zip(mine[:position], theirs[:position], strict=True)
    return all(one.where == another.where and one.expected == another.expected for one, another in before)


def _ends_loop(node: Node) -> bool:
    """Whether a value says that a loop by data was left as it was recorded."""
    return node.rule is core.PICK and body_of(node.args[0]) is not None
