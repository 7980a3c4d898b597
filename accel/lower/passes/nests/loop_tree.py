"""The loop tree: which operations are rounds of which loop, found from the places in the source that they come from.

Takes a sequence of operations; gives it with its repetitions as runs, innermost first, and a run as a tree of blocks.
Two operations may be rounds of one site if the same instruction of the program wrote them down, whatever the lengths of
their axes. Without repetition the sequence stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.ir.tape import Node
from accel.ir.template import form
from accel.ir.views import Index
from accel.lower.passes.loops.operands import LEAVES, NestOperand, VaryingIndex, Window
from accel.lower.passes.nests.nest import Block, Site
from accel.lower.passes.stretches import stretches

LONGEST = 1024
"""Operations of the longest round that is looked for. Limits the search, which compares the whole sequence with itself
once for each length, and again after each level of loops that it finds."""


UNROLLED = 16
"""A block whose number of rounds is always the same is unrolled if that gives at most this many operations.

So `for k in range(3)` in a loop stays straight code, which XLA can fuse. No measurement is known."""


@dataclass(slots=True, eq=False)
class Run:
    """A sequence of equal rounds."""

    rounds: list[list[Node | Run]]

    @property
    def nodes(self) -> list[Node]:
        return [node for part in self.rounds for item in part for node in nodes_of(item)]


def nodes_of(item: Node | Run) -> list[Node]:
    """The operations of a run, or the operation."""
    return [item] if isinstance(item, Node) else item.nodes


def fold(sequence: list[Node], virtual: set[int]) -> list[Node | Run]:
    """The sequence with its repetitions as runs, shortest rounds first: inner loops become items of the outer ones.

    The kind of a run is the kinds of its round, not the number of rounds. So the rounds of the outer loop, which differ
    in how long their inner loops are, become equal once the inner loops are runs. An outer round whose inner loop has
    no round at all (`for j in range(0)`) leaves nothing of it on the tape: it differs, and stays outside of the run.
    """
    numbers: dict[Any, int] = {}
    items: list[Node | Run] = list(sequence)
    kinds = np.array([numbers.setdefault(_kind(node, virtual), len(numbers)) for node in sequence])
    while True:  # each pass makes the sequence shorter
        length = _shortest(kinds)
        if length is None:
            return items
        items, kinds = _collapsed(items, kinds, length, numbers)


def _kind(node: Node, virtual: set[int]) -> Any:
    """Equal for operations that may be rounds of one site."""
    return node.site, id(node.rule), node.dtype, len(node.shape), _form((node.args, node.kwargs), virtual)


def _form(template: object, virtual: set[int]) -> Any:
    """A template without its leaves' values, and without lengths of axes."""

    def leaf_form(leaf: Any) -> Any:
        if isinstance(leaf, Index):
            # Bounds change from round to round. The kinds of the entries say how many axes the result has.
            return "index", *(slice if isinstance(entry, slice) else type(entry) for entry in leaf.key)
        if not isinstance(leaf, Node):
            return type(leaf)
        if leaf.index in virtual:  # the read will be part of its user, so it is part of the user's kind
            return "window", _form(leaf.args, virtual)
        return "node", leaf.dtype, len(leaf.shape), leaf.scalar

    return form(template, leaf_form, LEAVES)


def _runs(kinds: NDArray[Any], length: int) -> list[tuple[int, int]]:
    """Start and rounds of what repeats at a distance."""
    found, end = [], 0
    for begin, stop in stretches(kinds, length):
        begin = max(begin, end)  # the last round of the run before may reach into this stretch
        if stop - begin >= length:
            rounds = (stop - begin) // length + 1
            found.append((begin, rounds))
            end = begin + rounds * length
    return found


def _shortest(kinds: NDArray[Any]) -> int | None:
    """The least distance at which anything repeats."""
    for length in range(1, min(len(kinds) // 2, LONGEST) + 1):
        if _runs(kinds, length):
            return length
    return None


def _collapsed(
    items: list[Node | Run], kinds: NDArray[Any], length: int, numbers: dict[Any, int]
) -> tuple[list[Node | Run], Any]:
    """The items with rounds of `length` items as runs, single rounds too."""
    starts = dict(_runs(kinds, length))
    listed = kinds.tolist()
    bodies = {tuple(listed[begin : begin + length]) for begin in starts}
    firsts = {body[0] for body in bodies}  # a quick test before the comparison of a whole body
    new_items: list[Node | Run] = []
    new_kinds: list[int] = []
    position = 0
    while position < len(items):
        rounds = starts.get(position, 0)
        body = tuple(listed[position : position + length]) if rounds or listed[position] in firsts else ()
        # A single round is a run too where the same rounds are a run elsewhere: an inner loop may be entered for one
        # round. Not where a longer run begins inside it.
        if not rounds and body in bodies and not any(position < begin < position + length for begin in starts):
            rounds = 1
        if rounds:
            parts = [items[position + k * length : position + (k + 1) * length] for k in range(rounds)]
            new_items.append(Run(parts))
            new_kinds.append(numbers.setdefault(("run", body), len(numbers)))
            position += rounds * length
        else:
            new_items.append(items[position])
            new_kinds.append(listed[position])
            position += 1
    return new_items, np.array(new_kinds)


# -- blocks ------------------------------------------------------------------------------------------------------------


def block_of(runs: list[Run], parent: Block | None) -> Block:
    """The block of which these are all the times that it is entered."""
    rounds = [part for run in runs for part in run.rounds]
    block = Block([], [len(run.rounds) for run in runs], parent)
    for column in zip(*rounds, strict=True):
        if isinstance(column[0], Node):
            block.items.append(Site(list(column)))
            continue
        # The column holds the inner loop's run of each round of this block: all the times that it is entered, in order.
        inner = block_of(list(column), block)
        if len(set(inner.trips)) == 1 and inner.trips[0] * len(inner.items) <= UNROLLED:
            block.items += _unrolled(inner, block)
        else:
            block.items.append(inner)
    return block


def _unrolled(inner: Block, parent: Block) -> list[Site | Block]:
    """The rounds of a block one after another, where they are always as many."""
    if any(isinstance(item, Block) for item in inner.items):
        return [inner]  # the rounds of the blocks in it would have to be dealt out
    count = inner.trips[0]
    # A site's nodes are those of all entries in a row, `count` for each: every count-th is from the same round.
    return [Site(item.nodes[k::count]) for k in range(count) for item in inner.items if isinstance(item, Site)]


FEWEST_ROUNDS_TO_SPLIT = 4
"""Two rounds of two: the shortest loop that can be two loops."""


def split(block: Block) -> None:
    """Split a loop that is really two, one in the other.

    If the outer loop's body is just the inner loop, the tape shows one long loop. Its boxes jump back at every round of
    the outer one.
    """
    length = block.trips[0]
    if set(block.trips) != {length} or length < FEWEST_ROUNDS_TO_SPLIT:
        return  # where it has a different number of rounds each time, no even split is looked for
    columns = [column for site in block.sites() for operand in site.operands for column in _starts(operand)]
    if not columns:
        return  # no box shows where the outer rounds begin
    steps = np.diff(np.array(columns).T.reshape(len(block.trips), length, len(columns)), axis=1)
    # A break is where some box moves otherwise than at the first step: the outer loop's next round begins there.
    breaks = (steps != steps[:, :1]).any(axis=2)
    rounds = int(breaks[0].argmax()) + 1  # of the inner loop; the breaks have to come at each multiple, and only there
    expected = np.arange(1, length) % rounds == 0
    if not breaks.any() or rounds < 2 or length % rounds or (breaks != expected).any():
        return
    count = length // rounds
    inner = Block(block.items, [rounds] * (count * len(block.trips)), block)
    block.items, block.trips = [inner], [count] * len(block.trips)


def _starts(operand: NestOperand) -> Iterator[list[int]]:
    """Where the boxes that an operand stands for begin, round by round, for each axis."""
    if isinstance(operand, Window):
        yield from _starts(operand.base)
        steps = [node.args[1] for node in operand.nodes]
    elif isinstance(operand, VaryingIndex):
        steps = list(operand.steps)
    else:
        return
    if all(isinstance(step, Index) for step in steps) and len({len(step.key) for step in steps}) == 1:
        for entries in zip(*(step.key for step in steps), strict=True):
            yield [_start(entry) for entry in entries]


def _start(entry: slice | int) -> int:
    start = entry.start if isinstance(entry, slice) else entry
    return start if isinstance(start, int) else 0
