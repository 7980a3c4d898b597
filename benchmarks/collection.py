"""A public collection of NumPy kernels, npbench, each decorated and nothing else: same results, then how much faster.

`python -m benchmarks.collection --npbench DIR [--only NAME ...]` reads a checkout of `spcl/npbench`: of each kernel its
NumPy version, the sizes of its presets and what makes its arguments. Each is a process of its own, with an empty disk
cache: what one compiles or loses is no other's. A kernel runs on the first of the presets S and M that takes NumPy
10 ms. The arguments of each checked call are the collection's, all scaled by one number near 1 that changes from call
to call, so that nothing is taken for constant.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import accel
from benchmarks import goal_table, harness, races
from benchmarks.agreement import Tolerance, outcome
from benchmarks.functions import compiling_at_once
from benchmarks.harness import BadInput, Goal
from benchmarks.lockstep import environment
from benchmarks.races import Contest, Effort

PRESETS = ("S", "M")
LEAST_S = 0.01
"""What a call should take on NumPy: a larger preset is tried below this."""

TOLERANCES = {"float32": 1e-4, "complex64": 1e-4}
DOUBLE = 1e-9
"""Largest difference, relative to an array's largest magnitude, by the arguments' narrowest dtype."""

SENSITIVE = 10.0
"""Results may also differ by so many times what NumPy's own change by when its inputs move by one unit."""

FORGOTTEN = 4.0
"""But no further than this: two runs that have forgotten how they began lie about twice their largest values apart."""

MOST_CPU_S = 120
"""What a kernel's process may take of the processor: that does not grow where the machine is busy. Recording and
compiling have no limit here."""


@dataclass(frozen=True)
class Entry:
    """One kernel as the collection describes it. about: its own description, as its JSON has it."""

    name: str
    about: Mapping[str, Any]

    @property
    def module(self) -> str:
        """What makes the arguments; the kernel's own module has `_numpy` behind that."""
        return f"npbench.benchmarks.{self.about['relative_path'].replace('/', '.')}.{self.about['module_name']}"

    def function(self) -> Callable[..., Any]:
        """The NumPy version."""
        found: Callable[..., Any] = getattr(importlib.import_module(f"{self.module}_numpy"), self.about["func_name"])
        return found

    def arguments(self, preset: str) -> tuple[Any, ...]:
        """Positional arguments of one preset."""
        values = dict(self.about["parameters"][preset])
        if init := self.about.get("init"):
            made = getattr(importlib.import_module(self.module), init["func_name"])(
                *(values[name] for name in init["input_args"])
            )
            names = init["output_args"]
            values.update(zip(names, made if len(names) > 1 else (made,), strict=True))
        return tuple(values[name] for name in self.about["input_args"])


# --- the command ------------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.collection", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--npbench", metavar="DIR", type=Path, required=True, help="a checkout of spcl/npbench")
    races.add_options(arguments, Effort(3, 20.0, 1.0))
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, 1 when any result was wrong. A single kernel is measured right here."""
    options = parser().parse_args(argv)
    harness.check_writable(options.out)
    wanted = chosen(options.npbench, options.only)
    rows = [measure(wanted[0], options)] if len(wanted) == 1 else measured_in_turn(wanted, options)
    result = assemble(rows, options)
    print(describe(result))
    if options.out:
        races.write(result, options.out)
    return 1 if result["wrong"] else 0


def chosen(folder: Path, names: Sequence[str]) -> list[Entry]:
    """The kernels of a checkout, or those that are named."""
    known = {}
    for path in sorted((folder / "bench_info").glob("*.json")):
        known[path.stem] = Entry(path.stem, json.loads(path.read_text())["benchmark"])
    if not known or not (folder / "npbench" / "benchmarks").is_dir():
        raise BadInput(
            f"--npbench {folder}: no 'bench_info' and 'npbench/benchmarks' there; name a checkout of npbench"
        )
    return races.named(known, names)


# --- one kernel -------------------------------------------------------------------------------------------------------


def measured_in_turn(wanted: Sequence[Entry], options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row of each, told as it comes: a long run may be broken off."""
    rows = []
    for entry in wanted:
        row = measured_apart(entry, options)
        remark = row.get("failed") or races.remark(row)
        print(f"{entry.name} {row['n']}: {row['ratio']:.3g} {row['state']} {remark}", file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def measured_apart(entry: Entry, options: argparse.Namespace) -> dict[str, Any]:
    """The row of a kernel from a process of its own; a row without times where that failed or took too long."""
    with tempfile.TemporaryDirectory(prefix="accel-collection-") as scratch:
        out = Path(scratch) / "row.json"
        given = {"npbench": options.npbench.resolve(), "only": entry.name, "out": out}
        given |= {name: getattr(options, name) for name in ("calls", "settle", "budget", "seed")}
        arguments = [f"--{name}={value}" for name, value in given.items()]
        with subprocess.Popen(
            [sys.executable, "-m", "benchmarks.collection", *arguments],
            cwd=scratch,
            env=environment({"QD_JAX_CACHE_DIR": str(Path(scratch) / "cache")}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            resource.prlimit(child.pid, resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
            said = child.communicate()[1].strip()
        if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return unmeasured(entry, f"not done after {MOST_CPU_S} s of processor time")
        if not out.is_file():
            return unmeasured(entry, (said or "it said nothing").splitlines()[-1])
        row: dict[str, Any] = json.loads(out.read_text())["kernels"][0]
        return row


def unmeasured(entry: Entry, why: str) -> dict[str, Any]:
    """A row that says why there are no figures."""
    nothing = {"numpy_ms": float("nan"), "accel_ms": float("nan"), "ratio": float("nan")}
    return {"kernel": entry.name, "n": "", **nothing, "state": "failed", "reasons": [], "wrong": [], "failed": why}


def measure(entry: Entry, options: argparse.Namespace) -> dict[str, Any]:
    """One row, in this process."""
    sys.path.insert(0, str(options.npbench.resolve()))
    plain = entry.function()
    preset, arguments = of_fitting_size(entry, plain)
    rng = np.random.default_rng(options.seed)
    fast = accel.accelerate(plain)
    contest = Contest(entry.name, preset, fast, lambda: scaled(arguments, rng), tolerance(plain, arguments))
    with compiling_at_once():
        return races.held(contest, Effort(options.calls, options.settle, options.budget))


def of_fitting_size(entry: Entry, plain: Callable[..., Any]) -> tuple[str, tuple[Any, ...]]:
    """The first preset that takes NumPy long enough, or the last, and its arguments."""
    for preset in PRESETS:
        arguments = entry.arguments(preset)
        times = harness.interleaved({"numpy": plain}, partial(copy.deepcopy, arguments), rounds=3)
        if min(times["numpy"]) >= LEAST_S:
            break
    return preset, arguments


def scaled(arguments: tuple[Any, ...], rng: np.random.Generator) -> tuple[Any, ...]:
    """Copies of the arguments, all arrays of floats by one factor from 0.99 to 1: what they solve stays solvable."""
    factor = 1.0 - 0.01 * float(rng.random())
    return tuple(
        (value * factor).astype(value.dtype, order="K") if is_inexact(value) else copy.deepcopy(value)
        for value in arguments
    )


def is_inexact(value: Any) -> bool:
    """Whether a value is an array of floats or complex numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def tolerance(plain: Callable[..., Any], arguments: tuple[Any, ...]) -> Tolerance:
    """As the narrowest array allows, or as the kernel itself does: bodies that meet are chaotic."""
    by_dtype = max((TOLERANCES.get(str(each.dtype), DOUBLE) for each in arguments if is_inexact(each)), default=DOUBLE)
    return Tolerance(max(by_dtype, min(FORGOTTEN, SENSITIVE * sensitivity(plain, arguments))))


def sensitivity(plain: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    """How far NumPy's results and changed arguments move where all inputs are moved by one unit in the last place."""
    results = []
    for towards in (None, np.inf):
        given = tuple(
            moved(value, towards) if towards and is_real(value) else copy.deepcopy(value) for value in arguments
        )
        done = outcome(plain, given)
        results.append(list(arrays_of((done.value, done.arguments))))
    pairs = zip(*results, strict=True)
    return max((harness.relative_error(new, old) for old, new in pairs if old.shape == new.shape), default=0.0)


def moved(value: Any, towards: float) -> Any:
    """An array of floats, or a number, moved by one unit in the last place."""
    return np.nextafter(value, np.asarray(value).dtype.type(towards))


def is_real(value: Any) -> bool:
    """Whether a value is an array of real floats, or such a number."""
    return isinstance(value, (np.ndarray, np.floating, float)) and np.asarray(value).dtype.kind == "f"


def arrays_of(value: Any) -> Iterator[np.ndarray]:
    """All arrays and numbers of floats in a value, through tuples and lists."""
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from arrays_of(each)
    elif np.asarray(value).dtype.kind in "fc":
        yield np.asarray(value)


# --- the result -------------------------------------------------------------------------------------------------------


def assemble(rows: Sequence[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """Everything measured, as it goes into JSON. Rows without figures are told, and count in no mean."""
    found = races.totals([row for row in rows if "failed" not in row])
    return {
        "benchmark": "collection",
        **found,
        "failed": {row["kernel"]: row["failed"] for row in rows if "failed" in row},
        "commit": harness.commit(options.npbench),
        "goals": [goal.record() for goal in goals(found)],
        "machine": harness.machine(),
        "versions": harness.versions(),
    }


def goals(found: Mapping[str, Any]) -> list[Goal]:
    """The mean and the slowest, both of compiled kernels."""
    mean, slowest = found["geometric_mean_compiled"], found["slowest"]
    return [*goal_table.goals("collection", mean), *goal_table.goals("slowest", slowest, "the public collection")]


def describe(result: Mapping[str, Any]) -> str:
    """The rows, why some stayed on NumPy, and which gave none."""
    stayed = [f"- {row['kernel']}: {reason_text(row)}" for row in result["kernels"] if row["state"] != "compiled"]
    failed = [f"- {name}: no figure: {why}" for name, why in result["failed"].items()]
    return "\n\n".join(part for part in (races.describe(result), "\n".join([*stayed, *failed])) if part)


def reason_text(row: Mapping[str, Any]) -> str:
    """The first reason of a row, with its place."""
    if not row["reasons"]:
        return f"{row['state']}, no reason given"
    reason = row["reasons"][0]
    return ", ".join(str(reason[key]) for key in ("id", "where", "why") if reason.get(key))


if __name__ == "__main__":
    harness.run_command(main)
