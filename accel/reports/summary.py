"""The summary line, and the heading of a report: which calls ran where, and the gain of the whole run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from accel import config
from accel.backend.disk import cache
from accel.reports.advice import IN_FRONT, IN_PYTHON, Advice, in_python
from accel.reports.figures import EVEN, LOST, figures_of_run
from accel.reports.ledger import State
from accel.reports.words import as_factor, from_shared, in_s, plural, signed_s

FEW = 10
"""Maximum compiled steps or calls from which no gain is extrapolated: the first ones of a program are slow."""

MAX_DOUBTFUL = 2
"""Maximum number of functions with possibly wrong results to name, so that the line stays readable."""


def summary_line() -> str:
    """Return what the run gained or lost, in one line, as printed at the end of a run."""
    return summary_of(figures_of_run(), in_python())


def summary_of(figures: dict[str, Any], advice: Advice, *, brief: bool = False) -> str:
    """Return the summary line for these figures. brief: as the first line of the report in brief."""
    if was_off(figures):
        return "accel was off: this run used NumPy only"
    about = " for reasons" if figures["totals"]["calls"] else ""
    return f"{_summary(figures, advice)} (see {advice.full if brief else advice.report}{about})"


def was_off(figures: dict[str, Any]) -> bool:
    """Return whether acceleration was switched off, so that no advice applies."""
    return figures.get("mode") == "off" and not figures["totals"]["compiled_calls"]


def _summary(figures: dict[str, Any], words: Advice) -> str:
    totals = figures["totals"]
    if not totals["calls"]:
        about = f"; {words.start_brief}" if words.start_brief and not words.refused else ""
        return f"accel: no accelerated function was called{about}"
    parts = [_work_done(figures["steps"], totals)]
    if totals["max_rel_error"] is not None:
        parts.append(f"largest error {totals['max_rel_error']:.1g}{_precision(figures, ' in ')}")
    stayed = [each for each in figures["functions"] if each["state"] in (State.NUMPY, State.DEMOTED) and each["calls"]]
    waiting = sum(map(_waits, stayed))
    parts.append(f"{plural(len(stayed) - waiting, 'function')} stayed on NumPy")
    if waiting:
        parts.append(f"{waiting} not compiled yet")
    if figures.get("finishing"):  # reports of other versions do not have it
        parts.append(f"{plural(figures['finishing'], 'program')} being finished for later runs")
    if _verifies(figures):
        parts.append(_verified(figures))
    # a short run has compiled nothing, and will not the next time: even where it lost nothing, that is to be known
    never = totals["net"] == EVEN and waiting and not totals["compiled_calls"]
    advised = (totals["net"] == LOST or never) and not (_verifies(figures) or _was_beforehand(figures) or words.refused)
    advice = [_advice(figures, words)] if advised else []
    return f"accel: {'; '.join([*_doubts(figures), _net(figures), ', '.join(parts), *advice])}"


def _doubts(figures: dict[str, Any]) -> list[str]:
    """Return which results may be wrong, because a later comparison with NumPy found a mismatch."""
    doubtful = {each["target"]: each["doubtful_since"] for each in figures["functions"] if each.get("doubtful_since")}
    since = [f"{target} since call {call}" for target, call in doubtful.items()]
    more = [f"{len(since) - MAX_DOUBTFUL} more functions"] if len(since) > MAX_DOUBTFUL else []
    named = ", ".join([*since[:MAX_DOUBTFUL], *more])
    return [f"results may be wrong ({named}): rerun with `--mode off`"] if doubtful else []


def _verifies(figures: dict[str, Any]) -> bool:
    """Return whether every call is compared, so that the time of comparisons is no loss."""
    return figures.get("mode") == "verify"


def _was_beforehand(figures: dict[str, Any]) -> bool:
    """Return whether `accel compile` made the run, so that its gain does not predict that of later runs."""
    return bool(figures.get("beforehand"))


def _verified(figures: dict[str, Any]) -> str:
    differed = sum(each["differences"] != [] for each in figures["functions"])
    return verified(figures["totals"]["checks"], differed)


def verified(checks: int, differed: int) -> str:
    """Return how many calls were compared in mode `verify`, and how many agreed. differed: functions with
    mismatches."""
    if not checks:
        return f"nothing was verified: {IN_FRONT}, verifies calls"
    if differed:
        return f"{plural(checks, 'call')} compared, differences in {plural(differed, 'function')}"
    return f"{checks} of {plural(checks, 'compared call')} agreed"


def _precision(figures: dict[str, Any], before: str) -> str:
    """Return the precision of programs, unless it is float64, as in NumPy. before: text to put in front of it."""
    precision = figures.get("precision")
    return "" if precision in (None, config.FLOAT64) else f"{before}{precision}"


def _net(figures: dict[str, Any]) -> str:
    """Return the gain or loss of the whole run, all costs counted."""
    totals, wall = figures["totals"], in_s(figures["wall_s"])
    if _was_beforehand(figures):
        return f"accel compile made this run, and its calls waited for their programs: it took {wall}"
    if _verifies(figures):
        return f"this run took {wall}, as mode verify computes twice"
    if totals["net"] == EVEN:
        return f"this run took about as long as on NumPy, {wall}, by estimate"
    times = f"{wall} instead of about {in_s(totals['estimated_numpy_s'])} on NumPy ({as_factor(totals['speedup'])})"
    return (
        f"this run {totals['net']} about {in_s(abs(totals['saved_s']))}, by estimate: {times}, "
        "compiling and comparing included"
    )


def _advice(figures: dict[str, Any], words: Advice) -> str:
    """Return the length from which a run that lost time would have gained, with advice."""
    totals, steps = figures["totals"], figures["steps"]
    what = "steps" if steps else "calls"
    done = steps or {"total": totals["calls"], "compiled": totals["compiled_calls"]}
    refused = [] if totals["gained_s"] > 0 else _refused(figures)
    if refused and not done["compiled"] and len(refused) == sum(each["calls"] > 0 for each in figures["functions"]):
        return f"none of its {what} can be compiled as they are: {words.full} says why"
    if sum(each["numpy_s"] for each in refused) > totals["numpy_s"] / 2:
        slowest = max(refused, key=lambda each: float(each["numpy_s"]))["target"]
        return f"most of its time is in functions that cannot be compiled, as {slowest}: {words.full} says why"
    if not done["compiled"]:
        first = None if _found_all(figures) else words.compile_first
        others = f", and so may this one after {first}" if first else ""
        return f"none of its {what} were compiled {words.until}: a longer run may gain{others}"
    if totals["compiled_calls"] <= totals["checks"]:
        return "each compiled call was compared, which does the work twice: a longer run in mode auto compares few"
    if totals["gained_s"] <= 0 and done["compiled"] < FEW:
        return f"too few of its {what} were compiled to tell what they gain: a longer run may gain"
    if totals["gained_s"] <= 0 and _usually_gains(figures):
        return "most compiled calls were faster than NumPy's, and a few far slower: something else used the machine"
    if totals["gained_s"] <= 0:
        return f"its compiled calls were no faster than NumPy's: larger arrays may gain, {words.off} loses nothing"
    more = -totals["saved_s"] * done["compiled"] / totals["gained_s"]
    others = "" if _found_all(figures) else f"; {_next_run(words)}"
    return f"it would have gained from about {_round_up(done['total'] + more)} {what} on{others}"


def _waits(function: dict[str, Any]) -> bool:
    """Return whether only a pending program, or too few calls, keep the function on NumPy."""
    return bool(function["reasons"]) and not any(map(_is_final, function["reasons"]))


def _refused(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the called functions without a program that were refused. A longer run would not compile them."""
    return [
        each
        for each in figures["functions"]
        if each["calls"] and not each["compiled_calls"] and any(_is_final(reason) for reason in each["reasons"])
    ]


def _is_final(reason: Mapping[str, Any]) -> bool:
    return not reason["id"].startswith("wait.")


def _usually_gains(figures: dict[str, Any]) -> bool:
    """Return whether compiled calls would have gained if each had taken its function's median time."""
    known = [each for each in figures["functions"] if each["numpy_ms"] and each["compiled_ms"]]
    saved_ms: float = sum(each["compiled_calls"] * (each["numpy_ms"] - each["compiled_ms"]) for each in known)
    return saved_ms > 0.0


def _found_all(figures: dict[str, Any]) -> bool:
    """Return whether every program was found on disk."""
    programs = [program for each in figures["functions"] for program in each["programs"]]
    return bool(programs) and all(program.get("found_on_disk") for program in programs)


def _next_run(words: Advice) -> str:
    """Return in words what the next run will find on disk, or why it will find nothing."""
    if config.current().cache_dir is None:
        return f"with the disk cache on ({config.VARIABLES['cache_dir']}) a next run compiles less"
    if why := cache.problem(makes=False):
        return f"no program could be kept on disk for a next run: {why}"
    after = f", and all of it after {words.compile_first}" if words.compile_first else ""
    return f"a next run finds what this one compiled{after}"


def _round_up(count: float) -> int:
    """Round an estimate up to two significant digits.

    >>> [_round_up(count) for count in (7, 99.5, 2263)]
    [7, 100, 2300]
    """
    unit = 10 ** max(0, len(str(int(count))) - 2)
    return int(math.ceil(count / unit) * unit)


def _work_done(steps: dict[str, Any] | None, totals: dict[str, Any]) -> str:
    if steps is None:
        return f"{totals['compiled_calls']} of {plural(totals['calls'], 'call')} compiled"
    return f"{steps['compiled']} of {steps['total']} steps' work compiled"


def heading_of(figures: dict[str, Any], advice: Advice = IN_PYTHON) -> list[str]:
    """Return the first lines of the report: which calls ran where, the gain, and notes."""
    totals, versions = figures["totals"], figures["versions"]
    known = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    lines = [
        summary_of(figures, advice) if was_off(figures) else _summary(figures, advice),
        f"device: {figures['device'] or 'none used'}{_precision(figures, '; precision: ')}",
        f"time: {in_s(figures['wall_s'])} in all; {in_s(totals['compiled_s'])} in compiled calls, "
        f"{in_s(totals['numpy_s'])} in the same functions on NumPy, {in_s(totals['compile_s'])} "
        f"{'loading programs, of which all were on disk' if _found_all(figures) else 'compiling'} (in the background, "
        "where it can), "
        f"{in_s(totals['copying_s'])} of the compiled calls copying to the device and back (estimated from samples)",
        f"account: compiled calls {_took_less(totals['gained_s'])} NumPy's would have; {_costs(totals['costs_s'])}; "
        f"in all {signed_s(totals['saved_s'])} (estimates); {plural(totals['checks'], 'comparison')} with NumPy",
        *_programs(figures),
        f"versions: {known}",
    ]
    return lines + [f"note: {note}" for note in figures["notes"]]


def _programs(figures: dict[str, Any]) -> list[str]:
    """Return the number of programs, the source of cached ones, and how many are of no use.

    Of no use are programs that were given up, and those that the next run will not find.
    """
    programs = [program for each in figures["functions"] for program in each["programs"]]
    found = [program for program in programs if program.get("found_on_disk")]
    if not programs:
        return []
    given_up = sum(program["state"] == "given up" for program in programs)
    unkept = sum(program.get("kept_bytes", 0) is None for program in programs)
    parts = [
        f"programs: {len(programs)}, {len(found)} found on disk{from_shared(found)}",
        f"{given_up} given up: NumPy answers their calls" if given_up else "",
        f"{unkept} not kept on disk for the next run" if unkept else "",
    ]
    return ["; ".join(filter(None, parts))]


def _took_less(gained_s: float) -> str:
    return f"took {in_s(abs(gained_s))} {'more' if gained_s < 0 else 'less'} than"


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
    parts = [f"{_COST_WORDS[cost]} {in_s(seconds)}" for cost, seconds in ordered if round(seconds, 3)]
    return f"that cost {in_s(sum(costs_s.values()))}: {', '.join(parts)}" if parts else "that cost nothing"
