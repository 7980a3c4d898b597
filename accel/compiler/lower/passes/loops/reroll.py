"""Rerolling: a loop that the recording unrolled becomes a loop again.

A program of hundreds of equal bodies takes XLA minutes to compile, and its fused stencils are computed again and again.
The pass puts a `Loop` in the place of each sequence of operations that repeats. The operations must be the same. Their
operands must be the same values, values of their own iteration, or values of the one before (see
`accel.compiler.lower.passes.loops.dependences`).

The first iteration stays as it is; the others become one `lax.scan`. Nothing changes if fewer than `ITERATIONS`
iterations or `OPERATIONS` operations repeat, or if an operand is related otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.compiler.lower.passes.loops.dependences import operand_rows
from accel.compiler.lower.passes.loops.loop import Loop
from accel.compiler.lower.passes.loops.operands import LEAVES, Carried, Invariant, LoopOperand, is_box_read
from accel.ir.tape import Node
from accel.ir.template import form

# The first two say what a loop is worth: it saves the time to compile what repeats, and costs that XLA fuses nothing
# across its iterations, and stores what they hand on. Straight code of this size compiles fast.

ITERATIONS = 6
"""Minimum number of iterations that are worth a loop. The first stays straight code, so a loop of 6 has 5."""

OPERATIONS = 48
"""Minimum number of operations, all iterations together, that are worth a loop, or a nest. Chosen, not measured."""

# The others bound the search, which runs while a path is recorded (see `arrange.is_worth`) and when it is compiled.
# They are chosen, not measured; what they miss stays straight code.

CANDIDATES = 24
"""Lengths of an iteration that are tried, of those at which most repeats. For each, all repetitions at it are
listed."""

LONGEST = 2048
"""Operations of the longest iteration that is looked for. For each length the whole program is compared with itself."""

ATTEMPTS = 24
"""Repetitions that may turn out to be no loops before the search ends, those that cover most first. Each costs a
comparison of all operands of all its iterations, for each beginning that is tried."""

BEGINNINGS = 64
"""Operations of an iteration that are looked at as its beginning."""

SHIFTS = 8
"""Beginnings that are tried: those of the above where least is handed from iteration to iteration."""


def roll(body: Sequence[Node], used: frozenset[int], value_of: Callable[[Node], Any]) -> list[Node | Loop]:
    """The operations with their repetitions rolled.

    used: indices of nodes that are results. value_of: a node's value where it is known before launch, else None.
    """
    readers: dict[int, list[int]] = {}
    for position, node in enumerate(body):
        for operand in node.operands():
            readers.setdefault(operand.index, []).append(position)
    return _roll(body, 0, len(body), _Uses(readers, used), value_of)


@dataclass(frozen=True, slots=True)
class _Uses:
    """Who uses a node: positions in the whole body, and whether it is a result."""

    readers: dict[int, list[int]]
    results: frozenset[int]

    def outside(self, node: Node, start: int, stop: int) -> bool:
        """Whether anything but the operations from `start` to `stop` uses the node."""
        return node.index in self.results or any(
            not start <= position < stop for position in self.readers.get(node.index, ())
        )


def _roll(
    body: Sequence[Node], start: int, stop: int, uses: _Uses, value_of: Callable[[Node], Any]
) -> list[Node | Loop]:
    """The operations from `start` to `stop`; between two loops the search begins anew."""
    if stop - start < OPERATIONS:
        return list(body[start:stop])
    found: dict[int, tuple[int, Loop]] = {}  # by beginning: end and loop
    failures = 0
    # The best candidates first: a loop that is found takes its operations away from those that overlap with it.
    for begin, length, iterations in _repetitions(_kinds(body[start:stop])):
        begin, end = start + begin, start + begin + length * iterations
        if any(begin < other_end and other < end for other, (other_end, _) in found.items()):
            continue  # part of it is in a loop that covers more
        made = _loop(body, begin, length, iterations, uses, value_of)
        if made is not None:
            found[made[0]] = made[0] + length * len(made[1].iterations), made[1]
            continue
        failures += 1
        if failures == ATTEMPTS:
            break
    # What was too rare to be a candidate beside longer loops may repeat within one of the gaps.
    parts: list[Node | Loop] = []
    for begin, (end, loop) in sorted(found.items()):
        parts += [*_roll(body, start, begin, uses, value_of), loop]
        start = end
    # Without a loop, the search of the same operations would find the same again.
    return parts + (_roll(body, start, stop, uses, value_of) if found else list(body[start:stop]))


# -- where operations repeat -------------------------------------------------------------------------------------------


def _kinds(body: Sequence[Node]) -> list[int]:
    """A number for each operation, equal where rule, shape, dtype and the form of the arguments are."""
    numbers: dict[Any, int] = {}
    return [
        numbers.setdefault((id(node.rule), node.shape, node.dtype, _form(node.args), _form(node.kwargs)), len(numbers))
        for node in body
    ]


def _form(template: object) -> Any:
    """A template without its leaves' values."""
    return form(template, _leaf_form, LEAVES)


def _leaf_form(leaf: Any) -> Any:
    return (Node, leaf.shape, leaf.dtype) if isinstance(leaf, Node) else type(leaf)


def _repetitions(kinds: list[int]) -> list[tuple[int, int, int]]:
    """Candidates (start, operations per iteration, iterations): the shortest iterations first, among what covers nearly
    most.

    The iterations of a loop taken two by two repeat as well, and cover no more: the shortest are the program's own.
    """
    array = np.asarray(kinds)
    found = []
    for length in _distances(array):
        for begin, end in stretches(array, length):
            iterations = (end - begin) // length + 1
            if iterations >= ITERATIONS and iterations * length >= OPERATIONS:
                found.append((begin, length, iterations))
    # In order: whether it covers at least 0.9 of the most; the length of an iteration; what it covers.
    most = max((length * iterations for _, length, iterations in found), default=0)
    return sorted(found, key=lambda each: (each[1] * each[2] < 0.9 * most, each[1], -each[2]))


def _distances(array: NDArray[Any]) -> list[int]:
    """Likely lengths of an iteration: the distances at which most operations repeat, and what divides them."""
    longest = min(len(array) // ITERATIONS, LONGEST)
    matches = [int(np.count_nonzero(array[:-length] == array[length:])) for length in range(1, longest + 1)]
    ranked = sorted(range(len(matches)), key=lambda i: (-matches[i], i))
    likely = [i + 1 for i in ranked[:CANDIDATES]]
    # A multiple of a loop's length may repeat more often than the length itself, and be the only one of both here.
    divisors = {part for length in likely for part in range(1, length // 2 + 1) if length % part == 0}
    # A loop repeats all of its iterations but one, so 5/6 of its operations at least. Half of all are asked for.
    return [length for length in (*likely, *sorted(divisors - set(likely))) if matches[length - 1] >= OPERATIONS // 2]


# -- whether they are a loop -------------------------------------------------------------------------------------------


def _loop(
    body: Sequence[Node], start: int, length: int, iterations: int, uses: _Uses, value_of: Callable[[Node], Any]
) -> tuple[int, Loop] | None:
    """Return where the loop at a candidate begins, and the loop, if its operands are related as a loop's are.

    A repetition does not tell where its iterations begin. Several beginnings are tried, first those that hand the least
    from iteration to iteration: the program's own loop begins at such a place.
    """
    for first in sorted(range(start, start + min(length, BEGINNINGS)), key=lambda at: _handed_on(body, at, length))[
        :SHIFTS
    ]:
        count = (start + length * iterations - first) // length  # a later beginning may cost the last iteration
        if count < ITERATIONS:
            continue
        parts = [body[first + k * length : first + (k + 1) * length] for k in range(count)]
        rows = operand_rows(parts, value_of)
        if rows is not None:
            return first, _with_results(parts, rows, first, first + count * length, uses)
    return None


def _handed_on(body: Sequence[Node], first: int, length: int) -> int:
    """Return the number of values of the second iteration that the third uses, if iterations begin at `first`."""
    second, third = first + length, first + 2 * length
    inside = range(body[second].index, body[third].index)
    used = {operand.index for node in body[third : third + length] for operand in node.operands()}
    return sum(index in inside for index in used)


def _with_results(
    parts: Sequence[Sequence[Node]], rows: list[list[LoopOperand]], start: int, stop: int, uses: _Uses
) -> Loop:
    """The loop, with the values that are used after it."""
    again = {
        j for j, node in enumerate(parts[1]) if is_box_read(node) and isinstance(rows[j][0], Invariant)
    }  # whoever else needs such a value reads it anew
    before = {operand.position for row in rows for operand in row if isinstance(operand, Carried)}
    final = {j for j, node in enumerate(parts[-1]) if uses.outside(node, start, stop)} - again
    every = {j for part in parts[1:-1] for j, node in enumerate(part) if uses.outside(node, start, stop)}
    return Loop(list(parts), rows, sorted(before | final), sorted(every - again))


# -- repeating stretches of a sequence --------------------------------------------------------------------------------


def stretches(kinds: NDArray[Any], length: int) -> list[tuple[int, int]]:
    """Begin and end of each stretch of items that equal the item `length` further on.

    A stretch of n items is n // length + 1 iterations of `length` items: the last iteration has nothing to equal.
    """
    equal = kinds[:-length] == kinds[length:]
    edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
