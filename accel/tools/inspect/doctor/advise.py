"""Give a verdict for each function of a program that was measured."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from enum import StrEnum

from accel.catalogue import discover
from accel.platform.reasons import source_line
from accel.platform.spelling import function_name
from accel.tools.inspect.doctor.measure import Answer
from accel.tools.inspect.explain import apart
from accel.tools.inspect.sources import Function, Source, functions_of

SCHEMA = 1

FEWEST_CALLS = 5
"""Minimum calls in the run for which compiling a function is worth its time."""

SMALLEST_MS = 0.05
"""Minimum milliseconds of a call that is worth compiling: the overhead of a replay is as large."""


class DoctorAdvice(StrEnum):
    """Verdict on a function. ROW: give it a row in a catalogue. The other verdicts say why not."""

    ROW = "row"
    STOPPED = "stopped"
    UNREACHABLE = "unreachable"
    RARE = "rare"
    SMALL = "small"
    UNTRIED = "untried"
    UNCALLED = "uncalled"


VERDICTS = {
    DoctorAdvice.ROW: "worth a row in a catalogue",
    DoctorAdvice.STOPPED: "takes time, but recording it stops",
    DoctorAdvice.RARE: f"called fewer than {FEWEST_CALLS} times: compiling would cost more than it saves",
    DoctorAdvice.SMALL: f"takes less than {SMALLEST_MS:g} ms a call; inside a recorded caller it is compiled anyway",
    DoctorAdvice.UNREACHABLE: "records, but no catalogue can name it",
    DoctorAdvice.UNTRIED: "takes too little of the run to be worth trying",
    DoctorAdvice.UNCALLED: "not called in this run",
}
"""Headings, by verdict."""


def account(target: str, sources: Sequence[Source], measured: Answer, run: str) -> Answer:
    """Return all results of the doctor as the dict that its JSON holds (schema 1).

    measured: the result of `accel.tools.inspect.doctor.measure`. run: the program, as the user wrote it.
    """
    catalogued = frozenset(row.target for each in discover() for row in each.rows)
    inside_s = sum(each["own_s"] for each in measured["functions"])
    book = {(each["file"], each["qualname"], each["line"]): each for each in measured["functions"]}
    written = [function for source in sources for function in functions_of(source)]
    functions = [_entry(function, book.get(_key(function)), inside_s) for function in written]
    _mark_outer(functions)
    for each in functions:
        each["catalogued"] = each["target"] in catalogued
    functions.sort(key=lambda each: (-(each["total_ms"] or 0.0), each["target"]))
    return {
        "schema": SCHEMA,
        "target": target,
        "run": run,
        "ending": measured["ending"],
        "tried": apart.available(),
        "wall_s": measured["wall_s"],
        "inside_s": inside_s,
        "files": len(sources),
        "top_level_loops": any(_has_loop(source.tree) for source in sources),
        "problems": [{"file": source.file, "why": source.problem} for source in sources if source.problem],
        "functions": functions,
    }


def _has_loop(tree: ast.Module) -> bool:
    """Return whether the file's top level has a loop, also under an `if` or `with`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.For | ast.While):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return False


def _key(function: Function) -> tuple[str, str, int]:
    return function.source.file, function.qualname, function.code.co_firstlineno


def _entry(function: Function, book: Answer | None, inside_s: float) -> Answer:
    """Return the results for one function. inside_s: seconds in all functions."""
    # a script's module has this name while it runs: its own says more
    is_main = book is not None and book["module"] == "__main__"
    module = book["module"] if book is not None and not is_main else function.source.module
    entry: Answer = {
        "target": function_name(module, function.qualname),
        "module": module,
        "qualname": function.qualname,
        "where": source_line(function.source.file, function.code.co_firstlineno),
        "local": function.local,
        "calls": book["calls"] if book else 0,
        "own_ms": 1e3 * book["own_s"] if book else None,
        "total_ms": 1e3 * book["total_s"] if book else None,
        "share": book["total_s"] / inside_s if book and inside_s else None,
        "ms_per_call": 1e3 * book["total_s"] / book["calls"] if book else None,
        "stops": _stops(book) if book else [],
        "operations": None,
        "jax": None,
        "notes": [],
        "mutates": False,
        "outer": False,
        "main": is_main,
        "callers": [[file, name] for file, name, _ in book["callers"]] if book else [],
        "file": function.source.file,
    }
    whole = next((each for each in book["tries"] if each["verdict"] == "recorded"), None) if book else None
    if book is not None and whole is not None:
        entry["operations"], entry["jax"] = whole["operations"], bool((whole["lowered"] or {}).get("jax"))
        entry["notes"] = whole["notes"]
        entry["mutates"] = bool(whole["outputs"]["changed"] or whole["outputs"]["writes"])
    reachable = not function.local and (book is None or book["wrappable"])
    entry["verdict"] = str(_verdict(entry, book, whole, reachable))
    return entry


def _stops(book: Answer) -> list[Answer]:
    """Return the refusals that stopped the attempts to record the function, each line once."""
    stops: dict[tuple[str, str], Answer] = {}
    for each in book["tries"]:
        stop = each.get("stop")
        if stop is not None:
            stops.setdefault((stop["id"], stop["where"]), stop)
    return list(stops.values())


def _verdict(entry: Answer, book: Answer | None, whole: Answer | None, reachable: bool) -> DoctorAdvice:
    if book is None:
        return DoctorAdvice.UNCALLED
    if whole is None:
        if entry["calls"] < FEWEST_CALLS:
            return DoctorAdvice.RARE
        return DoctorAdvice.STOPPED if book["tries"] else DoctorAdvice.UNTRIED
    if entry["calls"] < FEWEST_CALLS:
        return DoctorAdvice.RARE
    if entry["ms_per_call"] < SMALLEST_MS:
        return DoctorAdvice.SMALL
    return DoctorAdvice.ROW if reachable else DoctorAdvice.UNREACHABLE


def _mark_outer(functions: Iterable[Answer]) -> None:
    """Mark a row as outer if a function calls it that is no row and does not run only inside rows."""
    by_key = {(each["file"], each["qualname"]): each for each in functions}
    inside = {key for key, each in by_key.items() if each["verdict"] == DoctorAdvice.ROW}
    # a function called only by functions inside rows is inside rows too, transitively
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
        each["outer"] = each["verdict"] == DoctorAdvice.ROW and any(caller not in inside for caller in callers)
