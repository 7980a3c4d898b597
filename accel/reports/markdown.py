"""The report, and the table of all reasons, as Markdown."""

from __future__ import annotations

from typing import Any

from accel.platform.reasons import REASONS
from accel.reports.advice import IN_PYTHON, Advice
from accel.reports.layout import markdown_table
from accel.reports.summary import heading_of
from accel.reports.words import AT_A_LOSS, COLUMNS, by_state, loses


def markdown(figures: dict[str, Any], advice: Advice = IN_PYTHON) -> str:
    """Return the report as Markdown: tables of functions, reasons and differences."""
    functions = [each for _, members in by_state(figures) for each in members]
    states = [f"{each['state']}, {AT_A_LOSS}" if loses(each) else each["state"] for each in functions]
    names = [f"`{each['target']}`" for each in functions]
    rows = [
        (name, state, *(show(each) for _, show in COLUMNS))
        for name, state, each in zip(names, states, functions, strict=True)
    ]
    reasons = [
        (name, f"`{reason['id']}`", reason["where"], reason["why"], reason["hint"], str(reason["count"]))
        for name, each in zip(names, functions, strict=True)
        for reason in each["reasons"]
    ]
    differences = [
        (name, worst["field"], worst["what"], f"{worst['error']:.2g}", worst["verdict"])
        for name, each in zip(names, functions, strict=True)
        for worst in each["differences"]
    ]
    lines = ["# accel report", "", *(f"- {sentence}" for sentence in heading_of(figures, advice)), ""]
    lines += markdown_table(("function", "state", *(title for title, _ in COLUMNS)), rows)
    lines += ["", "## Reasons", ""]
    lines += markdown_table(("function", "reason", "where", "why", "hint", "count"), reasons)
    if differences:
        lines += ["", "## Differences from NumPy beyond the tolerance", ""]
        lines += markdown_table(("function", "field", "values", "relative error", "verdict"), differences)
    return "\n".join(lines) + "\n"


def reasons_table() -> str:
    """Return every reason as a Markdown table, as `accel reasons` prints it."""
    rows = [(f"`{row.id}`", row.why, row.hint) for row in REASONS.values()]
    return "\n".join(markdown_table(("reason", "why", "hint"), rows)) + "\n"
