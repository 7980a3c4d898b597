"""Random programs that change containers, with changes of the program's own between the calls.

ACCEL_LONG_TESTS and ACCEL_TEST_SEED choose more of them and others.
"""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform.ledger import open_ledger
from tests.helpers import SEED, examples
from tests.record.conftest import Twins, play
from tests.replays import program_of

COUNT = examples(30, 1000)
CALLS = 16

KEYS = ("'a'", "'b'", "'z'", "s.n", "s.n + 1", "s.n % 3", "1", "(1, 't')", "0.5", "True", "s.n * 0.5")
VALUES = (
    *("x", "x * 2", "float(x.sum())", "x.mean()", "s.n", "s.make(x, s.l)", "[x, s.n]", "(x, 1)", "s.o", "s.l"),
    *("{'k': x}", "None", "'text'", "t", "last"),
)
LISTS = ("s.l", "s.l", "s.m", "s.dd['k']")
INDICES = ("0", "-1", "1", "-2", "s.n % 2", "2")
STATEMENTS = (
    *("{l}.append({v})", "{l}.append({v})", "{l}.extend([{v}, {v}])", "s.l += [{v}]", "last = {l}.pop()"),
    *("last = {l}.pop(0)", "last = {l}[{i}]", "{l}[{i}] = {v}", "del {l}[{i}]", "{l}.insert({i}, {v})"),
    *("out.append(len({l}))", "out.append(bool({l}))", "last = {l}[-2:]", "last = {l}[:2]", "del {l}[:1]"),
    *("del s.l[:-4]", "{l}.clear()", "s.l.reverse()", "s.l[1:2] = [{v}]", "s.l = s.l[-3:]", "s.m = [{v}]"),
    *("s.l[:] = [{v}, {v}]", "for each in s.l: out.append(each)", "s.q.append({v})", "s.q.appendleft({v})"),
    *("last = s.q.popleft()", "last = s.q.pop()", "out.append(len(s.q))", "last = s.q[{i}]", "x += 1.0"),
    *("s.q[{i}] = {v}", "s.q.extend([{v}, {v}])", "s.q.extendleft([{v}, {v}])", "s.d[{k}] = {v}"),
    *("s.d[{k}] = {v}", "last = s.d.pop({k}, None)", "last = s.d.get({k}, 0.0)", "out.append({k} in s.d)"),
    *("last = s.d.setdefault({k}, {v})", "s.d.update(a={v}, y={v})", "out.append(len(s.d))", "out.append(list(s.d))"),
    *("s.d.clear()", "s.dd[{k}].append({v})", "out.append(len(s.dd[{k}]))"),
    *("s.c[{k}] += 1", "out.append(s.c[{k}])", "s.s.add({k})", "s.s.discard({k})"),
    *("out.append({k} in s.s)", "out.append(len(s.s))", "s.o.v = {v}", "s.o = s.make({v}, s.o)", "t = s.make({v})"),
    *("s.o.w = [{v}, t]", "out.append(s.o)", "out.append({v})", "s.od[{k}] = {v}", "last = s.od.pop({k}, None)"),
    *("s.n += 1", "x = x * 0.5 + 1"),
)
OF_DICTS = (
    *("s.d[{k}] = {v}", "last = s.d.pop({k}, None)", "last = s.d.get({k}, 0.0)", "out.append({k} in s.d)"),
    *("last = s.d.setdefault({k}, {v})", "s.d.update(a={v}, y={v})", "out.append(len(s.d))", "last = s.d['b']"),
    *(
        "last = s.d.a",
        "last = s.d.b",
        "last = getattr(s.d, 'z', None)",
        "s.d.a = {v}",
        "s.d.b = {v}",
        "s.d.y = {v}",
        "s.d.length = {v}",
    ),
    *(
        "out.append(hasattr(s.d, 'b'))",
        "out.append(getattr(s.d, 'z', 0.0))",
        "last = s.d.length if 'length' in s.d else 0",
    ),
    *("for key in s.d: out.append(key)", "out.append(list(s.d.items()))", "s.d.b = x", "s.d.b = s.d.a"),
    *(
        "out.append(s.d.twice())",
        "out.append(isinstance(s.d, dict))",
        "out.append(dict(s.d))",
        "s.n += 1",
        "x += 1.0",
        "x = x * 0.5 + 1",
    ),
)
"""Statements on a dict of a class of the program's."""

CONDITIONS = ("x.sum() > 0", "len(s.l) > 2", "s.n % 2 == 0", "s.l", "'a' in s.d", "x[0] > 0.3", "len(s.q) > 2")


class Thing:
    """An object of the program's."""

    def __init__(self, v: Any, w: Any = None) -> None:
        self.v, self.w = v, w


class ByItems(dict[Any, Any]):
    """Reads items as attributes; attributes of its own are no items."""

    __getattr__ = dict.__getitem__

    def twice(self) -> Any:
        return 2 * self["b"]


class ByGet(ByItems):
    """Reads items as attributes, and None where there is none."""

    __getattr__ = dict.get  # type: ignore[assignment]
    __setattr__ = dict.__setitem__  # type: ignore[assignment]
    __delattr__ = dict.__delitem__  # type: ignore[assignment]


class ByFunctions(ByItems):
    """Has functions of its own for attributes."""

    def __getattr__(self, name: str) -> Any:  # type: ignore[override]
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value


class ItsOwn(dict[Any, Any]):
    """Its items are its attributes."""

    def __init__(self, *args: Any, **items: Any) -> None:
        super().__init__(*args, **items)
        self.__dict__ = self

    twice = ByItems.twice


def program(draw: random.Random, statements: tuple[str, ...] = STATEMENTS) -> str:
    def statement(depth: int) -> list[str]:
        if depth < 3 and draw.random() < 0.12:
            inner = [line for _ in range(draw.randint(1, 3)) for line in statement(depth + 1)]
            return ["    " * depth + f"if {draw.choice(CONDITIONS)}:", *inner]
        text = draw.choice(statements)
        for mark, choices in (("{l}", LISTS), ("{v}", VALUES), ("{i}", INDICES), ("{k}", KEYS)):
            while mark in text:
                text = text.replace(mark, draw.choice(choices), 1)
        return ["    " * depth + text]

    body = [line for _ in range(draw.randint(3, 8)) for line in statement(1)]
    return "\n".join(["def case(s, x):", "    out, t, last = [], None, None", *body, "    return out, last, x"])


def state(draw: random.Random) -> Any:
    one = SimpleNamespace(
        l=[1.0, 2.0, 3.0][: draw.randint(0, 3)],
        m=[],
        d={"a": 1.0, "b": 2.0},
        q=deque([1.0, 2.0, 3.0], maxlen=draw.choice([None, 3, 5])),
        dd=defaultdict(list),
        c=Counter("ab"),
        s={1, 2},
        n=draw.randint(0, 3),
        o=Thing(1.0),
        od=OrderedDict(a=1),
        make=Thing,
    )
    if draw.random() < 0.3:
        one.m = one.l
    return one


def meddle(draw: random.Random, s: Any) -> None:
    """What the program does to its state between two calls."""
    for _ in range(draw.randint(0, 2)):
        match draw.randint(0, 10):
            case 0:
                s.l.append(5.0)
            case 1:
                s.d.pop("a", None)
            case 2:
                s.d["a"] = 3.0
            case 3:
                s.n = draw.randint(0, 4)
            case 4:
                s.q.append(1.0)
            case 5:
                s.s.add(7)
            case 6:
                s.l = [1.0, 2.0]
            case 7:
                s.m = s.l
            case 8:
                s.dd.clear()
            case 9:
                s.d[s.n + 1] = 1.0
            case 10:
                s.q = deque([1.0])


@pytest.mark.parametrize("seed", range(SEED * COUNT, (SEED + 1) * COUNT))
def test_random_changes(seed: int) -> None:
    _agree(seed, program(random.Random(seed)), f"containers{seed}", dict)


@pytest.mark.parametrize("kind", [ByItems, ByGet, ByFunctions, ItsOwn])
@pytest.mark.parametrize("seed", range(SEED * COUNT // 3, (SEED + 1) * COUNT // 3))
def test_random_changes_of_dict_classes(seed: int, kind: type) -> None:
    name = f"{kind.__name__}{seed}"
    _agree(seed, program(random.Random(name), OF_DICTS), name, kind)


def _agree(seed: int, source: str, name: str, kind: type) -> None:
    function = program_of(source, name)
    fast = accel.accelerate(program_of(source, name), name=name)
    mine, theirs = state(random.Random(seed)), state(random.Random(seed))
    mine.d, theirs.d = kind(mine.d), kind(theirs.d)
    for i in range(CALLS):
        if seed % 2:
            meddle(random.Random(100 * seed + i), mine)
            meddle(random.Random(100 * seed + i), theirs)
        x = np.random.default_rng(100 * seed + i).normal(size=3)
        calls = (mine, x.copy()), (theirs, x.copy())
        expected, found = play(function, calls[0]), play(fast, calls[1])
        Twins(exact=False).same((expected, calls[0]), (found, calls[1]), f"call {i} of\n{source}\n")
    refusals = {refusal.reason for refusal in open_ledger(name).refusals}
    assert refusals.isdisjoint({"verify.mismatch", "recorder.gap", "accel.fault"}), f"{refusals}\n{source}"
