"""One run of a comparison: `python -m accel.tools.comparison.child SPEC.json` runs the program once and observes it.

Started by `accel.tools.comparison.runs`. The file names the program, the kind of run, and the folder for the
observations.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import accel
from accel import catalogue
from accel.catalogue import Row
from accel.entry.hook import accelerating, patching
from accel.entry.hook.lifts import WHY
from accel.entry.lift.iterations import Splits
from accel.entry.lift.switch import Switch, name_of
from accel.platform import config, logs, memory, project
from accel.reports import reporting
from accel.tools.cli import program
from accel.tools.cli.starts import StartCommand
from accel.tools.comparison.observer import Observer


class ChildOnNumPy:
    """Observes functions and loops without accelerating them. observer: the observer of this run."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def __call__(self, row: Row, function: FunctionType) -> Any:
        # which functions are chosen while the program runs is a matter of time: not the same ones in each run
        return function if row.why == WHY else self._observer.on_numpy(row, function)

    def start_loop(self, row: Row, switch: Switch, names: dict[str, Any], splits: Splits | None) -> None:
        """Observe the iterations of an outlined loop, unless the catalogue names the steps to observe."""
        if not self._observer.has_steps:
            switch.go_beside(self._observer.rounds(name_of(switch, row.module)))


class AcceleratedChild(ChildOnNumPy):
    """Accelerates functions and loops, and observes them."""

    _usual = accelerating.Accelerating(None)

    def __call__(self, row: Row, function: FunctionType) -> Any:
        return self._usual(row, function) if row.why == WHY else self._observer.accelerated(row, function)

    def prepare(self) -> None:
        """Import the modules that accelerate functions."""
        self._usual.prepare()

    def start_loop(self, row: Row, switch: Switch, names: dict[str, Any], splits: Splits | None) -> None:
        """Accelerate and observe the iterations of an outlined loop."""
        self._usual.start_loop(row, switch, names, splits)
        super().start_loop(row, switch, names, splits)


def main() -> int:
    """Run the program that the file names, as `accel run` would."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    accelerated = spec["way"] == "accel"
    project.set_home(spec["home"])
    start = program.enter(StartCommand(spec["target"], spec["args"], spec["folder"]))
    rows = None if spec["catalogue"] is None else catalogue.load(spec["catalogue"])
    steps = patching.steps_of(catalogue.default() if rows is None else (rows,))
    observer = Observer(Path(spec["samples"]), steps, perturb=spec["way"] == "perturbed")
    config.set_current(replace(config.current(), quiet=True, **spec["settings"]))
    logs.to_stderr()
    logs.set_level(config.current().log)
    chosen = {"only": spec["only"], "exclude": spec["exclude"]} if accelerated else {}
    wrap = AcceleratedChild(observer) if accelerated else ChildOnNumPy(observer)
    patching.put_in_place(rows, wrap, **chosen)
    _observe_marked(observer)
    atexit.register(_finish, observer, accelerated, os.getpid())
    return program.execute(start, auto=spec["auto"])


def _observe_marked(observer: Observer) -> None:
    """Have functions observed that the program marks by `accel.accelerate`: in each run, accelerated or not."""
    usual: Any = accel.accelerate

    @functools.wraps(usual)
    def accelerate(fn: Any = None, **options: Any) -> Any:
        if fn is None:
            return functools.partial(accelerate, **options)
        return observer.marked(usual(fn, **options))

    accel.accelerate = accelerate


def _finish(observer: Observer, accelerated: bool, process: int) -> None:
    if os.getpid() == process:
        report = json.loads(reporting.report("json")) if accelerated else None
        slips = patching.slips() if accelerated else []
        observer.finish(peak_mb=memory.peak_mb(), report=report, slips=slips)


if __name__ == "__main__":
    sys.exit(main())
