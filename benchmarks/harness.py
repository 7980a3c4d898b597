"""What every benchmark shares: errors against NumPy, interleaved timing, the machine, JSON, tables and goals.

Nothing here imports accel or JAX, so that a plain NumPy child stays plain.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

REPOSITORY = Path(__file__).resolve().parent.parent
MINIATURE = REPOSITORY / "pygcm_patch" / "miniature"
PACKAGES = ("numpy", "scipy", "jax", "jaxlib", "wrapt", "numba", "pygcm-accel")


class BadInput(Exception):
    """An argument that cannot be used; its text is the one line that the user sees."""


def run_command(main: Callable[[], int]) -> NoReturn:
    """Run a benchmark's `main` as a command: bad input is one line on standard error and exit code 2."""
    try:
        sys.exit(main())
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


# --- agreement with NumPy ------------------------------------------------------------------------------------------


def relative_error(found: Any, expected: Any) -> float:
    """Largest difference between two arrays, relative to the largest finite magnitude in `expected`.

    found, expected: array-likes of any numeric dtype. Infinite when shapes differ, or when NaN or infinity stand in
    different places. Where `expected` is 0 everywhere, the difference itself.

    >>> relative_error([1.0, 2.5], [1.0, 2.0])
    0.25
    """
    from accel.tools.comparison.runs import (
        error_between,  # not above: children that must run plainly import this module
    )

    return error_between(_widened(np.asarray(found)), _widened(np.asarray(expected)))


def _widened(array: np.ndarray) -> np.ndarray:
    """`array` as complex128 or float64, so that differences of bools and unsigned integers mean something."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


# --- timing --------------------------------------------------------------------------------------------------------


def interleaved(
    rivals: Mapping[str, Callable[..., Any]],
    make_arguments: Callable[[], Sequence[Any]],
    rounds: int = 15,
    budget_s: float = 2.0,
) -> dict[str, list[float]]:
    """Time every rival on equal fresh arguments, in turn, so that all see the same machine load.

    `make_arguments` is called, untimed, before each call: mutation cannot carry over. The order turns round by
    round. Stops after `rounds`, or after 3 once `budget_s` seconds are spent. Returns seconds per call, by name.
    """
    times: dict[str, list[float]] = {name: [] for name in rivals}
    names = list(rivals)
    started = time.perf_counter()
    for round_ in range(rounds):
        if round_ >= 3 and time.perf_counter() - started > budget_s:
            break
        for name in rotated(names, round_):
            arguments = make_arguments()
            begin = time.perf_counter()
            rivals[name](*arguments)
            times[name].append(time.perf_counter() - begin)
    return times


def rotated(items: Sequence[Any], by: int) -> list[Any]:
    """`items` starting `by` places later, the first ones last."""
    by %= len(items)
    return [*items[by:], *items[:by]]


def median_ms(seconds: Iterable[float]) -> float:
    """Median of durations, s in, ms out; NaN when there are none."""
    seconds = list(seconds)
    return 1e3 * statistics.median(seconds) if seconds else math.nan


def mean_ms(seconds: Iterable[float]) -> float:
    """Mean of durations, s in, ms out; NaN when there are none."""
    seconds = list(seconds)
    return 1e3 * statistics.fmean(seconds) if seconds else math.nan


def geometric_mean(ratios: Iterable[float]) -> float:
    """Geometric mean of positive ratios; NaN when there are none."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


FINISHES = {"QD_JAX_FINISH_S": "60"}
"""accel's default, for children whose next start is measured too: `let_finish` comes between."""


def let_finish(cache: str | Path | None) -> None:
    """Wait until what a run has left behind is compiled: it takes the processor from what comes next.

    cache: accel's folder in that run; None: it had none.
    """
    until = time.monotonic() + 2.0 * float(FINISHES["QD_JAX_FINISH_S"])
    while cache is not None and any(Path(cache).rglob("*.coming")) and time.monotonic() < until:
        time.sleep(0.1)


def peak_rss_mb() -> float:
    """Peak resident memory of this process, MB.

    `getrusage` counts the parent's memory before `exec` too, so Linux's own high-water mark comes first.
    """
    try:
        status = Path("/proc/self/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024 / 1e6  # type: ignore[index]
    except (OSError, TypeError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


# --- where it was measured -----------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """This machine: cpu model, cores that this process may use, memory in GB, operating system."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "os": platform.platform(),
    }


def _cpu_model() -> str:
    """The processor's marketing name where the system tells it, else its architecture."""
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of Python and of every package that a result may depend on; absent ones are left out."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit(tree: Path = REPOSITORY) -> str:
    """The commit of `tree`, with `-dirty` behind it where files were changed since; empty where git knows of none."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


# --- goals, tables, files ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """A figure that was measured and the limit that it has to keep; `at_least` says on which side."""

    name: str
    measured: float
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the limit is kept; NaN never keeps one."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def row(self) -> list[str]:
        """This goal as a table row: name, measured, limit, met or missed."""
        side = "at least" if self.at_least else "at most"
        unit = f" {self.unit}" if self.unit else ""
        verdict = "met" if self.met else "MISSED"
        return [self.name, f"{self.measured:.4g}{unit}", f"{side} {self.limit:.4g}{unit}", verdict]

    def record(self) -> dict[str, Any]:
        """This goal for JSON."""
        return {**asdict(self), "met": self.met}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The goal that `record` came from."""
        found = {key: value for key, value in record.items() if key != "met"}
        return cls(**{**found, "measured": float(found["measured"])})  # JSON has NaN as text


def goals_table(goals: Sequence[Goal]) -> str:
    """All goals as a Markdown table."""
    return markdown_table(["goal", "measured", "wanted", ""], [goal.row() for goal in goals])


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table with aligned columns; numbers are right-aligned.

    >>> print(markdown_table(["kernel", "ratio"], [["roll", 2.0]]))
    | kernel | ratio |
    |--------|------:|
    | roll   |     2 |
    """
    cells = [[_cell(value) for value in row] for row in rows]
    table = [list(header), *cells]
    widths = [max(3, *(len(row[column]) for row in table)) for column in range(len(header))]
    numeric = [bool(cells) and all(_is_number(row[column]) for row in cells) for column in range(len(header))]
    rule = "|".join("-" * (width + 1) + (":" if right else "-") for width, right in zip(widths, numeric, strict=True))
    lines = [_line(row, widths, numeric) for row in table]
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def _line(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    """One table row, padded."""
    padded = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(row, widths, numeric, strict=True)
    ]
    return "| " + " | ".join(padded) + " |"


def _cell(value: Any) -> str:
    """A table cell: four significant digits for floats, text for the rest."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_number(cell: str) -> bool:
    """Whether a cell reads as a number (an empty cell does not)."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def write_json(path: str | Path, result: Mapping[str, Any]) -> None:
    """Write `result` as indented JSON; NaN and infinity become strings, since JSON has neither."""
    Path(path).write_text(json.dumps(_jsonable(result), indent=2, allow_nan=False) + "\n")


def _jsonable(value: Any) -> Any:
    """`value` with NumPy scalars as Python's, and numbers that JSON cannot hold as text."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


# --- arguments -----------------------------------------------------------------------------------------------------


def parse_grid(text: str) -> tuple[int, int]:
    """`"121x240"` as (121, 240): numbers of latitudes and longitudes, at least 8 each.

    >>> parse_grid("361x720")
    (361, 720)
    """
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if not found or min(int(found[1]), int(found[2])) < 8:
        raise BadInput(f"--grid {text!r}: expected NLATxNLON with at least 8 of each, such as 121x240")
    return int(found[1]), int(found[2])


def parse_settings(pairs: Sequence[str]) -> dict[str, str]:
    """`["QD_ENERGY_W=1"]` as a dict; environment variables for every child."""
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise BadInput(f"--env {pair!r}: expected NAME=VALUE, such as QD_ENERGY_W=1")
        settings[name] = value
    return settings


def checkout(path: str | None) -> Path:
    """The folder of the program to run: a PyGCM checkout, or the bundled miniature when none is named."""
    folder = Path(path).resolve() if path else MINIATURE
    if not (folder / "pygcm").is_dir():
        raise BadInput(f"--pygcm {path or folder}: no folder 'pygcm' there; name a checkout of PyGCM")
    return folder


def check_writable(path: str | None) -> None:
    """Refuse an output file whose folder is not there, before anything is measured."""
    if path and not Path(path).resolve().parent.is_dir():
        raise BadInput(f"--out {path}: its folder does not exist")


def positive_int(text: str) -> int:
    """An argparse type: an int of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def positive_float(text: str) -> float:
    """An argparse type: a float above 0."""
    value = float(text)
    if not value > 0.0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def fraction(text: str) -> float:
    """An argparse type: a float from 0 up to, not including, 1."""
    value = float(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value
