"""NumPy's objects that are indexed instead of called: mgrid, ogrid, r_, c_, s_ and index_exp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.record.state.recording import Recording
from accel.record.state.wrapper import Wrapper, has_wrapper, isinstance_wrapper, unwrap
from accel.record.values.arrays import as_static
from accel.record.values.calls.call import call
from accel.record.values.wrapping import wrap
from accel.rules.core import GRID
from accel.rules.rule import Unsupported


class Grid(Wrapper):
    """The stand-in of one of them. Calls and attributes are the object's own."""

    __slots__ = ("_take",)

    def __init__(self, recording: Recording, value: object) -> None:
        self._recording_ = recording
        self._plain_ = value
        self._take = next(take for grid, take in _GRIDS if grid is value)

    def __getitem__(self, key: object) -> Any:
        recording = self._recording_
        if not recording.active:
            return self._plain_[unwrap(key)]
        return self._take(recording, self._plain_, key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain_, name)


Take = Callable[[Recording, Any, Any], Any]


def _fixed(recording: Recording, grid: Any, key: Any) -> Any:
    """Coordinates: their number shapes the program, so that the key is fixed."""
    result = grid[unwrap(key)]

    def write() -> Any:
        if isinstance(result, np.ndarray):
            return wrap(recording, result, recording.writer.node(GRID, (grid, as_static(key)), {}, result))
        static = as_static(key)
        parts = [recording.writer.node(GRID, (grid, static, i), {}, part) for i, part in enumerate(result)]
        return type(result)(wrap(recording, part, node) for part, node in zip(result, parts, strict=True))

    return recording.write_down(write, result)


def _joined(axis: int, column: bool) -> Take:
    """r_ and c_ of arrays and numbers: a concatenation; anything else must be known."""

    def take(recording: Recording, grid: Any, key: Any) -> Any:
        entries = key if type(key) is tuple else (key,)
        if not has_wrapper(key) or all(isinstance(entry, slice) for entry in entries):
            return _fixed(recording, grid, key)
        result = grid[unwrap(key)]

        def write() -> Any:
            if any(isinstance(entry, (str, slice, list)) for entry in entries):
                raise Unsupported("rule.parameter", "numpy.r_ and c_ of anything but arrays and numbers")
            made = call(np.concatenate, ([_part(entry, column) for entry in entries],), {"axis": axis})
            if not isinstance_wrapper(made) or unwrap(made).dtype != result.dtype or unwrap(made).shape != result.shape:
                raise Unsupported("rule.parameter", "numpy.r_ and c_ of these types")
            return made

        return recording.write_down(write, result)

    return take


def _part(entry: object, column: bool) -> Any:
    part = call(np.atleast_1d, (entry,), {})
    return part[:, None] if column and unwrap(part).ndim == 1 else part


def _as_given(recording: Recording, grid: Any, key: Any) -> Any:
    """s_ and index_exp: the key itself."""
    return grid[key]


_GRIDS: tuple[tuple[Any, Take], ...] = (
    (np.mgrid, _fixed),
    (np.ogrid, _fixed),
    (np.r_, _joined(0, False)),
    (np.c_, _joined(-1, True)),
    (np.s_, _as_given),
    (np.index_exp, _as_given),
)


def is_grid(value: object) -> bool:
    """Whether a value is one of NumPy's objects that are indexed."""
    return any(value is grid for grid, _ in _GRIDS)
