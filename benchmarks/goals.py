"""All goals of "fast": measures each row of `goal_table` and says met, missed or skipped.

`python -m benchmarks.goals [--pygcm DIR ...] [--npbench DIR] [--only ROW ...] [--quick]` runs the benchmarks that give
the rows, one after the other, each a process of its own, as they can be run alone too. Checkouts of PyGCM are named by
`--pygcm`, or by QD_PYGCM_PATH (several separated as in PATH); which revision one is shows in what it holds. A checkout
of the public collection is named by `--npbench` or QD_NPBENCH_PATH. `--quick` shows in minutes that everything works;
its figures mean nothing. Each part's result is kept as it is measured: `--resume` goes on where a run was broken off or
parts of it failed, if commit, machine and versions are the same.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import collection, goal_table, harness
from benchmarks.goal_table import FINE_GRID, NEW, OLD, PEER_GRID, ROWS
from benchmarks.harness import BadInput, Goal
from benchmarks.parts import Ended, Ledger, Part, took

RESULTS = harness.REPOSITORY / "build" / "bench"
"""Where a run leaves what it found; what docs/benchmarks.md shows is in `publish.PUBLISHED`."""

MINIATURE = "miniature"

NPBENCH = "npbench"
"""The public collection, among what a benchmark can run on."""

NEEDED = {OLD: f"PyGCM {OLD}: --pygcm", NEW: f"PyGCM {NEW}: --pygcm", NPBENCH: "spcl/npbench: --npbench"}
OPTIONS = {OLD: "--pygcm", NEW: "--pygcm", NPBENCH: "--npbench"}
"""How a benchmark is told where a checkout is; what is not named here needs none."""


@dataclass(frozen=True)
class Measurement:
    """One run of a benchmark. rows: which goals it answers. programs: what it can run on, the best first; "" none.

    arguments, quick: of its command line; `quick` comes on top in a quick run, later ones winning. seconds, quick_s:
    what it takes about, on two cores that nobody else uses. setting: what the program's environment says besides, shown
    beside the program.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    quick: tuple[str, ...]
    rows: tuple[str, ...]
    programs: tuple[str, ...] = ("",)
    setting: str = ""
    seconds: float = 30.0
    quick_s: float = 20.0

    def program(self, checkouts: Mapping[str, Path]) -> str | None:
        """The best program that is there; None where there is none."""
        return next((each for each in self.programs if not each or each in checkouts), None)

    def part(self, program: str, checkout: Path | None, quick: bool) -> Part:
        """The command."""
        found = [f"benchmarks.{self.module}", *self.arguments, *(self.quick if quick else ())]
        found += ["--env", self.setting] if self.setting else []
        found += [OPTIONS[program], str(checkout)] if program in OPTIONS else []
        return Part(self.name, tuple(found), self.quick_s if quick else self.seconds)

    def on(self, program: str) -> str:
        """What it ran on and how, for the reader."""
        how = " ".join(self.arguments) if self.module == "end_to_end" else ""
        return ", ".join(part for part in (program or "synthetic", self.setting, how) if part)


SHORT = ("--steps", "30")
"""A quick run of a model."""


def _whole(name: str, cache: str, rows: tuple[str, ...], program: str = OLD, setting: str = "") -> Measurement:
    """240 steps of a revision."""
    return Measurement(name, "end_to_end", ("--days", "1", cache), SHORT, rows, (program,), setting, 35.0)


def _steady(name: str, days: str, row: str, seconds: float, program: str = OLD, setting: str = "") -> Measurement:
    """A run that is long enough for its loop's program, where it has one, to be there in the steady part."""
    return Measurement(name, "end_to_end", ("--days", days, "--warm"), SHORT, (row,), (program,), setting, seconds)


ENERGY = "QD_ENERGY_W=1"

MEASUREMENTS = (
    _steady("old-steady", "6", "step-old", 120.0, setting="QD_ENERGY_W=0"),
    _steady("old-steady-energy", "6", "step-old", 120.0, setting=ENERGY),
    _steady("new-steady", "6", "step-new", 150.0, program=NEW),
    Measurement(
        "old-fine",
        "end_to_end",
        ("--warm", "--grid", FINE_GRID, "--steps", "120"),
        ("--steps", "8", "--block", "2"),
        ("step-fine", "pause"),
        (OLD,),
        "QD_ENERGY_W=0",
        120.0,
    ),
    _whole("old-cold", "--cold", ("wall-cold", "pause", "memory"), setting="QD_ENERGY_W=0"),
    _whole("new-cold", "--cold", ("wall-cold", "pause", "memory"), program=NEW),
    _whole("old-warm", "--warm", ("wall-warm", "memory"), setting="QD_ENERGY_W=0"),
    _whole("old-warm-energy", "--warm", ("wall-warm",), setting=ENERGY),
    Measurement(
        "collection",
        "collection",
        (),
        ("--only", "jacobi_2d", "softmax", "--calls", "1", "--budget", "0.1"),
        ("collection", "slowest"),
        (NPBENCH,),
        seconds=1000.0,
    ),
    Measurement(
        "kernels",
        "kernels",
        (),
        ("--sizes", "32", "--calls", "3", "--budget", "0.05", "--only", "heat", "softmax"),
        ("kernels", "slowest"),
        seconds=200.0,
    ),
    Measurement(
        "peers",
        "functions",
        ("--grids", PEER_GRID, "--only", "_laplacian_sphere"),
        ("--budget", "0.2"),
        ("peer",),
        (OLD, MINIATURE),
    ),
    Measurement("overheads", "overheads", (), ("--rounds", "40"), ("guards", "stay"), seconds=40.0),
)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.goals", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--pygcm", metavar="DIR", action="append", default=[], help="a checkout; repeatable")
    arguments.add_argument("--npbench", metavar="DIR", type=Path, help="a checkout of spcl/npbench")
    arguments.add_argument("--only", metavar="ROW", nargs="+", default=[], help=f"of {', '.join(ROWS)}")
    arguments.add_argument("--quick", action="store_true", help="short runs, to try it out")
    arguments.add_argument("--resume", action="store_true", help="keep what a run that was broken off has measured")
    arguments.add_argument("--results", metavar="DIR", type=Path, default=RESULTS, help="build/bench")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when all that could be measured was, 1 when a benchmark failed."""
    options = parser().parse_args(argv)
    for name in options.only:
        if name not in ROWS:
            raise BadInput(f"--only {name}: no such row; there are {', '.join(ROWS)}")
    checkouts = checkouts_by_name(options.pygcm, options.npbench)
    folder = results_folder(options.results)
    wanted = [each for each in MEASUREMENTS if not options.only or set(each.rows) & set(options.only)]
    ledger = Ledger(folder, options.resume)
    say(ledger.plan(parts_of(wanted, checkouts, options.quick)))
    result = measure(wanted, checkouts, ledger, folder, options.quick, options.only)
    print(describe(result))
    return 1 if has_failed(result) else 0


def say(text: str) -> None:
    """Tell the one who waits: at once, and not among the results."""
    print(text, file=sys.stderr, flush=True)


def has_failed(result: Mapping[str, Any]) -> bool:
    """Whether any row, or other part of the run, has no figure that should have one, or a wrong one."""
    return bool(result.get("failed")) or any(row["verdict"] == "failed" for row in result["rows"])


def results_folder(named: Path) -> Path:
    """The folder, made where it is not there."""
    try:
        named.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--results {named}: {error.strerror}") from None
    return named


def checkouts_by_name(pygcm: Sequence[str], npbench: Path | None = None) -> dict[str, Path]:
    """PyGCM's of `--pygcm`, or else of QD_PYGCM_PATH, by revision; the collection's; and the bundled miniature."""
    found = {MINIATURE: harness.MINIATURE}
    for text in pygcm or [each for each in os.environ.get("QD_PYGCM_PATH", "").split(os.pathsep) if each]:
        folder = harness.checkout(text)
        found[NEW if (folder / "pygcm" / "jax_compat.py").is_file() else OLD] = folder
    if npbench is None and (named := os.environ.get("QD_NPBENCH_PATH")):
        npbench = Path(named)
    if npbench is not None:
        collection.chosen(npbench, ())
        found[NPBENCH] = npbench.resolve()
    return found


def parts_of(wanted: Sequence[Measurement], checkouts: Mapping[str, Path], quick: bool) -> list[Part]:
    """The parts whose programs are there."""
    found = [(each, each.program(checkouts)) for each in wanted]
    return [each.part(program, checkouts.get(program), quick) for each, program in found if program is not None]


def measure(
    wanted: Sequence[Measurement],
    checkouts: Mapping[str, Path],
    ledger: Ledger,
    folder: Path,
    quick: bool,
    only: Sequence[str] = (),
) -> dict[str, Any]:
    """Run the benchmarks and collect their goals; written each time, since a long run may be broken off."""
    rows: list[dict[str, Any]] = []
    result = assemble(rows, quick, ledger.commit)
    for measurement in wanted:
        found = run(measurement, checkouts, ledger, quick)
        rows += [row for row in found if not only or row["id"] in only]
        result = assemble(rows, quick, ledger.commit)
        write(result, folder)
    return result


def assemble(rows: Sequence[dict[str, Any]], quick: bool, commit: str) -> dict[str, Any]:
    """Rows in the order of the table, and where they were measured."""
    order = list(ROWS)
    return {
        "benchmark": "goals",
        "quick": quick,
        "rows": sorted(rows, key=lambda row: order.index(row["id"])),
        "machine": harness.machine(),
        "versions": harness.versions(),
        "commit": commit,
        "date": time.strftime("%Y-%m-%d"),
    }


def run(measurement: Measurement, checkouts: Mapping[str, Path], ledger: Ledger, quick: bool) -> list[dict[str, Any]]:
    """One benchmark's rows: measured, skipped where its program is not there, or failed."""
    program = measurement.program(checkouts)
    if program is None:
        ledger.forget(measurement.name)
        why = f"needs a checkout of {NEEDED[measurement.programs[0]]} DIR"
        return [_unmeasured(id_, "skipped", why) for id_ in measurement.rows]
    where = measurement.on(program)
    part = measurement.part(program, checkouts.get(program), quick)
    ended = told(ledger, part, f"{', '.join(measurement.rows)} on {where}")
    why = f"{measurement.module}: {ended.why}" if ended.why else ""
    try:
        result = json.loads(ledger.path(measurement.name).read_text())
        rows = [row for id_ in measurement.rows for row in _measured(id_, result["goals"], where)]
        rows = [_with_median(row, result) for row in rows]
    except Exception as error:  # whatever a benchmark wrote, the others' rows are to be shown
        why = why or f"{measurement.module}: its result cannot be read: {error!r}"
        return [_unmeasured(id_, "failed", why) for id_ in measurement.rows]
    return [{**row, "verdict": "failed", "why": why} for row in rows] if why else rows


def told(ledger: Ledger, part: Part, what: str) -> Ended:
    """Run a part, and say so."""
    if (known := ledger.ended(part)) is not None:
        say(f"{part.name}: measured before, in {took(known)}")
        return known
    say(f"{part.name}: measuring {what}: about {part.expected_s:.0f} s ...")
    ended = ledger.run(part)
    say(f"  {took(ended)}{': FAILED: ' if ended.why else ''}{ended.why}")
    return ended


def _with_median(row: dict[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """Beside a mean of steps, the median."""
    return {**row, "median": float(result["ratio"])} if row["id"].startswith("step-") and "ratio" in result else row


def _unmeasured(id_: str, verdict: str, why: str) -> dict[str, Any]:
    return {"id": id_, "goal": ROWS[id_].text, "measured": None, "limits": ROWS[id_].limits, "verdict": verdict} | {
        "why": why
    }


def _measured(id_: str, records: Sequence[Mapping[str, Any]], where: str) -> list[dict[str, Any]]:
    """A row per thing measured, such as each function of `peer`, with a verdict on each of its limits."""
    by_name: dict[str, list[Goal]] = {}
    for goal in goal_table.of_row(id_, records):
        by_name.setdefault(goal.name, []).append(goal)
    if not by_name:
        return [_unmeasured(id_, "failed", "the benchmark gave no figure for it")]
    return [
        {
            "id": id_,
            "goal": name,
            "on": where,
            "measured": goals[0].measured,
            "limits": [goal.limit for goal in goals],
            "verdict": _verdict(goals),
        }
        for name, goals in by_name.items()
    ]


def _verdict(goals: Sequence[Goal]) -> str:
    """met, missed, or for two limits what became of the second."""
    if not goals[0].met:
        return "missed"
    return "met" if all(goal.met for goal in goals) else f"met, not yet {goals[-1].limit:g}"


# --- the result -------------------------------------------------------------------------------------------------------


def write(result: Mapping[str, Any], folder: Path) -> None:
    """`goals.json` and `goals.md`."""
    harness.write_json(folder / "goals.json", result)
    (folder / "goals.md").write_text(describe(result) + "\n")


def describe(result: Mapping[str, Any]) -> str:
    """The rows as a table, what was skipped, and the machine."""
    rows = [[row["goal"], _figure(row), _wanted(row), row["verdict"], row.get("on", "")] for row in result["rows"]]
    remarks = [f"- {row['goal']}: {row['verdict']}, {row['why']}" for row in result["rows"] if "why" in row]
    remarks += [f"- {name}: failed, {why}" for name, why in result.get("failed", {}).items()]
    shown = result["machine"]
    met = sum(row["verdict"].startswith("met") for row in result["rows"])
    parts = [
        "Quick run: it shows that all of this works; the figures mean nothing." if result["quick"] else "",
        harness.markdown_table(["goal", "measured", "wanted", "", "on"], rows),
        "\n".join(remarks),
        f"{met} of {len(rows)} met. {shown['cpu']}, {shown['cores']} cores, {shown['memory_gb']} GB; "
        f"commit {result['commit'] or 'unknown'}; "
        + ", ".join(f"{name} {version}" for name, version in result["versions"].items()),
    ]
    return "\n\n".join(part for part in parts if part)


def _figure(row: Mapping[str, Any]) -> str:
    measured = row["measured"]
    if measured is None or not math.isfinite(float(measured)):
        return ""
    median = f" (median {float(row['median']):.3g})" if "median" in row else ""
    return f"{float(measured):.3g} {ROWS[row['id']].unit}{median}"


def _wanted(row: Mapping[str, Any]) -> str:
    side = "at least" if ROWS[row["id"]].at_least else "at most"
    return f"{side} {', then '.join(f'{limit:g}' for limit in row['limits'])} {ROWS[row['id']].unit}"


if __name__ == "__main__":
    harness.run_command(main)
