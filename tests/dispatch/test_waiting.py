"""What the report says of a function that has programs, and none of whose calls took one."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np

import accel
from accel.dispatch.paths import building
from accel.platform import config
from accel.platform.ledger import State, open_ledger


def test_calls_that_each_took_another_way_have_a_reason(books: ModuleType) -> None:
    def ways(x: Any, kinds: list[int]) -> Any:
        for kind in kinds:
            x = np.sin(x) if kind else np.cos(x)
        return x

    fast: Any = accel.accelerate(ways, name="ways")
    x = np.linspace(0.0, 1.0, 50)
    with config.override(ahead_of_time=False, cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for number in range(4):
            kinds = [number & 1, number >> 1]
            np.testing.assert_array_equal(fast(x, kinds), ways(x, kinds))
        paths = fast._self_target.paths
        for path in paths:
            building.start(path.program)
            fast._self_target._routing._compiling.finish(path.program)
    book = open_ledger("ways")
    assert book.state is State.NUMPY and len(paths) > 1 and not book.refusals
    told = book.waits() if book.waits is not None else None
    assert told is not None and told.reason == "wait.path" and told.detail
