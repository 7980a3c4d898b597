"""Interpolation between neighbours gives SciPy's bits: as it weights them, and in its order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from tests.replays import variant_of

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("foreground", "optimized")


@pytest.mark.parametrize("mode", ["constant", "reflect", "mirror", "wrap"])
def test_linear_interpolation_gives_scipys_bits(mode: str) -> None:
    draw = np.random.default_rng(2)
    field = draw.normal(size=(30, 41))
    # small fractions, whole numbers and places far outside too
    rows = draw.uniform(-40.0, 70.0, (30, 41)) * (draw.random((30, 41)) < 0.8) + draw.random((30, 41)) * 1e-5
    columns = np.floor(rows[::-1] * 1.3) + (draw.random((30, 41)) < 0.5) * draw.random((30, 41))

    def sampled(x: Any, i: Any, j: Any) -> Any:
        return (ndimage.map_coordinates(x, [i, j], order=1, mode=mode),)

    variant = variant_of(sampled, lambda seed: (field, rows, columns))
    assert variant is not None
    ((found,), _) = variant.executable([field, rows, columns], {})
    np.testing.assert_array_equal(found, sampled(field, rows, columns)[0])
