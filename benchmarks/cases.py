"""The programs that whole-process benchmarks start, and one start of one of them, timed from outside.

Every program iterates over a bar of tqdm, so that all are sized alike: by number of steps, or by seconds of them.
"""

from __future__ import annotations

import compileall
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import harness
from benchmarks.goal_table import NEW, OLD
from benchmarks.goals import MINIATURE
from benchmarks.harness import REPOSITORY, BadInput
from benchmarks.lockstep import LOG_TAIL, ChildFailed, environment
from benchmarks.started import STAMPS, SUMMARY

MODEL = "scripts.run_simulation"
ENDLESS = {"QD_SIM_DAYS": "10000", "QD_PLOT_EVERY_DAYS": "100000"}
"""A run longer than anyone waits for: the number of steps ends it. Plots are left out."""

LENGTHS = "lengths.json"
"""The file of accel's cache folder by which it leaves short programs alone. Older trees have none."""

WARMUP = 0.4
"""The part of a run's steps that is left out of its steady step."""


@dataclass(frozen=True)
class Case:
    """One program. needs: the checkout that holds it, as `goals.checkouts_by_revision` names it; "" for one of ours.

    defaults: whether this is a model as it comes, of which a long run has to be faster than NumPy's.
    """

    name: str
    text: str
    module: str = MODEL
    needs: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    defaults: bool = False


CASES = {
    case.name: case
    for case in (
        Case("old", f"PyGCM {OLD}", needs=OLD, settings={"QD_ENERGY_W": "0"}, defaults=True),
        Case("old-energy", f"PyGCM {OLD}, QD_ENERGY_W=1", needs=OLD, settings={"QD_ENERGY_W": "1"}),
        Case("new", f"PyGCM {NEW}", needs=NEW, settings={"QD_ENERGY_W": "0"}, defaults=True),
        Case("new-energy", f"PyGCM {NEW}, QD_ENERGY_W=1", needs=NEW, settings={"QD_ENERGY_W": "1"}),
        Case("miniature", "the bundled miniature", needs=MINIATURE),
        Case("small-grids", "60 small functions on 8x16", "benchmarks.programs.small_grids"),
        Case("new-paths", "functions that never repeat a path", "benchmarks.programs.new_paths"),
    )
}


def chosen(names: Sequence[str], checkouts: Mapping[str, Path]) -> tuple[list[Case], list[str]]:
    """The named cases, or all, and a remark for each that cannot be run since no checkout holds it."""
    for name in names:
        if name not in CASES:
            raise BadInput(f"--cases {name}: no such case; there are {', '.join(CASES)}")
    wanted = [CASES[name] for name in names] or list(CASES.values())
    there = [case for case in wanted if case.needs in ("", *checkouts)]
    remarks = [
        f"- {case.name}: skipped, needs a checkout of PyGCM {case.needs}: --pygcm DIR, or QD_PYGCM_PATH"
        for case in wanted
        if case not in there
    ]
    return there, remarks


# --- one start --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One process, over. Times in s; `times` holds one for each step.

    wall_s: from its start to its end, imports and exit included. exit_s: from the program's last line to the end.
    cpu_s: of all its threads. faults: page faults that needed no disk. total: what a program of ours computed.
    said: its last line on standard error.
    """

    wall_s: float
    exit_s: float
    cpu_s: float
    faults: int
    times: Sequence[float]
    total: float | None
    said: str

    @property
    def steps_s(self) -> float:
        """All steps together: what there was to be done, without imports, set-up and exit."""
        return sum(self.times)

    @property
    def step_ms(self) -> float:
        """Median of the steady steps, ms."""
        return harness.median_ms(self.times[int(WARMUP * len(self.times)) :])

    def record(self) -> dict[str, object]:
        """This run for JSON, without its step times."""
        return {
            "wall_s": self.wall_s,
            "exit_s": self.exit_s,
            "cpu_s": self.cpu_s,
            "page_faults": self.faults,
            "steps": len(self.times),
            "steps_s": self.steps_s,
            "step_ms": self.step_ms,
            "longest_step_ms": 1e3 * max(self.times, default=0.0),
            "total": self.total,
            "said": self.said,
        }


@dataclass(frozen=True)
class Start:
    """How to start a case. checkouts: by revision. settings: environment variables for every child.

    tree: of accel, the first on the children's path; the benchmarks are always this tree's.
    """

    case: Case
    checkouts: Mapping[str, Path]
    settings: Mapping[str, str] = field(default_factory=dict)
    tree: Path = REPOSITORY

    def run(self, way: str, folder: Path, cache: Path, steps: int | None = None, seconds: float | None = None) -> Run:
        """Run the case on `numpy` or under `accel` in the new scratch `folder`, for so many steps or seconds of them.

        cache: accel's disk cache, made where it is not there.
        """
        arguments = ["--way", way, "--module", self.case.module]
        arguments += ["--folder", str(self.checkouts[self.case.needs])] if self.case.needs else []
        arguments += [f"--steps={steps}"] if steps else [f"--seconds={seconds}"]
        own = {**ENDLESS, **self.settings, **self.case.settings, "PYTHONPATH": python_path(self.tree)}
        own |= {**harness.FINISHES, "QD_JAX_CACHE_DIR": str(cache)} if way == "accel" else {"QD_USE_JAX": "0"}
        # a run that is stopped after some steps, or was slow, must not have the next one left to NumPy
        (cache / LENGTHS).unlink(missing_ok=True)
        folder.mkdir(parents=True)
        run = timed([sys.executable, "-m", "benchmarks.started", *arguments], folder, environment(own))
        harness.let_finish(cache)
        check_tree(folder, way, self.tree)
        return run


def python_path(tree: Path) -> str:
    """PYTHONPATH for a child that is to find accel in `tree` and the benchmarks here."""
    return os.pathsep.join(dict.fromkeys([str(tree), str(REPOSITORY)]))


def timed(command: Sequence[str], folder: Path, settings: Mapping[str, str], limit_s: float = 1800.0) -> Run:
    """Run a child of `benchmarks.started` in `folder` and take its times; one that hangs is killed after `limit_s`."""
    with (folder / "out.txt").open("wb") as out, (folder / "err.txt").open("wb") as err:
        begin = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=settings, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        killer = threading.Timer(limit_s, process.kill)
        killer.start()
        try:
            # Popen.wait with a limit of its own looks only every so often; this returns the moment that the child ends.
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        finally:
            killer.cancel()
        end = time.monotonic()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise failure(command, folder, process.returncode)
    times = array("d", (folder / STAMPS).read_bytes())
    if not times:
        raise ChildFailed(f"{shlex.join(command[1:])} reached no step")
    about = json.loads((folder / SUMMARY).read_text())
    cpu_s = usage.ru_utime + usage.ru_stime
    exit_s, said = end - about["ended"], last_line(folder / "err.txt")
    return Run(end - begin, exit_s, cpu_s, usage.ru_minflt, times, about["total"], said)


def failure(command: Sequence[str], folder: Path, code: int) -> ChildFailed:
    """What to say of a child that failed: which one, how, and its last words."""
    lines = (folder / "err.txt").read_text(errors="replace").splitlines()
    return ChildFailed("\n".join([f"{shlex.join(command[1:])} ended with exit code {code}:", *lines[-LOG_TAIL:]]))


def last_line(log: Path) -> str:
    """The last line of a log, or nothing."""
    lines = log.read_text(errors="replace").splitlines()
    return lines[-1] if lines else ""


def check_tree(folder: Path, way: str, tree: Path) -> None:
    """Refuse a NumPy child that had imported accel, and an accelerated one that had not, or another tree's."""
    found = json.loads((folder / SUMMARY).read_text())["accel"]
    wanted = str(tree / "accel" / "__init__.py") if way == "accel" else None
    if found != wanted:
        raise ChildFailed(f"the {way} child had imported accel from {found}, and {wanted} was wanted")


def compile_sources(tree: Path) -> None:
    """Write byte code for a tree of accel, so that no child spends its time on that; children themselves write none."""
    for package in ("accel", "pygcm_patch"):
        compileall.compile_dir(tree / package, quiet=2)
