"""Random loop bodies, lifted and not: values, errors, tracebacks and variables are the same.

ACCEL_LONG_TESTS and ACCEL_TEST_SEED choose more of them and others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from accel.entry.lift.iterations import start
from accel.entry.lift.lifting import LiftedCode, lift_function, lifted_module_code
from accel.entry.lift.source import NotLiftable
from accel.entry.lift.switch import Switch
from tests.entry.lift.plays import Seen, play, same, traced
from tests.entry.lift.programs import KINDS, PREAMBLE, program
from tests.helpers import LONG, SEED, examples

BATCH = 20 if LONG else 10
BATCHES = range(SEED * examples(2, 60), (SEED + 1) * examples(2, 60))

lifted: list[bool] = []


def _loaded(path: Path, source: str) -> tuple[CodeType, dict[str, Any]]:
    path.write_text(source, encoding="utf-8")
    code = compile(source, str(path), "exec", dont_inherit=True)
    return code, {"__name__": "played"}


def _is_valid(source: str) -> bool:
    """Not all that is written is Python: there may be nothing that a `nonlocal` refers to."""
    try:
        compile(source, "?", "exec")
    except SyntaxError:
        return False
    return True


def _function(names: dict[str, Any], kind: str, number: int) -> tuple[FunctionType, Any]:
    """The function that holds the loop, and what runs it."""
    if kind == "method":
        made = names[f"C{number}"]
        return made.play, lambda: made().play()
    function = names[f"play{number}"]
    if kind == "nested":
        inner = function()
        inner.__closure__[inner.__code__.co_freevars.index("o")] if "o" in inner.__code__.co_freevars else None

        def run() -> Any:
            _reset(inner)
            return inner()

        return inner, run
    return function, function


def _reset(inner: FunctionType) -> None:
    for name, cell in zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True):
        if name == "o":
            cell.cell_contents = 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", BATCHES)
def test_a_lifted_body_does_what_the_loop_does(kind: str, batch: int, tmp_path: Path) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        source = PREAMBLE + program(seed, seed, kind)
        if not _is_valid(source):
            continue
        path = tmp_path / f"{kind}{seed}.py"
        (_check_script if kind == "script" else _check_function)(path, source, kind, seed, _run_plainly)


@pytest.mark.usefixtures("foreground")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", BATCHES[: len(BATCHES) // 2])
def test_recorded_rounds_do_what_the_loop_does(kind: str, batch: int, tmp_path: Path) -> None:
    def record(switch: Switch, names: dict[str, Any]) -> None:
        start(switch, names, f"{kind}{seed}:{switch.line}")

    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        source = PREAMBLE + program(seed, seed, kind)
        if _is_valid(source):
            check = _check_script if kind == "script" else _check_function
            check(tmp_path / f"{kind}{seed}.py", source, kind, seed, record)


Begin = Callable[[Switch, dict[str, Any]], None]

Step = tuple[str, str, int | None]
"""What a tracer is told: the function, the event, the line."""


def _run_plainly(switch: Switch, names: dict[str, Any]) -> None:
    switch.on = True


class Played:
    """A function of a random program, played as it is. before, steps: what it did, and what a tracer was told."""

    def __init__(self, path: Path, source: str, kind: str, seed: int) -> None:
        code, self.names = _loaded(path, source)
        self.names["kept_everywhere"] = []
        exec(code, self.names)
        self.function, self._run = _function(self.names, kind, seed)
        self.plain, self._path = self.function.__code__, str(path)
        self.before, self.steps = self.play(), self.traced()

    def _is_its(self, code: CodeType) -> bool:
        return code.co_firstlineno == self.plain.co_firstlineno and code.co_filename == self._path

    def play(self) -> Any:
        return play(self._run, self.names, self._is_its)

    def traced(self) -> Any:
        return traced(self._run, self.names, self._path)


def _check_function(path: Path, source: str, kind: str, seed: int, begin: Begin) -> None:
    played = Played(path, source, kind, seed)
    function = played.function
    try:
        made = lift_function(function)
    except NotLiftable as refused:
        assert refused.refusal.reason == "lift.code", source
        lifted.append(False)
        return
    lifted.append(True)
    for on in (True, True, False):
        for switch in made.lifted.switches:
            switch.on = False
            if on:
                begin(switch, function.__globals__)
        _compare(played.before, played.play(), source, _own(made.lifted) if on else ())
        found = [pair for pair in zip(played.steps, played.traced(), strict=True) if _differ(*pair)]
        assert not found, found[:3]
    made.undo()
    assert function.__code__ is played.plain


def _differ(step: Step, again: Step) -> bool:
    """Whether a tracer sees another thing. Where an exception leaves a function, it does so by an instruction of the
    compiler's own, which has a line only if what happens to stand before it has one.
    """
    has_no_line = step[1] == "return" and None in (step[2], again[2])
    return step[:2] != again[:2] if has_no_line else step != again


def _check_script(path: Path, source: str, kind: str, seed: int, begin: Begin) -> None:
    code, names = _loaded(path, source)

    def played(code: CodeType) -> Seen:
        names.clear()
        names.update({"__name__": "played", "kept": []})

        def run() -> None:
            kept: list[Any] = names["kept_everywhere"]
            names["kept"] = kept
            exec(code, names)

        return play(run, names, lambda each: each.co_name == "<module>")

    before = played(code)
    try:
        made = lifted_module_code(code)
    except NotLiftable as refused:
        assert refused.refusal.reason == "lift.code", source
        lifted.append(False)
        return
    lifted.append(True)
    for on in (True, True, False):
        for switch in made.switches:
            switch.on = False
            if on:
                begin(switch, names)
        _compare(before, played(made.code), source)


def _own(code: LiftedCode) -> set[str]:
    """The variables that belong to one round each."""
    return {name for switch in code.switches for name in switch.own}


def _compare(before: Seen, after: Seen, source: str, own: Collection[str] = ()) -> None:
    try:
        same(before, after, own)
    except AssertionError:
        print("\n".join(f"{number:4} {line}" for number, line in enumerate(source.splitlines(), 1)))
        raise


def test_most_random_bodies_are_lifted() -> None:
    assert not lifted or sum(lifted) > 0.6 * len(lifted)
