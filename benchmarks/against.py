"""Two trees of accel in turns: a commit against the working tree, on whole programs and on small kernels.

`python -m benchmarks.against COMMIT [--pygcm DIR ...] [--cases NAME ...]` unpacks COMMIT into a temporary folder and
runs the same programs on both trees, each run a fresh process, the trees taking turns. Programs and everything that
measures come from the working tree; of accel only what is public is used (`accel run`, `accel.accelerate`,
`accel.report`), so that the trees may be laid out as they like. A ratio is the median over the rounds of the time
before, divided by the time after: above 1 the working tree is faster. Its spread is the least and the most of any
round; where 1 lies within it, nothing can be said.
"""

from __future__ import annotations

import argparse
import io
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import cases, corpus, goals, harness, steady
from benchmarks.cases import CASES, Case, Start
from benchmarks.harness import REPOSITORY, BadInput
from benchmarks.lockstep import ChildFailed

KERNELS = "kernels"
"""The name that stands for all kernels."""

Figures = dict[tuple[str, str], float]
"""What one process measured, by case and by what of it, such as ("miniature", "step, ms")."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__.split("\n\n")[0])
    arguments.add_argument("commit", metavar="COMMIT", help="what the working tree is held against")
    arguments.add_argument("--pygcm", metavar="DIR", action="append", default=[], help="a checkout; repeatable")
    arguments.add_argument(
        "--cases", metavar="NAME", nargs="+", default=[], help=f"of {', '.join(CASES)}, {KERNELS}, or a kernel's name"
    )
    arguments.add_argument("--steps", type=harness.positive_int, default=240, help="of a program (default 240)")
    arguments.add_argument("--warm", action="store_true", help="each tree's programs with a filled disk cache")
    arguments.add_argument("--size", type=harness.positive_int, default=256, help="of a kernel's arrays (256)")
    arguments.add_argument("--settle", type=harness.positive_float, default=10.0, help="s to wait for a compile (10)")
    arguments.add_argument("--budget", type=harness.positive_float, default=0.5, help="s of timing a kernel (0.5)")
    arguments.add_argument("--rounds", type=harness.positive_int, default=5)
    arguments.add_argument("--env", metavar="K=V", action="append", default=[], help="environment of all children")
    arguments.add_argument("--quick", action="store_true", help="two short rounds, to try it out")
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when all was measured, whatever the figures, and 1 when a child failed."""
    options = parser().parse_args(argv)
    if options.quick:
        options.rounds, options.steps, options.settle, options.budget = 2, 20, 0.5, 0.05
    harness.check_writable(options.out)
    checkouts = goals.checkouts_by_name(options.pygcm)
    programs, kernels = split(options.cases)
    wanted, remarks = cases.chosen(programs, checkouts) if programs else ([], [])
    settings = harness.parse_settings(options.env)
    commit = resolved(options.commit)
    with tempfile.TemporaryDirectory(prefix="accel-against-") as scratch:
        trees = {"before": unpacked(commit, Path(scratch) / "before"), "after": REPOSITORY}
        for tree in trees.values():
            cases.compile_sources(tree)
        contests: list[Contest] = [OfProgram(case, checkouts, settings, options) for case in wanted]
        contests += [OfKernels(kernels, settings, options)] if kernels else []
        rows, failed = held(contests, trees, Path(scratch), options.rounds)
    result = assemble(options, commit, rows, remarks, failed)
    print(describe(result))
    if options.out:
        harness.write_json(options.out, result)
    return 1 if failed else 0


def split(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The named programs and kernels; without any, all programs that are there and all kernels."""
    known = [kernel.name for kernel in corpus.KERNELS]
    for name in names:
        if name not in (*CASES, KERNELS, *known):
            raise BadInput(f"--cases {name}: no such case; there are {', '.join([*CASES, KERNELS, *known])}")
    programs = [name for name in names or CASES if name in CASES]
    return programs, known if not names or KERNELS in names else [name for name in names if name in known]


# --- the trees --------------------------------------------------------------------------------------------------------


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Ask git about this repository."""
    try:
        return subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, check=False)
    except FileNotFoundError:
        raise BadInput("COMMIT: git is not there") from None


def resolved(name: str) -> str:
    """The full hash of the commit that `name` stands for."""
    done = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if done.returncode:
        raise BadInput(f"COMMIT {name}: git knows no such commit here")
    return done.stdout.decode().strip()


def unpacked(commit: str, folder: Path) -> Path:
    """What a commit held, but for its benchmarks: those of the working tree measure both.

    No worktree of git's, which would stay registered when a run is broken off.
    """
    done = git("archive", "--format=zip", commit, "--", ".", ":(exclude)benchmarks")
    if done.returncode:
        raise BadInput(f"COMMIT {commit}: {done.stderr.decode().strip()}")
    with zipfile.ZipFile(io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder)
    return folder


# --- measuring --------------------------------------------------------------------------------------------------------

Contest = Callable[[Path, Path, Path], Figures]
"""One process on one tree. Takes the tree, a new scratch folder, and the folder for what the tree's runs share."""


@dataclass(frozen=True)
class OfProgram:
    """A whole program: the time of the process, of all its threads, of its exit, and of a steady step."""

    case: Case
    checkouts: Mapping[str, Path]
    settings: Mapping[str, str]
    options: argparse.Namespace

    def __call__(self, tree: Path, folder: Path, kept: Path) -> Figures:
        start = Start(self.case, self.checkouts, self.settings, tree)
        cache = (kept if self.options.warm else folder) / f"cache-{self.case.name}"
        if self.options.warm and not cache.is_dir():
            start.run("accel", folder / "earlier", cache, steps=self.options.steps)
        run = start.run("accel", folder / "run", cache, steps=self.options.steps)
        figures = {"process, s": run.wall_s, "its CPU, s": run.cpu_s, "exit, s": run.exit_s, "step, ms": run.step_ms}
        return {(self.case.name, what): figure for what, figure in figures.items()}

    def __str__(self) -> str:
        return self.case.name


@dataclass(frozen=True)
class OfKernels:
    """Kernels one after the other in one process, each once it is compiled or given up."""

    names: Sequence[str]
    settings: Mapping[str, str]
    options: argparse.Namespace

    def __call__(self, tree: Path, folder: Path, kept: Path) -> Figures:
        given = {name: getattr(self.options, name) for name in ("size", "settle", "budget")}
        found = steady.measured_on(tree, self.names, given, folder, self.settings)
        return {(name, "call, ms"): ms for name, ms in found.items()}

    def __str__(self) -> str:
        return f"{len(self.names)} kernels"


def held(
    contests: Sequence[Contest], trees: Mapping[str, Path], scratch: Path, rounds: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """All contests' rows, and the names of those that failed."""
    rows: list[dict[str, Any]] = []
    failed = []
    for contest in contests:
        print(f"{contest}: {rounds} rounds ...", file=sys.stderr, flush=True)
        try:
            rows += lines(in_turns(contest, trees, scratch / str(contest), rounds))
        except ChildFailed as failure:
            print(f"error: {failure}", file=sys.stderr)
            failed.append(str(contest))
    return rows, failed


def in_turns(contest: Contest, trees: Mapping[str, Path], scratch: Path, rounds: int) -> dict[str, list[Figures]]:
    """Figures by tree, a process each a round; who comes first changes from round to round."""
    found: dict[str, list[Figures]] = {name: [] for name in trees}
    for round_ in range(rounds):
        for name in harness.rotated(list(trees), round_):
            found[name].append(contest(trees[name], scratch / f"{name}-{round_}", scratch / f"{name}-kept"))
    return found


def lines(found: Mapping[str, Sequence[Figures]]) -> list[dict[str, Any]]:
    """A row for each figure: medians before and after, the ratio of the rounds, its least and its most."""
    rows = []
    for key in found["before"][0]:
        before, after = ([figures[key] for figures in found[name]] for name in ("before", "after"))
        ratios = [old / new for old, new in zip(before, after, strict=True)]
        row = {"case": key[0], "what": key[1], "before": statistics.median(before), "after": statistics.median(after)}
        row |= {"ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
        rows.append({**row, "all_before": before, "all_after": after})
    return rows


# --- the result -------------------------------------------------------------------------------------------------------


def assemble(
    options: argparse.Namespace, commit: str, rows: list[dict[str, Any]], remarks: list[str], failed: list[str]
) -> dict[str, Any]:
    """Everything measured, as it goes into JSON."""
    return {
        "benchmark": "against",
        "quick": options.quick,
        "before": commit,
        "after": harness.commit(),
        "cache": "warm" if options.warm else "cold",
        "steps": options.steps,
        "size": options.size,
        "rounds": options.rounds,
        "rows": rows,
        "kernels_geometric_mean": harness.geometric_mean(row["ratio"] for row in rows if row["what"] == "call, ms"),
        "skipped": remarks,
        "failed": failed,
        "machine": harness.machine(),
        "versions": harness.versions(),
        "date": time.strftime("%Y-%m-%d"),
    }


def describe(result: Mapping[str, Any]) -> str:
    """One line per case and figure, then what was skipped or failed, and where this was measured."""
    shown = result["machine"]
    rows = [
        [row["case"], row["what"], row["before"], row["after"], f"{row['ratio']:.2f}", spread(row)]
        for row in result["rows"]
    ]
    header = ["case", "what", "before", "after", "before / after", "spread"]
    mean = result["kernels_geometric_mean"]
    parts = [
        "Quick run: it shows that all of this works; the figures mean nothing." if result["quick"] else "",
        f"before: {result['before'][:12]}; after: the working tree, {result['after'] or 'unknown'}; "
        f"programs of {result['steps']} steps, disk cache {result['cache']}; {result['rounds']} rounds",
        harness.markdown_table(header, rows) if rows else "",
        f"kernels, geometric mean: {mean:.2f}" if mean == mean else "",
        "\n".join([*result["skipped"], *(f"- {name}: failed" for name in result["failed"])]),
        f"{shown['cpu']}, {shown['cores']} cores, {shown['memory_gb']} GB; "
        + ", ".join(f"{name} {version}" for name, version in result["versions"].items()),
    ]
    return "\n\n".join(part for part in parts if part)


def spread(row: Mapping[str, Any]) -> str:
    """The least and the most of any round."""
    return f"{row['least']:.2f} to {row['most']:.2f}"


if __name__ == "__main__":
    harness.run_command(main)
