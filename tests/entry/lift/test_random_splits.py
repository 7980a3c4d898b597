"""Random functions, split at a planted line and not: values, errors, tracebacks and variables are the same.

ACCEL_LONG_TESTS and ACCEL_TEST_SEED choose more of them and others.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from accel.entry.lift.iterations import _InParts, start
from accel.entry.lift.lifting import lift_function, split
from accel.entry.lift.source import NotLiftable
from accel.entry.lift.switch import Switch
from tests.entry.lift.programs import PREAMBLE, program
from tests.entry.lift.test_random_bodies import Played, _compare, _differ, _is_valid
from tests.helpers import LONG, SEED, examples

BATCH = 20 if LONG else 6
BATCHES = range(SEED * examples(1, 20), (SEED + 1) * examples(1, 20))
KINDS = ("function", "method", "nested")

made_parts: list[int] = []


def _lines(function: FunctionType, source: str, seed: int) -> list[int]:
    """Lines of the function at which it is split: one, now and then two."""
    code = function.__code__
    node = next(
        each
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.FunctionDef) and each.name == code.co_name and each.lineno == code.co_firstlineno
    )
    found = sorted({each.lineno for each in ast.walk(node) if isinstance(each, ast.stmt)} - {node.lineno})
    rng = random.Random(seed)
    return sorted(rng.sample(found, min(len(found), rng.choice([1, 1, 2]))))


def _split_again(switch: Switch, seed: int) -> list[Switch]:
    """Split a part once more, at one of its lines or at its loops. Returns its own parts."""
    lines = [random.Random(seed).choice(switch.lines)] if seed % 3 else []
    try:
        made = split(switch, dict.fromkeys(lines, ""))
    except NotLiftable:
        return []
    switch.codes.append(made.code)
    switch.call = _InParts(made.code)
    for each in made.switches:
        each.on = True
    return made.switches


def _settled(steps: list[Any]) -> list[Any]:
    """Steps without lines at which an exception only leaves statements (see `_differ`), and without the last line.

    The compiler's code for that has the line of what happens to stand beside it.
    """
    kept: list[Any] = []
    after_exception = False
    for step in steps:
        if after_exception and step[1] == "line":
            continue
        after_exception = step[1] == "exception"
        if step[1] == "return":
            while kept and kept[-1][:2] == (step[0], "line"):
                kept.pop()
            step = (*step[:2], None)
        kept.append(step)
    return kept


@pytest.mark.parametrize("how", ["plainly", "again", "recorded"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.usefixtures("foreground")
def test_a_split_function_does_what_it_did(batch: int, kind: str, how: str, tmp_path: Path) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        source = PREAMBLE + program(seed + 100_000, seed, kind)
        if _is_valid(source):
            _check(tmp_path / f"{kind}{seed}.py", source, kind, seed, how)


def _check(path: Path, source: str, kind: str, seed: int, how: str) -> None:
    played = Played(path, source, kind, seed)
    function = played.function
    stops = _lines(function, source, seed)
    try:
        made = lift_function(function, stops=dict.fromkeys(stops, ""))
    except NotLiftable as refused:
        assert refused.refusal.reason == "lift.code", source
        return
    made_parts.append(len(made.lifted.switches))
    parts = list(made.lifted.switches)
    for switch in made.lifted.switches:
        switch.on = True
        if how == "recorded":
            start(switch, function.__globals__, f"split{kind}{seed}:{switch.place}")
        if how == "again":
            parts += _split_again(switch, seed)
    loops = [each for each in parts if each.column is None or how == "recorded"]
    own = {name for each in loops for name in each.own}
    for _ in range(2 if how == "recorded" else 1):
        _compare(played.before, played.play(), f"{source}\n# split at {stops}", own)
    again = played.traced()
    line = played.plain.co_firstlineno
    if len(again) == len(played.steps) + 1 and again[1][1:] == ("line", line):  # a part at its very start begins there
        del again[1]
    pairs = zip(_settled(played.steps), _settled(again), strict=True)
    assert not [pair for pair in pairs if _differ(*pair)], (source, stops)
    made.undo()
    assert function.__code__ is played.plain
    _compare(played.before, played.play(), source)


def test_most_functions_have_parts() -> None:
    assert not made_parts or sum(made_parts) > len(made_parts)
