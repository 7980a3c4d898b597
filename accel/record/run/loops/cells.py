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

FEWEST, MOST = 2, 5
"""Iterations after which a loop is judged: first, and for the last time. Guess: those at the edges may differ."""

_MOVING = (core.INPUT, core.READ, core.WRITE, core.READ_AT, core.WRITE_AT)


class Cells:
    """Breaks a recording that would record too many iterations over single elements. values: the loop's range."""

    def __init__(self, recording: Recording, values: RangeIterator) -> None:
        self._recording = recording
        self._values = weakref.ref(values)
        self._began = len(recording.writer.tape.nodes)
        self._iterations = -1

    def look(self) -> None:
        """Judge the iterations that have ended."""
        self._iterations += 1
        values = self._values()
        if values is None or not FEWEST <= self._iterations <= MOST or not self._recording.active:
            return
        nodes = self._recording.writer.tape.nodes[self._began :]
        if len(nodes) * values.left > MOST_OPERATIONS * self._iterations and _are_of_elements(nodes):
            each = round(len(nodes) / self._iterations)
            self._recording.break_("code.elements", f"{each} operations in each of {values.left} iterations")


def _are_of_elements(nodes: list[Node]) -> bool:
    """Whether operations read elements of arrays, and compute single numbers of nothing but such numbers."""
    reads = any(each.rule in (core.READ, core.READ_AT) and not each.shape for each in nodes)
    computing = (each for each in nodes if each.rule not in _MOVING)
    return reads and not any(node.shape for each in computing for node in (each, *each.operands()))
