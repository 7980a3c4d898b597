"""The views that `numpy.einsum` gives: read and written as NumPy's own, for any text that keeps each letter."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accel.rules.tables.algebra.subscripts import _view

SIDE = 3


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Subscripts of one operand of up to four axes, the result's letters in any order, or none: then NumPy's order."""
    letters = draw(st.lists(st.sampled_from("iJk"), min_size=1, max_size=4))
    dots = draw(st.sampled_from(["", "..."])) if len(letters) < 4 else ""
    place = draw(st.integers(0, len(letters)))
    operand = "".join(letters[:place]) + dots + "".join(letters[place:])
    if len(set(letters)) == len(letters) and draw(st.booleans()):
        return operand
    kept = draw(st.permutations([*set(letters), *([dots] if dots else [])]))
    return f"{operand} -> {''.join(kept)}"


@given(texts(), st.integers(0, 2))
def test_reads_and_writes_are_numpys(text: str, more: int) -> None:
    axes = sum(letter.isalpha() for letter in text.partition("->")[0]) + more * ("..." in text)
    base = np.arange(float(SIDE**axes)).reshape((SIDE,) * axes)
    view = np.einsum(text, base)
    assert np.shares_memory(view, base)
    step = _view(base, view, {"operands": (text, base)})
    value = -1.0 - np.arange(float(view.size)).reshape(view.shape)
    for array in (np.asarray, jnp.asarray):
        np.testing.assert_array_equal(step.read(array(base)), view)
    written = [np.asarray(step.write(array(base), array(value))) for array in (np.asarray, jnp.asarray)]
    view[...] = value
    for each in written:
        np.testing.assert_array_equal(each, base)
