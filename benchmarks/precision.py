"""What float32 costs and gains: a whole run in each precision, against NumPy and against NumPy runs moved by one ulp.

`python -m benchmarks.precision [--pygcm DIR] [--steps N]` runs the program's own `main` on NumPy, on NumPy with the
initial surface temperature moved by one unit in the last place (of float64, and of float32), and under accel in
float64, float32 and mixed precision, in turns. It prints how far each field has drifted from NumPy's after how many
steps, and the time of a step. Beside `--out FILE.json` it draws the drift, where matplotlib is installed. The program
is that of `QD_PYGCM_PATH`, or the bundled miniature.

A chaotic model forgets its start: where the perturbed run has drifted as far as float32, float32 adds nothing to what
is unknown in any case. Programs are compiled in the foreground, so that the first steps are accel's too; the time of a
step is the median after the warm-up.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness, plots
from benchmarks.end_to_end import child_settings, quotient
from benchmarks.fields import field_errors
from benchmarks.lockstep import Child, concluded, run_lockstep

PRECISIONS = ("float64", "float32", "mixed")
RUNS = {"numpy": "numpy", "one_ulp": "perturbed", "one_ulp32": "perturbed32", **dict.fromkeys(PRECISIONS, "accel")}
"""How the child of each run plays the program."""

CHECKPOINTS = (1, 2, 5, 10, 20, 40, 80, 120, 240, 480, 720, 1080, 1440)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.precision", description=__doc__.split("\n\n")[0])
    named = os.environ.get("QD_PYGCM_PATH", "").split(os.pathsep)[0]
    arguments.add_argument("--pygcm", metavar="DIR", default=named or None, help="a PyGCM checkout")
    arguments.add_argument("--steps", type=harness.positive_int, default=240, help="steps of each run (default 240)")
    arguments.add_argument("--env", metavar="K=V", action="append", default=[], help="environment of all children")
    arguments.add_argument("--grid", metavar="NLATxNLON", help="override the grid's size")
    arguments.add_argument("--block", type=harness.positive_int, default=10, help="steps per turn (default 10)")
    arguments.add_argument("--warmup", type=harness.fraction, default=0.4, help="part left out of steady time (0.4)")
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON, and a plot beside it")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, whatever the figures, and 1 when a child failed."""
    options = parser().parse_args(argv)
    options.days, options.drift = None, False
    program = harness.checkout(options.pygcm)
    settings = child_settings(options, program)
    if options.grid:
        harness.parse_grid(options.grid)
    harness.check_writable(options.out)
    result = concluded(lambda: measure(options, program, settings), describe, options.out)
    if result is None:
        return 1
    if options.out:
        for path in plots.of_drift(result, Path(options.out)):
            print(f"plot: {path}")
    return 0


def measure(options: argparse.Namespace, program: Path, settings: Mapping[str, str]) -> dict[str, Any]:
    """Run all children to the end. Times in ms or s; drifts relative to the largest magnitude of each field."""
    arguments = ["--program", str(program), "--steps", str(options.steps), "--checkpoints", *map(str, CHECKPOINTS)]
    arguments += ["--grid", options.grid] if options.grid else []
    with tempfile.TemporaryDirectory(prefix="accel-benchmark-") as scratch, contextlib.ExitStack() as stack:
        children = {}
        for name, way in RUNS.items():
            own = {"QD_JAX_PRECISION": name, "QD_JAX_AOT": "0"} if way == "accel" else {"QD_USE_JAX": "0"}
            own |= {"QD_JAX_CACHE_DIR": str(Path(scratch) / "cache")}
            child = Child(
                name,
                "benchmarks.planet",
                [*arguments, "--way", way],
                Path(scratch) / name,
                {**settings, **own},
                options.block,
            )
            children[name] = stack.enter_context(child)
            child.start()
        run_lockstep(list(children.values()))
        children["numpy"].check_plain()
        return assembled(options, program, children)


def assembled(options: argparse.Namespace, program: Path, children: Mapping[str, Child]) -> dict[str, Any]:
    """Everything measured, as it goes into JSON. drift: by number of steps, run and field."""
    plain, steps = children["numpy"], children["numpy"].summary["steps"]
    seen = sorted({step for step in CHECKPOINTS if step < steps} | {steps})
    first = max(child.steady_from(options.warmup) for child in children.values())
    reports = {name: json.loads(children[name].summary["report"]) for name in PRECISIONS}
    return {
        "benchmark": "precision",
        "program": str(program),
        "grid": options.grid,
        "steps": steps,
        "drift": {
            str(step): {
                name: field_errors(plain, child, step) for name, child in children.items() if child is not plain
            }
            for step in seen
        },
        "ms_per_step": {name: harness.median_ms(child.times[first:]) for name, child in children.items()},
        "compiled": {name: report["totals"]["compiled_calls"] for name, report in reports.items()},
        "on_numpy": {
            name: [each["target"] for each in report["functions"] if each["state"] == "demoted"]
            for name, report in reports.items()
        },
        "machine": harness.machine(),
        "versions": harness.versions(),
    }


def describe(result: Mapping[str, Any]) -> str:
    """The tables that are printed: drift at the end by field, its growth, and times."""
    steps, drift = result["steps"], result["drift"]
    last = drift[str(steps)]
    names = list(last)
    fields = [
        [field, *(last[name][field] for name in names), quotient(last["float32"][field], last["one_ulp"][field])]
        for field in last["one_ulp"]
    ]
    growth = [[int(step), *(max(runs[name].values()) for name in names)] for step, runs in drift.items()]
    base = result["ms_per_step"]["float64"]
    times = [[name, ms, quotient(base, ms)] for name, ms in result["ms_per_step"].items()]
    parts = [
        f"{result['program']}, {result['grid'] or 'its own grid'}, {steps} steps, "
        f"{result['machine']['cpu']}, {result['machine']['cores']} cores",
        f"drift from NumPy after {steps} steps, of each field's largest magnitude:",
        harness.markdown_table(["field", *names, "float32 / one_ulp"], fields),
        "the worst field's drift, by step:",
        harness.markdown_table(["steps", *names], growth),
        "time of a step, median after the warm-up:",
        harness.markdown_table(["run", "ms", "times faster than float64"], times),
    ]
    parts += [
        f"in {name}, taken back to NumPy: {', '.join(targets)}"
        for name, targets in result["on_numpy"].items()
        if targets
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    harness.run_command(main)
