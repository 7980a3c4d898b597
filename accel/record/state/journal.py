"""The journal: what puts back all that a recorded call wrote, the last first."""

from __future__ import annotations

from collections.abc import Callable


class Journal:
    """The writes of one recorded call. actions: what undoes each, in the order of the writes."""

    def __init__(self) -> None:
        self.actions: list[Callable[[], None]] = []

    def add(self, action: Callable[[], None]) -> None:
        """Remember what puts back a write that is about to be made."""
        self.actions.append(action)

    def undo(self) -> None:
        """Put back everything that the recorded call wrote."""
        while self.actions:
            self.actions.pop()()

    def clear(self) -> None:
        """What was written stays."""
        self.actions.clear()
