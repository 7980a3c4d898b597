"""Views of views: a box of a box of an array is one box of it, to read and to write.

`lower, diag = work[:2]; diag[1:] -= 1.0` is recorded as three nested reads and three nested writes. The first write
goes into the view, the second into the view around it, and the third into the array. XLA would copy each of these views
whole at each write, in each iteration of a loop. The pass replaces them by one read and one write of the array itself.
Operations that nobody needs any more are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from accel.compiler.lower.passes.rewriting import rewritten
from accel.ir.tape import Node
from accel.ir.views import Index, box_of, within
from accel.rules import core


def flattened(body: Sequence[Node], kept: Collection[int]) -> Sequence[Node]:
    """The operations, none of which reads or writes a box of a box. kept: indices of nodes that the program returns."""
    return _needed(rewritten(body, _direct), kept) if any(map(_is_of_view, body)) else body


def _is_of_view(node: Node) -> bool:
    return node.rule in (core.READ, core.WRITE) and isinstance(node.args[0], Node) and node.args[0].rule is core.READ


def _direct(node: Node) -> Node | None:
    """Return a read or write of a view as one of the array itself; None if it is neither.

    A write of a view counts if the view was written to.
    """
    if node.rule is core.READ:
        return _direct_read(node)
    return _direct_write(node) if node.rule is core.WRITE else None


def _direct_read(node: Node) -> Node | None:
    view, step = node.args
    if not isinstance(view, Node) or view.rule is not core.READ:
        return None
    array, outer = view.args
    place = _place(array, outer, step)
    # as of any read of a window (see `merge.writer.Writer.node`)
    return None if place is None else node.replaced(args=(array, place))


def _direct_write(node: Node) -> Node | None:
    array, outer, part = node.args
    if not isinstance(part, Node) or part.rule is not core.WRITE:
        return None
    view, inner, value = part.args
    # The rest of the view has to be what the array holds there already.
    if not isinstance(view, Node) or view.rule is not core.READ or not _is_read_of(view, array, outer):
        return None
    place = _place(array, outer, inner)
    return None if place is None else node.replaced(args=(array, place, value))


def _is_read_of(view: Node, array: Node, step: object) -> bool:
    """Whether a view is what `step` shows of the array, be it in several steps."""
    base, own = view.args
    if base is array:
        return bool(own == step) or _same_box(array, own, step)
    if array.rule is not core.READ or base is not array.args[0]:
        return False
    return _same_box(base, own, _place(base, array.args[1], step))


def _same_box(array: Node, one: object, other: object) -> bool:
    if not isinstance(one, Index) or not isinstance(other, Index):
        return False
    first, second = box_of(array.shape, one.key), box_of(array.shape, other.key)
    return first is not None and first == second


def _place(array: object, outer: object, inner: object) -> Index | None:
    """Return the place in the array of `inner` of `outer`; None if that is no box."""
    if not isinstance(array, Node) or not isinstance(outer, Index) or not isinstance(inner, Index):
        return None
    return within(array.shape, outer, inner)


def _needed(nodes: Sequence[Node], kept: Collection[int]) -> list[Node]:
    """The operations but for the reads and writes that nobody uses."""
    used = set(kept)
    found = []
    for node in reversed(nodes):
        if node.rule in (core.READ, core.WRITE) and node.index not in used:
            continue
        used.update(operand.index for operand in node.operands())
        found.append(node)
    return found[::-1]
