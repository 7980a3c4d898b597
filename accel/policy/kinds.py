"""Kinds: evidence from the programs of its parts about a call that has no program itself.

Before a path has a program, nobody knows whether a call that matches it takes it: another side of a branch may be
another path. If a call runs in parts (see accel.policy.parts), the parts' programs show which sides their
branches took. If each recorded path of the whole takes another side somewhere, the call was of a new kind. Its path is
worth recording, and the next program should have it, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel.dispatch.paths.path import RecordedPath

LATELY, FEW = 24, 2
"""Number of last calls, and the most of them that may be of new kinds, if the frequent kinds have been recorded."""


class Kinds:
    """The kinds of one target's calls in parts. are_shown: whether the parts' programs tell them apart."""

    def __init__(self) -> None:
        self.are_shown = False
        self._lately: deque[bool] = deque(maxlen=LATELY)  # whether each was of a new kind
        self._since = 0  # the last call of a new kind
        self._gap = 0  # from the one before to that

    def note(self, parts: Sequence[RecordedPath], recorded: Collection[RecordedPath]) -> None:
        """Note a call in parts. parts: the paths that these took. recorded: those of the whole."""
        if not recorded:
            return
        sides = frozenset[tuple[object, str]]().union(*(path.sides for path in parts))
        self.are_shown = self.are_shown or bool(sides)
        is_new = not any(_may_take(path, sides) for path in recorded)
        self._lately.append(is_new)
        self._since += 1
        if is_new:
            self._gap, self._since = self._since, 0

    @property
    def expects_new(self) -> bool:
        """Whether the next call is likely to be of a new kind: such calls come in rows, or at regular intervals."""
        return self._since + 1 == self._gap

    @property
    def new_share(self) -> float:
        """The share of the last calls that was of new kinds."""
        return sum(self._lately) / max(1, len(self._lately))

    @property
    def are_settled(self) -> bool:
        """Whether new kinds have become rare, as far as the parts show them."""
        is_seldom = len(self._lately) == LATELY and sum(self._lately) <= FEW
        return not self.are_shown or is_seldom


def _may_take(path: RecordedPath, sides: frozenset[tuple[object, str]]) -> bool:
    """Whether a call that took these sides may have taken this path: it takes the same ones of the same branches."""
    lines = {line for line, _ in path.sides}
    return all(side in path.sides for side in sides if side[0] in lines)
