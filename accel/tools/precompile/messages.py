"""Messages of compiling ahead of time: the progress, and which programs the next run will find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel.backend.disk.cache import size_text
from accel.reports.words import from_shared, plural
from accel.tools.precompile.watch import SETTLED, STEPS

Answer = Mapping[str, Any]

MAX_NAMED = 8
"""Maximum lines about programs that could not be stored. The report has all of them."""


def before(where: Path, settled: int, steps: int | None) -> str:
    """Return the notice that the user sees before the program starts."""
    until = f"after {plural(steps, 'step')}" if steps else f"after {plural(settled, 'step')} without anything new"
    return (
        f"accel: the program really runs, in {where}, and writes its files, restart files included; it is killed "
        f"{until}\n"
    )


def progress(fields: Answer, settled: int, steps: int | None) -> str:
    """Return the progress in one line. fields: of a `Progress`."""
    done = _counted(fields)
    if steps is not None:
        done = f"{done} of {steps}"
    parts = [done, _programs(fields["programs"], fields["functions"])]
    if steps is None and fields["target"] is not None:
        parts.append(f"nothing new for {fields['quiet']} of {settled}")
    return f"accel: {', '.join(parts)}"


def _counted(fields: Answer) -> str:
    """Return the steps or calls so far, in words."""
    if fields["target"] is None:
        return "no accelerated function called yet"
    if fields["named"]:
        return plural(fields["calls"], "step")
    return f"{plural(fields['calls'], 'call')} of {fields['target']}"


def _programs(programs: int, functions: int) -> str:
    return f"{plural(programs, 'program')} of {plural(functions, 'function')}"


def until_then(fields: Answer) -> str:
    """Return how much was compiled before the program failed or was interrupted. fields: of a `Progress`."""
    return f"{_programs(fields['programs'], fields['functions'])} were compiled until then, in {_counted(fields)}"


def kept_programs(report: Answer) -> list[tuple[str, Answer]]:
    """Return the programs that the next run will find on disk, each with its function's name."""
    return [(name, program) for name, program in _all_programs(report) if program["kept_bytes"] is not None]


def _all_programs(report: Answer) -> list[tuple[str, Answer]]:
    return [(each["target"], program) for each in report["functions"] for program in each["programs"]]


def after(account: Answer, folder: Path) -> str:
    """Return which programs the next run will find, and which it will not.

    account: the final content of the child's file.
    """
    report, fields = account["report"], account["progress"]
    kept = kept_programs(report)
    if not fields["calls"]:
        return (
            "No accelerated function was called, and no loop ran long enough: there was nothing to compile. "
            "`accel doctor` finds functions that are worth naming by --catalogue.\n"
        )
    lines = []
    if kept:
        size = size_text(sum(program["kept_bytes"] for _, program in kept))
        names = {name for name, _ in kept}
        there = sum(program["found_on_disk"] for _, program in kept)
        already = " (nothing had to be compiled: all of them were there before)" if there == len(kept) else ""
        where = from_shared(program for _, program in kept)
        lines.append(f"{_programs(len(kept), len(names))} kept in {folder}{where}, {size}{already}.")
        unless = ", with the following exceptions" if len(kept) < len(_all_programs(report)) else ""
        lines.append(f"The next run need not compile anything that was seen in {_counted(fields)}{unless}.")
    else:
        lines.append("No program was kept: the next run starts as with an empty cache.")
    lines += _not_kept(report)
    lines += _on_numpy(report)
    lines.append("accel report shows it function by function.")
    lines.append(_ENDINGS.get(account["ending"], "The program came to its end."))
    return "\n".join(lines) + "\n"


_ENDINGS = {
    SETTLED: "Then the program was killed: a file that it was writing may be incomplete.",
    STEPS: "Then the program was killed: a file that it was writing may be incomplete.",
}


def _not_kept(report: Answer) -> list[str]:
    """Return one line for each function and reason with programs that were not stored."""
    reasons = Counter((name, p["unkept"]) for name, p in _all_programs(report) if p["kept_bytes"] is None)
    lines = [
        f"Not kept: {plural(count, 'program')} of {name}: {why}." for (name, why), count in sorted(reasons.items())
    ]
    more = len(lines) - MAX_NAMED
    return lines[:MAX_NAMED] + ([f"Not kept: programs of {plural(more, 'more function')}."] if more > 0 else [])


def _on_numpy(report: Answer) -> list[str]:
    stayed = [
        each for each in report["functions"] if each["calls"] and each["state"] in ("numpy", "demoted")
    ]  # with or without reasons that the user chose
    if not stayed:
        return []
    return [
        f"{plural(len(stayed), 'function')} stayed on NumPy, and will in the next run: accel report --full says why."
    ]
