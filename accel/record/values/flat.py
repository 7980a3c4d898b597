"""`array.flat`: an array's elements by one index, in C order. What is read is a copy; writes go to the array."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from accel.record.state.wrapper import StandIn, unwrap
from accel.record.values.operands import COMPARE
from accel.rules.rule import Unsupported


class FlatIterator(StandIn):
    """The iterator that `array.flat` gives. array: a recorded array."""

    __slots__ = ("_array", "_started", "_used")

    def __init__(self, array: Any) -> None:
        self._recording_, self._plain_ = array._recording_, array._plain_.flat
        self._array, self._started, self._used = array, False, False

    def as_operand(self) -> Any:
        if not self._array._plain_.flags.c_contiguous:
            raise Unsupported("rule.parameter", "ndarray.flat as an operand, of an array that is not in C order")
        return self._array.reshape(-1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._end("as a plain array")
        return np.array(self._plain_, dtype=dtype)

    def __len__(self) -> int:
        return len(self._plain_)

    def __iter__(self) -> Iterator[Any]:
        # NumPy's goes on where it is, and an index moves it
        if self._started or self._used or not self._recording_.active:
            self._end("begun again")
            return iter(self._plain_)
        self._started = True
        return (self._array.reshape(-1)[place] for place in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        result = self._plain_[unwrap(key)]  # raises as NumPy does
        found = self._array.reshape(-1)[key] if self._indexed() else result
        if np.shape(unwrap(found)) != np.shape(result):
            self._end("at this index")
            return result
        return found.copy() if isinstance(result, np.ndarray) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        real, given = self._array._plain_, unwrap(value)
        shape = _shape(real, key) if self._indexed() and real.flags.c_contiguous else None
        spread = np.ndim(given) == 0 or (np.shape(given) == shape and not np.may_share_memory(given, real))
        if shape is not None and spread:
            self._array.reshape(-1)[key] = value
        else:
            self._end("set at this index, or to values that are repeated")
            self._plain_[unwrap(key)] = given

    def _indexed(self) -> bool:
        self._used = True
        return self._recording_.active and not self._started

    def __getattr__(self, name: str) -> Any:
        self._end(f".{name}")
        return getattr(self._plain_, name)

    def __next__(self) -> Any:
        self._end("next")
        return next(self._plain_)

    def _end(self, what: str) -> None:
        recording = self._recording_
        if recording.active:
            recording.storages.before_write(self._array._storage, self._array._plain_)
            recording.break_("rule.parameter", f"ndarray.flat: {what}")


def _shape(array: Any, key: Any) -> tuple[int, ...] | None:
    """The shape of the flat array at an index; None where the flat iterator understands the index otherwise."""
    try:
        return None if isinstance(key, (bool, np.bool_)) else np.shape(array.reshape(-1)[unwrap(key)])
    except IndexError:
        return None


def _comparison(compare: Callable[..., Any]) -> Callable[[FlatIterator, Any], Any]:
    return lambda flat, other: compare(flat.as_operand(), other)


for _name, (_compare, _) in COMPARE.items():
    setattr(FlatIterator, f"__{_name}__", _comparison(_compare))
