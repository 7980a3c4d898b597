"""Give a verdict for each function of a program that was called."""

from __future__ import annotations

from enum import StrEnum

from accel.catalogue import discover
from accel.platform.reasons import source_line
from accel.platform.spelling import function_name
from accel.tools.inspect.doctor.measure import Answer
from accel.tools.inspect.explain import apart

SCHEMA = 2

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


VERDICTS = {
    DoctorAdvice.ROW: "worth a row in a catalogue",
    DoctorAdvice.STOPPED: "takes time, but recording it stops",
    DoctorAdvice.RARE: f"called fewer than {FEWEST_CALLS} times: compiling would cost more than it saves",
    DoctorAdvice.SMALL: f"takes less than {SMALLEST_MS:g} ms a call; inside a recorded caller it is compiled anyway",
    DoctorAdvice.UNREACHABLE: "records, but no catalogue can name it",
    DoctorAdvice.UNTRIED: "takes too little of the run to be worth trying",
}
"""Headings, by verdict."""


def account(target: str, measured: Answer, run: str) -> Answer:
    """Return all results of the doctor as the dict that its JSON holds (schema 2).

    measured: the result of `accel.tools.inspect.doctor.measure`. run: the program, as the user wrote it.
    """
    inside_s = sum(each["own_s"] for each in measured["functions"])
    functions = [_entry(book, inside_s) for book in measured["functions"]]
    catalogued = {row.target for each in discover() for row in each.rows}
    for each in functions:
        each["catalogued"] = each["target"] in catalogued
    functions.sort(key=lambda each: (-each["total_ms"], each["target"]))
    return {
        "schema": SCHEMA,
        "target": target,
        "run": run,
        "ending": measured["ending"],
        "tried": apart.available(),
        "wall_s": measured["wall_s"],
        "inside_s": inside_s,
        "functions": functions,
    }


def _entry(book: Answer, inside_s: float) -> Answer:
    """Return the results for one function. inside_s: seconds in all functions."""
    local = "<locals>" in book["qualname"]
    entry: Answer = {
        "target": function_name(book["module"], book["qualname"]),
        "module": book["module"],
        "qualname": book["qualname"],
        "where": source_line(book["file"], book["line"]),
        "local": local,
        "calls": book["calls"],
        "own_ms": 1e3 * book["own_s"],
        "total_ms": 1e3 * book["total_s"],
        "share": book["total_s"] / inside_s if inside_s else 0.0,
        "ms_per_call": 1e3 * book["total_s"] / book["calls"],
        "stops": _stops(book),
        "operations": None,
        "jax": None,
        "notes": [],
        "file": book["file"],
    }
    whole = next((each for each in book["tries"] if each["verdict"] == "recorded"), None)
    if whole is not None:
        entry["operations"], entry["jax"] = whole["operations"], bool((whole["lowered"] or {}).get("jax"))
        entry["notes"] = whole["notes"]
    entry["verdict"] = str(_verdict(entry, book, whole, book["wrappable"] and not local))
    return entry


def _stops(book: Answer) -> list[Answer]:
    """Return the refusals that stopped the attempts to record the function, each line once."""
    stops: dict[tuple[str, str], Answer] = {}
    for each in book["tries"]:
        stop = each.get("stop")
        if stop is not None:
            stops.setdefault((stop["id"], stop["where"]), stop)
    return list(stops.values())


def _verdict(entry: Answer, book: Answer, whole: Answer | None, reachable: bool) -> DoctorAdvice:
    if entry["calls"] < FEWEST_CALLS:
        return DoctorAdvice.RARE
    if whole is None:
        return DoctorAdvice.STOPPED if book["tries"] else DoctorAdvice.UNTRIED
    if entry["ms_per_call"] < SMALLEST_MS:
        return DoctorAdvice.SMALL
    return DoctorAdvice.ROW if reachable else DoctorAdvice.UNREACHABLE
