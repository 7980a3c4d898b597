"""`accel.ndimage` against `scipy.ndimage`: every covered function, checked first, then timed.

    python -m benchmarks.ndimage [--rounds 25] [--grid 121x240 --grid 1024x1024] [--out benchmarks/results/ndimage.json]

Two times of accel's: the compiled program on arrays that JAX holds (what the engine inlines; the goals are set on it),
and the public function from NumPy array to NumPy array. All rivals take turns, so that they see the same load. Both
contain what JAX needs to start a program, which the engine pays once for all that it inlines; each table says how long
a program takes that only adds 1. JAX is started as the engine starts it (see accel.backend.devices), for each grid
anew.
"""

import argparse
import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.ndimage
from numpy.typing import NDArray

from benchmarks import harness

GRIDS = ("121x240", "1024x1024")
RESULT = Path(__file__).parent / "results" / "ndimage.json"
TOLERANCE = 1e-12  # of the largest value


@dataclass(frozen=True)
class Case:
    """One call to time: a function, its parameters, and how many times faster than SciPy the compiled one has to be."""

    name: str
    options: Mapping[str, Any]
    goal: float = 1.0
    note: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} {self.note}".strip()


def _drifting(shape: tuple[int, int]) -> NDArray[np.float64]:
    """Coordinates as in semi-Lagrangian advection: every cell, moved by up to 2 cells. Shape (2, *shape)."""
    return np.indices(shape) + np.random.default_rng(1).uniform(-2, 2, (2, *shape))


def cases(shape: tuple[int, int]) -> list[Case]:
    """Every covered function, some with several parameters."""
    rng = np.random.default_rng(2)
    points = _drifting(shape)
    turn = np.array([[0.98, 0.12], [-0.11, 0.97]])
    at = {"coordinates": points, "mode": "wrap"}
    return [
        Case("map_coordinates", {**at, "order": 0}, note="order 0"),
        Case("map_coordinates", {**at, "order": 1}, 5.0, "order 1"),
        Case("map_coordinates", {**at, "order": 3}, 3.0, "order 3"),
        Case("map_coordinates", {**at, "order": 5}, note="order 5"),
        Case("affine_transform", {"matrix": turn, "order": 1}, note="order 1"),
        Case("affine_transform", {"matrix": turn}, note="order 3"),
        Case("rotate", {"angle": 20.0, "order": 1}, note="order 1"),
        Case("rotate", {"angle": 20.0}, note="order 3"),
        Case("shift", {"shift": 1.3}, note="order 3"),
        Case("zoom", {"zoom": 1.5}, note="order 3"),
        Case("spline_filter", {}),
        Case("spline_filter1d", {}),
        Case("convolve", {"weights": rng.normal(size=(3, 3))}, 2.0, "3x3"),
        Case("convolve", {"weights": rng.normal(size=(9, 9))}, note="9x9"),
        Case("correlate", {"weights": rng.normal(size=(3, 3)), "mode": "wrap"}, 2.0, "3x3"),
        Case("convolve1d", {"weights": rng.normal(size=5)}),
        Case("correlate1d", {"weights": rng.normal(size=5), "axis": 0}),
        Case("gaussian_filter", {"sigma": 1.0}, 2.0, "sigma 1"),
        Case("gaussian_filter", {"sigma": 8.0}, note="sigma 8"),
        Case("gaussian_filter1d", {"sigma": 1.0}),
        Case("gaussian_laplace", {"sigma": 1.0}),
        Case("gaussian_gradient_magnitude", {"sigma": 1.0}),
        Case("laplace", {}),
        Case("sobel", {}),
        Case("prewitt", {}),
        Case("uniform_filter", {"size": 3}, note="3x3"),
        Case("uniform_filter", {"size": 15}, note="15x15"),
        Case("uniform_filter1d", {"size": 5}),
        Case("minimum_filter", {"size": 5}),
        Case("maximum_filter", {"footprint": [[0, 1, 0], [1, 1, 1], [0, 1, 0]]}, note="cross"),
        Case("minimum_filter1d", {"size": 15}),
        Case("maximum_filter1d", {"size": 5}),
        Case("median_filter", {"size": 3}, note="3x3"),
        Case("median_filter", {"size": 7}, note="7x7"),
        Case("rank_filter", {"rank": 5, "size": 3}),
        Case("percentile_filter", {"percentile": 80, "size": 5}),
    ]


@dataclass(frozen=True)
class Timing:
    """One case on one grid. Medians in ms; the error relative to the largest value."""

    case: str
    grid: str
    scipy_ms: float
    compiled_ms: float
    public_ms: float
    error: float
    goal: float

    @property
    def ratio(self) -> float:
        return self.scipy_ms / self.compiled_ms

    @property
    def verdict(self) -> str:
        if self.error > TOLERANCE:
            return "WRONG"
        if self.ratio < 1.0:
            return "slower: left to SciPy"
        return "" if self.goal == 1.0 else "met" if self.ratio >= self.goal else "MISSED"


def rivals(case: Case, image: NDArray[np.float64]) -> dict[str, Callable[[], Any]]:
    """SciPy, the compiled program and the public function, ready to be called."""
    import jax
    import jax.numpy as jnp

    from accel import ndimage
    from accel.ndimage.table import lowering

    theirs, ours, options = getattr(scipy.ndimage, case.name), lowering(case.name), dict(case.options)
    callback = next((name for name in ("derivative", "derivative2") if name in options), None)
    if callback is not None:
        make = options.pop(callback)
        numpy_options = {**options, callback: make(scipy.ndimage.correlate1d)}
        jax_options = {**options, callback: make(ndimage.correlate1d)}
    else:
        numpy_options = jax_options = options
    dynamic = [name for name in ("coordinates",) if name in options]
    fixed = {name: value for name, value in jax_options.items() if name not in dynamic}
    held = [jnp.asarray(image), *(jnp.asarray(options[name]) for name in dynamic)]
    program = jax.jit(lambda x, *rest: ours(x, *rest, **fixed)).lower(*held).compile()
    return {
        "scipy": lambda: theirs(image, **numpy_options),
        "compiled": lambda: program(*held).block_until_ready(),
        "public": lambda: getattr(ndimage, case.name)(image, **numpy_options),
    }


def addition_ms(grid: str, rounds: int) -> float:
    """How long the compiled program `x + 1` takes, while SciPy's work comes between its calls as for the others."""
    import jax
    import jax.numpy as jnp

    image = np.random.default_rng(0).normal(size=harness.parse_grid(grid))
    held = jnp.asarray(image)
    program = jax.jit(lambda x: x + 1.0).lower(held).compile()
    calls = {"scipy": lambda: scipy.ndimage.laplace(image), "x + 1": lambda: program(held).block_until_ready()}
    return harness.median_ms(harness.interleaved(calls, tuple, rounds=rounds)["x + 1"])


def measure(case: Case, grid: str, rounds: int) -> Timing:
    image = np.random.default_rng(0).normal(size=harness.parse_grid(grid))
    calls = rivals(case, image)
    expected = calls["scipy"]()
    error = max(harness.relative_error(np.asarray(calls[name]()), expected) for name in ("compiled", "public"))
    times = harness.interleaved(calls, tuple, rounds=rounds, budget_s=3.0)
    medians = {name: harness.median_ms(seconds) for name, seconds in times.items()}
    return Timing(case.label, grid, medians["scipy"], medians["compiled"], medians["public"], error, case.goal)


def measure_grid(grid: str, rounds: int) -> tuple[list[Timing], float]:
    """Every case on one grid, and the ms that adding 1 takes."""
    import jax

    from accel.backend import devices
    from accel.platform import tuning

    shape = harness.parse_grid(grid)
    tuning.keep_freed()  # as for every program that accel compiles
    devices.start(shape[0] * shape[1])
    with jax.enable_x64(True):
        return [measure(case, grid, rounds) for case in cases(shape)], addition_ms(grid, rounds)


def report(timings: list[Timing], grid: str, addition: float) -> str:
    """One grid's results as a Markdown table. addition: ms for x + 1."""
    rows = [
        [t.case, t.scipy_ms, t.compiled_ms, t.ratio, "" if t.goal == 1.0 else f">= {t.goal:g}", t.verdict, t.public_ms]
        for t in timings
        if t.grid == grid
    ]
    header = ["function", "SciPy ms", "compiled ms", "times faster", "goal", "", "NumPy to NumPy ms"]
    table = harness.markdown_table(header, rows)
    return f"## {grid}, float64\n\n{table}\n\nA compiled program that only adds 1 takes {addition:.3g} ms."


def parser() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=harness.positive_int, default=25)
    arguments.add_argument("--grid", action="append")
    arguments.add_argument("--out", default=str(RESULT))
    return arguments


def main() -> int:
    options = parser().parse_args()
    grids = options.grid or list(GRIDS)
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)

    timings, additions = [], {}
    for grid in grids:
        # As the engine does, JAX is started for the size of the first program's arrays: once in each process.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            found, additions[grid] = process.submit(measure_grid, grid, options.rounds).result()
        timings += found
        print(report(timings, grid, additions[grid]), end="\n\n", flush=True)
    goals = [
        harness.Goal(f"{t.case}, {t.grid}", t.ratio, t.goal, "times", at_least=True) for t in timings if t.goal > 1.0
    ]
    print(harness.goals_table(goals))
    harness.write_json(
        options.out,
        {
            "machine": harness.machine(),
            "versions": harness.versions(),
            "addition_ms": additions,
            "timings": [{**asdict(t), "ratio": t.ratio, "verdict": t.verdict} for t in timings],
            "goals": [goal.record() for goal in goals],
        },
    )
    return int(any(t.error > TOLERANCE for t in timings))


if __name__ == "__main__":
    harness.run_command(main)
