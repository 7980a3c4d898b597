"""Environment variables that a recording read, checked together before each replay."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any


class Environment:
    """Environment variables that must stay what they were, checked at once.

    Most of what programs ask for is not set, and asking `os.environ` for that costs an exception each time.
    """

    def __init__(self, expected: Mapping[str, str | None], positions: Mapping[str, int]) -> None:
        self._positions = positions
        self._original = os.environ
        self._raw: Any = getattr(os, "environb", os.environ)  # the same variables, less the decoding
        encode: Callable[[str], Any] = os.fsencode if self._raw is not os.environ else str
        self._set = [(encode(name), encode(value), name) for name, value in expected.items() if value is not None]
        self._unset = {encode(name): name for name, value in expected.items() if value is None}
        self._names = frozenset(self._unset)

    def changed(self) -> int | None:
        """The position of a variable that is not what it was."""
        if os.environ is not self._original:
            return next(iter(self._positions.values()))
        get = self._raw.get
        for name, value, text in self._set:
            if get(name) != value:
                return self._positions[text]
        if self._names.isdisjoint(self._raw):
            return None
        return next(self._positions[text] for name, text in self._unset.items() if name in self._raw)
