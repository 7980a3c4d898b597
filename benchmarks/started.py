"""The child that is one whole start of a program, as its user would start it, ended after so many steps or seconds.

Started by `cases.py`. A checkout of PyGCM or the miniature is run as `python -m scripts.run_simulation` or as
`accel run scripts.run_simulation`; a program of `benchmarks.programs` is told whether it is decorated. From
outside come only a stand-in for tqdm, which counts, stamps and ends the steps and takes the program's plotting
functions away, and one stamp when the program has run its last line. Nothing but the standard library and tqdm is
imported here, and of accel only `accel.run`: the tree that is measured may be any.
"""

from __future__ import annotations

import argparse
import importlib
import json
import runpy
import sys
import time
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.bars import bar_class

STAMPS = "times.bin"
SUMMARY = "summary.json"
"""What the child leaves in its working directory: seconds of each step, as doubles, and all else."""


class Steps:
    """The program's steps: lets them through up to `steps`, or until `seconds` have passed, and takes their times."""

    def __init__(self, steps: int | None = None, seconds: float | None = None):
        self._steps, self._seconds = steps, seconds
        self.times = array("d")

    def through(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield `items`, one a step; at least one."""
        begin = first = time.perf_counter()
        for item in items:
            yield item
            now = time.perf_counter()
            self.times.append(now - begin)
            if len(self.times) == self._steps or (self._seconds is not None and now - first >= self._seconds):
                return
            begin = now


def nothing(*_: Any, **__: Any) -> None:
    """Stand in for a plotting function."""


def silence_plots(names: dict[str, Any]) -> None:
    """Replace the program's `plot...` functions by nothing."""
    for name in [name for name in names if name.startswith("plot") and callable(names[name])]:
        names[name] = nothing


def command(options: argparse.Namespace) -> list[str]:
    """The module to run, then its arguments: what would follow `python -m`."""
    if options.folder is None:
        return [options.module, options.way]
    if options.way == "accel":
        return ["accel.run", "--pygcm", str(options.folder), options.module]
    return [options.module]


def run(options: argparse.Namespace) -> None:
    """Run the program to its end, and leave what there is to know in files."""
    steps = Steps(options.steps, options.seconds)
    bar = bar_class("__main__", steps.through, options.steps, silence_plots)
    importlib.import_module("tqdm").tqdm = bar  # type: ignore[attr-defined]
    sys.argv = command(options)
    if options.folder is not None and options.way == "numpy":
        sys.path[0] = str(options.folder)
    names: dict[str, Any] = {}
    try:
        names = runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    finally:
        ended = time.monotonic()
        leave(steps, ended, names.get("total"))


def leave(steps: Steps, ended: float, total: float | None) -> None:
    """Write the step times and the rest. ended: the clock when the program was done, for the parent to compare."""
    with Path(STAMPS).open("wb") as file:
        steps.times.tofile(file)
    accel = sys.modules.get("accel")
    about = {"ended": ended, "total": total, "accel": getattr(accel, "__file__", None)}
    Path(SUMMARY).write_text(json.dumps(about))


def parser() -> argparse.ArgumentParser:
    """The child's command line; only `cases.py` writes it."""
    arguments = argparse.ArgumentParser(prog="benchmarks.started")
    arguments.add_argument("--way", choices=["numpy", "accel"], required=True)
    arguments.add_argument("--module", required=True, help="what holds the program")
    arguments.add_argument("--folder", type=Path, help="the checkout that it is in")
    arguments.add_argument("--steps", type=int)
    arguments.add_argument("--seconds", type=float)
    return arguments


if __name__ == "__main__":
    run(parser().parse_args())
