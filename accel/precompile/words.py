"""What compiling ahead of time says: how far it is, and what the next run will find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel.precompile.watch import SETTLED, STEPS

Answer = Mapping[str, Any]

MAX_NAMED = 8
"""Programs that could not be kept which are named; the report holds the others."""


def plural(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def before(where: Path, settled: int, steps: int | None) -> str:
    """What the user has to know before the program starts."""
    until = f"after {plural(steps, 'step')}" if steps else f"once {plural(settled, 'step')} brought nothing new"
    return (
        f"accel: the program runs for real, in {where}: what it writes is written, restart files too; it is ended "
        f"{until}, in the midst of what it does\n"
    )


def progress(found: Answer, settled: int, steps: int | None) -> str:
    """How far the program is, in one line. found: the fields of a `Progress`."""
    done = _counted(found)
    if steps is not None:
        done = f"{done} of {steps}"
    parts = [done, _programs(found["programs"], found["functions"])]
    if steps is None and found["target"] is not None:
        parts.append(f"nothing new for {found['quiet']} of {settled}")
    return f"accel: {', '.join(parts)}"


def _counted(found: Answer) -> str:
    """What was seen of the program."""
    if found["target"] is None:
        return "no accelerated function called yet"
    if found["named"]:
        return plural(found["calls"], "step")
    return f"{plural(found['calls'], 'call')} of {found['target']}"


def _programs(programs: int, functions: int) -> str:
    return f"{plural(programs, 'program')} of {plural(functions, 'function')}"


def until_then(found: Answer) -> str:
    """What there is of a program that was not seen to the end."""
    return f"{_programs(found['programs'], found['functions'])} were compiled until then, in {_counted(found)}"


def kept_programs(report: Answer) -> list[tuple[str, Answer]]:
    """The programs that the next run finds, each with its function's name."""
    return [(name, program) for name, program in _all_programs(report) if program["kept_bytes"] is not None]


def _all_programs(report: Answer) -> list[tuple[str, Answer]]:
    return [(each["target"], program) for each in report["functions"] for program in each["programs"]]


def after(account: Answer, folder: Path) -> str:
    """What the next run will find, and what it will not. account: the child's last words."""
    report, found = account["report"], account["progress"]
    kept = kept_programs(report)
    if not found["calls"]:
        return "No function that accel was to accelerate was called: there was nothing to compile.\n"
    lines = []
    if kept:
        size = sum(program["kept_bytes"] for _, program in kept) / 1e6
        names = {name for name, _ in kept}
        there = sum(program["found_on_disk"] for _, program in kept)
        already = " (nothing had to be compiled: all of them were there before)" if there == len(kept) else ""
        lines.append(f"{_programs(len(kept), len(names))} kept in {folder}, {size:.1f} MB{already}.")
        unless = ", but for what follows" if len(kept) < len(_all_programs(report)) else ""
        lines.append(f"The next run of this program compiles nothing that was seen in {_counted(found)}{unless}.")
    else:
        lines.append("No program was kept: the next run starts as from an empty cache.")
    lines += _not_kept(report)
    lines += _on_numpy(report)
    lines.append(_ENDINGS.get(account["ending"], "The program came to its end."))
    return "\n".join(lines) + "\n"


_ENDINGS = {
    SETTLED: "Then the program was ended, in the midst of what it did: a file that it was writing may be incomplete.",
    STEPS: "Then the program was ended, in the midst of what it did: a file that it was writing may be incomplete.",
}


def _not_kept(report: Answer) -> list[str]:
    """A line for each function and reason for which programs were not kept."""
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
    return [f"{plural(len(stayed), 'function')} stayed on NumPy, in the next run too: --report FILE says why."]
