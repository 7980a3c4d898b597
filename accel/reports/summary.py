"""The summary: two lines, the result of a run and the one next step that helps; and the heading of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from accel.backend.disk import cache
from accel.platform import config
from accel.platform.ledger import BUSY, State
from accel.reports.advice import IN_FRONT, IN_PYTHON, Advice
from accel.reports.figures import EVEN, LOST, UNKNOWN, figures_of_run
from accel.reports.words import as_factor, from_shared, in_range, in_s, plural, signed_s

FEW = 10
"""Maximum compiled steps or calls from which no gain is extrapolated: the first ones of a program are slow."""

WIDTH = 100
"""Maximum characters of a line."""


def summary_line() -> str:
    """Return the two lines that are printed at the end of a run: what it gained or lost, and the next step."""
    return summary_of(figures_of_run(), IN_PYTHON)


def summary_of(figures: dict[str, Any], advice: Advice, *, brief: bool = False) -> str:
    """Return the summary for these figures. brief: as the beginning of the report in brief."""
    if was_off(figures):
        return "accel was off: this run used NumPy only"
    if not figures["totals"]["calls"]:
        about = f"; {advice.start_brief}" if advice.start_brief and not advice.refused else ""
        return f"accel: no accelerated function was called{about}"
    return f"{_result(figures)}\n{_next_step(figures, advice, advice.full if brief else advice.report)}"


def was_off(figures: dict[str, Any]) -> bool:
    """Return whether acceleration was switched off, so that no advice applies."""
    return figures.get("mode") == "off" and not figures["totals"]["compiled_calls"]


def _result(figures: dict[str, Any]) -> str:
    """Return the first line: the run's time and NumPy's, the share of compiled calls, the largest error."""
    totals = figures["totals"]
    line = f"accel: {_time(figures)}. {_share(figures['steps'], totals)}{_precision(figures, ' in ')}"
    if totals["max_rel_error"] is None:
        return f"{line}."
    error = f"{totals['max_rel_error']:.1g}"
    shorter = line.replace("(about ", "(")
    most = "error" if error == "0" else "error at most"
    wordings = (f"{line}, {most} {error}.", f"{line}, error {error}.", f"{shorter}, error {error}.")
    return next((each for each in wordings if len(each) <= WIDTH), f"{shorter}.")


def _time(figures: dict[str, Any]) -> str:
    """Return the time of the run, and what it would have been on NumPy, all costs counted."""
    totals, wall_s = figures["totals"], figures["wall_s"]
    took = in_s(wall_s)
    if _was_beforehand(figures):
        return f"{took}, by accel compile: calls waited for their programs"
    if _verifies(figures):
        return f"{took}, as mode verify computes twice"
    if members := figures.get("members"):
        return f"{took}, {plural(members, 'member')} beside the program included"
    if totals["net"] == EVEN:
        return f"{took}, about as long as on NumPy"
    if totals["net"] == UNKNOWN:
        samples = "busy machine" if totals["stretch"] > BUSY else plural(totals["samples"], "sample")
        return f"{took}, cannot tell what NumPy would have taken ({samples})"
    numpy_s = totals["numpy_range_s"]
    factor = as_factor(sum(numpy_s) / 2 / wall_s)
    return f"{took}, NumPy would have taken {in_range(numpy_s)} s (about {factor})"


def _share(steps: dict[str, Any] | None, totals: dict[str, Any]) -> str:
    """Return the share of calls, or steps, that were compiled. It is 0 or 100 % only if none or all were."""
    what = "calls" if steps is None else "steps"
    done = steps or {"total": totals["calls"], "compiled": totals["compiled_calls"]}
    total, compiled = done["total"], done["compiled"]
    if not compiled:
        return f"No {what} compiled"
    share = 100 if compiled == total else min(99, max(1, round(100 * compiled / total)))
    return f"{share} % of {what} compiled"


def _next_step(figures: dict[str, Any], words: Advice, command: str) -> str:
    """Return the second line: the one next step that helps. command: shows the report."""
    totals = figures["totals"]
    details = f"accel: Details: {command}"
    doubtful = [each for each in figures["functions"] if each.get("doubtful_since")]
    if doubtful:
        first = doubtful[0]
        name = first["target"].rpartition(":")[2].rpartition(".")[2]
        return f"accel: Results may be wrong since call {first['doubtful_since']} of {name}: rerun with `--mode off`."
    if _verifies(figures):
        verified_calls = _verified(figures)
        return f"accel: {verified_calls[0].upper()}{verified_calls[1:]}. {details[7:]}"
    # a short run has compiled nothing, and will not the next time: even where it lost nothing, that is to be known
    never = totals["net"] in (EVEN, UNKNOWN) and not totals["compiled_calls"]
    untold = _was_beforehand(figures) or words.refused or figures.get("members")
    if (totals["net"] != LOST and not never) or untold:
        return details
    steps = _advice(figures, words)
    return next((line for each in steps if len(line := f"accel: {each[0].upper()}{each[1:]}.") <= WIDTH), details)


def _verifies(figures: dict[str, Any]) -> bool:
    """Return whether every call is compared, so that the time of comparisons is no loss."""
    return figures.get("mode") == "verify"


def _was_beforehand(figures: dict[str, Any]) -> bool:
    """Return whether `accel compile` made the run, so that its gain does not predict that of later runs."""
    return bool(figures.get("beforehand"))


def _verified(figures: dict[str, Any]) -> str:
    return verified(figures["totals"]["checks"], sum(each["differences"] != [] for each in figures["functions"]))


def verified(checks: int, differed: int) -> str:
    """Return how many calls mode `verify` compared, and how many agreed. differed: functions with mismatches."""
    if not checks:
        return f"nothing was verified: {IN_FRONT}, verifies calls"
    if differed:
        return f"{plural(checks, 'call')} compared, differences in {plural(differed, 'function')}"
    return f"{checks} of {plural(checks, 'compared call')} agreed"


def _precision(figures: dict[str, Any], before: str) -> str:
    """Return the precision of programs, unless it is float64, as in NumPy. before: text to put in front of it."""
    precision = figures.get("precision")
    return "" if precision in (None, config.FLOAT64) else f"{before}{precision}"


def _advice(figures: dict[str, Any], words: Advice) -> list[str]:
    """Return what helps a run that lost time, or from which length on it would have gained: the longest wording first.

    A longer run is never advised where recordings have failed.
    """
    totals, steps = figures["totals"], figures["steps"]
    what = "steps" if steps else "calls"
    done = steps or {"total": totals["calls"], "compiled": totals["compiled_calls"]}
    refused = [] if totals["gained_s"] > 0 else _refused(figures)
    if refused and not done["compiled"] and len(refused) == sum(each["calls"] > 0 for each in figures["functions"]):
        return [f"no {what} can be compiled as they are: `{words.full}` says why"]
    if refused and (not done["compiled"] or sum(each["numpy_s"] for each in refused) > totals["numpy_s"] / 2):
        slowest = max(refused, key=lambda each: float(each["numpy_s"]))["target"]
        why = f"which cannot be compiled: `{words.full}` says why"
        return [f"much of its time is in {slowest}, {why}", f"much of its time is in code {why}"]
    if not done["compiled"] and figures.get("finishing"):
        return [f"{plural(figures['finishing'], 'program')} being finished for later runs"]
    if not done["compiled"]:
        first = None if _found_all(figures) or config.current().divides else words.compile_first
        longer = "a longer run may gain"
        return [f"{longer}, and so may this one after {first}", longer] if first else [longer]
    if totals["compiled_calls"] <= totals["checks"]:
        return ["each compiled call was compared, which does the work twice: a longer run compares few"]
    if totals["gained_s"] <= 0 and done["compiled"] < FEW:
        return [f"too few {what} were compiled to tell what they gain: a longer run may gain"]
    if totals["gained_s"] <= 0 and _usually_gains(figures):
        return ["most compiled calls were faster than NumPy's: something else used the machine"]
    if totals["gained_s"] <= 0:
        slower = "compiled calls were slower than NumPy's: larger arrays may gain"
        return [f"{slower}; {words.off} loses nothing", slower]
    more = -totals["saved_s"] * done["compiled"] / totals["gained_s"]
    step = f"this program gains from about {_round_up(done['total'] + more)} {what} on"
    return [step] if _found_all(figures) else [f"{step}; {_next_run()}", step]


def _waits(function: dict[str, Any]) -> bool:
    """Return whether only a pending program, or too few calls, keep the function on NumPy."""
    return bool(function["reasons"]) and not any(map(_is_final, function["reasons"]))


def _refused(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the called functions without a program that were refused. A longer run would not compile them."""
    return [
        each
        for each in figures["functions"]
        if each["calls"] and not each["compiled_calls"] and _is_refused(each["reasons"])
    ]


def _is_refused(reasons: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a longer run changes nothing. reasons: most frequent first. Few calls that were small tell little:
    others may be larger."""
    return any(_is_final(each) and (each is reasons[0] or each["id"] != "speed.small") for each in reasons)


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


def _next_run() -> str:
    """Return in words what the next run will find on disk, or why it will find nothing."""
    if config.current().cache_dir is None:
        return f"with the disk cache on ({config.VARIABLES['cache_dir']}) a next run compiles less"
    if why := cache.problem(makes=False):
        return f"no program could be kept on disk: {why}"
    return "a next run finds what this one compiled"


def _round_up(count: float) -> int:
    """Round an estimate up to two significant digits.

    >>> [_round_up(count) for count in (7, 99.5, 2263)]
    [7, 100, 2300]
    """
    unit = 10 ** max(0, len(str(int(count))) - 2)
    return int(math.ceil(count / unit) * unit)


def _functions(figures: dict[str, Any]) -> list[str]:
    """Return how many functions stayed on NumPy, and how many programs are finished after the run."""
    stayed = [each for each in figures["functions"] if each["state"] in (State.NUMPY, State.DEMOTED) and each["calls"]]
    waiting = sum(map(_waits, stayed))
    parts = [f"{plural(len(stayed) - waiting, 'function')} stayed on NumPy"]
    if waiting:
        parts.append(f"{waiting} not compiled yet")
    if figures.get("finishing"):  # reports of other versions do not have it
        parts.append(f"{plural(figures['finishing'], 'program')} being finished for later runs")
    return [", ".join(parts)] if figures["totals"]["calls"] else []


def heading_of(figures: dict[str, Any], advice: Advice = IN_PYTHON) -> list[str]:
    """Return the first lines of the report: which calls ran where, the gain, and notes."""
    totals, versions = figures["totals"], figures["versions"]
    known = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    lines = [
        *summary_of(figures, advice).split("\n"),
        *_functions(figures),
        f"device: {figures['device'] or 'none used'}{_precision(figures, '; precision: ')}",
        f"time: {in_s(figures['wall_s'])} in all; {in_s(totals['compiled_s'])} in compiled calls, "
        f"{in_s(totals['numpy_s'])} in the same functions on NumPy, {in_s(totals['compile_s'])} "
        f"{'loading programs, of which all were on disk' if _found_all(figures) else 'compiling'} (in the background, "
        "where it can), "
        f"{in_s(totals['copying_s'])} of the compiled calls copying to the device and back (estimated from samples)",
        f"account: compiled calls {_took_less(totals['gained_s'])} NumPy's would have; {_costs(totals['costs_s'])}; "
        f"{_freed(totals['freed_s'])}"
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


def _freed(gained_s: float) -> str:
    return f"keeping freed memory gained {in_s(gained_s)}; " if round(gained_s, 3) else ""


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
