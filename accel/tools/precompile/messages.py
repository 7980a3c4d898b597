"""Messages of compiling ahead of time: the progress, and which programs the next run will find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel.backend.disk.cache import size_text
from accel.reports.words import from_shared, plural
from accel.tools.precompile.watch import Progress

Figures = Mapping[str, Any]
"""The figures of a run, as its report has them."""

MAX_NAMED = 8
"""Maximum lines about programs that could not be stored. The report has all of them."""


def before(where: Path, settled: int, steps: int | None) -> str:
    """Return the notice that the user sees before the program starts."""
    until = f"after {plural(steps, 'step')}" if steps else f"after {plural(settled, 'step')} without anything new"
    return (
        f"accel: the program really runs, in {where}, and writes its files, restart files included; it is killed "
        f"{until}\n"
    )


def progress(found: Progress, settled: int, steps: int | None) -> str:
    """Return the progress in one line."""
    done = _counted(found)
    if steps is not None:
        done = f"{done} of {steps}"
    parts = [done, _programs(found.programs, found.functions)]
    if steps is None and found.target is not None:
        parts.append(f"nothing new for {found.quiet} of {settled}")
    return f"accel: {', '.join(parts)}"


def _counted(found: Progress) -> str:
    """Return the steps or calls so far, in words."""
    if found.target is None:
        return "no accelerated function called yet"
    return plural(found.calls, "step") if found.named else f"{plural(found.calls, 'call')} of {found.target}"


def _programs(programs: int, functions: int) -> str:
    return f"{plural(programs, 'program')} of {plural(functions, 'function')}"


def until_then(found: Progress) -> str:
    """Return how much was compiled before the program failed or was interrupted."""
    return f"{_programs(found.programs, found.functions)} were compiled until then, in {_counted(found)}"


def failure(code: int, found: Progress) -> str:
    """Return the message for a program that failed."""
    return f"accel: the program ended with exit code {code}; {until_then(found)}"


def kept_programs(figures: Figures) -> list[tuple[str, Figures]]:
    """Return the programs that the next run will find on disk, each with its function's name."""
    return [(name, program) for name, program in _all_programs(figures) if program["kept_bytes"] is not None]


def _all_programs(figures: Figures) -> list[tuple[str, Figures]]:
    return [(each["target"], program) for each in figures["functions"] for program in each["programs"]]


def after(figures: Figures, found: Progress, folder: Path, *, killed: bool) -> str:
    """Return which programs the next run will find, and which it will not. killed: it was not yet at its end."""
    kept = kept_programs(figures)
    if not found.calls:
        return (
            "No accelerated function was called, and no loop ran long enough: there was nothing to compile. "
            "`accel doctor` finds functions that are worth naming by --catalogue."
        )
    lines = []
    if kept:
        size = size_text(sum(program["kept_bytes"] for _, program in kept))
        names = {name for name, _ in kept}
        there = sum(program["found_on_disk"] for _, program in kept)
        already = " (nothing had to be compiled: all of them were there before)" if there == len(kept) else ""
        where = from_shared(program for _, program in kept)
        lines.append(f"{_programs(len(kept), len(names))} kept in {folder}{where}, {size}{already}.")
        unless = ", with the following exceptions" if len(kept) < len(_all_programs(figures)) else ""
        lines.append(f"The next run need not compile anything that was seen in {_counted(found)}{unless}.")
    else:
        lines.append("No program was kept: the next run starts as with an empty cache.")
    lines += _not_kept(figures)
    lines += _on_numpy(figures)
    lines.append("accel report shows it function by function.")
    end = "Then the program was killed: a file that it was writing may be incomplete."
    lines.append(end if killed else "The program came to its end.")
    return "\n".join(lines)


def _not_kept(figures: Figures) -> list[str]:
    """Return one line for each function and reason with programs that were not stored."""
    reasons = Counter((name, p["unkept"]) for name, p in _all_programs(figures) if p["kept_bytes"] is None)
    lines = [
        f"Not kept: {plural(count, 'program')} of {name}: {why}." for (name, why), count in sorted(reasons.items())
    ]
    more = len(lines) - MAX_NAMED
    return lines[:MAX_NAMED] + ([f"Not kept: programs of {plural(more, 'more function')}."] if more > 0 else [])


def _on_numpy(figures: Figures) -> list[str]:
    stayed = [
        each for each in figures["functions"] if each["calls"] and each["state"] in ("numpy", "demoted")
    ]  # with or without reasons that the user chose
    if not stayed:
        return []
    return [
        f"{plural(len(stayed), 'function')} stayed on NumPy, and will in the next run: accel report --full says why."
    ]
