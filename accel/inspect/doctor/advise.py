"""Advise: a verdict for each function, from its text and, where the program was run, from what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from accel.catalogue import discover
from accel.inspect.doctor.measure import Answer
from accel.inspect.doctor.scan import Scan, reach, scan
from accel.inspect.explain import apart
from accel.inspect.sources import Function, Source, functions_of
from accel.reasons import Refusal, source_line

SCHEMA = 1

FEWEST_CALLS = 5
"""Calls in the run below which compiling is not worth its time."""

SMALLEST_MS = 0.05
"""Milliseconds per call below which a replay's own overhead is as large."""

LEAST_WEIGHT = 1.0
"""Array work in the text (see `Scan.weight`) below which a function is not worth a row, as far as text can tell."""


class Worth(StrEnum):
    """What to do about a function. ROW: give it a row. The others say why not."""

    ROW = "row"
    STOPPED = "stopped"
    UNREACHABLE = "unreachable"
    RARE = "rare"
    SMALL = "small"
    UNTRIED = "untried"
    UNCALLED = "uncalled"
    NO_ARRAYS = "no arrays"


STATIC_VERDICTS = {
    Worth.ROW: "do array work: candidates, the ones with most of it first",
    Worth.STOPPED: "do array work, but no recording gets through them",
    Worth.RARE: "run once, as far as their names tell",
    Worth.UNREACHABLE: "are made inside another function, where no catalogue can name them",
    Worth.NO_ARRAYS: "no array work to be seen",
}
"""The same where only the text is known."""

VERDICTS = {
    Worth.ROW: "worth a row in a catalogue",
    Worth.STOPPED: "takes time, but recording it stops",
    Worth.RARE: f"called fewer than {FEWEST_CALLS} times: compiling would cost more than it saves",
    Worth.SMALL: f"takes less than {SMALLEST_MS:g} ms a call; inside a recorded caller it is compiled all the same",
    Worth.UNREACHABLE: "records, but no catalogue can name it",
    Worth.UNTRIED: "takes too little of the run to be worth trying",
    Worth.UNCALLED: "not called in this run",
    Worth.NO_ARRAYS: "no array work to be seen",
}
"""Each verdict in words."""


def account(target: str, sources: Sequence[Source], measured: Answer | None, run: str | None) -> Answer:
    """Everything the doctor knows: what its JSON holds, schema 1.

    measured: what `accel.inspect.doctor.measure` gave, or None for a static scan. run: the program, as the user wrote
    it.
    """
    catalogued = frozenset(row.target for each in discover() for row in each.rows)
    roots = frozenset(source.module.partition(".")[0] for source in sources)
    inside_s = sum(each["own_s"] for each in measured["functions"]) if measured else None
    book = {(each["file"], each["qualname"], each["line"]): each for each in (measured or {}).get("functions", ())}
    written = [function for source in sources for function in functions_of(source)]
    scans = [scan(function, roots) for function in written]
    by_name = {function.name: scanned for function, scanned in zip(written, scans, strict=True)}
    functions = [
        _entry(function, scanned, reach(scanned, by_name), book.get(_key(function)), inside_s)
        for function, scanned in zip(written, scans, strict=True)
    ]
    if measured is not None:
        _mark_outer(functions)
    for each in functions:
        each["catalogued"] = each["target"] in catalogued
    functions.sort(key=lambda each: (-(each["total_ms"] or 0.0), -each["weight"], each["target"]))
    return {
        "schema": SCHEMA,
        "target": target,
        "run": run,
        "ending": measured["ending"] if measured else None,
        "tried": measured is not None and apart.available(),
        "wall_s": measured["wall_s"] if measured else None,
        "inside_s": inside_s,
        "files": len(sources),
        "problems": [{"file": source.file, "why": source.problem} for source in sources if source.problem],
        "functions": functions,
    }


def _key(function: Function) -> tuple[str, str, int]:
    return function.source.file, function.qualname, function.code.co_firstlineno


def _entry(function: Function, scanned: Scan, reached: float, book: Answer | None, inside_s: float | None) -> Answer:
    """What is known of one function. inside_s: seconds in all of them; None where nothing was measured."""
    is_main = book is not None and book["module"] == "__main__"
    module = book["module"] if book is not None and not is_main else function.source.module
    entry: Answer = {
        "target": f"{module}.{function.qualname}",
        "module": module,
        "qualname": function.qualname,
        "where": source_line(function.source.file, function.line),
        "array_calls": scanned.array_calls,
        "arithmetic": scanned.arithmetic,
        "weight": reached,
        "local": function.local,
        "may_stop": [_finding(function, each) for each in scanned.findings],
        "calls": book["calls"] if book else None if inside_s is None else 0,
        "own_ms": 1e3 * book["own_s"] if book else None,
        "total_ms": 1e3 * book["total_s"] if book else None,
        "share": book["total_s"] / inside_s if book and inside_s else None,
        "ms_per_call": 1e3 * book["total_s"] / book["calls"] if book else None,
        "stops": _stops(book) if book else [],
        "operations": None,
        "notes": [],
        "mutates": False,
        "outer": False,
        "main": is_main,
        "callers": [[file, name] for file, name, _ in book["callers"]] if book else [],
        "file": function.source.file,
    }
    whole = next((each for each in book["tries"] if each["verdict"] == "recorded"), None) if book else None
    if whole is not None:
        entry["operations"], entry["notes"] = whole["operations"], whole["notes"]
        entry["mutates"] = bool(whole["outputs"]["changed"] or whole["outputs"]["writes"])
    reachable = not function.local and (book is None or book["wrappable"])
    known = inside_s is not None
    entry["verdict"] = str(
        _measured_verdict(entry, book, whole, reachable) if known else _static_verdict(entry, reachable)
    )
    return entry


def _finding(function: Function, finding: Any) -> Answer:
    where = source_line(function.source.file, finding.line)
    refusal = Refusal(finding.reason, where, finding.detail)
    return {"id": finding.reason, "where": where, "why": refusal.why, "hint": refusal.hint, "detail": finding.detail}


def _stops(book: Answer) -> list[Answer]:
    """What stopped the tries, each line once."""
    found: dict[tuple[str, str], Answer] = {}
    for each in book["tries"]:
        stop = each.get("stop")
        if stop is not None:
            found.setdefault((stop["id"], stop["where"]), stop)
    return list(found.values())


def _measured_verdict(entry: Answer, book: Answer | None, whole: Answer | None, reachable: bool) -> Worth:
    if book is None:
        return Worth.UNCALLED
    if whole is None:
        if entry["calls"] < FEWEST_CALLS:
            return Worth.RARE
        return Worth.STOPPED if book["tries"] else Worth.UNTRIED
    if entry["calls"] < FEWEST_CALLS:
        return Worth.RARE
    if entry["ms_per_call"] < SMALLEST_MS:
        return Worth.SMALL
    return Worth.ROW if reachable else Worth.UNREACHABLE


CERTAIN = frozenset({"call.generator", "code.unsupported", "effect.global"})
"""Reasons that hold for every call, wherever in the text they are."""


_ONCE = frozenset({"__init__", "__post_init__", "__new__", "main"})
"""Functions that run once for an object, or for the program."""


def _static_verdict(entry: Answer, reachable: bool) -> Worth:
    if entry["weight"] < LEAST_WEIGHT:
        return Worth.NO_ARRAYS
    if entry["qualname"].rpartition(".")[2] in _ONCE:
        return Worth.RARE
    if any(each["id"] in CERTAIN for each in entry["may_stop"]):
        return Worth.STOPPED
    return Worth.ROW if reachable else Worth.UNREACHABLE


def _mark_outer(functions: Iterable[Answer]) -> None:
    """A row is outer where something calls it that is neither a row itself nor runs only inside rows."""
    by_key = {(each["file"], each["qualname"]): each for each in functions}
    inside = {key for key, each in by_key.items() if each["verdict"] == Worth.ROW}
    for _ in range(len(by_key)):
        fresh = {
            key
            for key, each in by_key.items()
            if key not in inside and each["callers"] and all(tuple(caller) in inside for caller in each["callers"])
        }
        if not fresh:
            break
        inside |= fresh
    for each in by_key.values():
        callers = [tuple(caller) for caller in each["callers"]]
        each["outer"] = each["verdict"] == Worth.ROW and any(caller not in inside for caller in callers)
