"""Merged paths of which only some append, set items, or make objects."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

import numpy as np
import pytest

from tests.compiler.merge.runs import Merged, State, assert_agrees, traces_of


def call(i: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(i)
    state = State(
        u=rng.normal(size=3),
        hist=[rng.normal(size=3) for _ in range(i % 3 + 1)],
        queue=deque(rng.normal(size=2)),
        table={"a": 1.0},
        groups=defaultdict(list),
        box=State(x=rng.normal(size=3)),
    )
    return state, rng.normal(size=3)


def only_one_side_appends(s: Any, x: Any) -> Any:
    if x.sum() > 0:
        s.hist.append(x * 2)
    s.u = s.u + x
    return s.u


def both_sides_append(s: Any, x: Any) -> Any:
    if x.sum() > 0:
        s.hist.append(x * 2)
        s.hist.append(x.mean())
    else:
        s.hist.append(x * 3)
    s.queue.append(x[0])
    s.queue.popleft()
    return s.hist[-1] * 2


def items_of_one_side(s: Any, x: Any) -> Any:
    if x[0] > 0:
        s.table["pos"] = x * 2
        s.groups["pos"].append(x.sum())
    elif x[1] > 0:
        s.table["a"] += 1
        del s.hist[0]
    else:
        s.table.clear()
        s.hist.clear()
    s.table["all"] = x
    return x + 1


class Vec(State):
    def __init__(self, x: Any, y: Any = None) -> None:
        self.x, self.y = x, y


def objects_of_one_side(s: Any, x: Any) -> Any:
    if x[0] > 0:
        s.box = Vec(x * 2, s.u)
    elif x[1] > 0:
        s.box.x = x * 3
    new = Vec(x + 1, s.box)
    s.hist.append(new)
    return [new, new, Vec(x.sum())] if x[2] > 0 else [new]


@pytest.mark.parametrize("function", [only_one_side_appends, both_sides_append, items_of_one_side, objects_of_one_side])
def test_merged(function: Any) -> None:
    traces = traces_of(function, map(call, range(20)))
    assert len(traces) > 1
    assert assert_agrees(function, Merged(traces), map(call, range(20, 60))) > 20
