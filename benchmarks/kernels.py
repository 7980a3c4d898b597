"""Small NumPy kernels, plain and `@accel.accelerate`d: same results, then how much faster.

`python -m benchmarks.kernels [--sizes N ...] [--only NAME ...]` calls every kernel of `corpus.py` several times with
fresh inputs through accel and plainly, compares results, mutated arguments and exceptions, and then times both in turn.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import corpus, goal_table, harness, races
from benchmarks.agreement import Tolerance
from benchmarks.corpus import Kernel
from benchmarks.functions import compiling_at_once
from benchmarks.harness import BadInput, Goal
from benchmarks.races import Contest, Effort


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--sizes", type=harness.positive_int, nargs="+", default=[64, 256], metavar="N")
    races.add_options(arguments, Effort(8, 10.0, 1.0))
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, 1 when any result was wrong."""
    options = parser().parse_args(argv)
    harness.check_writable(options.out)
    if min(options.sizes) < 8:
        raise BadInput(f"--sizes {min(options.sizes)}: the smallest grid is 8")
    kernels = chosen(options.only)
    with compiling_at_once():
        rows = [measure(kernel, n, options) for n in options.sizes for kernel in kernels]
    result = assemble(rows, options)
    print(races.describe(result))
    if options.out:
        races.write(result, options.out)
    return 1 if result["wrong"] else 0


def chosen(names: Sequence[str]) -> list[Kernel]:
    """The corpus, or the kernels of it that are named."""
    known = {kernel.name: kernel for kernel in corpus.KERNELS}
    return races.named(known, names)


def contest(kernel: Kernel, n: int, rng: np.random.Generator) -> Contest:
    """A kernel at one size."""
    tolerance = Tolerance(kernel.tolerance, kernel.near)
    return Contest(kernel.name, n, kernel.function, lambda: kernel.arguments(rng, n), tolerance)


def measure(kernel: Kernel, n: int, options: argparse.Namespace) -> dict[str, Any]:
    """One row."""
    rng = np.random.default_rng([options.seed, n])
    return races.held(contest(kernel, n, rng), Effort(options.calls, options.settle, options.budget))


def assemble(rows: Sequence[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """Everything measured, as it goes into JSON."""
    found = races.totals(rows)
    return {
        "benchmark": "kernels",
        **found,
        "sizes": options.sizes,
        "seed": options.seed,
        "goals": [goal.record() for goal in goals(found)],
        "machine": harness.machine(),
        "versions": harness.versions(),
    }


def goals(found: Mapping[str, Any]) -> list[Goal]:
    """The mean and the slowest, both of compiled kernels."""
    mean, slowest = found["geometric_mean_compiled"], found["slowest"]
    return [*goal_table.goals("kernels", mean), *goal_table.goals("slowest", slowest, "small kernels")]


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        harness.run_command(main)
