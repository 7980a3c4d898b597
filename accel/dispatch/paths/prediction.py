"""Prediction: which path the next call is likely to take."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from accel.dispatch.paths.path import RecordedPath

LOOK_BACK = 8
"""The number of most recent paths from which the next one is predicted."""

MAX_SEQUENCES = 1000
"""The most sequences of paths that the predictor keeps."""


class PathPredictor:
    """Predicts the next path: the one that followed the same most recent paths before.

    Programs are periodic: a filter every sixth step, a smaller time step after it. A good prediction saves a whole run,
    which is discarded if its outcomes do not hold.
    """

    def __init__(self) -> None:
        self._recent: tuple[int, ...] = ()
        # weak: paths are replaced by others
        self._after: MutableMapping[tuple[int, ...], RecordedPath] = WeakValueDictionary()

    def predicted(self) -> RecordedPath | None:
        """The path that followed the most recent ones before, if they have been met before."""
        # paths are identified by `id` in the sequences: an id that is used again costs one wrong prediction
        return self._after.get(self._recent)

    def note_taken(self, path: RecordedPath) -> None:
        """Learn which path a call has taken."""
        if len(self._after) > MAX_SEQUENCES:
            self._after.clear()
        self._after[self._recent] = path
        self._recent = (*self._recent, id(path))[-LOOK_BACK:]
