"""Pickling that keeps NumPy's own dtypes: an unpickled `float64` is the one that NumPy has.

Plain pickling makes another object of each dtype. `np.asarray(x, dtype=float)` does not give back arrays of such a
dtype, but views of them, which a program can see.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections import ChainMap
from typing import Any

import numpy as np

_OWN = "?bBhHiIlLqQefdgFDG"
"""Type codes of the dtypes of which NumPy has one object each."""


def _reduced(dtype: np.dtype[Any]) -> str | tuple[Any, ...]:
    """The reduction of a dtype, as `__reduce__` gives it."""
    return (np.dtype, (dtype.str,)) if dtype is np.dtype(dtype.str) else dtype.__reduce__()


_REDUCED: Any = ChainMap(dict.fromkeys((type(np.dtype(code)) for code in _OWN), _reduced), copyreg.dispatch_table)


class Pickler(pickle.Pickler):
    """A pickler that keeps NumPy's own dtypes."""

    def __init__(self, file: io.BytesIO, protocol: int = pickle.HIGHEST_PROTOCOL) -> None:
        super().__init__(file, protocol)
        self.dispatch_table = _REDUCED


def dumps(value: object) -> bytes:
    """As `pickle.dumps`, of the highest protocol."""
    content = io.BytesIO()
    Pickler(content).dump(value)
    return content.getvalue()
