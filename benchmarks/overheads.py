"""What accel itself costs in a call: fetching, guarding and committing, and a call that stays on NumPy.

`python -m benchmarks.overheads` makes a target as large as a model's whole step (60 attribute reads, 40 environment
reads, 17 outputs) whose arithmetic is next to nothing, checks it against NumPy, and takes the time of its compiled
program from the time of a call. All state is written by the call itself, so it comes back aligned and nothing is
taken for constant. Then rounds of a lifted loop with as many arrays, and two constant ones. Then calls of a tiny
function that stays on NumPy, for every way that it may come to that, less the plain calls, within the budget.
"""

from __future__ import annotations

import argparse
import runpy
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast
from unittest import mock

import numpy as np

import accel
from accel.entry.lift.iterations import Iterations
from accel.entry.lift.switch import Switch
from accel.platform import config
from accel.policy import speed
from benchmarks import goal_table, harness, races
from benchmarks.functions import Captured, compiling_at_once
from benchmarks.harness import Goal

OUTPUTS, SCALARS, SETTINGS = 17, 43, 40
"""Arrays that are read and written, numbers that are read: 60 attributes; and environment variables."""

BATCH = 200
"""Calls of the tiny function that are timed together: one alone is shorter than a clock can tell."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.overheads", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--grid", metavar="NLATxNLON", default="31x60", help="of the state arrays (31x60)")
    arguments.add_argument("--rounds", type=harness.positive_int, default=300)
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, 1 when the target's results were wrong or it did not compile."""
    options = parser().parse_args(argv)
    shape = harness.parse_grid(options.grid)
    harness.check_writable(options.out)
    with compiling_at_once(cache_dir=None):
        # its own verdict on speed is of no interest here: the program does next to nothing
        with mock.patch.object(speed, "SPEED_SAMPLES", 10**9), mock.patch.object(speed, "MAX_LOSS_S", float("inf")):
            whole = whole_step(shape, options.rounds)
            lifted = lifted_loop(shape, options.rounds)
        stays = staying(options.rounds)
    worst = max(entry["us"] for entry in stays)
    goals = [*goal_table.goals("guards", whole["overhead_us"]), *goal_table.goals("stay", worst, "the dearest way")]
    result = {
        "benchmark": "overheads",
        "grid": options.grid,
        "whole_step": whole,
        "lifted": lifted,
        "stays": stays,
        "goals": [goal.record() for goal in goals],
        "machine": harness.machine(),
        "versions": harness.versions(),
    }
    print(describe(result))
    if options.out:
        harness.write_json(options.out, result)
    return 0 if whole["error"] <= 1e-12 else 1


# --- a whole step -----------------------------------------------------------------------------------------------------


def step_source() -> str:
    """A method with that many reads and writes, written out as models have them."""
    lines = ["import os", "def step(self, dt):", "    total = 0.0"]
    lines += [f"    total = total + float(os.getenv('QD_BENCH_{i}', '0.5'))" for i in range(SETTINGS)]
    lines += [f"    total = total + self.number_{i}" for i in range(SCALARS)]
    lines += [f"    self.field_{i} = self.field_{i} * 0.5 + total * dt" for i in range(OUTPUTS)]
    return "\n".join(lines)


def made_step() -> Any:
    """The function of `step_source`, in a module of its own."""
    module = types.ModuleType("benchmarks.made_step")
    exec(compile(step_source(), "made_step.py", "exec"), vars(module))
    return module.step


class State:
    """What the step reads and writes. Arrays of `shape`, float64."""

    def __init__(self, shape: tuple[int, int]):
        rng = np.random.default_rng(1)
        for i in range(OUTPUTS):
            setattr(self, f"field_{i}", rng.normal(size=shape))
        for i in range(SCALARS):
            setattr(self, f"number_{i}", float(i))


def whole_step(shape: tuple[int, int], rounds: int) -> dict[str, Any]:
    """Error against NumPy, and medians in us: a call, its program alone, and the difference."""
    step = made_step()
    fast: Any = accel.accelerate(step, name="benchmarks.made_step.step")
    target = fast._self_target
    target.account.rest.allowed = False
    mine, theirs = State(shape), State(shape)
    error = 0.0
    for _ in range(12):
        step(mine, 1e-3)
        fast(theirs, 1e-3)
        error = max(error, *(harness.relative_error(vars(theirs)[name], vars(mine)[name]) for name in fields(mine)))
    program = next(iter(target.paths.with_program), None)
    if program is None:
        raise SystemExit(f"the step did not compile: {target.ledger}")
    captured = Captured(program.variant.executable)
    program.variant.executable = captured
    calls, programs = [], []
    for _ in range(rounds):
        calls += harness.interleaved({"call": lambda: fast(theirs, 1e-3)}, tuple, rounds=1)["call"]
        programs += harness.interleaved({"program": _run_again(captured)}, tuple, rounds=1)["program"]
    call_us, program_us = 1e3 * harness.median_ms(calls), 1e3 * harness.median_ms(programs)
    return {"error": error, "call_us": call_us, "program_us": program_us, "overhead_us": call_us - program_us}


def fields(state: State) -> list[str]:
    """Names of the arrays."""
    return [name for name, value in vars(state).items() if isinstance(value, np.ndarray)]


def _run_again(captured: Captured) -> Callable[[], Any]:
    """The program on the inputs of the last call, up to finished results."""
    import jax

    assert captured.inputs is not None
    arrays, scalars = captured.inputs
    return lambda: jax.block_until_ready(captured.executable(arrays, scalars))


# --- a round of a lifted loop -----------------------------------------------------------------------------------------


def loop_source() -> str:
    """A function with a loop over that many arrays, two of them constant, and numbers."""
    lines = ["import numpy as np", "def main(fields, mask, table, steps):"]
    lines += [f"    field_{i} = fields[{i}]" for i in range(OUTPUTS)]
    lines += ["    total = 0.0", "    for step in range(steps):", "        dt = 1e-3 / (1.0 + step % 7)"]
    lines += [f"        field_{i} = field_{i} * 0.5 + np.where(mask, table, dt)" for i in range(OUTPUTS)]
    lines += ["        total += float(field_0[0, 0])"]
    return "\n".join([*lines, f"    return total, {', '.join(f'field_{i}' for i in range(OUTPUTS))}", ""])


class Timed:
    """An executable whose calls are timed. seconds: of each, until its results are there."""

    def __init__(self, executable: Any) -> None:
        self._executable = executable
        self.seconds: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executable, name)

    def run_checked(self, *arguments: Any) -> Any:
        import jax

        began = time.perf_counter()
        made = jax.block_until_ready(self._executable.run_checked(*arguments))
        self.seconds.append(time.perf_counter() - began)
        return made


def lifted_loop(shape: tuple[int, int], rounds: int) -> dict[str, Any]:
    """Means in us: a round of a lifted loop, its program alone, and the difference. Guards, constants, commit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made_loop.py"
        path.write_text(loop_source())
        module = runpy.run_path(str(path))
        main: Any = accel.accelerate(module["main"], name="benchmarks.made_loop.main", loops=True)
    rng = np.random.default_rng(1)
    given = [rng.normal(size=shape) for _ in range(OUTPUTS)], rng.random(shape) > 0.5, rng.normal(size=shape)
    for _ in range(3):
        main(*given, 20)
    switch = next(each for each in main.__code__.co_consts if isinstance(each, Switch))
    target = cast("Iterations", switch.call)._target
    (of_round,) = target.paths.with_program
    timed = of_round.variant.executable = Timed(of_round.variant.executable)
    began = time.perf_counter()
    main(*given, rounds)
    round_us = 1e6 * (time.perf_counter() - began) / rounds
    if len(timed.seconds) < 0.9 * rounds:
        raise SystemExit(f"rounds were not compiled: {target.ledger}")
    program_us = 1e6 * sum(timed.seconds) / rounds
    return {"round_us": round_us, "program_us": program_us, "overhead_us": round_us - program_us}


# --- calls that stay on NumPy -----------------------------------------------------------------------------------------


def add_one(x: Any) -> Any:
    """Too little to gain anything on."""
    return x + 1.0


def add_and_look(x: Any) -> Any:
    """Refused: a replay would see the recorded time for ever."""
    return x + 0.0 * time.perf_counter()


def staying(rounds: int) -> list[dict[str, Any]]:
    """us that a call costs beyond the plain call, by the way in which it came to stay on NumPy."""
    return [
        _stay("demoted as slower", add_one, rounds, calls=400),
        _stay("refused for good", add_and_look, rounds, calls=6000),
        _stay("mode off", add_one, rounds, calls=1, mode="off"),
    ]


def _stay(way: str, function: Callable[..., Any], rounds: int, calls: int, mode: str = "auto") -> dict[str, Any]:
    x = np.ones(8)
    fast: Any = accel.accelerate(function, name=f"benchmarks.stays.{way.replace(' ', '_')}")

    def batch(call: Callable[..., Any]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(BATCH):
                call(x)

        return run

    with config.override(mode=mode):
        for _ in range(calls):
            fast(x)
        with races.within_budget():
            times = harness.interleaved(
                {"accel": batch(fast), "numpy": batch(function)}, tuple, rounds=max(20, rounds // 4), budget_s=20.0
            )
    medians = {name: 1e3 * harness.median_ms(seconds) / BATCH for name, seconds in times.items()}
    ledger = fast._self_target.ledger
    return {"way": way, "us": medians["accel"] - medians["numpy"], "plain_us": medians["numpy"], "state": ledger.state}


# --- the result -------------------------------------------------------------------------------------------------------


def describe(result: dict[str, Any]) -> str:
    """The result as text."""
    whole, shown = result["whole_step"], result["machine"]
    rows = [
        ["a call of the whole step", whole["call_us"]],
        ["its program alone", whole["program_us"]],
        ["fetch, guards, commit", whole["overhead_us"]],
        ["a round of a lifted loop", result["lifted"]["round_us"]],
        ["its program alone", result["lifted"]["program_us"]],
        ["fetch, guards, constants, commit", result["lifted"]["overhead_us"]],
        *([f"a call that stays on NumPy: {entry['way']}", entry["us"]] for entry in result["stays"]),
    ]
    parts = [
        f"{OUTPUTS + SCALARS} attribute reads, {SETTINGS} environment reads, {OUTPUTS} outputs of {result['grid']}\n"
        f"on {shown['cpu']}, {shown['cores']} cores; largest error {whole['error']:.2g}",
        harness.markdown_table(["", "us"], rows),
        harness.goals_table([Goal.from_record(goal) for goal in result["goals"]]),
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    harness.run_command(main)
