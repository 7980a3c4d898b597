"""What `accel run` says that a run gained, against what it has gained: is the sign right, does the range hold it?

`python -m benchmarks.accounts [--rounds N] [--busy N] [--folder DIR] [--out FILE.json] -- PROGRAM ...` runs the
program in turns: on NumPy, under accel with nothing on disk, on NumPy, under accel with what that has left there. The
measured gain of a run is the mean time of the NumPy runs before and after it, less its own, by wall time, as the
summary says it. A range holds it if it meets the span of these two NumPy runs: no range can be narrower than the truth.
`--busy N` keeps N other processes at work beside all runs. `--env K=V` is set for all runs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import harness
from benchmarks.harness import BadInput

REPORT = "last-report.json"
SPIN = "import numpy as np\na = np.ones((300, 300))\nwhile True: a = np.sin(a + 1.0)"
"""What a process does that keeps a processor busy: arrays of 720 kB, as a program like the measured one would."""


class Run(NamedTuple):
    """One process: its wall time and processor time, in s. figures: of accel's report, or None on NumPy."""

    wall_s: float
    cpu_s: float
    figures: dict[str, Any] | None


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.accounts", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--rounds", type=harness.positive_int, default=3, help="cold and warm runs (%(default)s)")
    arguments.add_argument("--busy", type=int, default=0, metavar="N", help="other processes at work (%(default)s)")
    arguments.add_argument("--folder", type=Path, default=Path.cwd(), help="where the program runs")
    arguments.add_argument("--env", metavar="K=V", action="append", default=[], help="for all runs; repeatable")
    arguments.add_argument("--out", metavar="FILE.json", help="write all runs, with their figures")
    arguments.add_argument("program", nargs="+", help="what follows `accel run`, and `python` without accel")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a sign was wrong."""
    options = parser().parse_args(argv)
    harness.check_writable(options.out)
    settings = dict(item.split("=", 1) for item in options.env)
    rows: list[dict[str, Any]] = []
    with busy(options.busy), tempfile.TemporaryDirectory(prefix="accel-accounts-") as scratch:
        before = started(options.program, options.folder, settings, None)
        for round_ in range(options.rounds):
            cache = Path(scratch) / str(round_)
            for way in ("cold", "warm"):
                run = started(options.program, options.folder, settings, cache)
                after = started(options.program, options.folder, settings, None)
                rows.append(judged(way, (before, after), run))
                print(described(rows[-1]), flush=True)
                before = after
                if options.out:
                    harness.write_json(options.out, {"rows": rows, "commit": harness.commit()})
    signed = [row for row in rows if row["sign"] is not None]
    ranges = [row for row in rows if row["held"] is not None]
    print(f"sign right in {sum(row['sign'] for row in signed)} of {len(signed)} runs that gave one, ", end="")
    print(f"range held in {sum(row['held'] for row in ranges)} of {len(ranges)}; {len(rows)} runs")
    return 0 if all(row["sign"] for row in signed) else 1


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many other processes at work for a block."""
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for each in others:
            each.kill()
            each.wait()


def started(program: Sequence[str], folder: Path, settings: dict[str, str], cache: Path | None) -> Run:
    """Run the program. cache: with accel, and this folder for what it keeps; None: on NumPy."""
    command = [sys.executable, *(["-m", "accel", "run"] if cache else []), *program]
    paths = [str(harness.REPOSITORY), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **settings}
    env |= {**harness.FINISHES, "QD_JAX_CACHE_DIR": str(cache)} if cache else {"QD_USE_JAX": "0"}
    spent, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True)
    wall_s, now = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    harness.let_finish(cache)
    if done.returncode:
        raise BadInput(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    cpu_s = now.ru_utime + now.ru_stime - spent.ru_utime - spent.ru_stime
    figures = None
    if cache:
        figures = json.loads((cache / REPORT).read_text())["figures"] if (cache / REPORT).exists() else {}
        figures["said"] = " | ".join(done.stderr.strip().splitlines()[-2:])
    return Run(wall_s, cpu_s, figures)


def judged(way: str, plain: tuple[Run, Run], run: Run) -> dict[str, Any]:
    """One run under accel against the NumPy runs before and after it.

    sign: whether it is right; None where none was given. held: whether the range holds NumPy's time; None without one.
    """
    figures = run.figures or {}
    totals, low, high = figures.get("totals", {}), *sorted(each.wall_s for each in plain)
    # of the process, as NumPy's: the account begins later and ends earlier
    outside_s = run.wall_s - figures.get("wall_s", run.wall_s)
    claimed, net = totals.get("numpy_range_s"), totals.get("net")
    ends = None if claimed is None else [float(f"{each:.2g}") + outside_s for each in claimed]
    signed = {"gained": high > run.wall_s, "lost": low < run.wall_s}
    return {
        "way": way,
        "plain_s": [each.wall_s for each in plain],
        "plain_cpu_s": [each.cpu_s for each in plain],
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
        "claimed_s": ends,
        "net": net,
        "sign": signed.get(str(net)),
        "held": None if ends is None or net == "unknown" else ends[0] <= high and low <= ends[1],
        "figures": figures,
    }


def described(row: dict[str, Any]) -> str:
    """One line of the table."""
    claim = "no range" if row["claimed_s"] is None else "{:.1f} to {:.1f} s".format(*row["claimed_s"])
    plain = "{:.1f}, {:.1f} s".format(*row["plain_s"])
    verdict = {True: "right", False: "WRONG", None: "-"}
    return (
        f"{row['way']}: {row['wall_s']:.1f} s, NumPy {plain} (cpu {row['cpu_s']:.1f}, NumPy "
        f"{sum(row['plain_cpu_s']) / 2:.1f}), claimed {claim}, {row['net']}: sign {verdict[row['sign']]}, range "
        f"{verdict[row['held']]} [{row['figures'].get('said', '')[:60]}]"
    )


if __name__ == "__main__":
    harness.run_command(main)
