"""The last report: each run keeps its figures on disk, so that `accel report` shows them after the process has ended.

It is one small file in the folder of the disk cache, replaced atomically; the last run to end wins. Nothing is kept if
the disk cache is off. A forked child keeps nothing, because its parent does. A program that decorates its functions
itself keeps its figures as well, but prints no summary.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from accel.platform import config, files, forks, ranks
from accel.platform.clocks import time
from accel.reports.figures import figures_of_run, finite

NAME = "last-report.json"

MOST_BYTES = 4_000_000
"""Maximum bytes of a report to keep."""

_NOT_FINITE = {each: float(each) for each in ("inf", "-inf", "nan")}


class Last(NamedTuple):
    """A kept report. program: the command line. ended: seconds since the epoch. profile: the page's file, or None."""

    figures: dict[str, Any]
    program: str
    ended: float
    folder: str
    profile: str | None


def place() -> Path | None:
    """Return the path of the report's file; None if the disk cache is off."""
    root = config.current().cache_dir
    return None if root is None else root / NAME


def keep(figures: dict[str, Any], program: str, *, profile: Path | None = None) -> bool:
    """Keep these figures as the last report. Returns False if that is impossible. Raises nothing."""
    path = place()
    if path is None or forks.happened:
        return False
    try:
        page = None if profile is None else str(profile)
        kept = Last(finite(figures), program, time.time(), os.getcwd(), page)
        content = json.dumps({"kept": 1, **kept._asdict()}, allow_nan=False).encode()
        if len(content) > MOST_BYTES:
            return False
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.replace(path, content)
        return True
    except (OSError, ValueError, TypeError):
        return False


@functools.cache
def keep_at_exit() -> None:
    """Keep the figures of this process at its end, unless nothing was called or `accel run` keeps them."""
    atexit.register(_keep_own)


def _keep_own() -> None:
    if config.current().quiet or not ranks.is_first() or _is_worker():
        return
    figures = figures_of_run()
    if figures["totals"]["calls"] and figures["mode"] != "off":
        keep(figures, " ".join(sys.argv))


def _is_worker() -> bool:
    """Whether the program's own `multiprocessing` has started this process."""
    started = sys.modules.get("multiprocessing.process")
    return started is not None and started.parent_process() is not None


def load() -> Last | None:
    """Return the last report; None if there is none that this version can read."""
    path = place()
    try:
        content = None if path is None else json.loads(path.read_bytes(), object_hook=_with_infinities)
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.pop("kept", None) != 1 or set(content) != set(Last._fields):
        return None
    return Last(**content)


def _with_infinities(pairs: dict[str, Any]) -> dict[str, Any]:
    """Restore infinities and NaN, which JSON lacks and `finite` stored as strings."""
    return {key: _NOT_FINITE.get(value, value) if isinstance(value, str) else value for key, value in pairs.items()}
