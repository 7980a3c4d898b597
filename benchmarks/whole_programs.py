"""The programs of `tests/programs` under `accel run --auto`, untouched, against NumPy: is any slower beyond the budget?

`python -m benchmarks.whole_programs [--only NAME ...] [--seconds S] [--rounds N]`. A program is short, so a copy of it
calls its own entry until NumPy has worked for about S seconds of processor time. Every other run calls it as often.
Each run is a process of its own, imports and exit included, in turns: NumPy, accel with nothing on disk, accel with
what that has left there. A run may take 1.15 times NumPy's time and 2 s more, as in `benchmarks.starts`. On a machine
whose cores others use, wall times mislead: there, the processor time of the program's own process is compared, up to
its last line. That is more than a run costs where a second core is free, which imports JAX and lowers programs
meanwhile: the table tells beside it what the program's own thread took. Results and output must be NumPy's. All take
about twenty minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import harness
from benchmarks.harness import BadInput
from benchmarks.starts import ALLOWANCE_S, FACTOR, QUIET

FOLDER = harness.REPOSITORY / "tests" / "programs"
DRIVER = "\n\nfrom benchmarks.programs.repeating import repeat\n\nrepeat(run)\n"
WAYS = ("numpy", "cold", "warm")
AGREEMENT = 1e-8
"""Largest difference of a result, relative to its largest magnitude: what some forty steps may make of last places."""


class Run(NamedTuple):
    """One process. wall_s: its seconds; cpu_s: those of its own threads up to its last line. said: accel's summary.

    thread_s: of the first thread alone.
    """

    wall_s: float
    cpu_s: float
    thread_s: float
    rounds: int
    results: Mapping[str, Any]
    printed: str
    said: str


def programs(folder: Path = FOLDER) -> dict[str, Path]:
    """The programs, by field and name: `fluids.shallow_water`."""
    return {f"{path.parent.name}.{path.stem}": path for path in sorted(folder.glob("*/*.py"))}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    described = __doc__.split("\n\n")[0]
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.whole_programs", description=described)
    arguments.add_argument("--only", metavar="NAME", nargs="+", default=[], help="parts of names, such as fluids ising")
    arguments.add_argument(
        "--folder", metavar="DIR", type=Path, default=FOLDER, help="other programs, as DIR/FIELD/*.py"
    )
    arguments.add_argument("--seconds", metavar="S", type=harness.positive_float, default=5.0, help="of NumPy's work")
    arguments.add_argument("--rounds", type=harness.positive_int, default=1, help="runs of each way (%(default)s)")
    arguments.add_argument("--out", metavar="FILE.json", help="write the rows as JSON, after each program")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a result is wrong or a program is slower beyond the budget."""
    options = parser().parse_args(argv)
    harness.check_writable(options.out)
    wanted = chosen(programs(options.folder), options.only)
    rows: list[dict[str, Any]] = []
    for name, path in wanted.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += measured(name, path, options.seconds, options.rounds)
        if options.out:
            harness.write_json(options.out, {"rows": rows, "commit": harness.commit(), "machine": harness.machine()})
    print(describe(rows))
    return 0 if all(row["within"] and not row["wrong"] for row in rows) else 1


def chosen(known: Mapping[str, Path], parts: Sequence[str]) -> dict[str, Path]:
    """Those whose names hold one of `parts`, or all. Raises BadInput for a part that no name holds."""
    for part in parts:
        if not any(part in name for name in known):
            raise BadInput(f"--only {part}: no such program; there are {', '.join(known)}")
    return {name: path for name, path in known.items() if not parts or any(part in name for part in parts)}


def measured(name: str, path: Path, seconds: float, rounds: int) -> list[dict[str, Any]]:
    """Two rows: with nothing on disk, and with what an earlier run has left there."""
    runs: dict[str, list[Run]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="accel-programs-") as scratch:
        copy = Path(scratch) / f"{name.replace('.', '_')}.py"  # `array.py` alone would stand for Python's own module
        copy.write_text(path.read_text() + DRIVER)
        count = started(copy, None, 0, seconds).rounds  # it reads the libraries from disk too
        for round_ in range(rounds):
            caches = {"numpy": None, "cold": f"{scratch}/{round_}", "warm": f"{scratch}/{round_}"}
            for way in WAYS if round_ % 2 == 0 else ("cold", "warm", "numpy"):
                runs[way].append(started(copy, caches[way], count, seconds))
    return [compared(name, way, runs["numpy"], runs[way]) for way in WAYS[1:]]


def started(script: Path, cache: str | None, count: int, seconds: float) -> Run:
    """Run a script. cache: with accel, and this folder for its programs; None: on NumPy."""
    command = [] if cache is None else ["-m", "accel.run", "--auto"]
    report = script.with_suffix(".report")
    env = {**os.environ, "PYTHONPATH": str(harness.REPOSITORY), "QD_JAX_CACHE_DIR": cache or "off"}
    env |= {"COUNT": str(count), "SECONDS": str(seconds), "REPORT": str(report)}
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *command, str(script)], env=env, check=False, capture_output=True, text=True)
    wall_s = time.perf_counter() - began
    harness.let_finish(cache)
    if done.returncode:
        raise BadInput(f"{script.name} ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    cpu_s, thread_s, rounds, results = pickle.loads(report.read_bytes())
    return Run(wall_s, cpu_s, thread_s, rounds, results, done.stdout, " | ".join(done.stderr.strip().splitlines()[-2:]))


def compared(name: str, way: str, plain: Sequence[Run], fast: Sequence[Run]) -> dict[str, Any]:
    """One row: medians in s, what was allowed, and what was wrong."""
    share = min(run.cpu_s / run.wall_s for run in plain)
    by = "wall_s" if share >= QUIET else "cpu_s"
    numpy_s, accel_s = (statistics.median(getattr(run, by) for run in runs) for runs in (plain, fast))
    allowed_s = FACTOR * numpy_s + ALLOWANCE_S
    return {
        "program": name,
        "cache": way,
        "by": by,
        "rounds": plain[0].rounds,
        "numpy_s": numpy_s,
        "accel_s": accel_s,
        "ratio": accel_s / numpy_s,
        "allowed_s": allowed_s,
        "thread_s": statistics.median(run.thread_s for run in fast),
        "within": accel_s <= allowed_s,
        "wrong": wrong(plain[0], fast[-1]),
        "runs": {"numpy": [run[:4] for run in plain], "accel": [run[:4] for run in fast]},
        "said": fast[-1].said,
    }


def wrong(plain: Run, fast: Run) -> list[str]:
    """The results that are not NumPy's, by name."""
    found = [key for key, value in plain.results.items() if not agrees(fast.results.get(key), value)]
    return found if fast.printed == plain.printed else [*found, "what is printed"]


def agrees(found: Any, expected: Any) -> bool:
    """Whether a result is NumPy's: text exactly, numbers within AGREEMENT."""
    try:
        return harness.relative_error(found, expected) <= AGREEMENT
    except (TypeError, ValueError):
        return bool(found == expected)


HEADER = ("program", "cache", "of", "NumPy, s", "accel, s", "accel / NumPy", "allowed, s", "", "own thread, s")


def describe(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a table, and what they come to."""
    beyond = sum(not row["within"] for row in rows)
    false = [f"{row['program']} ({row['cache']}): {', '.join(row['wrong'])}" for row in rows if row["wrong"]]
    busy = sum(row["by"] == "cpu_s" for row in rows)
    means = {
        way: harness.geometric_mean(row["numpy_s"] / row["accel_s"] for row in rows if row["cache"] == way)
        for way in WAYS[1:]
    }
    lines = [
        harness.markdown_table(HEADER, [cells(row) for row in rows]),
        "",
        f"{len(rows)} rows: {beyond} beyond the budget, {len(false)} wrong{': ' if false else ''}{'; '.join(false)}; "
        + ", ".join(f"{way} {mean:.2f} times as fast" for way, mean in means.items())
        + f" (geometric means); commit {harness.commit() or 'unknown'}",
    ]
    if busy:
        lines.append(f"Processor times in {busy} of them: NumPy got less than {QUIET:.0%} of a core.")
    return "\n".join(lines)


def cells(row: Mapping[str, Any]) -> list[str]:
    """One row of the table."""
    verdict = "within" if row["within"] else "BEYOND"
    figures = (f"{row[key]:.2f}" for key in ("numpy_s", "accel_s", "ratio", "allowed_s"))
    return [row["program"], row["cache"], row["by"][:-2], *figures, verdict, f"{row['thread_s']:.2f}"]


if __name__ == "__main__":
    harness.run_command(main)
