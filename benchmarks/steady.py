"""The child that times kernels of the corpus on one tree of accel, each once it is compiled or given up.

Started by `against.py`, through `measured_on`. Of accel only `accelerate` and `report` are used.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness, kernels, races
from benchmarks.agreement import outcome
from benchmarks.cases import check_tree, python_path
from benchmarks.corpus import Kernel
from benchmarks.lockstep import LOG_TAIL, ChildFailed, environment
from benchmarks.started import SUMMARY

CALLS = 8
"""Calls before a kernel may be taken for settled: a reason for staying on NumPy may stand before the first compile."""


def measured_on(
    tree: Path, names: Sequence[str], given: Mapping[str, Any], folder: Path, settings: Mapping[str, str]
) -> dict[str, float]:
    """ms per call of the named kernels on a tree, measured by a child in the new scratch `folder`."""
    folder.mkdir(parents=True)
    own = {**settings, "PYTHONPATH": python_path(tree), "QD_JAX_CACHE_DIR": str(folder / "cache")}
    arguments = [f"--{name}={value}" for name, value in given.items()]
    command = [sys.executable, "-m", "benchmarks.steady", *arguments, *names]
    done = subprocess.run(command, cwd=folder, env=environment(own), capture_output=True, text=True, check=False)
    if done.returncode:
        said = "\n".join(done.stderr.splitlines()[-LOG_TAIL:])
        raise ChildFailed(f"the kernels on {tree} ended with exit code {done.returncode}:\n{said}")
    check_tree(folder, "accel", tree)
    found: dict[str, float] = json.loads((folder / SUMMARY).read_text())["kernels"]
    return found


def measure(kernel: Kernel, n: int, settle_s: float, budget_s: float) -> float:
    """ms per call, after what there is to compile."""
    contest = kernels.contest(kernel, n, np.random.default_rng(n))
    for _ in range(CALLS):
        outcome(contest.function, contest.arguments())
    races.settle(contest, settle_s)
    arguments = races.harmless(contest)
    rivals = {"accel": contest.function}
    times = harness.interleaved(rivals, lambda: copy.deepcopy(arguments), rounds=500, budget_s=budget_s)
    return harness.median_ms(times["accel"])


def parser() -> argparse.ArgumentParser:
    """The child's command line; only `measured_on` writes it."""
    arguments = argparse.ArgumentParser(prog="benchmarks.steady")
    arguments.add_argument("names", nargs="+")
    arguments.add_argument("--size", type=int, required=True)
    arguments.add_argument("--settle", type=float, required=True)
    arguments.add_argument("--budget", type=float, required=True)
    return arguments


def main() -> None:
    """Measure and leave the figures in a file."""
    import accel

    options = parser().parse_args()
    wanted = kernels.chosen(options.names)
    found = {kernel.name: measure(kernel, options.size, options.settle, options.budget) for kernel in wanted}
    Path(SUMMARY).write_text(json.dumps({"accel": accel.__file__, "kernels": found}))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        main()
