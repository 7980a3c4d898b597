"""What `accel run` says that a run gained, against what it has gained: is the sign right, does the range hold it?

`python -m benchmarks.accounts [--rounds N] [--busy N] [--folder DIR] [--out FILE.json] -- PROGRAM ...` runs the
program in turns: on NumPy, under accel with nothing on disk, on NumPy, under accel with what that has left there. Times
are wall times without what the first thread has waited for a processor (Linux tells it): two runs do not meet the same
other programs. NumPy's time is that of the two runs around a run under accel. A range holds it if it meets their span,
as no range can be narrower than the truth. `--busy N` keeps N other processes at work beside all runs. `--env K=V` is
set for all runs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from accel.reports.words import outward
from benchmarks import harness
from benchmarks.harness import BadInput

REPORT = "last-report.json"
SPIN = "import numpy as np\na = np.ones((300, 300))\nwhile True: a = np.sin(a + 1.0)"
"""What a process does that keeps a processor busy: arrays of 720 kB, as a program like the measured one would."""


DRIVER = """
import atexit, runpy, sys
kept = sys.argv.pop(1)
def keep():
    waits = open("/proc/self/schedstat").read().split()[1]
    open(kept, "w").write(waits)
atexit.register(keep)
if sys.argv[1] == "accel":
    del sys.argv[0]
    runpy.run_module("accel", run_name="__main__", alter_sys=True)
else:
    del sys.argv[0]
    sys.path[0] = __import__("os").path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""The child: the program as its user starts it; at its end it leaves the ns that it has waited for a processor."""


class Run(NamedTuple):
    """One process, in s: wall time, and that of its first thread without its waits for a processor.

    figures: of accel's report, or None on NumPy.
    """

    wall_s: float
    fair_s: float
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
    with tempfile.NamedTemporaryFile("r") as waits:
        return _started(program, folder, settings, cache, waits)


def _started(program: Sequence[str], folder: Path, settings: dict[str, str], cache: Path | None, waits: IO[str]) -> Run:
    command = [sys.executable, "-c", DRIVER, waits.name, *(["accel", "run"] if cache else []), *program]
    paths = [str(harness.REPOSITORY), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **settings}
    env |= {**harness.FINISHES, "QD_JAX_CACHE_DIR": str(cache)} if cache else {"QD_USE_JAX": "0"}
    if cache:  # a run that is left to NumPy writes none
        (cache / REPORT).unlink(missing_ok=True)
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True)
    wall_s = time.perf_counter() - began
    harness.let_finish(cache)
    if done.returncode:
        raise BadInput(f"{' '.join(program)} ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    figures = None
    if cache:
        figures = json.loads((cache / REPORT).read_text())["figures"] if (cache / REPORT).exists() else {}
        figures["said"] = next((each for each in done.stderr.splitlines() if each.startswith("accel: ")), "")
    return Run(wall_s, wall_s - float(waits.read()) / 1e9, figures)


def judged(way: str, plain: tuple[Run, Run], run: Run) -> dict[str, Any]:
    """One run under accel against the NumPy runs before and after it.

    sign: whether it is right; None where none was given. held: whether the range holds NumPy's time; None without one.
    """
    figures = run.figures or {}
    totals, low, high = figures.get("totals", {}), *sorted(each.fair_s for each in plain)
    # the account begins after the process and ends before it
    outside_s = run.wall_s - figures.get("wall_s", run.wall_s)
    claimed, net, share = totals.get("numpy_range_s"), str(totals.get("net")), run.fair_s / run.wall_s
    ends = None if claimed is None else [share * (each + outside_s) for each in outward(claimed)]
    signed = {"gained": high > run.fair_s, "lost": low < run.fair_s}
    said = ends is not None and net in signed
    return {
        "way": way,
        "plain": [each[:2] for each in plain],
        "wall_s": run.wall_s,
        "fair_s": run.fair_s,
        "claimed_s": ends,
        "net": net,
        "sign": signed.get(net),
        "held": ends[0] <= high and low <= ends[1] if said and ends else None,
        "figures": figures,
    }


def described(row: dict[str, Any]) -> str:
    """One line of the table."""
    claim = "no range" if row["claimed_s"] is None else "{:.1f} to {:.1f}".format(*row["claimed_s"])
    plain = ", ".join(f"{fair_s:.1f}" for _, fair_s in row["plain"])
    verdict = {True: "right", False: "WRONG", None: "-"}
    return (
        f"{row['way']}: {row['fair_s']:.1f} s (wall {row['wall_s']:.1f}), NumPy {plain}, claimed {claim}, "
        f"{row['net']}: sign {verdict[row['sign']]}, range {verdict[row['held']]}"
    )


if __name__ == "__main__":
    harness.run_command(main)
