"""Groups of operations inside a program: their shares of its estimated work, and their lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from accel.dispatch.paths import work
from accel.platform.reasons import source_line
from accel.record import record


def heat(x: Any) -> Any:
    y = np.exp(x)
    y = y + np.exp(0.5 * y)
    return np.roll(y, 1) - 2.0 * y + x.sum()


def test_groups_have_their_shares_and_the_line_with_most() -> None:
    found = work.groups(record(heat, (np.ones(100),), {}, max_nodes=100).trace.tape.nodes)
    assert [each["group"] for each in found] == ["exponentials", "stencils", "arithmetic"]
    first = heat.__code__.co_firstlineno
    assert found[1]["where"] == source_line(__file__, first + 3)
    assert 0.6 < found[0]["share"] < 0.9 and sum(each["share"] for each in found) < 1.0


def powers(x: Any) -> Any:
    return x**2 - 1.0 + x**0.5 - x**-1


def test_powers_by_multiplications_and_roots_are_arithmetic() -> None:
    found = work.groups(record(powers, (np.ones(100),), {}, max_nodes=100).trace.tape.nodes)
    assert [each["group"] for each in found] == ["arithmetic"]
    found = work.groups(record(lambda x: x**1.7, (np.ones(100),), {}, max_nodes=100).trace.tape.nodes)
    assert [each["group"] for each in found] == ["exponentials"]


def regions(x: Any) -> Any:
    y = x + 1.0
    return ndimage.distance_transform_edt(y > 1.5)


def test_functions_that_a_program_calls_as_they_are_have_a_group() -> None:
    found = work.groups(record(regions, (np.eye(9),), {}, max_nodes=100).trace.tape.nodes)
    assert found[0]["group"] == work.LIBRARY and found[0]["share"] > 0.9
    assert found[0]["where"] == source_line(__file__, regions.__code__.co_firstlineno + 2)


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("scipy.ndimage.label, by itself", work.LIBRARY),
        ("numpy.fft.rfft2", "transforms and products"),
        ("numpy.matmul", "transforms and products"),
        ("accel.gather", "gathers"),
        ("scipy.ndimage.map_coordinates", "gathers"),
        ("scipy.ndimage.gaussian_filter", "stencils"),
        ("accel.write", "stencils"),
        ("numpy.arctan2", "exponentials"),
        ("numpy.max", "sums and extremes"),
        ("numpy.maximum", "arithmetic"),
        ("numpy.isinf", "arithmetic"),
        ("numpy.logical_and", "arithmetic"),
        ("numpy.expand_dims", "arithmetic"),
        ("numpy.multiply", "arithmetic"),
    ],
)
def test_functions_are_grouped_by_their_names(name: str, group: str) -> None:
    assert work.group_of(name) == group
