"""The child whose steps nobody stands between: PyGCM's own run on a device, its pace taken from outside the loop.

A gate or a stamp at each step is code that could look at the program's arrays, so that no state would stay on a
device. Here the program has the bar of tqdm that it asks for, and now and then a signal's handler looks how far its
iterator is. For that all state is brought up to date: it is part of the pace, once in a window. Started by `gpu.py`
and `residency.py`; plots are left out.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import operator
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness, lockstep
from benchmarks.lockstep import ChildFailed
from benchmarks.planet import install_catalogue, override_grid, silence_plots

PACE = "pace.json"
"""What the child leaves in its working directory."""


def run_paced(arguments: Sequence[str], program: Path, folder: Path, settings: Mapping[str, str]) -> dict[str, Any]:
    """Run such a child in `folder`, and return what it has found. Raises ChildFailed with its last words."""
    folder.mkdir()
    command = [sys.executable, "-m", "benchmarks.paced", "--program", str(program), *arguments]
    environment = {**lockstep.environment(settings), "QD_PYGCM_PATH": str(program)}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode or not (folder / PACE).exists():
        raise ChildFailed("\n".join(["the paced child failed; its last words:", *done.stderr.splitlines()[-25:]]))
    found: dict[str, Any] = json.loads((folder / PACE).read_text())
    return found


# --- the child --------------------------------------------------------------------------------------------------------


class Pace:
    """Looks at an iterator at the end of each window, and ends the program after the last one.

    warm_s: before the first window. steps: ends the program by then, if that is earlier; None: never.
    """

    def __init__(self, warm_s: float, window_s: float, windows: int, steps: int | None) -> None:
        self._due = [warm_s, *[window_s] * windows]
        self._steps = steps
        self._iterator: Iterator[Any] = iter(())
        self._looks: list[tuple[float, int]] = []
        self.module: Any = None

    def bar(self, items: Sequence[Any], *_: Any, **__: Any) -> Iterable[Any]:
        """A bar of tqdm's own, in the place of the program's first one; it is shown to nobody."""
        silence_plots(self.module)
        self._iterator = iter(items[: self._steps])
        self.look()
        signal.signal(signal.SIGALRM, self._look)
        signal.setitimer(signal.ITIMER_REAL, self._due.pop(0))
        bar: Iterable[Any] = importlib.import_module("tqdm.std").tqdm(self._iterator, file=io.StringIO())
        return bar

    def look(self) -> None:
        """Note the time, and how many steps are left."""
        self._looks.append((time.perf_counter(), operator.length_hint(self._iterator)))
        print(f"pace: {self._looks[-1][1]} steps left at {self._looks[-1][0]:.2f} s", file=sys.stderr, flush=True)

    def _look(self, *_: object) -> None:
        self.look()
        if not self._due:
            raise SystemExit(0)
        signal.setitimer(signal.ITIMER_REAL, self._due.pop(0))

    def ms_per_step(self) -> float:
        """The median over the windows; that of the whole run where it has ended before the first one."""
        pairs = list(zip(self._looks, self._looks[1:], strict=False))
        paces = [1e3 * (end - begin) / max(before - after, 1) for (begin, before), (end, after) in pairs]
        return statistics.median(paces[1:] or paces)


def parser() -> argparse.ArgumentParser:
    """The child's command line."""
    arguments = argparse.ArgumentParser(prog="benchmarks.paced")
    arguments.add_argument("--way", choices=["numpy", "accel", "accel-each"], required=True)
    arguments.add_argument("--program", type=Path, required=True, help="a PyGCM checkout, or the miniature")
    arguments.add_argument("--module", default="scripts.run_simulation")
    arguments.add_argument("--grid", type=harness.parse_grid)
    arguments.add_argument("--warm", type=float, default=30.0, help="seconds before the first window")
    arguments.add_argument("--window", type=float, default=5.0, help="seconds of each window")
    arguments.add_argument("--windows", type=int, default=4)
    arguments.add_argument("--steps", type=int, help="end after so many")
    arguments.add_argument("--plays-device", action="store_true", help="the CPU plays a device with its own memory")
    return arguments


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program, then leave its pace and what its loop has moved."""
    options = parser().parse_args(argv)
    sys.path.insert(0, str(options.program))
    found: dict[str, Any] = {}
    if options.way != "numpy":
        _install(stays=options.way == "accel", plays=options.plays_device)
    pace = Pace(options.warm, options.window, options.windows, options.steps)
    importlib.import_module("tqdm").tqdm = pace.bar  # type: ignore[attr-defined]
    if options.grid:
        override_grid(*options.grid)
    pace.module = importlib.import_module(options.module)
    try:
        pace.module.main()
        pace.look()
    except SystemExit:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    found["ms"] = pace.ms_per_step()
    if options.way != "numpy":
        found |= _moved()
    Path(PACE).write_text(json.dumps(found))


def _install(*, stays: bool, plays: bool) -> None:
    """Install accel.

    stays: whether rounds may leave state on the device. plays: whether the CPU plays a device with a memory of its own.
    """
    from accel.backend import devices
    from accel.entry.lift.holding import Holding

    if plays:
        devices.plays_apart = True
    if not stays:
        Holding._why_not = lambda self, body: "the benchmark asks for it"  # type: ignore[method-assign]
    install_catalogue()


def _moved() -> dict[str, Any]:
    """What launches of the loop's own programs have moved, or of the target that moves most in a launch if it has none.

    held_rounds: those that have left state on the device. not_held: others, by the reason.
    """
    import accel

    report = json.loads(accel.report("json"))
    transfers = [each["transfers"] for each in report["functions"]]
    moved = [each for each in transfers if each["launches"]]
    rounds = {
        "held_rounds": sum(each["held_rounds"] for each in transfers),
        "not_held": dict(sum((Counter(each["not_held"]) for each in transfers), Counter())),
        "notes": report["notes"],
    }
    if not moved:
        return {"launches": 0, "there_kb": 0.0, "back_kb": 0.0, **rounds}

    def per_launch(each: dict[str, Any], way: str) -> float:
        return float(round(sum(each[way].values()) / each["launches"] / 1000, 1))

    def fields(each: dict[str, Any]) -> tuple[bool, int]:
        return bool(each["held_rounds"] or each["not_held"]), len(each["handed"]) + len(each["fetched"])

    loop = max(moved, key=fields)
    return {
        "launches": loop["launches"],
        "there_kb": per_launch(loop, "handed"),
        "back_kb": per_launch(loop, "fetched"),
        **rounds,
    }


if __name__ == "__main__":
    main()
