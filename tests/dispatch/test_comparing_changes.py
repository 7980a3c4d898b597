"""Comparing changes of containers, and new objects: what NumPy's call does and the replay does not, and the reverse."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel.dispatch.comparing.comparison import Comparison
from accel.dispatch.comparing.errors import Tolerance
from accel.record.state.changes import Emptied, Ends, SetMembers, Write
from accel.record.state.leaves import NewObject, SharedLeaf
from tests.dispatch.test_comparing import run


class Vec:
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x


def state() -> Any:
    return SimpleNamespace(
        hist=[1.0, np.ones(3), "text"],
        queue=deque([np.zeros(3), 2, 3]),
        table={"a": 1, "b": np.ones(3), "c": 5},
        groups=defaultdict(list, a=[1.0]),
        counts=Counter("aab"),
        seen={"p", "q"},
        v=None,
    )


def work(s: Any, x: Any) -> Any:
    s.hist.append(x * 2)
    s.hist[0] = 2.0
    s.hist.pop(-2)
    s.queue.popleft()
    s.queue.append(float(x.sum()))
    s.table.pop("a")
    s.table["new"] = x + 1
    s.table["a"] = 3
    del s.table["c"]
    s.groups["b"].append(x.mean())
    s.groups["a"].insert(0, 4.0)
    s.counts["z"] += 1
    s.seen.add("r")
    s.seen.discard("p")
    s.v = Vec(x * 2, s)
    return s.v, [s.v, Vec(x, 1)], Slotted(x)


def test_nothing_differs() -> None:
    _variant, staged, snapshot, result = run(work, state(), np.arange(3.0))
    assert Comparison(staged, result, snapshot, Tolerance(1e-9)).differences == []


def cleared(s: Any, x: Any) -> Any:
    s.hist.clear()
    s.hist.append(x)
    s.table.clear()
    s.table["x"] = x * 2
    s.seen.clear()
    s.seen.add("n")
    s.queue.appendleft(x)


def test_nothing_differs_after_clearing() -> None:
    _variant, staged, snapshot, result = run(cleared, state(), np.arange(3.0))
    assert Comparison(staged, result, snapshot, Tolerance(1e-9)).differences == []


def meddled(how: Any) -> list[str]:
    """The differences if `how` is done to the state after NumPy's call."""
    s = state()
    _variant, staged, snapshot, result = run(work, s, np.arange(3.0))
    how(s, result)
    return [difference.detail for difference in Comparison(staged, result, snapshot, Tolerance(1e-9)).differences]


@pytest.mark.parametrize(
    ("how", "where"),
    [
        (lambda s, result: s.hist.append(1), "s.hist"),
        (lambda s, result: s.hist.pop(), "s.hist"),
        (lambda s, result: s.hist.__setitem__(-1, s.hist[-1] + 1), "s.hist[2]"),
        (lambda s, result: s.hist.__setitem__(1, s.hist[1].copy()), "s.hist"),
        (lambda s, result: s.hist.__setitem__(0, 3.0), "s.hist[0]"),
        (lambda s, result: s.queue.appendleft(1), "s.queue"),
        (lambda s, result: s.queue.rotate(1), "s.queue"),
        (lambda s, result: s.table.pop("new"), "s.table"),
        (lambda s, result: s.table.update(other=1), "s.table"),
        (lambda s, result: s.table.__setitem__("new", s.table.pop("new")), "s.table"),
        (lambda s, result: s.table.__setitem__("a", 4), "s.table['a']"),
        (lambda s, result: s.groups["b"].append(1), "s.groups['b']"),
        (lambda s, result: s.groups["a"].append(1), "s.groups['a']"),
        (lambda s, result: s.counts.update("b"), "s.counts"),
        (lambda s, result: s.seen.add("s"), "s.seen"),
        (lambda s, result: setattr(s.v, "x", s.v.x * 2), "the result[0].x"),
        (lambda s, result: setattr(s.v, "z", 1), "the result[0]"),
        (lambda s, result: setattr(s.v, "y", Vec(1, 2)), "the result[0].y"),
        (lambda s, result: setattr(s, "v", Vec(s.v.x, s)), "s.v"),
        (lambda s, result: result[1].__setitem__(1, result[0]), "the result[1][1]"),
        (lambda s, result: result[1].__setitem__(1, Slotted(1)), "the result[1][1]"),
        (lambda s, result: result[1].__setitem__(1, s), "the result[1][1]"),
        (lambda s, result: setattr(result[2], "x", result[2].x + 1e-3), "the result[2].x"),
    ],
)
def test_what_numpy_does_besides_is_seen(how: Any, where: str) -> None:
    found = meddled(how)
    assert any(each.startswith(where) for each in found), found


@pytest.mark.parametrize("kind", [Ends, SetMembers, Write])
def test_what_the_replay_lacks_is_seen(kind: type) -> None:
    from accel.dispatch.comparing.snapshot import Snapshot

    variant, staged, snapshot, result = run(work, state(), np.arange(3.0))
    writes = variant.trace.outputs.writes
    lost = next(change for change in writes if type(change) is kind)
    writes.remove(lost)
    # as it would be taken of the plan without it
    again = Snapshot(replace(staged, values=snapshot.values))
    again.parts = snapshot.parts
    name = variant.trace.inputs.name(lost.owner)
    found = [difference.detail for difference in Comparison(staged, result, again, Tolerance(1e-9)).differences]
    assert any(each.startswith(name) for each in found), found


def test_a_lost_clearing_is_seen() -> None:
    variant, staged, snapshot, result = run(cleared, state(), np.arange(3.0))
    writes = variant.trace.outputs.writes
    writes.remove(next(change for change in writes if type(change) is Emptied))
    found = [difference.detail for difference in Comparison(staged, result, snapshot, Tolerance(1e-9)).differences]
    assert any(each.startswith("s.table") for each in found), found


def test_one_object_in_two_places_is_one_leaf() -> None:
    variant, _, _, _ = run(work, state(), np.arange(3.0))
    first, (again, other), slotted = variant.trace.outputs.result
    assert isinstance(first, SharedLeaf)
    assert first is again
    assert isinstance(other, NewObject)
    assert isinstance(slotted, NewObject)
