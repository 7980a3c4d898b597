"""Cells: loops over single elements of arrays, recognised by their first iterations.

Each iteration of such a loop computes with single elements alone. A recording of all of them takes longer than its
program can save: Numba is the compiler for such loops.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from accel.ir.tape import Node
from accel.rules import core

if TYPE_CHECKING:
    from accel.record.run.loops.state import RangeIterator
    from accel.record.state.recording import Recording

MOST_OPERATIONS = 1024
"""Maximum operations of a loop over single elements that is recorded. With 13,000 operations, recording took 1.3 s and
compiling 10 s, and a replay took 3.6 ms where NumPy takes 1.3 ms."""

MOST_LOOKS = 4
"""Number of iterations to look at. Guess: those at the edges may differ."""

_MOVING = (core.INPUT, core.READ, core.WRITE, core.READ_AT, core.WRITE_AT)


class Cells:
    """Breaks a recording that would record too many iterations over single elements. values: the loop's range."""

    def __init__(self, recording: Recording, values: RangeIterator) -> None:
        self._recording = recording
        self._values = weakref.ref(values)
        self._began = -1
        self._looks = 0

    def look(self) -> None:
        """Judge the iteration that has just ended."""
        values, nodes = self._values(), self._recording.writer.tape.nodes
        if values is None or self._looks > MOST_LOOKS:
            return
        self._looks += 1
        iteration = nodes[self._began :] if 0 <= self._began < len(nodes) else []
        self._began = len(nodes)
        if self._recording.active and len(iteration) * values.left > MOST_OPERATIONS and _is_of_elements(iteration):
            self._looks = MOST_LOOKS + 1
            self._recording.break_("code.elements", f"{len(iteration)} operations in each of {values.left} iterations")


def _is_of_elements(iteration: list[Node]) -> bool:
    """Whether an iteration reads elements of arrays, and computes nothing but single numbers."""
    return any(each.rule in (core.READ, core.READ_AT) and not each.shape for each in iteration) and all(
        not each.shape or each.rule in _MOVING for each in iteration
    )
