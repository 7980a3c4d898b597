"""Format an explanation as text, within 100 columns."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from accel.platform.reasons import NO_LINE
from accel.reports.layout import WIDTH, flow
from accel.reports.words import plural
from accel.tools.inspect.explain.parts import told

SHOWN = 8
"""Maximum lines of one list in the text. The JSON has all."""

FREQUENT = 24
"""Maximum number of rules that the text names: the most frequent ones."""

_HEADS: Mapping[str, str] = {
    "recorded": "can be recorded whole: {count}",
    "stopped": "stops after {count}",
    "unknown": "could not be examined",
}

_KINDS: tuple[tuple[str, str], ...] = (
    ("array", "arrays, by type, shape, dtype and strides"),
    ("number", "numbers, by type: their values may change"),
    ("fixed", "values that must stay equal"),
    ("environment", "environment variables that must stay equal"),
    ("object", "objects, by type"),
    ("draw", "random numbers, which are drawn before launch, in this order"),
)


def as_text(data: Mapping[str, Any]) -> str:
    """Return the explanation as text."""
    operations = data["operations"]
    count = plural(operations["count"], "operation")
    lines = flow(f"accel: {data['target']} ({data['where']}) {_HEADS[data['verdict']].format(count=count)}", "", "  ")
    if data["stop"] is not None:
        lines += ["", *stop_lines(data["stop"])]
    lines += [line for note in data["notes"] for line in flow(note, "  note   ")]
    if operations["count"]:
        lines += ["", "program" if data["verdict"] == "recorded" else "recorded until then"]
        lines += [line for label, text in _program(data) for line in flow(text, f"  {label:10} ")]
    if data["inputs"]:
        lines += ["", "guards: what is checked in every later call", *_guards(data)]
    if data["lowered"] is not None and data["lowered"]["passes"]:
        lines += ["", "passes: the program as recorded, and what each changes", *_passes(data["lowered"]["passes"])]
    return "\n".join(lines) + "\n"


def _passes(passes: list[dict[str, Any]]) -> Iterable[str]:
    """Yield the first listing as a whole, and each later one as its difference from the one before."""
    before: list[str] = []
    for number, each in enumerate(passes):
        after = each["operations"]
        changes = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:] if number else after
        size = f"{len(after)} lines" + ("" if changes else ", nothing changed")
        yield from flow(f"{each['what']} ({size})", f"  {each['pass']}: ")
        yield from (f"    {line}" for line in changes if not line.startswith("@@"))
        before = after


def stop_lines(stop: Mapping[str, Any]) -> list[str]:
    """Return where and why a recording stops, what lies around, and how the program got there."""
    inside = f" in {stop['function']}" if stop["function"] else ""
    lines = why_lines(stop, inside)
    if stop.get("parts"):
        lines += flow(told(stop["parts"]), "  parts  ")
    return lines + some([line for via in stop["via"] for line in flow(via, "  from   ")])


def why_lines(stop: Mapping[str, Any], inside: str = "") -> list[str]:
    """Return where a recording stops, with the expression marked, why, and what to do about it."""
    lines = flow(f"{stop['where'] or NO_LINE}{inside}  [{stop['id']}]", "  where  ")
    if stop.get("source"):
        lines += marked(stop["source"], stop["column"], stop["end_column"])
    return [*lines, *flow(stop["why"], "  why    "), *flow(stop["hint"], "  hint   ")]


def marked(source: str, column: int | None, end: int | None) -> list[str]:
    """Return a source line, cut to the width, and a line of carets under the columns."""
    indent = " " * 11
    room = WIDTH - len(indent)
    start = 0
    if len(source) > room and column is not None:
        start = max(0, min(column - room // 4, len(source) - room))
    lines = [indent + source[start : start + room]]
    if column is not None and end is not None:
        first, last = column - start, min(end - start, room)
        lines.append(indent + " " * first + "^" * max(1, last - first))
    return lines


def _program(data: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    operations, lowered, outputs = data["operations"], data["lowered"], data["outputs"]
    rules = [f"{name.removeprefix('numpy.')} {count}" for name, count in operations["rules"].items()]
    more = f", and {len(rules) - FREQUENT} others" if len(rules) > FREQUENT else ""
    yield "recorded", ", ".join(rules[:FREQUENT]) + more
    if lowered is not None:
        parts = [
            plural(lowered["operations"], "operation"),
            f"up to {lowered['foldable']} computed only once if their inputs do not change"
            if lowered["foldable"]
            else "",
            f"{lowered['host']} on plain numbers left to Python" if lowered["host"] else "",
            "JAX accepts them all" if lowered["jax"] else "",
        ]
        yield "compiled", "; ".join(filter(None, parts))
    if outputs is not None:
        yield "returns", outputs["result"]
        yield from _named("changes", outputs["changed"])
        yield from _named("sets", outputs["writes"])
    yield from _named("contains", data["inlined"])


def _named(label: str, names: list[str]) -> Iterable[tuple[str, str]]:
    if names:
        more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        yield label, ", ".join(names[:SHOWN]) + more


def _guards(data: Mapping[str, Any]) -> list[str]:
    lines = []
    for kind, title in _KINDS:
        found = [each for each in data["inputs"] if each["kind"] == kind]
        if found:
            width = min(50, max(len(each["path"]) for each in found))
            lines.append(f"  {title} ({len(found)})")
            lines += some([_fit(f"    {each['path']:{width}}  {each['is']}") for each in found])
    others = sum(each["kind"] == "code" for each in data["inputs"])
    if others:
        lines.append(f"  functions, modules and classes that must stay the same ({others}); the JSON names them")
    if data["aliases"]:
        lines.append(f"  inputs that must be the same object ({len(data['aliases'])})")
        lines += some([_fit(f"    {left} is {right}") for left, right in data["aliases"]])
    if data["outcomes"]:
        lines.append(f"  outcomes: values that this path assumes ({len(data['outcomes'])})")
        told = [_fit(f"    {each['value']}  at {each['where']}  {each['source']}") for each in data["outcomes"]]
        lines += some(list(dict.fromkeys(told)))
    return lines


def some(lines: list[str]) -> list[str]:
    """Return the first lines, and the number of the others."""
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"    ... and {len(lines) - SHOWN} more"]


def _fit(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."
