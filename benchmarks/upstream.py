"""PyGCM's own, forced JAX path against NumPy and accel, in its atmosphere + ocean benchmark.

`python -m benchmarks.upstream --pygcm DIR` needs a revision with `pygcm/jax_compat.py`, such as 72b7af5. Three fresh
processes take turns: plain NumPy, the hand-written layer (`QD_USE_JAX=1 QD_JAX_FORCE=1`, float32, no accel) and accel.
The hand-written layer takes seconds a step, so it does one step where the others do ten.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.fields import field_errors
from benchmarks.harness import BadInput, Goal
from benchmarks.lockstep import Child, ChildFailed, concluded, figures_table, run_lockstep

SETTINGS = {"numpy": {"QD_USE_JAX": "0"}, "upstream": {"QD_USE_JAX": "1", "QD_JAX_FORCE": "1"}, "accel": {}}
FIELD_TOLERANCE = 1e-6
FASTER = 100.0
"""Goal: times as fast as that path."""

COMPARED_STEP = 10
"""Both runs are compared while rounding has not grown: the model is chaotic."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.upstream", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--pygcm", metavar="DIR", required=True, help="a checkout with pygcm/jax_compat.py")
    arguments.add_argument("--steps", type=harness.positive_int, default=200, help="of NumPy and accel (200)")
    arguments.add_argument("--upstream-steps", type=harness.positive_int, default=20, help="of the JAX layer (20)")
    arguments.add_argument("--env", metavar="K=V", action="append", default=[], help="environment of all children")
    arguments.add_argument("--grid", metavar="NLATxNLON", default="121x240")
    arguments.add_argument("--warmup", type=harness.fraction, default=0.4, help="part left out of steady time (0.4)")
    arguments.add_argument("--candidate", choices=["accel", "numpy"], default="accel", help="numpy: the own noise")
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, whatever the figures, and 1 when a child failed."""
    options = parser().parse_args(argv)
    program = harness.checkout(options.pygcm)
    if not (program / "pygcm" / "jax_compat.py").is_file():
        raise BadInput(f"--pygcm {options.pygcm}: this revision has no pygcm/jax_compat.py, so no JAX path to time")
    harness.parse_grid(options.grid)
    harness.check_writable(options.out)
    asked = harness.parse_settings(options.env)
    result = concluded(lambda: measure(options, program, asked), describe, options.out)
    return 1 if result is None else 0


def measure(options: argparse.Namespace, program: Path, asked: Mapping[str, str]) -> dict[str, Any]:
    """Run all three children to their ends and put the result together."""
    ways = {"numpy": "numpy", "upstream": "upstream", "accel": options.candidate}
    with tempfile.TemporaryDirectory(prefix="accel-benchmark-") as scratch, contextlib.ExitStack() as stack:
        children = {}
        for name, way in ways.items():
            own = {**asked, **SETTINGS[way]}
            block = 1 if name == "upstream" else max(1, options.steps // options.upstream_steps)
            arguments = how(name, way, options, program)
            child = Child(name, "benchmarks.coupled", arguments, Path(scratch) / name, own, block)
            children[name] = stack.enter_context(child)
            child.start()
        run_lockstep(list(children.values()))
        check(children)
        return assemble(options, program, asked, children)


def how(name: str, way: str, options: argparse.Namespace, program: Path) -> list[str]:
    """The worker's arguments for one way of running the model."""
    steps = options.upstream_steps if name == "upstream" else options.steps
    arguments = ["--program", str(program), "--way", way, "--grid", options.grid, "--steps", str(steps)]
    return [*arguments, "--checkpoints", str(compared_step(options))]


def compared_step(options: argparse.Namespace) -> int:
    """The step after which fields are compared: one that all children reach."""
    return min(COMPARED_STEP, options.steps, options.upstream_steps)


def check(children: Mapping[str, Child]) -> None:
    """Each child ran what its name says: no accel outside accel's, and the JAX layer on in upstream's alone."""
    children["numpy"].check_plain()
    children["upstream"].check_plain()
    for name, child in children.items():
        if child.summary["layer"] != (name == "upstream"):
            raise ChildFailed(f"the {name} child had PyGCM's JAX layer {'on' if child.summary['layer'] else 'off'}")


def assemble(
    options: argparse.Namespace, program: Path, asked: Mapping[str, str], children: Mapping[str, Child]
) -> dict[str, Any]:
    """Everything measured, as it goes into JSON. Times in ms or s, memory in MB."""
    step = compared_step(options)
    result: dict[str, Any] = {
        "benchmark": "upstream",
        "program": str(program),
        "candidate": options.candidate,
        "grid": options.grid,
        "steps": options.steps,
        "upstream_steps": options.upstream_steps,
        "warmup": options.warmup,
        "compared_step": step,
        "fields": field_errors(children["numpy"], children["accel"], step),
        "upstream_fields": field_errors(children["numpy"], children["upstream"], step),
        "machine": harness.machine(),
        "versions": harness.versions(),
        "settings": dict(asked),
        "report": json.loads(children["accel"].summary["report"]),
    }
    for child in children.values():
        result |= child.figures(child.steady_from(options.warmup))
    result["ratio"] = result["numpy_ms_per_step"] / result["accel_ms_per_step"]
    result["ratio_to_upstream"] = result["upstream_ms_per_step"] / result["accel_ms_per_step"]
    result["upstream_slower_than_numpy"] = result["upstream_ms_per_step"] / result["numpy_ms_per_step"]
    result["goals"] = [goal.record() for goal in goals(result)]
    return result


def goals(result: Mapping[str, Any]) -> list[Goal]:
    """The goals that this run can answer."""
    return [
        Goal("worst field error", max(result["fields"].values()), FIELD_TOLERANCE),
        Goal("faster than its own forced JAX path by", result["ratio_to_upstream"], FASTER, "x", at_least=True),
    ]


def describe(result: Mapping[str, Any]) -> str:
    """The result as text: fields, times, ratios, goals."""
    shown = result["machine"]
    errors = [[name, error, result["upstream_fields"][name]] for name, error in sorted(result["fields"].items())]
    candidate = "accel" if result["candidate"] == "accel" else "numpy again"
    verdict = (
        f"{candidate} is {result['ratio']:.2f} times faster than NumPy, and {result['ratio_to_upstream']:.1f} times "
        f"faster than upstream's JAX path, which is {result['upstream_slower_than_numpy']:.1f} times slower than NumPy"
    )
    parts = [
        f"{result['program']}: atmosphere + ocean, grid {result['grid']}\n"
        f"on {shown['cpu']}, {shown['cores']} cores, {shown['memory_gb']} GB",
        harness.markdown_table([f"error after {result['compared_step']} steps", candidate, "upstream's JAX"], errors),
        figures_table(result, {"numpy": "numpy", "upstream": "upstream's JAX", "accel": candidate}),
        verdict,
        harness.goals_table([Goal.from_record(goal) for goal in result["goals"]]),
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    harness.run_command(main)
