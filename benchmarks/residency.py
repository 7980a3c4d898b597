"""What a step of a program moves to a device with a memory of its own and back, with and without state held there.

`python -m benchmarks.residency [--steps 1500]` runs `scripts.run_simulation` of the checkout that `QD_PYGCM_PATH`
names, its loop lifted, twice: each time the CPU plays such a device. In the first run arrays are brought up to date
after each round. Plots are left out, and tqdm is. The bytes are those that launches of the loop's own programs have
moved, by accel's own count, over all of its compiled rounds: prints and rounds of new kinds among them.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import runpy
import subprocess
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness

EACH, HELD = "up to date after each round", "held on the device"
FOUND = "found.json"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.residency", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--steps", type=harness.positive_int, default=1500)
    arguments.add_argument("--timeout", type=harness.positive_int, default=1200, help="seconds for each run (1200)")
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    arguments.add_argument("--child", choices=[EACH, HELD], help=argparse.SUPPRESS)
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, 1 when a run failed."""
    options = parser().parse_args(argv)
    if options.child:
        child(options.child, options.steps)
        return 0
    harness.check_writable(options.out)
    rows = {}
    for way in (EACH, HELD):
        found = run(way, options)
        if found is None:
            return 1
        rows[way] = found
    columns = ["launches", "there_kb", "back_kb", "held_rounds"]
    print(harness.markdown_table(["", *columns], [[way, *map(row.get, columns)] for way, row in rows.items()]))
    for row in rows.values():
        print("\n".join(row["notes"]))
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1))
    return 0


def run(way: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """What one run has moved."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(__file__).parents[1]
        path = os.pathsep.join([str(root), os.environ["QD_PYGCM_PATH"]])
        command = [sys.executable, "-m", "benchmarks.residency", f"--steps={options.steps}", "--child", way]
        # compiled in the program's own process, which alone takes the CPU for another device
        own = {"PYTHONPATH": path, "MPLBACKEND": "Agg", "QD_JAX_AOT": "0", "QD_JAX_CACHE_DIR": folder}
        environment = {**os.environ, **own}
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=options.timeout,
            check=False,
        )
        if done.returncode or not (Path(folder) / FOUND).exists():
            print(done.stderr[-4000:], file=sys.stderr)
            return None
        found: dict[str, Any] = json.loads((Path(folder) / FOUND).read_text())
        return found


# --- the child --------------------------------------------------------------------------------------------------------


def child(way: str, steps: int) -> None:
    """Run the program in this process, as `accel run` would, and leave what it has moved."""
    from accel.backend import devices
    from accel.lift.holding import Holding

    found = {"held_rounds": 0}
    run_round: Any = Holding.run

    def counted(self: Any, call: Any, body: Any) -> Any:
        result = run_round(self, call, body)
        found["held_rounds"] += self._switch.holds
        return result

    devices.shares_memory = lambda device: False
    Holding.run = counted  # type: ignore[method-assign]
    if way == EACH:
        Holding._why_not = lambda self, body: "the benchmark's first run"  # type: ignore[method-assign]
    sys.modules["tqdm"] = _stand_in(steps)
    atexit.register(leave, Path.cwd() / FOUND, found)
    sys.argv = ["accel", "scripts.run_simulation"]
    runpy.run_module("accel.run", run_name="__main__")


def _stand_in(steps: int) -> types.ModuleType:
    """A module `tqdm` that shows nothing, and ends the program's loop after so many steps."""
    module: Any = types.ModuleType("tqdm")

    def tqdm(items: Any) -> Any:
        names = sys._getframe(1).f_globals
        for name in [name for name in names if name.startswith("plot") and callable(names[name])]:
            names[name] = lambda *_, **__: None
        return items[:steps]

    module.tqdm = tqdm
    return module


def leave(where: Path, found: dict[str, Any]) -> None:
    """Write what the loop's own programs have moved: of all targets it is the one that has moved most in a launch."""
    import accel

    report = json.loads(accel.report("json"))
    moved = [each["transfers"] for each in report["functions"] if each["transfers"]["launches"]]

    def per_launch(each: dict[str, Any], way: str) -> float:
        return float(round(sum(each[way].values()) / each["launches"] / 1000, 1))

    loop = max(moved, key=lambda each: len(each["handed"]) + len(each["fetched"]))
    found |= {
        "launches": loop["launches"],
        "there_kb": per_launch(loop, "handed"),
        "back_kb": per_launch(loop, "fetched"),
    }
    found["notes"] = report["notes"]
    where.write_text(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
