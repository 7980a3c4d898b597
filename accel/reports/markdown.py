"""The report, and the table of all reasons, as Markdown."""

from __future__ import annotations

from typing import Any

from accel.platform.reasons import REASONS
from accel.reports.advice import IN_PYTHON, Advice
from accel.reports.summary import heading_of
from accel.reports.words import AT_A_LOSS, COLUMNS, by_state, loses


def markdown(figures: dict[str, Any], advice: Advice = IN_PYTHON) -> str:
    """Return the report as Markdown: tables of functions, reasons and differences."""
    titles = ("function", "state", *(title for title, _ in COLUMNS))
    lines = ["# accel report", "", *(f"- {sentence}" for sentence in heading_of(figures, advice)), ""]
    lines += [table_row(*titles), "|" + "---|" * len(titles)]
    ordered = [each for _, members in by_state(figures) for each in members]
    for each in ordered:
        state = f"{each['state']}, {AT_A_LOSS}" if loses(each) else each["state"]
        lines.append(table_row(f"`{each['target']}`", state, *(show(each) for _, show in COLUMNS)))
    lines += ["", "## Reasons", "", table_row("function", "reason", "where", "why", "hint", "count"), "|" + "---|" * 6]
    for each in ordered:
        for reason in each["reasons"]:
            cells = (f"`{reason['id']}`", reason["where"], reason["why"], reason["hint"], str(reason["count"]))
            lines.append(table_row(f"`{each['target']}`", *cells))
    lines += _markdown_differences(ordered)
    return "\n".join(lines) + "\n"


def _markdown_differences(functions: list[dict[str, Any]]) -> list[str]:
    rows = [
        table_row(f"`{each['target']}`", worst["field"], worst["what"], f"{worst['error']:.2g}", worst["verdict"])
        for each in functions
        for worst in each["differences"]
    ]
    head = [table_row("function", "field", "values", "relative error", "verdict"), "|" + "---|" * 5]
    return ["", "## Differences from NumPy beyond the tolerance", "", *head, *rows] if rows else []


def table_row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def reasons_table() -> str:
    """Return every reason as a Markdown table, as `accel reasons` prints it."""
    lines = [table_row("reason", "why", "hint"), "|---|---|---|"]
    lines += [table_row(f"`{row.id}`", row.why, row.hint) for row in REASONS.values()]
    return "\n".join(lines) + "\n"
