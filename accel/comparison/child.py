"""One run of a comparison: `python -m accel.comparison.child SPEC.json` runs the program once and observes it.

Started by `accel.comparison.runs`. The file names the program, the kind of run, and the folder for the observations.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from accel import catalogue, config, logs, project
from accel.cli import program
from accel.cli.starts import Command
from accel.comparison.observer import Observer
from accel.hook import patching
from accel.process import memory
from accel.reports import reporting


def main() -> int:
    """Run the program that the file names, as `accel run` would."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    accelerated = spec["way"] == "accel"
    project.set_home(spec["home"])
    start = program.enter(Command(spec["target"], spec["args"], spec["folder"]))
    rows = None if spec["catalogue"] is None else catalogue.load(spec["catalogue"])
    steps = patching.steps_of(catalogue.default() if rows is None else (rows,))
    observer = Observer(Path(spec["samples"]), steps, perturb=spec["way"] == "perturbed")
    config.set_current(replace(config.current(), quiet=True, **spec["settings"]))
    logs.to_stderr()
    logs.set_level(config.current().log)
    chosen = {"only": spec["only"], "exclude": spec["exclude"]} if accelerated else {}
    patching.put_in_place(rows, observer.accelerated if accelerated else observer.on_numpy, **chosen)
    atexit.register(_finish, observer, accelerated, os.getpid())
    # all runs must observe the same calls
    return program.execute(start, line_by_line=True)


def _finish(observer: Observer, accelerated: bool, process: int) -> None:
    if os.getpid() == process:
        report = json.loads(reporting.report("json")) if accelerated else None
        observer.finish(peak_mb=memory.peak_mb(), report=report)


if __name__ == "__main__":
    sys.exit(main())
