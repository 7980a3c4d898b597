"""Alignment: which operations of two recordings are the same instruction, reached by the same calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from typing import Any

from accel.ir.tape import Node, template_key

MOST_COMPARED = 40_000_000
"""Two recordings whose differing parts have more pairs of operations than this are not aligned: it would take longer
than recording them."""

Keys = list[Hashable]


class TooLong(Exception):
    """The recordings are too long and too different."""


def keys_of(nodes: Sequence[Node], slots: Sequence[int]) -> Keys:
    """Return a key for each operation of a tape that identifies it, whatever values it computes with.

    A key has the instruction and the calls that led there, and how often they have led there before. It also has the
    arguments that are no values, and the form of those that are. slots: the merged slot of each of the tape's slots.
    """
    met: Counter[Hashable] = Counter()
    keys: Keys = []
    for node in nodes:
        own = slots[node.args[0]] if node.is_input else node.form
        key = (id(node.rule), node.site, own, tuple(map(_form, node.operands())), _form(node))
        keys.append((key, met[key]))
        met[key] += 1
    return keys


def static_form(template: object, form_of: Any = None) -> Any:
    """A key of an operation's arguments; `form_of` gives that of a value among them."""
    return template_key(template, form_of or _form)


def _form(node: Node) -> Hashable:
    return node.shape, node.dtype, node.scalar, node.host


def aligned(left: Keys, right: Keys) -> list[tuple[int | None, int | None]]:
    """Positions of both in one order: pairs of what is the same, and what only one has. Raises TooLong."""
    first = 0
    while first < min(len(left), len(right)) and left[first] == right[first]:
        first += 1
    last = 0
    while last < min(len(left), len(right)) - first and left[-1 - last] == right[-1 - last]:
        last += 1
    mine, theirs = left[first : len(left) - last], right[first : len(right) - last]
    if len(mine) * len(theirs) > MOST_COMPARED:
        raise TooLong
    pairs: list[tuple[int | None, int | None]] = [(i, i) for i in range(first)]
    for tag, i, i_end, j, j_end in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs += zip(range(first + i, first + i_end), range(first + j, first + j_end), strict=True)
        else:
            pairs += [(first + at, None) for at in range(i, i_end)]
            pairs += [(None, first + at) for at in range(j, j_end)]
    pairs += zip(range(len(left) - last, len(left)), range(len(right) - last, len(right)), strict=True)
    return pairs
