"""The report: what happened to each function, where each refusal came from, and what the whole run gained.

`_account()` returns a plain dict of exactly what the JSON report holds. Text and Markdown are views of it.
(The module is not called `report`, because importing it would hide the function `accel.report`.)
"""

from __future__ import annotations

import json
import math
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from statistics import median
from textwrap import wrap
from typing import Any

from accel import config
from accel.reasons import NO_LINE, REASONS, Refusal
from accel.reports import ledger
from accel.reports.ledger import Ledger, Run, State

SCHEMA = 2
WIDTH = 100
_DISTRIBUTIONS = ("pygcm-accel", "numpy", "scipy", "jax", "jaxlib", "wrapt")
_STATE_ORDER = tuple(State)

GAINED, LOST, EVEN = "gained", "lost", "even"
"""Whether a run gained or lost time, all costs counted. EVEN: too little to tell."""

EVEN_S, EVEN_SHARE = 0.05, 0.01
"""A gain or loss of less than these seconds, or this share of the run, counts as EVEN: the estimate is not exact."""


# -- the account -----------------------------------------------------------------------------------------------------


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _versions() -> dict[str, str | None]:
    return {"python": platform.python_version(), **{name: _version(name) for name in _DISTRIBUTIONS}}


def median_ms(seconds: Iterable[float]) -> float | None:
    """Return the median in milliseconds; None if `seconds` is empty."""
    kept = tuple(seconds)
    return 1e3 * median(kept) if kept else None


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _reasons(refusals: Mapping[Refusal, int]) -> list[dict[str, Any]]:
    """Return the refusals, the most frequent first."""
    ordered = sorted(refusals.items(), key=lambda item: (-item[1], item[0].reason, item[0].where, item[0].detail))
    return [
        {"id": refusal.reason, "where": refusal.where, "why": refusal.why, "hint": refusal.hint, "count": count}
        for refusal, count in ordered
    ]


def _refusals(book: Ledger) -> Counter[Refusal]:
    """Return what kept calls on NumPy, including what they waited for if nothing has been compiled."""
    refusals = Counter(book.refusals)
    awaited = book.waits() if book.waits is not None and book.state is State.NUMPY else None
    if awaited is not None:
        refusals[awaited] = book.numpy_calls - refusals.total()
    return +refusals


def _differences(book: Ledger) -> list[dict[str, Any]]:
    """Return the differences beyond the tolerance, the worst first."""
    ordered = sorted(book.differences.values(), key=lambda each: (-each.worst.error, each.worst.field))
    return [
        {
            "field": each.worst.field + each.worst.place,
            "what": each.worst.what,
            "error": each.worst.error,
            "points": each.worst.points,
            "verdict": each.verdict,
            "count": each.count,
        }
        for each in ordered
    ]


def figures(book: Ledger) -> dict[str, str]:
    """Return the cells of a function in the report's tables, by column."""
    account = _function(book)
    return {title: show(account) for title, show in _COLUMNS}


def _function(book: Ledger) -> dict[str, Any]:
    numpy_ms, compiled_ms = median_ms(book.numpy_s), median_ms(book.compiled_s)
    return {
        "target": book.target,
        "state": str(book.state),
        "calls": book.calls,
        "compiled_calls": book.compiled_calls,
        "numpy_calls": book.numpy_calls,
        "inlined_calls": book.inlined_calls,
        "variants": book.variants,
        "compile_s": book.compile_s,
        "numpy_ms": numpy_ms,
        "compiled_ms": compiled_ms,
        "per_call_speedup": _ratio(numpy_ms, compiled_ms),
        "speedup": _speedup(book.spent_s, book.saved_s) if book.compiled_calls else None,
        "max_rel_error": book.max_rel_error,
        "numpy_s": book.numpy_total_s,
        "compiled_s": book.compiled_total_s,
        "gained_s": book.gained_s,
        "costs_s": {cost: book.costs[cost] for cost in ledger.COSTS if cost in book.costs},
        "saved_s": book.saved_s,
        "checks": book.comparisons,
        "copying_s": median(book.copy_s) * book.compiled_calls if book.copy_s else None,
        "differences": _differences(book),
        "programs": [] if book.describe is None else book.describe(),
        "reasons": _reasons(_refusals(book)),
    }


def _speedup(spent_s: float, saved_s: float) -> float | None:
    """Return how many times as long NumPy alone would have taken: above 1 exactly if time was saved."""
    return _ratio(max(0.0, spent_s + saved_s), spent_s)


def _verdict(wall_s: float, saved_s: float) -> str:
    """Return GAINED, LOST, or EVEN."""
    if abs(saved_s) < max(EVEN_S, EVEN_SHARE * wall_s):
        return EVEN
    return GAINED if saved_s > 0 else LOST


def _steps(functions: list[dict[str, Any]], target: str | None) -> dict[str, Any] | None:
    """Return how many of the program's steps ran compiled; None if no catalogue says what a step is."""
    steps = [each for each in functions if each["target"] == target and each["calls"]]
    return {"total": steps[0]["calls"], "compiled": steps[0]["compiled_calls"]} if steps else None


def _totals(functions: list[dict[str, Any]], run: Run, wall_s: float) -> dict[str, Any]:
    """Return the sums over all functions, the costs that belong to none, and what the whole run gained."""
    errors = [each["max_rel_error"] for each in functions if each["max_rel_error"] is not None]
    return {
        **{key: sum(each[key] for each in functions) for key in ("calls", "compiled_calls", "numpy_calls")},
        **{key: sum(each[key] for each in functions) for key in ("numpy_s", "compiled_s", "compile_s")},
        "checks": sum(each["checks"] for each in functions),
        "copying_s": sum(each["copying_s"] or 0.0 for each in functions),
        "gained_s": run.gained_s,
        "costs_s": {cost: run.costs[cost] for cost in ledger.COSTS if cost in run.costs},
        "saved_s": run.saved_s,
        "net": _verdict(wall_s, run.saved_s),
        "estimated_numpy_s": max(0.0, wall_s + run.saved_s),
        "speedup": _speedup(wall_s, run.saved_s),
        "max_rel_error": max(errors, default=None),
        "states": {str(state): sum(each["state"] == state for each in functions) for state in State},
    }


def _account() -> dict[str, Any]:
    run = ledger.current_run()
    wall_s = run.wall_s
    functions = [_function(book) for book in ledger.ledgers()]
    return {
        "schema": SCHEMA,
        "versions": _versions(),
        "platform": run.platform,
        "device": run.device,
        "wall_s": wall_s,
        "steps": _steps(functions, run.step),
        "functions": functions,
        "totals": _totals(functions, run, wall_s),
        "notes": list(run.notes),
    }


# -- numbers as people read them -------------------------------------------------------------------------------------


def _number(value: float | None, pattern: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{pattern}}{unit}"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}x" if value < 10 else f"{value:.0f}x"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def summary_line() -> str:
    """Return what the run gained or lost, in one line, as printed at the end of a run."""
    return _summary(_account())


def _summary(account: dict[str, Any]) -> str:
    totals = account["totals"]
    if not totals["calls"]:
        return "accel: no accelerated function was called (see accel.report())"
    parts = [_work_done(account["steps"], totals)]
    if totals["max_rel_error"] is not None:
        parts.append(f"largest error {totals['max_rel_error']:.1g}")
    stayed = [each for each in account["functions"] if each["state"] in (State.NUMPY, State.DEMOTED) and each["calls"]]
    parts.append(f"{_plural(len(stayed), 'function')} stayed on NumPy")
    advice = [_advice(account)] if totals["net"] == LOST else []
    return f"accel: {'; '.join([_net(account), ', '.join(parts), *advice])} (see accel.report() for reasons)"


def _net(account: dict[str, Any]) -> str:
    """Return what the whole run gained or lost, all costs counted."""
    totals, wall = account["totals"], _s(account["wall_s"])
    if totals["net"] == EVEN:
        return f"this run took about as long as on NumPy, {wall}, by estimate"
    times = f"{wall} instead of about {_s(totals['estimated_numpy_s'])} on NumPy ({_times(totals['speedup'])})"
    return (
        f"this run {totals['net']} about {_s(abs(totals['saved_s']))}, by estimate: {times}, "
        "compiling and comparing included"
    )


def _advice(account: dict[str, Any]) -> str:
    """Return from which length on a run that lost time would have gained, and what to do about it."""
    totals, steps = account["totals"], account["steps"]
    what = "steps" if steps else "calls"
    done = steps or {"total": totals["calls"], "compiled": totals["compiled_calls"]}
    if not done["compiled"]:
        others = "" if _found_all(account) else f", and so may this one after `{_COMPILE}`"
        return f"none of its {what} were compiled before it ended: a longer run may gain{others}"
    if totals["gained_s"] <= 0:
        return "its compiled calls were no faster than NumPy's: larger arrays may gain, `--mode off` loses nothing"
    more = -totals["saved_s"] * done["compiled"] / totals["gained_s"]
    return f"it would have gained from about {_round_up(done['total'] + more)} {what} on; {_next_run()}"


def _found_all(account: dict[str, Any]) -> bool:
    """Whether every program was found on disk."""
    programs = [program for each in account["functions"] for program in each["programs"]]
    return bool(programs) and all(program["found_on_disk"] for program in programs)


_COMPILE = "python -m accel compile ..."


def _next_run() -> str:
    """Return what the next run will not have to compile, in words."""
    if config.current().cache_dir is None:
        return f"with the disk cache on ({config.VARIABLES['cache_dir']}) a next run compiles less"
    return f"a next run finds what this one compiled, and all of it after `{_COMPILE}`"


def _round_up(count: float) -> int:
    """Round an estimate up to two significant digits.

    >>> [_round_up(count) for count in (7, 99.5, 2263)]
    [7, 100, 2300]
    """
    unit = 10 ** max(0, len(str(int(count))) - 2)
    return int(math.ceil(count / unit) * unit)


def _work_done(steps: dict[str, Any] | None, totals: dict[str, Any]) -> str:
    if steps is None:
        return f"{totals['compiled_calls']} of {_plural(totals['calls'], 'call')} compiled"
    return f"{steps['compiled']} of {steps['total']} steps' work compiled"


def say_summary() -> None:
    """Write the summary line to standard error, unless that is closed."""
    if sys.stderr is not None and not sys.stderr.closed:
        sys.stderr.write(summary_line() + "\n")


# -- the views -------------------------------------------------------------------------------------------------------

_COLUMNS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("calls", lambda each: str(each["calls"])),
    ("compiled", lambda each: str(each["compiled_calls"])),
    ("numpy ms", lambda each: _ms(each["numpy_ms"])),
    ("accel ms", lambda each: _ms(each["compiled_ms"])),
    ("per call", lambda each: _times(each["per_call_speedup"])),
    ("saved s", lambda each: _number(each["saved_s"], ".2f") if each["saved_s"] or each["compiled_calls"] else "-"),
    ("error", lambda each: _number(each["max_rel_error"], ".0e")),
)
COLUMNS = tuple(title for title, _ in _COLUMNS)


def _heading(account: dict[str, Any]) -> list[str]:
    """Return the lines that say what ran where, and what it gained."""
    totals, versions = account["totals"], account["versions"]
    known = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    lines = [
        _summary(account),
        f"device: {account['device'] or 'none used'}",
        f"time: {_s(account['wall_s'])} in all; {_s(totals['compiled_s'])} in compiled calls, {_s(totals['numpy_s'])} "
        f"in the same functions on NumPy, {_s(totals['compile_s'])} compiling (in the background, where it can), "
        f"{_s(totals['copying_s'])} of the compiled calls copying to the device and back (estimated from samples)",
        f"account: compiled calls {_took_less(totals['gained_s'])} NumPy's would have; {_costs(totals['costs_s'])}; "
        f"in all {_signed(totals['saved_s'])} (estimates); {_plural(totals['checks'], 'comparison')} with NumPy",
        f"versions: {known}",
    ]
    return lines + [f"note: {note}" for note in account["notes"]]


def _s(seconds: float) -> str:
    return f"{seconds:.1f} s" if abs(seconds) >= 1 else f"{seconds:.3f} s"


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{_s(abs(seconds))}"


def _took_less(gained_s: float) -> str:
    return f"took {_s(abs(gained_s))} {'more' if gained_s < 0 else 'less'} than"


_COST_WORDS: Mapping[str, str] = {
    "recording": "recording calls",
    "loading": "loading JAX and programs",
    "comparing": "comparing with NumPy",
    "guards": "checking inputs",
    "discarded": "runs that were discarded",
    "slowdown": "NumPy calls slowed down by compiling",
}


def _costs(costs_s: dict[str, float]) -> str:
    """Return the costs in words, the largest first."""
    ordered = sorted(costs_s.items(), key=lambda item: -item[1])
    parts = [f"{_COST_WORDS[cost]} {_s(seconds)}" for cost, seconds in ordered if round(seconds, 3)]
    return f"that cost {_s(sum(costs_s.values()))}: {', '.join(parts)}" if parts else "that cost nothing"


def heading() -> list[str]:
    """Return the first lines of the report: what ran where, what it gained, and notes."""
    return _heading(_account())


def _by_state(account: dict[str, Any]) -> list[tuple[State, list[dict[str, Any]]]]:
    """Return the functions by state, ordered by total time, the largest first, and then by name."""
    groups = []
    for state in _STATE_ORDER:
        members = [each for each in account["functions"] if each["state"] == state]
        groups.append((state, sorted(members, key=lambda each: (-_weight(each), each["target"]))))
    return [(state, members) for state, members in groups if members]


def _weight(function: dict[str, Any]) -> float:
    compiled = function["compiled_calls"] * (function["compiled_ms"] or 0.0)
    return float(compiled + function["numpy_calls"] * (function["numpy_ms"] or 0.0))


_STATE_WORDS: Mapping[State, str] = {
    State.COMPILED: "compiled",
    State.NUMPY: "on NumPy",
    State.DEMOTED: "demoted to NumPy",
    State.INLINED: "inlined into a compiled caller",
    State.ABSENT: "not in this revision of the program",
    State.UNCALLED: "never called",
}


def _fit(name: str, width: int) -> str:
    """Return `name` in at most `width` columns. The beginning is cut off, because names differ in their ends."""
    return name if len(name) <= width else f"...{name[3 - width :]}"


def _table(members: list[dict[str, Any]]) -> list[str]:
    widths = [max(len(title), *(len(show(each)) for each in members)) for title, show in _COLUMNS]
    room = WIDTH - 2 - sum(width + 2 for width in widths)
    first = min(room, max(len(each["target"]) for each in members))
    head = "  ".join(f"{title:>{width}}" for (title, _), width in zip(_COLUMNS, widths, strict=True))
    lines = [f"  {'':{first}}  {head}"]
    for each in members:
        cells = "  ".join(f"{show(each):>{width}}" for (_, show), width in zip(_COLUMNS, widths, strict=True))
        lines.append(f"  {_fit(each['target'], first):{first}}  {cells}")
    return lines


def _flow(text: str, indent: str, label: str = "", hang: str | None = None) -> list[str]:
    """Wrap `text` after `indent` and `label`. Further lines are aligned with the first, or begin with `hang`."""
    hanging = indent + " " * len(label) if hang is None else hang
    return wrap(text, WIDTH, initial_indent=indent + label, subsequent_indent=hanging, break_on_hyphens=False)


def _grouped(members: list[dict[str, Any]]) -> list[str]:
    """Return the members' names, those of one module or class on one line."""
    owners: dict[str, list[str]] = {}
    for each in sorted(members, key=lambda each: each["target"]):
        owner, _, name = each["target"].rpartition(".")
        owners.setdefault(owner, []).append(name)
    return [line for owner, names in owners.items() for line in _flow(f"{owner}: {', '.join(names)}", "  ", "", "    ")]


def _counted(members: list[dict[str, Any]]) -> list[str]:
    """Return the modules and classes of the members, with how many members each has."""
    owners = Counter(each["target"].rpartition(".")[0] for each in members)
    return _flow(", ".join(f"{owner} ({count})" for owner, count in sorted(owners.items())), "  ")


def _loses(function: dict[str, Any]) -> bool:
    """Whether a compiled function has cost more so far than it gained."""
    return bool(function["state"] == State.COMPILED and function["saved_s"] < 0)


def _by_gain(state: State, members: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Split the members of one state into titled groups: compiled functions at a loss have a group of their own."""
    words = _STATE_WORDS[state]
    parts = [
        (words, [each for each in members if not _loses(each)]),
        (f"{words}, {_AT_A_LOSS}", list(filter(_loses, members))),
    ]
    return [(name, part) for name, part in parts if part]


_AT_A_LOSS = "at a loss so far"


def _is_by_choice(function: dict[str, Any]) -> bool:
    """Whether only the user's or the catalogue's choice keeps `function` on NumPy."""
    return bool(function["reasons"]) and all(each["id"].startswith("choice.") for each in function["reasons"])


def _reason_lines(members: list[dict[str, Any]]) -> list[str]:
    """Return where, why and hint of each refusal. Functions with the same refusal share an entry."""
    shared: dict[tuple[str, str, str, str], list[str]] = {}
    for each in members:
        for reason in each["reasons"]:
            key = (reason["id"], reason["where"], reason["why"], reason["hint"])
            shared.setdefault(key, []).append(f"{each['target']} ({reason['count']})")
    lines = []
    for (id_, where, why, hint), names in shared.items():
        lines += _flow(", ".join(names), "  ")
        lines += _flow(where or NO_LINE, "    ", "where  ")
        lines += _flow(f"{why}  [{id_}]", "    ", "why    ")
        lines += _flow(hint, "    ", "hint   ")
    return lines


def _measured(members: list[dict[str, Any]]) -> list[str]:
    """Return the table of the members, and below it what kept their calls on NumPy."""
    reasons = _reason_lines(members)
    return _table(members) + (["", "  what kept calls on NumPy (how often):", *reasons] if reasons else [])


def _distinguishing(programs: list[dict[str, Any]]) -> list[list[str]]:
    """Return, for each program, its outcomes that not all programs have in common."""
    common = set.intersection(*(set(each["outcomes"]) for each in programs))
    return [[outcome for outcome in each["outcomes"] if outcome not in common] for each in programs]


def _program_lines(functions: list[dict[str, Any]]) -> list[str]:
    """Return the programs of each function that has several, and what distinguishes their calls."""
    lines = []
    for each in functions:
        programs = each["programs"]
        if len(programs) > 1:
            lines += _flow(f"{each['target']}, {len(programs)} programs", "  ")
            for program, outcomes in zip(programs, _distinguishing(programs), strict=True):
                distinction = ", ".join(dict.fromkeys(outcomes)) or "types, shapes and identities of its inputs"
                what = f"{program['replays']} calls, {program['operations']} operations ({program['state']}): "
                lines += _flow(distinction, "    ", what, "      ")
    return lines


def _difference_lines(functions: list[dict[str, Any]]) -> list[str]:
    lines = []
    for each in functions:
        for difference in each["differences"]:
            lines += _flow(f"{each['target']} ({difference['count']})", "  ")
            lines += _flow(f"{difference['field']}: {difference['what']}", "    ", "where  ")
            lines += _flow(f"{difference['verdict']}; relative error {difference['error']:.2g}", "    ", "what   ")
    return lines


_BODIES: Mapping[State, Callable[[list[dict[str, Any]]], list[str]]] = {
    State.COMPILED: _measured,
    State.NUMPY: _measured,
    State.DEMOTED: _measured,
    State.INLINED: _grouped,
    State.ABSENT: _counted,
    State.UNCALLED: _grouped,
}


def _text(account: dict[str, Any]) -> str:
    lines = [line for sentence in _heading(account) for line in _flow(sentence, "")]
    chosen: list[dict[str, Any]] = []
    for state, members in _by_state(account):
        choice = [each for each in members if _is_by_choice(each)]
        chosen += choice
        others = [each for each in members if each not in choice]
        for words, part in _by_gain(state, others):
            lines += ["", f"{words} ({len(part)})", *_BODIES[state](part)]
    for title, details in (
        ("functions with several compiled programs, and what distinguishes those", _program_lines),
        ("differences from NumPy beyond the tolerance (how many comparisons)", _difference_lines),
    ):
        shown = details(account["functions"])
        lines += ["", title, *shown] if shown else []
    if chosen:
        lines += ["", f"left out by choice ({len(chosen)}); for reasons see the JSON report", *_counted(chosen)]
    return "\n".join(lines) + "\n"


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _markdown(account: dict[str, Any]) -> str:
    titles = ("function", "state", *(title for title, _ in _COLUMNS))
    lines = ["# accel report", "", *(f"- {sentence}" for sentence in _heading(account)), ""]
    lines += [_cells(*titles), "|" + "---|" * len(titles)]
    ordered = [each for _, members in _by_state(account) for each in members]
    for each in ordered:
        state = f"{each['state']}, {_AT_A_LOSS}" if _loses(each) else each["state"]
        lines.append(_cells(f"`{each['target']}`", state, *(show(each) for _, show in _COLUMNS)))
    lines += ["", "## Reasons", "", _cells("function", "reason", "where", "why", "hint", "count"), "|" + "---|" * 6]
    for each in ordered:
        for reason in each["reasons"]:
            cells = (f"`{reason['id']}`", reason["where"], reason["why"], reason["hint"], str(reason["count"]))
            lines.append(_cells(f"`{each['target']}`", *cells))
    lines += _markdown_differences(ordered)
    return "\n".join(lines) + "\n"


def _markdown_differences(functions: list[dict[str, Any]]) -> list[str]:
    rows = [
        _cells(f"`{each['target']}`", worst["field"], worst["what"], f"{worst['error']:.2g}", worst["verdict"])
        for each in functions
        for worst in each["differences"]
    ]
    head = [_cells("function", "field", "values", "relative error", "verdict"), "|" + "---|" * 5]
    return ["", "## Differences from NumPy beyond the tolerance", "", *head, *rows] if rows else []


def _finite(value: Any) -> Any:
    """Return `value` with infinities and NaN as strings, because JSON has no such numbers."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return str(value)
    return value


def _json(account: dict[str, Any]) -> str:
    return json.dumps(_finite(account), indent=2, allow_nan=False) + "\n"


_VIEWS: Mapping[str, Callable[[dict[str, Any]], str]] = {"text": _text, "json": _json, "markdown": _markdown}
FORMATS = tuple(_VIEWS)


def report(format: str = "text") -> str:
    """Return what happened to each function: "text" (within 100 columns), "json" (schema 2) or "markdown".

    Raises ValueError for another format.
    """
    if format not in _VIEWS:
        raise ValueError(f"format={format!r} cannot be used; expected: {', '.join(FORMATS)}")
    return _VIEWS[format](_account())


def reasons_table() -> str:
    """Return every reason as a Markdown table, as `python -m accel reasons` prints it."""
    lines = [_cells("reason", "why", "hint"), "|---|---|---|"]
    lines += [_cells(f"`{row.id}`", row.why, row.hint) for row in REASONS.values()]
    return "\n".join(lines) + "\n"
