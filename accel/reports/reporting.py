"""The report: figures of each function, the source line of each refusal, and the gain of the whole run.

(The module is not called `report`, because importing it would hide the function `accel.report`.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from accel.platform import ledger
from accel.reports.advice import IN_PYTHON, Advice
from accel.reports.brief import brief
from accel.reports.children import of_all
from accel.reports.figures import figures_of_run, finite
from accel.reports.html import HtmlReport
from accel.reports.markdown import markdown
from accel.reports.text import text


def _json(figures: dict[str, Any], _: Advice) -> str:
    return json.dumps(finite(figures), indent=2, allow_nan=False) + "\n"


_VIEWS: Mapping[str, Callable[[dict[str, Any], Advice], str]] = {"text": text, "json": _json, "markdown": markdown}
FORMATS = tuple(_VIEWS)


def reset_report() -> None:
    """Reset all counts: the next report covers the calls from now on. Compiled programs stay in use."""
    ledger.begin_again()


def render(
    figures: dict[str, Any],
    format: str = "text",
    *,
    full: bool = True,
    advice: Advice = IN_PYTHON,
    transfers: bool = False,
) -> str:
    """Return these figures in one of `FORMATS`.

    full: False gives brief text; the other formats are always whole. advice: phrases for the report's advice.
    transfers: see `report`.
    """
    if format == "text" and transfers:
        return text(figures, advice, transfers=True)
    return brief(figures, advice) if format == "text" and not full else _VIEWS[format](figures, advice)


def report(format: str = "text", *, full: bool = False, children: bool = False, transfers: bool = False) -> str:
    """Return what happened to each function: "text" (within 100 columns), "json" (schema 2) or "markdown".

    full: text with all functions, reasons, programs and differences, instead of only the most important. The other
    formats always have all. children: add the figures of child processes that started after `accel.gather_children()`.
    transfers: full text with the bytes that programs copy, by field, on a CPU too. On other devices full text always
    has them. A notebook shows the text as tables.

    Raises ValueError for another format.
    """
    if format not in _VIEWS:
        raise ValueError(f"format={format!r} cannot be used; expected: {', '.join(FORMATS)}")
    figures = of_all() if children else figures_of_run()
    shown = render(figures, format, full=full, transfers=transfers)
    return HtmlReport(shown, figures) if format == "text" else shown
