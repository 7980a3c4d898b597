"""Small NumPy kernels, plain and `@accel.accelerate`d: same results, then how much faster.

`python -m benchmarks.kernels [--sizes N ...] [--only NAME ...]` calls every kernel of `corpus.py` several times with
fresh inputs through accel and plainly, compares results, mutated arguments and exceptions, and then times both in turn.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import json
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import accel
from accel.spelling import function_name
from benchmarks import corpus, harness
from benchmarks.agreement import Tolerance, difference, outcome
from benchmarks.corpus import Kernel
from benchmarks.harness import BadInput

SETTLED = ("compiled", "demoted", "inlined")
"""States in accel's report after which nothing more is to be waited for."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--sizes", type=harness.positive_int, nargs="+", default=[64, 256], metavar="N")
    arguments.add_argument("--only", nargs="+", default=[], metavar="NAME", help="kernels to run; default: all")
    arguments.add_argument("--calls", type=harness.positive_int, default=8, help="validating calls, twice (default 8)")
    arguments.add_argument("--settle", type=harness.positive_float, default=10.0, help="s to wait for a compile (10)")
    arguments.add_argument("--budget", type=harness.positive_float, default=1.0, help="s of timing each (default 1)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, 1 when any result was wrong."""
    options = parser().parse_args(argv)
    harness.check_writable(options.out)
    if min(options.sizes) < 8:
        raise BadInput(f"--sizes {min(options.sizes)}: the smallest grid is 8")
    kernels = chosen(options.only)
    result = assemble([measure(kernel, n, options) for n in options.sizes for kernel in kernels], options)
    print(describe(result))
    if options.out:
        harness.write_json(options.out, result)
    return 1 if result["wrong"] else 0


def chosen(names: Sequence[str]) -> list[Kernel]:
    """The corpus, or the kernels of it that are named."""
    known = {kernel.name: kernel for kernel in corpus.KERNELS}
    for name in names:
        if name not in known:
            raise BadInput(f"--only {name}: no such kernel; there are {', '.join(known)}")
    return [known[name] for name in names] or list(corpus.KERNELS)


# --- one kernel ----------------------------------------------------------------------------------------------------


def measure(kernel: Kernel, n: int, options: argparse.Namespace) -> dict[str, Any]:
    """Validate, let compiling finish, validate again, then time. Times in ms."""
    rng = np.random.default_rng([options.seed, n])
    wrong = validate(kernel, rng, n, options.calls)
    settle(kernel, rng, n, options.settle)
    wrong += validate(kernel, rng, n, options.calls)
    times = race(kernel, rng, n, options.budget)
    entry = reported(kernel)
    ours, theirs = harness.median_ms(times["accel"]), harness.median_ms(times["numpy"])
    return {
        "kernel": kernel.name,
        "n": n,
        "numpy_ms": theirs,
        "accel_ms": ours,
        "ratio": theirs / ours,
        "state": entry["state"],
        "reasons": entry["reasons"],
        "wrong": wrong,
    }


def validate(kernel: Kernel, rng: np.random.Generator, n: int, calls: int) -> list[str]:
    """What differed from NumPy over `calls` calls with fresh arguments; empty when all was equal."""
    tolerance = Tolerance(kernel.tolerance, kernel.near)
    found = []
    for _ in range(calls):
        arguments = kernel.arguments(rng, n)
        expected = outcome(plain(kernel), copy.deepcopy(arguments))
        got = outcome(kernel.function, copy.deepcopy(arguments))
        if text := difference(got, expected, tolerance):
            found.append(text)
    return found


def settle(kernel: Kernel, rng: np.random.Generator, n: int, limit_s: float) -> None:
    """Call until accel reports the kernel compiled or given up, or time is out."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end and reported(kernel)["state"] not in SETTLED and not reported(kernel)["reasons"]:
        outcome(kernel.function, kernel.arguments(rng, n))
        time.sleep(0.01)


def race(kernel: Kernel, rng: np.random.Generator, n: int, budget_s: float) -> dict[str, list[float]]:
    """Time both ways in turn on equal arguments that do not make the kernel raise; s per call."""
    arguments = kernel.arguments(rng, n)
    while outcome(plain(kernel), copy.deepcopy(arguments)).error:
        arguments = kernel.arguments(rng, n)
    rivals = {"numpy": plain(kernel), "accel": kernel.function}
    return harness.interleaved(rivals, lambda: copy.deepcopy(arguments), rounds=200, budget_s=budget_s)


def plain(kernel: Kernel) -> Callable[..., Any]:
    """The kernel as it was before it was decorated."""
    return inspect.unwrap(kernel.function)


def reported(kernel: Kernel) -> dict[str, Any]:
    """The kernel's entry in accel's report; a state of `uncalled` when it has none."""
    target = function_name(kernel.function.__module__, kernel.function.__qualname__)
    for entry in json.loads(accel.report(format="json"))["functions"]:
        if entry["target"] == target:
            return entry
    return {"state": "uncalled", "reasons": []}


# --- the result ----------------------------------------------------------------------------------------------------


def assemble(rows: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """Everything measured, as it goes into JSON; `wrong` counts rows with any difference from NumPy."""
    return {
        "benchmark": "kernels",
        "kernels": rows,
        "geometric_mean": harness.geometric_mean(row["ratio"] for row in rows),
        "geometric_mean_compiled": harness.geometric_mean(row["ratio"] for row in rows if row["state"] == "compiled"),
        "compiled": sum(row["state"] == "compiled" for row in rows),
        "wrong": sum(bool(row["wrong"]) for row in rows),
        "slower": sum(row["ratio"] < 0.95 for row in rows),
        "sizes": options.sizes,
        "seed": options.seed,
        "machine": harness.machine(),
        "versions": harness.versions(),
    }


def describe(result: dict[str, Any]) -> str:
    """The result as a table, what went wrong, and one line of totals."""
    rows = [
        [row["kernel"], row["n"], row["numpy_ms"], row["accel_ms"], row["ratio"], row["state"], remark(row)]
        for row in result["kernels"]
    ]
    table = harness.markdown_table(["kernel", "n", "NumPy ms", "accel ms", "ratio", "state", "remark"], rows)
    totals = (
        f"{len(rows)} rows: {result['compiled']} compiled, {result['wrong']} wrong, {result['slower']} slower; "
        f"geometric mean {result['geometric_mean']:.2f}, of the compiled {result['geometric_mean_compiled']:.2f}"
    )
    return f"{table}\n\n{totals}"


def remark(row: dict[str, Any]) -> str:
    """What a reader should know of a row: wrong results first, else the first reason why it stayed on NumPy."""
    if row["wrong"]:
        return f"WRONG {len(row['wrong'])}x: {row['wrong'][0]}"
    return row["reasons"][0]["id"] if row["reasons"] else ""


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        harness.run_command(main)
