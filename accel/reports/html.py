"""The report in a notebook: text that also shows itself as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from accel.reports.summary import heading_of
from accel.reports.words import COLUMNS, by_state

_STYLE = "text-align: {}; padding: 0.1em 0.7em; white-space: nowrap"


class HtmlReport(str):
    """The report as text. A notebook shows two tables: functions, and reasons for staying on NumPy."""

    __slots__ = ("_figures",)

    _figures: dict[str, Any]

    def __new__(cls, text: str, figures: dict[str, Any]) -> HtmlReport:
        made = super().__new__(cls, text)
        made._figures = figures
        return made

    def __reduce__(self) -> Any:
        return str, (str(self),)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # IPython's representation in a terminal

    def _repr_html_(self) -> str:
        summary, *details = heading_of(self._figures)
        members = [each for _, members in by_state(self._figures) for each in members]
        titles = ("function", "state", *(title for title, _ in COLUMNS))
        rows = [(each["target"], each["state"], *(show(each) for _, show in COLUMNS)) for each in members]
        reasons = [
            (each["target"], reason["where"], reason["why"], reason["hint"], str(reason["count"]))
            for each in members
            for reason in each["reasons"]
        ]
        parts = [f"<p><b>{escape(summary)}</b></p>", table(titles, rows, left=2)]
        if reasons:
            parts += ["<p>What kept calls on NumPy:</p>"]
            parts += [table(("function", "where", "why", "hint", "calls"), reasons, left=4, wrapped=True)]
        lines = "<br>".join(map(escape, details))
        return "\n".join([*parts, f"<details><summary>more</summary>{lines}</details>"])


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, left: int, wrapped: bool = False) -> str:
    """Return a table in HTML. left: number of left-aligned columns. wrapped: True if cells may have several lines."""
    style = _STYLE.replace("; white-space: nowrap", "") if wrapped else _STYLE

    def cells(tag: str, texts: Sequence[str]) -> str:
        styles = [style.format("left" if at < left else "right") for at in range(len(texts))]
        return "".join(
            f'<{tag} style="{style}">{escape(text)}</{tag}>' for style, text in zip(styles, texts, strict=True)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{cells('th', titles)}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
