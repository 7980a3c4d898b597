"""Evaluation of what `jax.vmap` makes of loops: a condition for each member of the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel.compiler.lower.precision.evaluation import reduced
from accel.compiler.lower.rounding import rounded_as_numpy
from accel.platform.config import FLOAT32

jax = pytest.importorskip("jax")


def halvings(start: Any) -> Any:
    """How often a number is halved until it is at most 1, and the last two values."""

    def turn(carry: Any) -> Any:
        value, count, _ = carry
        return value / 2, count + 1, value

    return jax.lax.while_loop(lambda carry: carry[0] > 1.0, turn, (start, 0, start))


def with_rounding(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: rounded_as_numpy(lambda always, *given: function(*given), lambda always, *_: always)(
        jax.numpy.asarray(True), *given
    )


@pytest.mark.parametrize("again", [with_rounding, lambda function: reduced(function, FLOAT32)])
def test_members_of_a_batch_end_each_in_its_own_turn(again: Callable[..., Any]) -> None:
    starts = np.array([0.5, 1.0, 3.0, 40.0, 1e6])
    with jax.enable_x64(True):
        found = jax.jit(again(jax.vmap(halvings)))(starts)
    for at, start in enumerate(starts):
        value, count, before = start, 0, start
        while value > 1.0:
            value, count, before = value / 2, count + 1, value
        assert [float(each[at]) for each in found] == [value, count, before]
