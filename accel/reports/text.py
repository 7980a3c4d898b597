"""The report as text, within 100 columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from accel.backend.disk.cache import size_text
from accel.platform.ledger import State
from accel.platform.reasons import NO_LINE
from accel.reports.advice import IN_PYTHON, Advice
from accel.reports.layout import by_owner, counted_by_owner, flow, text_table
from accel.reports.summary import heading_of, was_off
from accel.reports.words import AT_A_LOSS, COLUMNS, by_state, loses, plural

MOST_FIELDS = 6
"""Maximum number of copied fields to name per function, the largest first."""

_MOVED = "bytes moved to the device and back (on a CPU, what a device with a memory of its own would be given)"

_STATE_WORDS: Mapping[State, str] = {
    State.COMPILED: "compiled",
    State.NUMPY: "on NumPy",
    State.DEMOTED: "demoted to NumPy",
    State.INLINED: "inlined into a compiled caller",
    State.ABSENT: "not in this revision of the program",
    State.UNCALLED: "never called",
}

_INSIDE = "not called directly: programs from disk may contain them"
"""The words for uncalled functions where programs were not recorded in this run, which would tell what they contain."""


def _by_gain(state: State, members: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Split the members of one state into titled groups: compiled functions at a loss form a group of their own."""
    words = _STATE_WORDS[state]
    parts = [
        (words, [each for each in members if not loses(each)]),
        (f"{words}, {AT_A_LOSS}", list(filter(loses, members))),
    ]
    return [(name, part) for name, part in parts if part]


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
        lines += flow(", ".join(names), "  ")
        lines += flow(where or NO_LINE, "    where  ")
        lines += flow(f"{why}  [{id_}]", "    why    ")
        lines += flow(hint, "    hint   ")
    return lines


def _measured(members: list[dict[str, Any]], about: str = "") -> list[str]:
    """Return the table of the members, and below it the refusals of their calls. about: a note on the figures."""
    reasons = _reason_lines(members)
    lines = text_table(COLUMNS, members) + flow(about, "  ")
    return lines + (["", "  what kept calls on NumPy (how often):", *reasons] if reasons else [])


_BEFORE_THAT = (
    "accel ms: of calls that were compiled, by any of its programs, before it was taken back; numpy ms: of its latest "
    "calls on NumPy. It was judged by what was measured then, which the reason tells."
)
"""Note on the figures of a demoted function: they may look better than the reason for its demotion."""


def _demoted(members: list[dict[str, Any]]) -> list[str]:
    return _measured(members, _BEFORE_THAT if any(each["compiled_calls"] for each in members) else "")


def _distinguishing(programs: list[dict[str, Any]]) -> list[list[str]]:
    """Return, for each program, its outcomes that not all programs have in common."""
    common = set.intersection(*(set(each["outcomes"]) for each in programs))
    return [[outcome for outcome in each["outcomes"] if outcome not in common] for each in programs]


def _program_lines(functions: list[dict[str, Any]]) -> list[str]:
    """Return the programs of each function with several paths, and the line where the paths diverge."""
    lines = []
    for each in functions:
        programs = each["programs"]
        if len(programs) > 1 or any("paths" in program for program in programs):
            lines += flow(f"{each['target']}, {len(programs)} program{'s' if len(programs) > 1 else ''}", "  ")
            for program, outcomes in zip(programs, _distinguishing(programs), strict=True):
                lines += flow(_parting(program, outcomes), "    " + _program(program), "      ")
    return lines


def _program(program: dict[str, Any]) -> str:
    paths = f" of {program['paths']} paths" if "paths" in program else ""
    return f"{program['replays']} calls, {program['operations']} operations{paths} ({program['state']}): "


def _parting(program: dict[str, Any], outcomes: list[str]) -> str:
    """Return the outcomes that distinguish a program from the others.

    For a program of several paths, return how often each side of its branches was taken.
    """
    if "paths" in program:
        sides = [
            f"line {branch['line']}: {_first([f'{side} {count} times' for side, count in branch['sides'].items()])}"
            for branch in program["branches"]
        ]
        return "; ".join(sides) or "inputs of several types or shapes"
    parting = _first(list(dict.fromkeys(outcomes))) or "types, shapes and identities of its inputs"
    return f"{parting}; it stays apart, as {program['apart']}" if program["apart"] else parting


_MOST_NAMED = 8
"""Maximum number of outcomes to name; a loop may have hundreds."""


def _first(texts: list[str]) -> str:
    rest = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _difference_lines(functions: list[dict[str, Any]]) -> list[str]:
    lines = []
    for each in functions:
        for difference in each["differences"]:
            lines += flow(f"{each['target']} ({difference['count']})", "  ")
            lines += flow(f"{difference['field']}: {difference['what']}", "    where  ")
            lines += flow(f"{difference['verdict']}; relative error {difference['error']:.2g}", "    what   ")
    return lines


def _moved(figures: dict[str, Any]) -> str:
    """Return the heading of the section on copies, with the mean per step if a step is defined."""
    if not figures["steps"]:
        return _MOVED
    totals, steps = figures["totals"], figures["steps"]["total"]
    there, back = (size_text(totals[key] // steps) for key in ("handed_bytes", "fetched_bytes"))
    return f"{_MOVED}; {there} there and {back} back per step"


def _transfer_lines(functions: list[dict[str, Any]]) -> list[str]:
    """Return how many bytes each function copied, the fields, and the lines that caused the copies."""
    lines = []
    for each in functions:
        moved = each["transfers"]
        if not moved["launches"]:
            continue
        there, back = (size_text(sum(moved[way].values())) for way in ("handed", "fetched"))
        launches, constants = plural(moved["launches"], "launch", "launches"), size_text(moved["constants"])
        lines += flow(
            f"{each['target']}: {there} there and {back} back in {launches}; constants, once: {constants}", "  "
        )
        lines += flow(_rounds(moved), "    ") if moved["held_rounds"] or moved["not_held"] else []
        for way, label in (("handed", "there  "), ("fetched", "back   ")):
            fields = sorted(moved[way].items(), key=lambda item: -item[1])
            asked = {name: f" ({', '.join(lines)})" for name, lines in moved["lines"][way].items()}
            shown = [f"{name} {size_text(count)}{asked.get(name, '')}" for name, count in fields[:MOST_FIELDS] if count]
            more = [f"{len(fields) - MOST_FIELDS} fields more"] if len(fields) > MOST_FIELDS else []
            lines += flow(", ".join([*shown, *more]), "    " + label) if shown else []
    return lines


def _rounds(moved: dict[str, Any]) -> str:
    """Return in how many iterations a loop kept its state on the device, and why not in others."""
    held, others = moved["held_rounds"], moved["not_held"]
    why = ", ".join(f"{count} as {reason}" for reason, count in sorted(others.items(), key=lambda item: -item[1]))
    rounds = f"state stayed on the device after {held} of {plural(held + sum(others.values()), 'iteration')}"
    return f"{rounds}; not after {why}" if why else rounds


_BODIES: Mapping[State, Callable[[list[dict[str, Any]]], list[str]]] = {
    State.COMPILED: _measured,
    State.NUMPY: _measured,
    State.DEMOTED: _demoted,
    State.INLINED: lambda members: by_owner(sorted(_names(members))),
    State.ABSENT: lambda members: counted_by_owner(_names(members)),
    State.UNCALLED: lambda members: by_owner(sorted(_names(members))),
}


def _has_found(figures: dict[str, Any]) -> bool:
    """Whether a program was found on disk."""
    return any(program.get("found_on_disk") for each in figures["functions"] for program in each["programs"])


def _names(members: list[dict[str, Any]]) -> list[str]:
    return [each["target"] for each in members]


def text(figures: dict[str, Any], advice: Advice = IN_PYTHON, *, transfers: bool = False) -> str:
    """Return the report as text: a group for each state, then programs, differences, and left-out functions.

    transfers: list copies to the device and back, also if the device shares the host's memory.
    """
    lines = [line for sentence in heading_of(figures, advice) for line in flow(sentence)]
    chosen: list[dict[str, Any]] = []
    for state, members in by_state(figures):
        choice = [each for each in members if _is_by_choice(each)]
        chosen += choice
        others = [each for each in members if each not in choice]
        for words, part in _by_gain(state, others):
            words = _INSIDE if state is State.UNCALLED and _has_found(figures) else words
            lines += ["", f"{words} ({len(part)})", *_BODIES[state](part)]
    for title, details in (
        ("functions that take several paths: their programs, and where the paths part", _program_lines),
        ("differences from NumPy beyond the tolerance (how many comparisons)", _difference_lines),
        *([(_moved(figures), _transfer_lines)] if transfers or figures["platform"] not in (None, "cpu") else []),
    ):
        shown = details(figures["functions"])
        lines += ["", title, *shown] if shown else []
    if not figures["totals"]["calls"] and not was_off(figures) and not advice.refused:
        lines += ["", "what to do", *flow(advice.start, "  ")]
    if figures.get("faster"):
        lines += ["", "to be faster", *(line for each in figures["faster"] for line in flow(each, "  ", "    "))]
    if chosen:
        lines += [
            "",
            f"left out by choice ({len(chosen)}); for reasons see the JSON report",
            *counted_by_owner(_names(chosen)),
        ]
    return "\n".join(lines) + "\n"
