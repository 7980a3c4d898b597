"""Logarithms, powers and the like of float64 arrays: NumPy, XLA's own functions and accel's, checked, then timed.

`python -m benchmarks.elementary [--grids 121x240 1000x1000] [--only NAME ...] [--rounds 60]`. One thread, a program of
the one function, arrays that JAX holds; all three take turns. Also the time to compile ten of them in one program.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.harness import BadInput, Goal

GRIDS = ("121x240", "1000x1000")
TOLERANCE = 1e-14
"""Of each element: NumPy's own loops are some units in the last place from the true value."""

TIMES_AS_FAST = 1.2
"""As XLA's function: with less, one is not worth having."""

COMPILED = 10
COMPILE_LIMIT_S = 5.0


def parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.elementary", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--grids", nargs="+", metavar="NLATxNLON", default=list(GRIDS), help=" ".join(GRIDS))
    arguments.add_argument("--only", nargs="+", metavar="NAME", default=list(names), help=", ".join(names))
    arguments.add_argument("--rounds", type=harness.positive_int, default=60)
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 1 when a function is wrong, or hardly faster than XLA's."""
    import jax

    from accel.rules.elementary import FUNCTIONS

    options = parser(list(FUNCTIONS)).parse_args(argv)
    harness.check_writable(options.out)
    for name in options.only:
        if name not in FUNCTIONS:
            raise BadInput(f"--only {name}: no such function; there are {', '.join(FUNCTIONS)}")
    with jax.enable_x64(True):
        rows = [
            measured(name, FUNCTIONS[name], harness.parse_grid(grid), options.rounds)
            for grid in options.grids
            for name in options.only
        ]
        goals = [*goals_of(rows), *compiling(FUNCTIONS["log"])]
    print("\n\n".join([describe(rows), harness.goals_table(goals), f"commit {harness.commit()}"]))
    if options.out:
        harness.write_json(options.out, {"benchmark": "elementary", "rows": rows, "machine": harness.machine()})
    return 0 if all(goal.met for goal in goals) else 1


def arguments_of(name: str, shape: tuple[int, int]) -> tuple[Any, ...]:
    """Numbers for which the function is defined, and neither tiny nor large."""
    rng = np.random.default_rng(1)
    first = rng.uniform(0.05, 0.95, shape)
    return (first, rng.uniform(0.2, 3.0, shape)) if getattr(np, name).nin == 2 else (first,)


def measured(name: str, function: Callable[..., Any], shape: tuple[int, int], rounds: int) -> dict[str, Any]:
    """Medians in microseconds, and the largest difference from NumPy of an element, relative to it."""
    import jax
    from jax import numpy as jnp

    on_host = arguments_of(name, shape)
    on_device = tuple(map(jnp.asarray, on_host))
    theirs, ours = (jax.jit(each) for each in (getattr(jnp, name), function))
    expected = getattr(np, name)(*on_host)
    rivals = {
        "numpy": lambda: getattr(np, name)(*on_host),
        "xla": lambda: theirs(*on_device).block_until_ready(),
        "accel": lambda: ours(*on_device).block_until_ready(),
    }
    for call in rivals.values():  # compiled before anything is timed
        call()
    times = harness.interleaved(rivals, lambda: (), rounds, budget_s=20.0)
    return {
        "name": name,
        "grid": "x".join(map(str, shape)),
        **{rival: 1e3 * harness.median_ms(seconds) for rival, seconds in times.items()},
        "error": float(np.max(abs(np.asarray(ours(*on_device)) / expected - 1.0))),
    }


def goals_of(rows: Sequence[dict[str, Any]]) -> list[Goal]:
    """The worst of all rows."""
    slowest = min(rows, key=lambda row: row["xla"] / row["accel"])
    return [
        Goal("largest error of an element", max(row["error"] for row in rows), TOLERANCE),
        Goal(
            f"times as fast as XLA's, at least ({slowest['name']} at {slowest['grid']})",
            slowest["xla"] / slowest["accel"],
            TIMES_AS_FAST,
            at_least=True,
        ),
    ]


def compiling(function: Callable[..., Any]) -> list[Goal]:
    """How long a program of several such functions takes to be traced and compiled, in seconds."""
    import jax
    from jax import numpy as jnp

    def program(x: Any, one: Callable[..., Any]) -> Any:
        total = x
        for k in range(COMPILED):
            total = total + one(x + float(k))
        return total

    def seconds(one: Callable[..., Any]) -> float:
        start = time.perf_counter()
        jax.jit(lambda x: program(x, one)).lower(jax.ShapeDtypeStruct((121, 240), float)).compile()
        return time.perf_counter() - start

    ours, theirs = seconds(jax.jit(function)), seconds(jnp.log)
    return [Goal(f"{COMPILED} logarithms, s to compile (XLA's own: {theirs:.2f})", ours, COMPILE_LIMIT_S)]


def describe(rows: Sequence[dict[str, Any]]) -> str:
    """One row for each function and grid; times in microseconds."""
    header = ["function", "grid", "NumPy, us", "XLA, us", "accel, us", "XLA / accel", "NumPy / accel"]
    cells = [
        [row["name"], row["grid"], row["numpy"], row["xla"], row["accel"], row["xla"] / row["accel"]]
        + [row["numpy"] / row["accel"]]
        for row in rows
    ]
    return harness.markdown_table(header, cells)


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "1")  # of XLA's threads, read when JAX starts
    harness.run_command(main)
