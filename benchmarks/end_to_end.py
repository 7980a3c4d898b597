"""A whole PyGCM run on NumPy and under accel: same fields, then how much faster.

`python -m benchmarks.end_to_end --pygcm DIR --days 1` runs the checkout's own `scripts.run_simulation` in two fresh
processes that take turns, a block of steps each, so that both see the same load and never run at once. It compares the
prognostic fields in float64, by their largest error and bit for bit, then the step times. Without `--pygcm` the bundled
miniature runs. The checkout stays clean: the children work in a scratch folder and write no byte code. `data/...` paths
in `--env` are found in the checkout.

A step's time excludes the wait for the other child. The steady time is over the steps after warm-up and after the last
background compile, of both children over the same steps: a median, and a mean, which counts the steps that print or are
compared too and is what the goals are about. The wall time is everything: imports, set-up, recording, compiling, all
steps, the program's own end. `--cold` gives accel an empty disk cache, `--warm` one that a run before this one has
filled; else it is whatever the user's holds.

The model's default start is chaotic: one unit in the last place of the initial `T_s` grows to the size of the field
within about 100 steps of NumPy alone. So three comparisons are offered: `growth` (worst error by step, both runs free,
always), `--drift` (the same against a NumPy run perturbed by one ulp) and `--resync` (after every block the candidate
takes NumPy's state over, so that the errors are those of single blocks from equal starts, all along the trajectory).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import floor, goal_table, harness
from benchmarks.fields import errors_between, field_errors, fields_file, other_bits
from benchmarks.harness import BadInput, Goal
from benchmarks.lockstep import Child, concluded, figures_table, run_lockstep

PLANET_DAY_S = 72_000
GROWTH_STEPS = (1, 2, 5, 10, 20, 40, 80, 120, 240, 720, 1440)
DRIFT_STEPS = (240, 720, 1440)
FIELD_TOLERANCE = 1e-6
DRIFT_FACTOR = 10.0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.end_to_end", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--pygcm", metavar="DIR", help="a PyGCM checkout; default: the bundled miniature")
    arguments.add_argument("--days", type=harness.positive_float, help="planet days of 20 h (default 1; --drift 6)")
    arguments.add_argument("--steps", type=harness.positive_int, help="stop after this many steps instead")
    arguments.add_argument("--env", metavar="K=V", action="append", default=[], help="environment of all children")
    arguments.add_argument("--grid", metavar="NLATxNLON", help="override the grid's size")
    arguments.add_argument("--drift", action="store_true", help="also compare with a run perturbed by one ulp")
    arguments.add_argument("--resync", action="store_true", help="start every block from NumPy's state")
    cache = arguments.add_mutually_exclusive_group()
    cache.add_argument("--cold", action="store_true", help="start with an empty disk cache")
    cache.add_argument("--warm", action="store_true", help="start with a disk cache that a run before has filled")
    arguments.add_argument("--block", type=harness.positive_int, default=10, help="steps per turn (default 10)")
    arguments.add_argument("--warmup", type=harness.fraction, default=0.4, help="part left out of steady time (0.4)")
    arguments.add_argument("--candidate", choices=["accel", "numpy"], default="accel", help="numpy: the own noise")
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, whatever the figures, and 1 when a child failed."""
    options = parser().parse_args(argv)
    program = harness.checkout(options.pygcm)
    settings = child_settings(options, program)
    if options.grid:
        harness.parse_grid(options.grid)
    harness.check_writable(options.out)
    result = concluded(lambda: measure(options, program, settings), describe, options.out)
    return 1 if result is None else 0


def child_settings(options: argparse.Namespace, program: Path) -> dict[str, str]:
    """Environment variables for every child: the run's length, no plots, and what `--env` says.

    A value of `--env` that names a file of the checkout becomes absolute, since the children work elsewhere.
    """
    asked = harness.parse_settings(options.env)
    try:
        step_s = float(asked.get("QD_DT_SECONDS", "300"))
    except ValueError:
        raise BadInput(f"--env QD_DT_SECONDS={asked['QD_DT_SECONDS']}: expected seconds, such as 300") from None
    days = options.days or (6.0 if options.drift else 1.0)
    if options.steps:
        days = max(1.0, math.ceil(options.steps * step_s / PLANET_DAY_S) + 1.0)
    found = {
        name: str(program / value) if value and (program / value).is_file() else value for name, value in asked.items()
    }
    return {"QD_SIM_DAYS": f"{days:g}", "QD_PLOT_EVERY_DAYS": "100000", **found}


# --- running -------------------------------------------------------------------------------------------------------


def measure(options: argparse.Namespace, program: Path, settings: Mapping[str, str]) -> dict[str, Any]:
    """Run all children to the end and put the result together."""
    ways = {"numpy": "numpy", "accel": options.candidate} | ({"perturbed": "perturbed"} if options.drift else {})
    with tempfile.TemporaryDirectory(prefix="accel-benchmark-") as scratch, contextlib.ExitStack() as stack:
        children, cache = {}, Path(scratch) / "cache"
        stack.callback(harness.let_finish, cache)  # after the children's end
        for name, way in ways.items():
            arguments, own = how(way, options, program, settings)
            own |= {**harness.FINISHES, "QD_JAX_CACHE_DIR": str(cache)} if options.cold or options.warm else {}
            if options.warm and way == "accel":
                with Child("earlier", "benchmarks.planet", arguments, Path(scratch) / "earlier", own, 10**6) as earlier:
                    earlier.start()
                    run_lockstep([earlier])
                harness.let_finish(cache)
            children[name] = stack.enter_context(
                Child(name, "benchmarks.planet", arguments, Path(scratch) / name, own, options.block)
            )
            children[name].start()
        resync = Resync(children, Path(scratch)) if options.resync else None
        run_lockstep(list(children.values()), resync or (lambda: None))
        children["numpy"].check_plain()
        return assemble(options, program, settings, children, resync)


def how(
    way: str, options: argparse.Namespace, program: Path, settings: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The worker's arguments and settings for one way of running the program."""
    arguments = ["--program", str(program), "--way", way, "--checkpoints", *map(str, GROWTH_STEPS)]
    arguments += ["--grid", options.grid] if options.grid else []
    arguments += ["--steps", str(options.steps)] if options.steps else []
    return arguments, {**settings, **({} if way == "accel" else {"QD_USE_JAX": "0"})}


class Resync:
    """Between blocks: note every other child's error against NumPy, then hand it NumPy's state.

    `worst` maps a child's name to the largest error per field over all blocks, `bits` to the largest number of
    elements with other bits.
    """

    def __init__(self, children: Mapping[str, Child], folder: Path):
        self._plain = children["numpy"]
        self._others = {name: child for name, child in children.items() if name != "numpy"}
        self._folder = folder
        self.worst: dict[str, dict[str, float]] = {name: {} for name in self._others}
        self.bits: dict[str, dict[str, float]] = {name: {} for name in self._others}

    def __call__(self) -> None:
        truth = self._save("numpy", self._plain)
        for name, child in self._others.items():
            state = self._save(name, child)
            keep_larger(self.worst[name], errors_between(truth, state, prefixed=True))
            keep_larger(self.bits[name], other_bits(truth, state, prefixed=True))
            child.act("load", truth)

    def _save(self, name: str, child: Child) -> Path:
        path = self._folder / f"state_{name}.npz"
        child.act("save", path)
        return path


def keep_larger(worst: dict[str, float], found: Mapping[str, float]) -> None:
    """Keep the larger of the known and the new figure of each field."""
    worst.update({field: max(figure, worst.get(field, 0)) for field, figure in found.items()})


# --- the result ----------------------------------------------------------------------------------------------------


def assemble(
    options: argparse.Namespace,
    program: Path,
    settings: Mapping[str, str],
    children: Mapping[str, Child],
    resync: Resync | None,
) -> dict[str, Any]:
    """Everything measured, as it goes into JSON. Times in ms or s, memory in MB."""
    plain, fast = children["numpy"], children["accel"]
    steps, first = plain.summary["steps"], fast.steady_from(options.warmup)
    result: dict[str, Any] = {
        "benchmark": "end_to_end",
        "program": str(program),
        "candidate": options.candidate,
        "grid": options.grid,
        "steps": steps,
        "block": options.block,
        "warmup": options.warmup,
        "resync": options.resync,
        "cache": "cold" if options.cold else "warm" if options.warm else "as found",
        "steady_from": first,
        **plain.figures(first),
        **fast.figures(first),
        "machine": harness.machine(),
        "versions": harness.versions(),
        "settings": dict(settings),
        "report": json.loads(fast.summary["report"]),
    }
    result["ratio"] = result["numpy_ms_per_step"] / result["accel_ms_per_step"]
    result["wall_ratio"] = result["numpy_wall_s"] / result["accel_wall_s"]
    result["mean_ratio"] = result["numpy_mean_ms_per_step"] / result["accel_mean_ms_per_step"]
    result["jax_mb"] = floor.jax_mb()
    result["longest_pause_s"] = longest_pause(plain.times, fast.times)
    result |= block_errors(children, resync, steps) if resync else free_errors(children, steps)
    result["goals"] = [goal.record() for goal in goals(result, newer=(program / "pygcm" / "ecology").is_dir())]
    return result


def longest_pause(plain: Sequence[float], fast: Sequence[float]) -> float:
    """By how much, in s, any step took longer than NumPy's same step: what recording and compiling kept it waiting."""
    return max(0.0, *(ours - theirs for ours, theirs in zip(fast, plain, strict=False)))


def block_errors(children: Mapping[str, Child], resync: Resync, steps: int) -> dict[str, Any]:
    """With `--resync`: worst error per field over all blocks, accel's and, where it ran, the perturbed child's."""
    truth = fields_file(children["numpy"], steps)
    for name in resync.worst:
        state = fields_file(children[name], steps)
        keep_larger(resync.worst[name], errors_between(truth, state))
        keep_larger(resync.bits[name], other_bits(truth, state))
    found: dict[str, Any] = {"fields": resync.worst["accel"], "other_bits": resync.bits["accel"]}
    if "perturbed" in resync.worst:
        found["drift"] = {"block": compared(resync.worst["accel"], resync.worst["perturbed"])}
    return found


def free_errors(children: Mapping[str, Child], steps: int) -> dict[str, Any]:
    """Free runs: errors at the end, worst error by step, and the drift table where a perturbed child ran."""
    seen = sorted({step for step in GROWTH_STEPS if step < steps} | {steps})
    ours = {step: field_errors(children["numpy"], children["accel"], step) for step in seen}
    found: dict[str, Any] = {
        "fields": ours[steps],
        "other_bits": other_bits(fields_file(children["numpy"], steps), fields_file(children["accel"], steps)),
        "growth": {str(step): max(errors.values()) for step, errors in ours.items()},
    }
    if "perturbed" in children:
        ulp = {step: field_errors(children["numpy"], children["perturbed"], step) for step in seen}
        found["growth_one_ulp"] = {str(step): max(errors.values()) for step, errors in ulp.items()}
        found["drift"] = {str(step): compared(ours[step], ulp[step]) for step in seen if step in (*DRIFT_STEPS, steps)}
    return found


def compared(ours: Mapping[str, float], ulp: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Divergence of accel, and of NumPy perturbed by one ulp, from NumPy, and their ratio, by field."""
    return {
        name: {"accel": ours[name], "one_ulp": ulp[name], "ratio": quotient(ours[name], ulp[name])} for name in ours
    }


def quotient(above: float, below: float) -> float:
    """above / below, where 0 / 0 is 0 and x / 0 is infinite."""
    if below > 0.0:
        return above / below
    return 0.0 if above == 0.0 else math.inf


# --- goals and text ------------------------------------------------------------------------------------------------


def goals(result: Mapping[str, Any], newer: bool) -> list[Goal]:
    """The goals that this run can answer; `newer` is the revision with ecology. Limits: benchmarks.goal_table."""
    found = [Goal("worst field error", max(result["fields"].values()), FIELD_TOLERANCE)]
    step = "step-new" if newer else "step-fine" if result["grid"] == goal_table.FINE_GRID else "step-old"
    found += goal_table.goals(step, result["mean_ratio"])
    if result["cache"] == "cold":
        found += goal_table.goals("wall-cold", result["wall_ratio"])
    if result["cache"] == "warm":
        found += goal_table.goals("wall-warm", result["wall_ratio"])
    found += goal_table.goals("pause", result["longest_pause_s"])
    beyond_mb = result["accel_peak_rss_mb"] - result["jax_mb"] - 1.5 * result["numpy_peak_rss_mb"]
    found += goal_table.goals("memory", beyond_mb)
    if "drift" in result:
        worst = max(entry["ratio"] for fields in result["drift"].values() for entry in fields.values())
        found.append(Goal("drift against one ulp", worst, DRIFT_FACTOR, "x"))
    return found


def describe(result: Mapping[str, Any]) -> str:
    """The result as text: fields first, then times, then goals."""
    shown = result["machine"]
    end = f"worst of all {result['block']}-step blocks" if result["resync"] else f"after {result['steps']} steps"
    parts = [
        f"{result['program']}: {result['steps']} steps, grid {result['grid'] or 'its own'}",
        f"on {shown['cpu']}, {shown['cores']} cores, {shown['memory_gb']} GB",
        harness.markdown_table(
            ["field", f"error, {end}", "elements with other bits"],
            [[name, error, result["other_bits"][name]] for name, error in sorted(result["fields"].items())],
        ),
        growth_table(result) if "growth" in result else "",
        drift_table(result["drift"]) if "drift" in result else "",
        figures_table(result, {"numpy": "numpy", "accel": candidate_label(result)}),
        f"ratio: {result['ratio']:.2f} times faster per step (from step {result['steady_from']} on), "
        f"of means {result['mean_ratio']:.2f}; "
        f"whole run {result['wall_ratio']:.2f} times, "
        f"disk cache {result['cache']}; longest pause {result['longest_pause_s']:.2f} s",
        report_line(result["report"]),
        harness.goals_table([harness.Goal.from_record(goal) for goal in result["goals"]]),
    ]
    return "\n\n".join(part for part in parts if part)


def candidate_label(result: Mapping[str, Any]) -> str:
    """What ran in the second child."""
    return "accel" if result["candidate"] == "accel" else "numpy again"


def report_line(report: Mapping[str, Any] | None) -> str:
    """How many catalogue rows ended in which state, from accel's own report; empty without one."""
    if not report:
        return ""
    states = [entry["state"] for entry in report["functions"]]
    return "accel's functions: " + ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))


def growth_table(result: Mapping[str, Any]) -> str:
    """Worst error of all fields by step, and one ulp's where it was measured."""
    ulp = result.get("growth_one_ulp")
    header = ["step", "worst error", *(["one ulp's"] if ulp else [])]
    return harness.markdown_table(
        header, [[step, error, *([ulp[step]] if ulp else [])] for step, error in result["growth"].items()]
    )


def drift_table(table: Mapping[str, Any]) -> str:
    """Divergences from NumPy by step and field."""
    rows = [
        [step, name, entry["accel"], entry["one_ulp"], entry["ratio"]]
        for step, fields in table.items()
        for name, entry in sorted(fields.items())
    ]
    return harness.markdown_table(["step", "field", "accel", "one ulp", "ratio"], rows)


if __name__ == "__main__":
    harness.run_command(main)
