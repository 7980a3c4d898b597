"""accel on a GPU or TPU, against NumPy and against accel on one CPU: kernels, transfers, steps, at rising grid sizes.

`python -m benchmarks.gpu [--platform gpu] [--grids 121x240 ...] [--pygcm DIR] [--out FILE.json]` first compares with
NumPy, then times:

- *kernels*: functions of three fields. A call with its copies to the device and back, and the program alone on arrays
  that are there.
- *transfers*: one field to the device, and back.
- *steps*: the program's own `main` (the bundled miniature's, or that of `--pygcm` or `QD_PYGCM_PATH`), in processes
  that take turns: somebody looks after each step, so that all state comes back. Then its pace on the device alone,
  with nobody in between (see `paced.py`), and the bytes that a launch of its loop moves.

On a machine without such a device everything runs on the CPU: a rehearsal, which says so, and whose figures say nothing
of a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel.backend import devices
from accel.backend.compile import compile_trace
from accel.backend.executable import Executable
from accel.compiler.lower import Known
from accel.dispatch.replay import Variant
from accel.platform import config
from accel.record import record
from benchmarks import harness
from benchmarks.end_to_end import child_settings, quotient
from benchmarks.fields import field_errors
from benchmarks.harness import BadInput, Goal
from benchmarks.lockstep import Child, concluded, run_lockstep
from benchmarks.paced import run_paced

GRIDS = ("121x240", "361x720", "721x1440", "1441x2880")
GOAL_GRID, GOAL_RATIO = "721x1440", 20.0
"""On one data-centre GPU, a step is to be so many times as fast as NumPy's."""

CHECKED_STEP = 10
"""The step after which fields are compared: later, the program's own amplification of last places is what is seen."""

TOLERANCE = 1e-9
Array = np.ndarray[Any, Any]


# --- kernels -------------------------------------------------------------------------------------------------------


def stencil(x: Array, y: Array, z: Array) -> Array:
    """Four steps of diffusion and advection."""
    for _ in range(4):
        across = np.roll(x, 1, axis=1) + np.roll(x, -1, axis=1) + np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0)
        x = x + 0.05 * (across - 4.0 * x) - 0.01 * y * (np.roll(x, -1, axis=1) - np.roll(x, 1, axis=1)) + 1e-3 * z
    return x


def physics(x: Array, y: Array, z: Array) -> Array:
    """Exponentials, powers and masks, point by point."""
    saturation = np.exp(17.27 * x / (x + 237.3))
    cloud = np.where(y > 0.5 * saturation, np.sqrt(np.abs(y)), 0.0)
    return 5.67e-3 * (x + 2.0) ** 4 * (1.0 - 0.5 * np.clip(cloud, 0.0, 1.0)) + np.tanh(z)


def means(x: Array, y: Array, z: Array) -> Array:
    """Weighted means along both axes."""
    return (x * y).sum(axis=0) / y.sum(axis=0) + (x * z).mean()


def transform(x: Array, y: Array, z: Array) -> Array:
    """A filter by Fourier transforms."""
    waves = np.fft.rfft(x, axis=1)
    return np.fft.irfft(waves * np.exp(-0.01 * np.arange(waves.shape[1])), n=x.shape[1], axis=1) + y * z


KERNELS: tuple[Callable[..., Array], ...] = (stencil, physics, means, transform)


def measure_kernel(
    kernel: Callable[..., Array], fields: Sequence[Array], platform: str, budget_s: float
) -> dict[str, Any]:
    """Compare, then time one kernel: on NumPy, on one CPU, and on the device. Times in ms."""
    expected = kernel(*fields)
    ways = {"cpu": variant_on("cpu", kernel, fields), "device": variant_on(platform, kernel, fields)}
    errors = {}
    for name, (variant, values) in ways.items():
        staged: Any = variant.run(values)
        errors[name] = harness.relative_error(staged.made[0], expected)
        if not errors[name] <= TOLERANCE:
            raise BadInput(f"{kernel.__name__} on {name} differs from NumPy by {errors[name]:.2g}: not timed")
    rivals: dict[str, Callable[..., Any]] = {name: _runner(*way) for name, way in ways.items()}
    rivals |= {"numpy": lambda: kernel(*fields), "device_alone": _alone(*ways["device"])}
    times = harness.interleaved(rivals, lambda: (), budget_s=budget_s)
    return {"kernel": kernel.__name__, "error": max(errors.values())} | {
        f"{name}_ms": harness.median_ms(each) for name, each in times.items()
    }


def variant_on(platform: str, kernel: Callable[..., Array], fields: Sequence[Array]) -> tuple[Variant, list[Any]]:
    """The kernel compiled for a platform, and the values that its program takes."""
    function: Any = kernel
    recorded: Any = record(function, tuple(fields), {}, max_nodes=10_000)
    values, _ = recorded.trace.inputs.fetch(tuple(fields), {})
    with config.override(platform=platform, cache_dir=None, kernels=False):  # XLA's program, as on a device
        return Variant(recorded.trace, compile_trace(recorded.trace, Known(), values)), values


def _runner(variant: Variant, values: list[Any]) -> Callable[[], Any]:
    return lambda: variant.run(values)


def _alone(variant: Variant, values: list[Any]) -> Callable[[], Any]:
    """Runs the program on arrays that are on the device already."""
    import jax

    executable: Executable = variant.executable
    given = [values[slot] for slot in executable.program.slots]
    with jax.enable_x64(True):
        there = jax.device_put(given, executable.device)
    return lambda: jax.block_until_ready(executable.compiled(there, executable.constants, {}))


# --- transfers -----------------------------------------------------------------------------------------------------


def measure_transfers(shape: tuple[int, int], platform: str, rounds: int = 9) -> dict[str, float]:
    """A field of this shape to the device and back: GB/s each way, medians."""
    import jax

    device, field = devices.device(platform), np.random.default_rng(0).normal(size=shape)
    there_s, back_s = [], []
    with jax.enable_x64(True):
        for _ in range(rounds):
            begin = time.perf_counter()
            moved = jax.block_until_ready(jax.device_put(field, device, may_alias=False))
            there_s.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            found = np.array(jax.device_get(moved))
            back_s.append(time.perf_counter() - begin)
            assert np.array_equal(found, field)
    gigabytes = field.nbytes / 1e9
    return {
        "field_mb": 1e3 * gigabytes,
        "there_gb_s": gigabytes / float(np.median(there_s)),
        "back_gb_s": gigabytes / float(np.median(back_s)),
    }


# --- steps ---------------------------------------------------------------------------------------------------------


def measure_steps(options: argparse.Namespace, program: Path, grid: str, platform: str) -> dict[str, Any]:
    """The program's own run on this grid: ms per step after the warm-up, its pace, bytes of a launch, early errors."""
    settings = child_settings(options, program)
    checked = str(min(CHECKED_STEP, options.steps))
    arguments = ["--program", str(program), "--steps", str(options.steps), "--checkpoints", checked, "--grid", grid]
    ways = {"numpy": None, "cpu": "cpu", "device": platform}
    with tempfile.TemporaryDirectory(prefix="accel-benchmark-") as scratch, contextlib.ExitStack() as stack:
        children = {}
        for name, on in ways.items():
            own = {"QD_USE_JAX": "0"} if on is None else {"QD_JAX_PLATFORM": on, "QD_JAX_AOT": "0"}
            own["QD_JAX_CACHE_DIR"] = str(Path(scratch) / "cache")
            way = "numpy" if on is None else "accel"
            child = Child(
                name, "benchmarks.planet", [*arguments, "--way", way], Path(scratch) / name, {**settings, **own}, 5
            )
            children[name] = stack.enter_context(child)
            child.start()
        run_lockstep(list(children.values()))
        children["numpy"].check_plain()
        asked = ["--way", "accel", "--grid", grid, f"--warm={options.pace}", f"--window={options.pace / 5}"]
        own = {"QD_JAX_PLATFORM": platform, "QD_JAX_AOT": "0", "QD_JAX_CACHE_DIR": str(Path(scratch) / "cache")}
        own |= {"QD_SIM_DAYS": "200"}
        plays = ["--plays-device"] if platform == "cpu" else []
        paced = run_paced([*asked, *plays], program, Path(scratch) / "paced", {**settings, **own})
        return _of_steps(options, children, paced)


def _of_steps(options: argparse.Namespace, children: Mapping[str, Child], paced: Mapping[str, Any]) -> dict[str, Any]:
    checked = min(CHECKED_STEP, children["numpy"].summary["steps"])
    first = max(child.steady_from(options.warmup) for child in children.values())
    ms = {f"{name}_ms": harness.median_ms(child.times[first:]) for name, child in children.items()}
    errors = [max(field_errors(children["numpy"], children[name], checked).values()) for name in ("cpu", "device")]
    return {
        **ms,
        "paced_ms": paced["ms"],
        "times_numpy": quotient(ms["numpy_ms"], paced["ms"]),
        "times_cpu": quotient(ms["cpu_ms"], paced["ms"]),
        "there_mb": paced["there_kb"] / 1e3,
        "back_mb": paced["back_kb"] / 1e3,
        "launches": paced["launches"],
        "held_rounds": paced["held_rounds"],
        "notes": paced["notes"],
        "error": max(errors),
    }


# --- the command ---------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--platform", choices=["cpu", "gpu", "tpu"], help="default: the best that is there")
    arguments.add_argument("--grids", nargs="+", default=list(GRIDS), metavar="NLATxNLON")
    named = os.environ.get("QD_PYGCM_PATH", "").split(os.pathsep)[0]
    arguments.add_argument("--pygcm", metavar="DIR", default=named or None, help="a PyGCM checkout")
    arguments.add_argument("--steps", type=harness.positive_int, default=30, help="steps of each run (default 30)")
    arguments.add_argument("--warmup", type=harness.fraction, default=0.5, help="part left out of steady time (0.5)")
    arguments.add_argument("--budget", type=harness.positive_float, default=2.0, help="s of timing each kernel (2)")
    pace = "s before the pace is taken, four times over a fifth of it (60)"
    arguments.add_argument("--pace", type=harness.positive_float, default=60.0, help=pace)
    arguments.add_argument("--env", metavar="K=V", action="append", default=[], help="environment of all children")
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, whatever the figures, and 1 when a child failed."""
    options = parser().parse_args(argv)
    options.days, options.drift = None, False
    shapes = {grid: harness.parse_grid(grid) for grid in options.grids}
    program = harness.checkout(options.pygcm)
    harness.check_writable(options.out)
    platform = chosen_platform(options.platform)
    result = concluded(lambda: measure(options, shapes, program, platform), describe, options.out)
    return 1 if result is None else 0


def measure(
    options: argparse.Namespace, shapes: Mapping[str, tuple[int, int]], program: Path, platform: str
) -> dict[str, Any]:
    """Measure everything on each grid. shapes: of the grids, by their names."""
    result: dict[str, Any] = {
        "benchmark": "gpu",
        "program": str(program),
        "platform": platform,
        "device": devices.device(platform).device_kind,
        "rehearsal": platform == "cpu",
        "steps": options.steps,
        "kernels": [],
        "transfers": [],
        "runs": [],
        "machine": harness.machine(),
        "versions": harness.versions(),
    }
    for grid, shape in shapes.items():
        fields = list(np.random.default_rng(0).random((3, *shape)) + 0.5)
        made = [measure_kernel(kernel, fields, platform, options.budget) for kernel in KERNELS]
        result["kernels"] += [{"grid": grid, **each} for each in made]
        result["transfers"].append({"grid": grid, **measure_transfers(shape, platform)})
        result["runs"].append({"grid": grid, **measure_steps(options, program, grid, platform)})
    result["goals"] = [goal.record() for goal in goals(result)]
    return result


def chosen_platform(asked: str | None) -> str:
    """The platform to measure. Raises BadInput for one that is not there."""
    devices.start(0)
    there = devices.platforms()
    if asked is not None and asked not in there:
        raise BadInput(f"--platform {asked}: JAX has no such device here; it has {', '.join(there)}")
    return asked or next(each for each in ("tpu", "gpu", "cpu") if each in there)


def goals(result: Mapping[str, Any]) -> list[Goal]:
    """The goals that this run can answer: none in a rehearsal."""
    if result["rehearsal"]:
        return []
    found = [run["times_numpy"] for run in result["runs"] if run["grid"] == GOAL_GRID]
    name = f"a step at {GOAL_GRID} faster than NumPy's by"
    return [Goal(name, ratio, GOAL_RATIO, at_least=True) for ratio in found]


def describe(result: Mapping[str, Any]) -> str:
    """The tables that are printed."""
    kernels = [
        [*(each[key] for key in ("kernel", "grid", "numpy_ms", "cpu_ms", "device_ms", "device_alone_ms"))]
        + [quotient(each["numpy_ms"], each["device_ms"]), quotient(each["numpy_ms"], each["device_alone_ms"])]
        for each in result["kernels"]
    ]
    transfers = [[each[key] for key in ("grid", "field_mb", "there_gb_s", "back_gb_s")] for each in result["transfers"]]
    keys = ("grid", "numpy_ms", "cpu_ms", "device_ms", "paced_ms", "times_numpy", "times_cpu", "there_mb", "back_mb")
    runs = [[each[key] for key in (*keys, "launches", "held_rounds", "error")] for each in result["runs"]]
    device = f"{result['device']} ({result['platform']})"
    head = f"{result['program']}, {device}, {result['machine']['cpu']}, {result['machine']['cores']} cores"
    rehearsal = "rehearsal: no GPU or TPU here, the CPU plays the device; what a GPU would give is unmeasured"
    parts = [
        head,
        *([rehearsal] if result["rehearsal"] else []),
        "kernels, ms per call; the device with copies there and back, and alone:",
        harness.markdown_table(
            ["kernel", "grid", "NumPy", "one CPU", "device", "alone", "times NumPy", "alone"], kernels
        ),
        "transfers of one field:",
        harness.markdown_table(["grid", "MB", "there, GB/s", "back, GB/s"], transfers),
        f"steps, ms: the median of the steady ones of {result['steps']}, with somebody who looks after each, and the"
        " pace on the device with nobody in between; MB that a launch moves:",
        harness.markdown_table(
            ["grid", "NumPy", "one CPU", "device", "pace", "times NumPy", "times CPU", "MB there", "MB back"]
            + ["launches", "held", f"error at {CHECKED_STEP}"],
            runs,
        ),
        *sorted({note for each in result["runs"] for note in each["notes"]}),
    ]
    found = [Goal.from_record(each) for each in result["goals"]]
    return "\n\n".join([*parts, *([harness.goals_table(found)] if found else [])])


if __name__ == "__main__":
    harness.run_command(main)
