"""What a step of a program moves to a device with a memory of its own and back, with and without state held there.

`python -m benchmarks.residency [--steps 1500]` runs `scripts.run_simulation` of the checkout that `QD_PYGCM_PATH`
names, its loop lifted, twice: each time the CPU plays such a device. In the first run arrays are brought up to date
after each round. Plots are left out. The bytes are those that launches of the loop's own programs have moved, by
accel's own count, over all of its compiled rounds: prints and rounds of new kinds among them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import harness
from benchmarks.lockstep import ChildFailed
from benchmarks.paced import run_paced

WAYS = {"up to date after each round": "accel-each", "held on the device": "accel"}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.residency", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--steps", type=harness.positive_int, default=1500)
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, 1 when a run failed."""
    options = parser().parse_args(argv)
    harness.check_writable(options.out)
    program = harness.checkout(os.environ.get("QD_PYGCM_PATH", "").split(os.pathsep)[0] or None)
    # compiled in the program's own process, which alone takes the CPU for another device
    settings = {"QD_JAX_AOT": "0", "QD_PLOT_EVERY_DAYS": "100000"}
    rows = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, way in WAYS.items():
            folder = Path(scratch) / way
            asked = ["--way", way, f"--steps={options.steps}", "--warm", "100000", "--plays-device"]
            try:
                rows[name] = run_paced(asked, program, folder, {**settings, "QD_JAX_CACHE_DIR": f"{folder}-cache"})
            except ChildFailed as failure:
                print(failure, file=sys.stderr)
                return 1
    columns = ["launches", "there_kb", "back_kb", "held_rounds"]
    print(harness.markdown_table(["", *columns], [[name, *map(row.get, columns)] for name, row in rows.items()]))
    for name, row in rows.items():
        for why, count in row["not_held"].items():
            print(f"{name}: {count} rounds held nothing: {why}")
        print("\n".join(row["notes"]))
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
