"""The profile: one self-contained HTML page that shows the time of a run by function, step and event."""

from __future__ import annotations

import linecache
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from statistics import median
from typing import Any, NamedTuple

from accel.platform import ledger, timeline
from accel.platform.clocks import time
from accel.platform.ledger import Ledger
from accel.platform.reasons import place_of
from accel.platform.timeline import COMPARED, COMPILED, NUMPY, Event
from accel.reports import drawing, summary, words
from accel.reports.advice import IN_SHELL
from accel.reports.figures import figures_of, figures_of_run
from accel.reports.steps import Step, pacing_target, steps_of

MAX_REASONS = 5
"""Maximum number of reasons to show per function."""

OWN = "own"
"""Kind of time spent in accel's own work, such as recordings."""

MAX_ROWS = 300
"""Maximum rows in the table of events."""


# -- tables -----------------------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """A table cell: HTML, and the number by which its column is sorted."""

    html: str
    number: float


def _table(head: Sequence[str], rows: Iterable[Sequence[str | Cell]], by: str, order: str) -> str:
    """Return a table that a click on a title sorts. Cells that are text must be HTML; the titles are escaped here.

    by, order: the title by which the rows are sorted as given, "ascending" or "descending".
    """
    titles = "".join(
        f'<th{f" aria-sort={order}" if title == by else ""}><button type="button">{escape(title)}</button></th>'
        for title in head
    )
    lines = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>\n{lines}\n</tbody></table></div>'


def _cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return f"<td>{cell}</td>"
    by = f"{cell.number:.9g}".replace("inf", "Infinity")  # as JavaScript reads it
    return f'<td data-by="{by}">{cell.html}</td>'


def _name(target: str) -> str:
    """Return a function's name in HTML, with line breaks allowed only before its dots and its colon."""
    return f"<code>{escape(target).replace('.', '<wbr>.').replace(':', '<wbr>:')}</code>"


def _time_cell(seconds: float | None, *, signed: bool = False) -> Cell:
    if seconds is None:
        return Cell("-", -math.inf)
    return Cell(("+" if signed and seconds >= 0 else "") + words.in_time(seconds), seconds)


_BAR = {
    COMPILED: "compiled",
    COMPARED: "comparing with NumPy",
    NUMPY: "NumPy",
    OWN: "accel's own work: recording, loading, checking",
}
"""Labels for the parts of a function's bar."""

_TITLES = (
    *("function", "state", "calls", "of them compiled", "a call on NumPy", "a compiled call", "speedup"),
    *("time in it", "net gain", "largest error", "what keeps calls on NumPy"),
)


def _targets() -> str:
    books = [book for book in ledger.ledgers() if book.calls]
    books.sort(key=lambda book: -(book.spent_s))
    longest = max((book.spent_s for book in books), default=0.0)
    rows = [_row(book, figures_of(book), longest) for book in books]
    return _table(_TITLES, rows, "time in it", "descending")


def _row(book: Ledger, given: Mapping[str, Any], longest: float) -> list[str | Cell]:
    parts = {
        COMPILED: book.compiled_total_s,
        COMPARED: book.costs["comparing"],
        NUMPY: max(0.0, book.numpy_total_s),
    }
    parts[OWN] = max(0.0, book.spent_s - sum(parts.values()))
    bars = "".join(
        f'<i class="{kind}" style="width:{100 * seconds / longest:.2f}%" title="{_BAR[kind]}"></i>'
        for kind, seconds in parts.items()
        if longest and seconds
    )
    speed, error = given["per_call_speedup"], given["max_rel_error"]
    return [
        _name(book.target),
        escape(book.state),
        Cell(str(book.calls), book.calls),
        Cell(str(book.compiled_calls), book.compiled_calls),
        _time_cell(None if given["numpy_ms"] is None else given["numpy_ms"] / 1e3),
        _time_cell(None if given["compiled_ms"] is None else given["compiled_ms"] / 1e3),
        Cell(words.as_factor(speed), -math.inf if speed is None else speed),
        Cell(f'{words.in_time(book.spent_s)}<div class="bar">{bars}</div>', book.spent_s),
        _time_cell(book.saved_s, signed=True),
        Cell(words.number(error, ".1g"), -1.0 if error is None else error),
        Cell("".join(map(_reason, given["reasons"][:MAX_REASONS])), sum(each["count"] for each in given["reasons"])),
    ]


def _reason(reason: Mapping[str, Any]) -> str:
    """Return a reason in HTML: how often, where, the source line if it can be read, and why. A click opens the
    advice."""
    where = reason["where"]
    source = linecache.getline(*place_of(where)).strip()
    place = f"at {escape(where)} " if where else ""
    told = f"{place}<b>{escape(reason['id'])}</b>, {words.plural(reason['count'], 'time')}"
    code = f"<br><code>{escape(source)}</code>" if source else ""
    hint = f"<details><summary>what to do</summary>{escape(reason['hint'])}</details>" if reason["hint"] else ""
    return f'<div class="reason">{told}{code}<br>{escape(reason["why"])}{hint}</div>'


def _events(events: Sequence[Event], began: float) -> str:
    rows: list[list[str | Cell]] = [
        [
            Cell(words.in_time(event.end - began), event.end - began),
            drawing.LANE_LABELS[event.kind],
            _name(event.target),
            Cell(words.in_time(event.seconds) if event.seconds else "", event.seconds),
            escape(event.detail),
        ]
        for event in events[:MAX_ROWS]
    ]
    return _table(["at", "what", "function", "took", "detail"], rows, "at", "ascending")


# -- the page ---------------------------------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2328; --soft: #5c6871; --line: #d9dfe3; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ec; --soft: #97a3ab; --line: #38424a; --paper: #14191d; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1200px;
       margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.4rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p { color: var(--soft); max-width: 80ch; } p.summary { color: var(--ink); font-weight: 600; } p.key { max-width: none; }
summary { color: var(--soft); cursor: pointer; }
.wide { overflow-x: auto; } svg { width: 100%; min-width: 720px; height: auto; display: block; }
svg text { font-size: 12px; fill: var(--soft); } svg line { stroke: var(--line); }
svg line.reference { stroke: var(--soft); stroke-dasharray: 6 4; stroke-width: 1.5; }
table { border-collapse: collapse; font-size: 13px; width: 100%; }
th { text-align: left; color: var(--soft); font-weight: 500; vertical-align: bottom; }
th, td { padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); } td { vertical-align: top; }
td[data-by] { white-space: nowrap; font-variant-numeric: tabular-nums; }
code { font-size: 12px; }
.bar { display: flex; width: 140px; height: 12px; } .bar i { display: block; }
th button { all: unset; cursor: pointer; } th button:hover, th button:focus-visible { text-decoration: underline; }
th[aria-sort="ascending"] button::after { content: " \\2191"; }
th[aria-sort="descending"] button::after { content: " \\2193"; }
.reason { margin-bottom: .4rem; max-width: 60ch; min-width: 28ch; white-space: normal; overflow-wrap: anywhere; }
@media (max-width: 900px) { .reason { width: 60ch; } }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--paper); }
.key span { display: inline-block; margin-right: 1em; }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
.compiled { fill: #2f7d5b; background: #2f7d5b; } .compared { fill: #d9a521; background: #d9a521; }
.numpy { fill: #b4532e; background: #b4532e; } .other { fill: #9aa7af; background: #9aa7af; }
.own { background: #7a5bb0; }
.recorded { fill: #2a6fb0; } .compile { fill: #7a5bb0; } .refused { fill: #9aa7af; } .demoted { fill: #c0392b; }
"""


_SCRIPT = """
for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => {
  const head = button.parentElement, row = head.parentElement, body = row.closest("table").tBodies[0];
  const place = [...row.children].indexOf(head), by = line => {
    const cell = line.children[place];
    return "by" in cell.dataset ? Number(cell.dataset.by) : cell.textContent;
  };
  const lines = [...body.rows], numbers = lines.some(line => typeof by(line) === "number");
  const falling = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : numbers;
  for (const each of row.children) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  lines.sort((a, b) => (by(a) > by(b) ? 1 : by(a) < by(b) ? -1 : 0) * (falling ? -1 : 1));
  body.append(...lines);
});
"""
"""Script that sorts a table by a click on a title: numbers first from the largest, texts from the first."""


def _key(labels: Mapping[str, str]) -> str:
    parts = "".join(f"<span><i class={part}></i>{escape(label)}</span>" for part, label in labels.items())
    return f'<p class="key">{parts}</p>'


def _about_steps(steps: Sequence[Step], target: str | None, dropped: int) -> str:
    if not steps:
        return "<p>No function was called twice, so there are no steps to show.</p>"
    words = (
        f"A step is the time from the end of one call of <code>{escape(str(target))}</code> to the end of its next. "
        "Columns that reach the top are cut off. Hover over one for its length."
    )
    if len(steps) > drawing.MAX_COLUMNS:
        words += f" Each column is the mean of {-(-len(steps) // drawing.MAX_COLUMNS)} steps."
    if dropped:
        words += f" The first {dropped} calls are not shown: only the newest {timeline.MAX_CALLS} are kept."
    return f"<p>{words}</p>"


def page(program: str, lines: str = "") -> str:
    """Return the profile of this process so far, as one HTML page.

    program: the title. lines: the line profile and what to change, in HTML.
    """
    calls, events, run = list(timeline.calls or ()), list(timeline.events), ledger.current_run()
    target = pacing_target(calls, run.pace)
    steps = steps_of(calls, target)
    on_numpy = [second for book in ledger.ledgers() if book.target == target for second in book.numpy_s]
    usual = drawing.usual_on_numpy(steps, median(on_numpy) if on_numpy else None)
    heading = summary.heading_of(figures_of_run(), IN_SHELL)
    told, *more = [escape(line) for line in heading if not line.startswith("note: ")]
    missing = f"<p>{timeline.dropped_events} later events are not shown.</p>" if timeline.dropped_events else ""
    parts = [
        f"<h1>{escape(program)}</h1>",
        f'<p class="summary">{told.removeprefix("accel: ")}</p>',
        *(f"<p>{escape(note)}</p>" for note in run.notes),
        "<details><summary>device, times, costs, versions</summary>",
        *(f"<p>{line}</p>" for line in more),
        "</details>",
        "<h2>Time per step</h2>",
        _about_steps(steps, target, timeline.dropped_calls),
        *([_key(drawing.LABELS), drawing.steps_chart(steps, usual)] if steps else []),
        "<h2>Timeline</h2>",
        "<p>What answered calls, and when rare events happened. Hover over one for the function.</p>",
        drawing.time_line(calls, events, run.started, time.perf_counter()),
        "<h2>Functions</h2>",
        "<p>A click on a title sorts, a second click turns the order round. Time in it: all its calls, without "
        "those of others inside them. Net gain: what compiled calls took less than NumPy's, less all costs.</p>",
        _key(_BAR),
        _targets(),
        *([f'<div class="wide">{lines}</div>'] if lines else []),
        "<h2>Events</h2>",
        _events(events, run.started),
        missing,
    ]
    body = "\n".join(part for part in parts if part)
    head = f'<meta charset="utf-8"><title>accel: {escape(program)}</title><style>{_STYLE}</style>'
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    body = f"{body}\n<script>{_SCRIPT}</script>"
    return f'<!doctype html>\n<html lang="en"><head>{head}{view}</head><body>\n{body}\n</body></html>\n'
