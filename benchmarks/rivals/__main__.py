"""Six programs by NumPy, accel, numba and hand-written JAX: what each way gains, and what it asks of the program.

`python -m benchmarks.rivals [--seconds S] [--programs NAME ...]`. The NumPy programs are those of benchmarks/flat, and
accel runs them unedited; `by_numba` and `by_jax` hold the others. Each is a process that takes NumPy about S seconds: a
first run with empty caches, and others with what it has left. A third one, and one of twice the length, show what a
step takes once all is compiled. Threads are as each way chooses them.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import harness
from benchmarks.harness import REPOSITORY, BadInput
from benchmarks.scripts import FOLDER, steps_for

PROGRAMS = ("shallow_water", "currents", "relaxation", "images", "particles", "stochastic")
RIVALS = Path(__file__).parent
WAYS: Mapping[str, tuple[Path, tuple[str, ...]]] = {
    "NumPy": (FOLDER, ()),
    "accel": (FOLDER, ("-m", "accel.run", "--auto")),
    "numba": (RIVALS / "by_numba", ()),
    "JAX": (RIVALS / "by_jax", ()),
}
"""Where each way has its programs, and what stands before them on the command line."""

CACHES = {"QD_JAX_CACHE_DIR": "accel", "NUMBA_CACHE_DIR": "numba", "JAX_COMPILATION_CACHE_DIR": "jax"}
KEEP_ALL = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}

_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


class Run(NamedTuple):
    """One process: wall seconds, peak memory in MB, and what it printed."""

    seconds: float
    megabytes: float
    printed: str


class Row(NamedTuple):
    """One program by one way. step_ms: of a run whose programs are all there. lines: changed. error: see `error_of`."""

    first_s: float
    second_s: float
    step_ms: float
    megabytes: float
    lines: int
    error: float


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks.rivals", description=(__doc__ or "").split("\n\n")[0]
    )
    arguments.add_argument("--seconds", metavar="S", type=float, default=10.0, help="of NumPy work for each program")
    arguments.add_argument("--programs", metavar="NAME", nargs="+", default=PROGRAMS, help=", ".join(PROGRAMS))
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run all, print the table."""
    options = parser().parse_args(argv)
    unknown = sorted(set(options.programs) - set(PROGRAMS))
    if unknown:
        raise BadInput(f"--programs: {', '.join(unknown)}: not one of {', '.join(PROGRAMS)}")
    print(
        "| program | by | lines changed | first run, s | second run, s | a step, ms | memory, MB | largest difference |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in options.programs:
        steps = steps_for(name, options.seconds)
        expected = ""
        for way in WAYS:
            print(f"{name} by {way} ...", file=sys.stderr, flush=True)
            row, printed = measured(name, way, steps, expected)
            expected = expected or printed
            figures = f"{row.first_s:.1f} | {row.second_s:.1f} | {row.step_ms:.3g} | {row.megabytes:.0f}"
            print(f"| {name} | {way} | {row.lines} | {figures} | {row.error:.1g} |", flush=True)
    print(f"\n{harness.machine()['cpu']}, {harness.machine()['cores']} cores; commit {harness.commit()}")
    return 0


def measured(name: str, way: str, steps: int, expected: str) -> tuple[Row, str]:
    """The figures of one program by one way, and what its first run printed. expected: what NumPy's printed."""
    with tempfile.TemporaryDirectory() as cache:
        runs = [run(name, way, each, Path(cache)) for each in (steps, steps, steps, 2 * steps)]
    first, second, third, longer = runs
    step_ms = 1e3 * (longer.seconds - third.seconds) / steps
    error = error_of(first.printed, expected or first.printed)
    row = Row(first.seconds, second.seconds, step_ms, second.megabytes, lines_changed(name, way), error)
    return row, first.printed


def run(name: str, way: str, steps: int, cache: Path) -> Run:
    """Run one program. cache: the folder that holds the caches of all ways. Raises OSError if it fails."""
    folder, command = WAYS[way]
    kept = {variable: str(cache / each) for variable, each in CACHES.items()}
    env = {**os.environ, **kept, **KEEP_ALL, "STEPS": str(steps), "PYTHONPATH": str(REPOSITORY)}
    out = cache / "printed"
    with out.open("wb") as file, (cache / "errors").open("wb") as errors:
        began = time.perf_counter()
        child = os.posix_spawn(
            sys.executable,
            [sys.executable, *command, str(folder / f"{name}.py")],
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, file.fileno(), 1), (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)],
        )
        _, status, usage = os.wait4(child, 0)
        seconds = time.perf_counter() - began
    if status:
        raise OSError(f"{name} by {way} failed: {(cache / 'errors').read_text()[-2000:]}")
    harness.let_finish(cache / "accel")
    return Run(seconds, usage.ru_maxrss / 1024, out.read_text())


def lines_changed(name: str, way: str) -> int:
    """Lines of the way's program that NumPy's does not have."""
    before, after = ((folder / f"{name}.py").read_text().splitlines() for folder in (FOLDER, WAYS[way][0]))
    return sum(each.startswith("+ ") and bool(each[2:].strip()) for each in difflib.ndiff(before, after))


def error_of(printed: str, expected: str) -> float:
    """The largest relative difference between numbers in two texts; infinite if one has more of them."""
    found, known = (list(map(float, _NUMBER.findall(text))) for text in (printed, expected))
    if len(found) != len(known):
        return float("inf")
    return max((abs(a - b) / max(abs(b), 1e-300) for a, b in zip(found, known, strict=True) if a != b), default=0.0)


if __name__ == "__main__":
    harness.run_command(main)
