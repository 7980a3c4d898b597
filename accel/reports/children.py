"""Reports of child processes: each writes its figures into a folder, and the parent's report can include them.

`gather_children` in the parent names the folder in an environment variable. All kinds of children inherit it: forked
and spawned ones, those of a fork server, of joblib and of dask. A child writes while it runs, and at its end, because
pools may kill their workers.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from accel.platform import forks, ledger
from accel.platform.clocks import time
from accel.reports.figures import figures_of_run, lines_of_all, totals_of

T = TypeVar("T", int, float)

VARIABLE = "ACCEL_GATHER"
"""Environment variable with the id of the gathering process, and the folder."""

EVERY_S = 0.25
"""Seconds between two checks for new figures to write."""

_SUMS: tuple[str, ...] = ("calls", "compiled_calls", "numpy_calls", "inlined_calls", "compile_s", "numpy_s")
_SUMS += ("compiled_s", "gained_s", "saved_s", "spread_s", "unsampled_calls", "samples", "checks")
_STATES = ("demoted", "compiled", "numpy", "inlined", "uncalled", "absent")
"""States in order of precedence, for a function that is in several states."""

_folder: tempfile.TemporaryDirectory[str] | None = None
_writing = False


def gather_children() -> None:
    """Collect the figures of child processes that start from now on, for `accel.report(children=True)`.

    Children write them four times a second, and at their end. The last quarter of a second before a child is killed is
    not counted.
    """
    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="accel-children-")
        os.environ[VARIABLE] = f"{os.getpid()}:{_folder.name}"


def begin() -> None:
    """Start writing figures in a child whose parent gathers. Called where functions are accelerated."""
    global _writing
    if not _writing and _place() is not None:
        _writing = True
        threading.Thread(target=_write_again, name="accel-figures", daemon=True).start()
        atexit.register(_write)
        util = sys.modules.get("multiprocessing.util")
        if util is not None:  # its children end without calling what `atexit` has
            util.Finalize(None, _write, exitpriority=-100)


def _place() -> Path | None:
    """Return the file for this process's figures; None if nobody gathers, or this process itself does."""
    process, _, folder = os.environ.get(VARIABLE, "").partition(":")
    return Path(folder, f"{os.getpid()}.json") if folder and process != str(os.getpid()) else None


def _write_again() -> None:
    written = -1
    while True:
        calls = sum(book.calls for book in ledger.ledgers())
        if calls != written:
            written = calls
            _write()
        time.sleep(EVERY_S)


_lock = threading.Lock()


def _write() -> None:
    place = _place()
    if place is None or not os.path.isdir(place.parent):  # the parent has ended
        return
    with contextlib.suppress(Exception), _lock:  # a missing report is no reason to disturb the program
        unfinished = place.with_suffix(".part")
        unfinished.write_text(json.dumps(figures_of_run()), encoding="utf-8")
        unfinished.replace(place)


@forks.in_child
def _in_child() -> None:
    """Count calls anew in a forked child, which is no gatherer. Its parent's thread does not write here."""
    global _writing, _lock, _folder
    _writing, _lock, kept, _folder = False, threading.Lock(), _folder, None
    if kept is not None:
        kept._finalizer.detach()  # type: ignore[attr-defined]  # the folder is the parent's
    if VARIABLE in os.environ:
        ledger.begin_again()
        begin()


def of_all() -> dict[str, Any]:
    """Return the merged figures of this process and of all children that have written theirs."""
    return merged(figures_of_run(), list(_of_children()))


def _of_children() -> Iterator[dict[str, Any]]:
    if _folder is not None:
        for path in sorted(Path(_folder.name).glob("*.json")):
            with contextlib.suppress(OSError, ValueError):
                yield json.loads(path.read_text(encoding="utf-8"))


def merged(own: dict[str, Any], others: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the figures of several processes. Times are sums; a call's time is that of the process with most calls."""
    if not others:
        return own
    of_each = [own, *others]
    by_target: dict[str, list[dict[str, Any]]] = {}
    for figures in of_each:
        for function in figures["functions"]:
            by_target.setdefault(function["target"], []).append(function)
    functions = [_one_of(by_target[target]) for target in sorted(by_target)]
    wall_s = sum(figures["wall_s"] for figures in of_each)
    costs = _sums(figures["totals"]["costs_s"] for figures in of_each)
    gained_s = sum(figures["totals"]["gained_s"] for figures in of_each)
    stretch = max(each["totals"]["stretch"] for each in of_each)
    freed_s = [sum(each["totals"]["freed_range_s"][at] for each in of_each) for at in (0, 1)]
    children = f"{len(others)} child process{'es' if len(others) > 1 else ''}"
    note = f"times are sums over this process and {children}"
    return {
        **own,
        "platform": next((each["platform"] for each in of_each if each["platform"]), None),
        "device": next((each["device"] for each in of_each if each["device"]), None),
        "precision": next((each["precision"] for each in of_each if each["precision"]), None),
        "finishing": sum(each["finishing"] for each in of_each),
        "wall_s": wall_s,
        "functions": functions,
        "totals": totals_of(functions, costs, gained_s, wall_s, stretch, freed_s),
        "notes": list(dict.fromkeys([*(note for each in of_each for note in each["notes"]), note])),
    }


def _one_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge one function's figures from several processes."""
    most = max(parts, key=lambda each: (each["compiled_calls"], each["calls"]))
    reasons: dict[tuple[str, ...], dict[str, Any]] = {}
    for each in parts:
        for reason in each["reasons"]:
            key = reason["id"], reason["where"], reason["why"]
            count = reasons[key]["count"] if key in reasons else 0
            reasons[key] = {**reason, "count": count + reason["count"]}
    errors = [each["max_rel_error"] for each in parts if each["max_rel_error"] is not None]
    return {
        **most,
        **{key: sum(each[key] for each in parts) for key in _SUMS},
        "transfers": {
            **{key: sum(each["transfers"][key] for each in parts) for key in ("launches", "constants", "held_rounds")},
            **{key: _sums(each["transfers"][key] for each in parts) for key in ("handed", "fetched", "not_held")},
            "lines": {
                way: lines_of_all(each["transfers"]["lines"][way] for each in parts) for way in ("handed", "fetched")
            },
        },
        "state": min((each["state"] for each in parts), key=_STATES.index),
        "max_rel_error": max(errors, default=None),
        "costs_s": _sums(each["costs_s"] for each in parts),
        "doubtful_since": min(filter(None, (each["doubtful_since"] for each in parts)), default=None),
        "differences": [difference for each in parts for difference in each["differences"]],
        "reasons": sorted(reasons.values(), key=lambda each: -each["count"]),
    }


def _sums(parts: Iterable[dict[str, T]]) -> dict[str, T]:
    """Add up several dicts of numbers, by key, in the order of first appearance."""
    found: dict[str, T] = {}
    for each in parts:
        for kind, number in each.items():
            found[kind] = found[kind] + number if kind in found else number
    return found
