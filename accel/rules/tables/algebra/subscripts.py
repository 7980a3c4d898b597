"""`numpy.einsum`: sums of products, and the views that it gives where nothing is summed."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.ir.views import Transpose
from accel.rules.core import in_common_dtype
from accel.rules.lowering import jnp, lax, number
from accel.rules.rule import Unsupported, rule


@dataclass(frozen=True)
class Diagonals:
    """The view of an array whose elements have one index on several axes: "ii->i", "eii->ei".

    places: for each axis of the array, the axis of the view that it follows; shape: the view's. NumPy's is writeable.
    """

    places: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def _key(self) -> tuple[Any, ...]:
        steps = np.ogrid[tuple(slice(length) for length in self.shape)]
        return tuple(steps[place] for place in self.places)

    def read(self, base: Any) -> Any:
        return self._seen(base) if isinstance(base, np.ndarray) else base[self._key]

    def write(self, base: Any, value: Any) -> Any:
        if not isinstance(base, np.ndarray):
            return base.at[self._key].set(value)
        result = base.copy()
        self._seen(result)[...] = value
        return result

    def _seen(self, base: Any) -> Any:
        """NumPy's own view, not a copy: where it leaves the call, the caller may write through it."""
        return np.einsum(base, self.places, range(len(self.shape)))


def _view(source: Any, result: Any, bound: Any) -> Transpose | Diagonals:
    """The view step of the result: einsum gives a view of a single operand where each letter is kept."""
    text, *others = bound["operands"]
    if not isinstance(text, str) or len(others) != 1:
        raise Unsupported("rule.missing", "numpy.einsum gave a view")
    letters, kept = _spelled_out(text, source.ndim)
    places = tuple(map(kept.index, letters))
    if len(kept) == len(letters):
        return Transpose(tuple(map(letters.index, kept)))
    return Diagonals(places, result.shape)


def _spelled_out(text: str, ndim: int) -> tuple[str, str]:
    """The letters of the operand's axes and of the result's, with letters in the place of an ellipsis."""
    letters, arrow, kept = text.replace(" ", "").partition("->")
    free = [each for each in string.ascii_letters if each not in letters]
    dots = "".join(free[: ndim - len(letters.replace("...", ""))])
    if not arrow:  # in alphabetic order, after the ellipsis
        kept = "..." + "".join(sorted(letters.replace("...", "")))
    return letters.replace("...", dots), kept.replace("...", dots)


def _by_rows(bound: Mapping[str, Any], is_rows: Callable[[object], bool]) -> bool:
    """Whether the result's first letter is that of the selected rows, and of nothing else: "ij,ij->i", "ij,jk->ik"."""
    text, *arrays = bound["operands"]
    given, _, kept = text.replace(" ", "").partition("->") if isinstance(text, str) else ("", "", "")
    row = kept[:1]
    return row.isalpha() and all(
        letters.rfind(row) == 0 if is_rows(array) else row not in letters
        for letters, array in zip(given.split(","), arrays, strict=True)
    )


@rule(np.einsum, "*operands | optimize", view=_view, rowwise=_by_rows, work=20.0)
def einsum(*, operands: tuple[Any, ...], optimize: Any = False) -> Any:
    text, *arrays = operands
    if not isinstance(text, str):
        raise Unsupported("rule.parameter", "numpy.einsum without a text of subscripts")
    arrays = in_common_dtype(*map(jnp.asarray, arrays))
    if arrays[0].dtype in (np.bool_, np.float16):
        raise Unsupported("rule.parameter", "numpy.einsum of truths or halves")
    text = text.replace(" ", "")
    if optimize is False and _sums_nothing(text):
        return _products(text, arrays)
    return jnp.einsum(text, *arrays, precision=lax.Precision.HIGHEST)


def _sums_nothing(text: str) -> bool:
    """Whether each letter of the operands is kept, and none occurs twice in one."""
    given, arrow, kept = text.partition("->")
    alone = all(len(set(each)) == len(each) for each in given.split(","))
    return bool(arrow) and "." not in text and alone and set(given) - {","} == set(kept)


def _products(text: str, arrays: Iterable[Any]) -> Any:
    """Products of several operands, which NumPy multiplies from left to right, and adds to 0: -0.0 is no result."""
    given, _, kept = text.partition("->")

    def spread(letters: str, array: Any) -> Any:
        array = jnp.transpose(array, [letters.index(each) for each in kept if each in letters])
        return jnp.expand_dims(array, [place for place, each in enumerate(kept) if each not in letters])

    found = functools.reduce(jnp.multiply, map(spread, given.split(","), arrays))
    return found + number(0, found)
