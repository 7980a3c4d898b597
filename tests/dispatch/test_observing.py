"""What observing a path costs while it waits for its program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accel.dispatch.paths import constants
from accel.dispatch.paths.constants import COMPARED_CALLS, PathConstants
from accel.dispatch.paths.path import RecordedPath
from accel.ir import bits
from accel.record import record


class Net:
    def __init__(self) -> None:
        self.weights = np.ones((200, 200))
        self.bias = np.ones(200)


def step(net: Net, x: Any) -> Any:
    return net.weights @ x + net.bias


def test_large_arrays_are_compared_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = Net(), np.arange(200.0)
    recorded: Any = record(step, (net, x), {}, max_nodes=1000)
    path = RecordedPath(recorded.trace, "step")
    compared: list[int] = []
    same = constants.same_value
    monkeypatch.setattr(constants, "same_value", lambda one, other: compared.append(np.size(one)) or same(one, other))
    for _ in range(64):
        values: Any = path.matcher.match((net, x), {})
        path.observe(values)
    assert compared.count(200) == 63
    assert COMPARED_CALLS <= compared.count(200 * 200) <= COMPARED_CALLS + 4
    net.weights[0, 0] = 2.0
    for _ in range(65):
        path.observe(path.matcher.match((net, x), {}))  # type: ignore[arg-type]
    assert len(path.constants.varying) == 1


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i2", "?", "V3"])
def test_arrays_are_compared_bit_by_bit(dtype: str) -> None:
    one = np.zeros((3, 4), dtype)
    other = one.copy(order="F")
    assert bits.same_array(one, other)
    assert not bits.same_array(one, one[:2])
    assert not bits.same_array(one, np.zeros((3, 4), "u8"))
    other[2, 1] = np.array(b"abc", "V3") if dtype == "V3" else 1
    assert not bits.same_array(one, other)


def test_nan_equals_itself_and_the_sign_of_zero_counts() -> None:
    assert bits.same_array(np.array([np.nan]), np.array([np.nan]))
    assert not bits.same_array(np.array([0.0]), np.array([-0.0]))


@pytest.mark.parametrize(("call_s", "kept"), [(0.0, True), (1e-4, False), (1e-2, True)])
def test_an_array_is_no_constant_whose_comparison_takes_as_long_as_the_call(call_s: float, kept: bool) -> None:
    large, small = np.ones(1 << 18), np.ones(1 << 10)  # 2 MB, which 0.26 ms read
    known = PathConstants(frozenset({0, 1, 2}))
    for _ in range(2):
        known.compare([large, small, 3.0], looks_at_all=True)
    known.rule_out_dear(call_s)
    assert known.values.keys() == ({0, 1, 2} if kept else {1, 2})
    assert known.varying == (set() if kept else {0})
