"""How far accel is from the limit: the miniature's `time_step` by hand, in few passes, beside NumPy and accel.

`python -m benchmarks.limit [--grid 121x240] [--cycles N] [--quick] [--out FILE.json]`. One thread, float64. All three
step the same planet and are compared over 24 steps, all filters among them, and over one that prints, before any is
timed. Then they take turns, step by step, for cycles of 24 steps. So does a copy of as many bytes as a step must read
and write at least once: a floor that no program passes. Times are the processor's, which a shared machine falsifies
less, and one on the wall. The hand-written step needs numba, which accel does not: `pip install numba`.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib.util
import io
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import accel
from benchmarks import harness, worlds
from benchmarks.functions import compiling_at_once
from benchmarks.harness import MINIATURE, BadInput
from benchmarks.limit_step import NAMES, PRINT_EVERY, State, Step
from benchmarks.peers import Array
from benchmarks.worlds import STEP_S

READ = 12
"""Fields that a step needs: u, v, h, T_s, q, cloud_cover, h_ice; isr, albedo, equilibrium; friction, land_mask."""

TOLERANCE = 1e-9
"""Of each field's largest magnitude, over all steps that are compared."""

CYCLE = 24
"""Steps after which the filters come round again."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.limit", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--grid", metavar="NLATxNLON", type=harness.parse_grid, default=(121, 240), help="121x240")
    arguments.add_argument("--cycles", type=harness.positive_int, default=20, help="of 24 timed steps each")
    arguments.add_argument("--quick", action="store_true", help="one cycle, to try it out")
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Compare, measure, print; 1 where a way differs from NumPy."""
    options = parser().parse_args(argv)
    harness.check_writable(options.out)
    if importlib.util.find_spec("numba") is None:
        raise BadInput("the hand-written step needs numba, which is not installed: pip install numba")
    with compiling_at_once(threads=1):
        ways = Ways(options.grid)
        until_compiled(ways)
        errors = ways.compare()
        wrong = [f"{way} by {error:.3g}" for way, error in errors.items() if not error <= TOLERANCE]
        if wrong:
            print(f"differs from NumPy, so that nothing is timed: {', '.join(wrong)}")
            return 1
        times = measure(ways, 1 if options.quick else options.cycles)
    result = {
        "benchmark": "limit",
        "grid": "x".join(map(str, options.grid)),
        "errors": errors,
        "ms": summarised(times),
        "bytes": ways.least_bytes,
        "machine": harness.machine(),
        "versions": harness.versions(),
        "commit": harness.commit(),
    }
    print(describe(result))
    if options.out:
        harness.write_json(options.out, result)
    return 0


# --- the three ways --------------------------------------------------------------------------------------------------


class Ways:
    """One planet's air three times, each on its own way through the same forcing."""

    def __init__(self, grid: tuple[int, int]) -> None:
        world = worlds.build(MINIATURE, *grid)
        self._albedo = world.albedo
        self._forcing = [forcing(world, step * STEP_S) for step in range(CYCLE)]
        model = world.atmosphere
        model.isr = self._forcing[0][1]
        model.time_step(self._forcing[0][0], STEP_S, self._albedo)
        self.models = {"numpy": copy.deepcopy(model), "accel": copy.deepcopy(model)}
        plain = type(model).time_step
        self.functions = {"numpy": plain, "accel": accel.accelerate(plain, name="limit.time_step")}
        self._by_hand = Step(model, STEP_S)
        self.state = State.of(model)
        self.set_steps(0)

    @property
    def least_bytes(self) -> int:
        """What a step has to read and to write at least once."""
        return (READ + len(NAMES)) * self.state.u.nbytes

    def set_steps(self, steps: int) -> None:
        """Let all of them have made `steps` steps, as far as filters and printing go."""
        self.steps = steps
        self.state = self.state.after(steps)
        for model in self.models.values():
            model._step_counter = steps

    def rivals(self) -> dict[str, Callable[[], None]]:
        """One step of each way; `turn` comes before each round."""
        halves = np.ones((2, self.least_bytes // 16))
        return {
            "numpy": lambda: self._step("numpy"),
            "accel": lambda: self._step("accel"),
            "limit": self._step_by_hand,
            "copy": lambda: np.copyto(halves[1], halves[0]),
        }

    def turn(self) -> None:
        """The next step's forcing."""
        self.steps += 1
        self._warmth, self._isr = self._forcing[self.steps % CYCLE]
        for model in self.models.values():
            model.isr = self._isr

    def _step(self, way: str) -> None:
        self.functions[way](self.models[way], self._warmth, STEP_S, self._albedo)

    def _step_by_hand(self) -> None:
        self.state = self._by_hand(self.state, self._warmth, self._albedo, self._isr)

    def compare(self) -> dict[str, float]:
        """The largest difference of each way from NumPy's, over a cycle and a step that prints."""
        rivals, largest = self.rivals(), dict.fromkeys(("accel", "limit"), 0.0)
        for steps in (*range(CYCLE), PRINT_EVERY - 1):
            self.set_steps(steps)
            for way, error in self._compare_step(rivals).items():
                largest[way] = max(largest[way], error)
        return largest

    def _compare_step(self, rivals: Mapping[str, Callable[[], None]]) -> dict[str, float]:
        """The differences after one more step; infinite where another text is printed."""
        self.turn()
        said = {}
        for way, call in rivals.items():
            with contextlib.redirect_stdout(io.StringIO()) as text:
                call()
            said[way] = text.getvalue()
        expected = self.models["numpy"]
        found = {"accel": self.models["accel"], "limit": self.state}
        return {
            way: max(harness.relative_error(getattr(each, name), getattr(expected, name)) for name in NAMES)
            if said[way] == said["numpy"]
            else float("inf")
            for way, each in found.items()
        }


def forcing(world: Any, time_s: float) -> tuple[Array, Array]:
    """Equilibrium temperature, K, and insolation, W/m2, at a time."""
    return world.forcing.calculate_equilibrium_temp(time_s, world.albedo), world.forcing.calculate_insolation(time_s)


# --- timing ----------------------------------------------------------------------------------------------------------


def measure(ways: Ways, cycles: int) -> dict[str, Array]:
    """Seconds of each step by way, processor's and wall's, (2, cycles, 24)."""
    rivals = ways.rivals()
    times = {name: np.empty((2, cycles, CYCLE)) for name in rivals}
    for cycle in range(cycles):
        ways.set_steps(0)
        for step in range(CYCLE):
            ways.turn()
            for name in harness.rotated(list(rivals), step):
                times[name][:, cycle, step] = timed(rivals[name])
    return times


def timed(call: Callable[[], None]) -> tuple[float, float]:
    """Seconds of a call: of this process on all its processors, and of the clock on the wall."""
    before = time.process_time(), time.perf_counter()
    call()
    after = time.process_time(), time.perf_counter()
    return after[0] - before[0], after[1] - before[1]


def until_compiled(ways: Ways, rounds: int = 6) -> None:
    """Let all make cycles until accel compiled every step of one. Raises SystemExit if that never comes."""
    from accel.platform.ledger import open_ledger

    ledger, rivals = open_ledger("limit.time_step"), ways.rivals()
    for _ in range(rounds):
        ways.set_steps(0)
        before = ledger.calls - ledger.compiled_calls
        for _ in range(CYCLE):
            ways.turn()
            for call in rivals.values():
                call()
        if ledger.calls - ledger.compiled_calls == before:
            return
    left = ledger.calls - ledger.compiled_calls - before
    sys.exit(f"accel did not compile all steps in {rounds} cycles: {left} of the last {CYCLE} stayed on NumPy")


def summarised(times: Mapping[str, Array]) -> dict[str, dict[str, float]]:
    """Medians in ms by way: of steps without filters, of those with all, and of a step's mean in a cycle."""
    without = np.arange(1, CYCLE + 1) % 6 != 0
    return {
        way: {
            "without filters": harness.median_ms(processor[:, without].ravel()),
            "all filters": harness.median_ms(processor[:, -1]),
            "mean of 24": harness.median_ms(processor.mean(axis=1)),
            "without filters, wall": harness.median_ms(wall[:, without].ravel()),
        }
        for way, (processor, wall) in times.items()
    }


def describe(result: Mapping[str, Any]) -> str:
    """The table, and what it says."""
    ms, grid = result["ms"], result["grid"]
    columns = list(ms["limit"])
    first = {way: ms[way][columns[0]] for way in ms}
    rows = [[way, *(ms[way][each] for each in columns), first[way] / first["limit"]] for way in ms]
    header = ["way", *(f"{each}, ms" for each in columns), "times the limit"]
    megabytes = result["bytes"] / 1e6
    return "\n\n".join(
        [
            harness.markdown_table(header, rows),
            f"accel takes {first['accel'] / first['limit']:.2f} times the limit on {grid}; "
            f"NumPy {first['numpy'] / first['limit']:.1f}.",
            f"A step must read and write {megabytes:.2f} MB: {first['copy']:.3f} ms at "
            f"{megabytes / first['copy']:.1f} GB/s. The limit takes {first['limit'] / first['copy']:.1f} times that.",
            "Largest differences from NumPy: "
            + ", ".join(f"{way} {error:.1e}" for way, error in result["errors"].items())
            + ".",
            f"commit {result['commit']}",
        ]
    )


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "1")  # of XLA's threads, read when JAX starts
    harness.run_command(main)
