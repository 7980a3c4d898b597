"""The profile: one self-contained HTML page that shows where the time of a run went. It is drawn as SVG.

A step is the time from the end of one call of a target to the end of its next call. The target is the one that a
catalogue names as the program's step. Without one, it is the target with the most time among those called more than
once.
"""

from __future__ import annotations

import linecache
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from statistics import median
from typing import Any, NamedTuple

from accel.reports import ledger, summary, timeline, words
from accel.reports.figures import figures_of
from accel.reports.ledger import Ledger
from accel.reports.timeline import COMPARED, COMPILED, NUMPY, CallRecord, Event

WIDTH = 960
HEIGHT = 220
LANE = 26
MARGIN = 64
MAX_COLUMNS = 240
"""The most columns in the chart of steps. In longer runs, a column is the mean of several steps."""

MAX_REASONS = 5
"""The most reasons that are shown of one function."""

MAX_ROWS = 300
"""The most rows in the table of events."""

PARTS = (COMPILED, COMPARED, NUMPY, "other")
"""The parts of a step's time. other: the program's own work outside all targets."""

_LABELS = {
    COMPILED: "compiled",
    COMPARED: "compiled, and NumPy for comparison",
    NUMPY: "NumPy (recordings included)",
    "other": "the program outside these functions",
}
_LANES = (timeline.RECORDED, timeline.COMPILE, timeline.REFUSED, timeline.DEMOTED)
_LANE_LABELS = {
    timeline.RECORDED: "recorded",
    timeline.COMPILE: "compiling",
    timeline.REFUSED: "refused",
    timeline.DEMOTED: "demoted",
}


class Step(NamedTuple):
    """One step, or the mean of the steps from `first` to `last`. parts: seconds by kind (see PARTS)."""

    first: int
    last: int
    seconds: float
    parts: dict[str, float]


# -- steps ------------------------------------------------------------------------------------------------------------


def pacing_target(calls: Iterable[CallRecord], named: str | None) -> str | None:
    """The target whose calls delimit steps; None if no target was called twice. named: by a catalogue."""
    counts: dict[str, int] = {}
    totals: dict[str, float] = {}
    for call in calls:
        counts[call.target] = counts.get(call.target, 0) + 1
        totals[call.target] = totals.get(call.target, 0.0) + call.seconds
    several = [target for target, count in counts.items() if count > 1]
    return named if named in several else max(several, key=totals.__getitem__, default=None)


def steps_of(calls: Sequence[CallRecord], target: str | None) -> list[Step]:
    """The steps, in order. Calls before the end of the target's first call belong to no step."""
    steps: list[Step] = []
    begin: float | None = None
    parts: dict[str, float] = {}
    for call in calls:
        parts[call.kind] = parts.get(call.kind, 0.0) + call.seconds
        if call.target == target:
            if begin is not None:
                seconds = call.end - begin
                parts["other"] = max(0.0, seconds - sum(parts.values()))
                steps.append(Step(len(steps) + 1, len(steps) + 1, seconds, parts))
            begin, parts = call.end, {}
    return steps


def binned(steps: Sequence[Step], columns: int) -> list[Step]:
    """At most `columns` steps: means over neighbouring ones."""
    size = -(-len(steps) // columns) if steps else 1
    return [_mean(steps[start : start + size]) for start in range(0, len(steps), size)]


def _mean(steps: Sequence[Step]) -> Step:
    count = len(steps)
    parts = {part: sum(step.parts.get(part, 0.0) for step in steps) / count for part in PARTS}
    return Step(steps[0].first, steps[-1].last, sum(step.seconds for step in steps) / count, parts)


# -- drawing ----------------------------------------------------------------------------------------------------------


def _svg(height: float, parts: Iterable[str], label: str) -> str:
    body = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label)}">\n{body}\n</svg>'


def _rect(x: float, y: float, width: float, height: float, kind: str, title: str) -> str:
    box = f'x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.3):.2f}" height="{max(height, 0):.2f}"'
    return f'<rect {box} class="{kind}"><title>{escape(title)}</title></rect>'


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _ticks(top: float, count: int = 5) -> list[float]:
    """Round numbers from 0 up to `top`.

    >>> _ticks(47.0)
    [0.0, 10.0, 20.0, 30.0, 40.0]
    """
    if top <= 0:
        return [0.0]
    raw = top / count
    power = 10.0 ** math.floor(math.log10(raw))
    width = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    return [width * i for i in range(int(top / width) + 1)]


def _tick_label(ms: float) -> str:
    return f"{ms / 1e3:g} s" if ms >= 1e3 else f"{ms:g} ms" if ms >= 1.0 or not ms else f"{1e3 * ms:g} us"


def _steps_chart(steps: Sequence[Step]) -> str:
    columns = binned(steps, MAX_COLUMNS)
    top = 3e3 * median(column.seconds for column in columns)  # ms; the few far longer steps, recordings, are cut off
    scale = (HEIGHT - 40) / top
    width = (WIDTH - MARGIN - 10) / len(columns)
    drawn = []
    for tick in _ticks(top):
        y = HEIGHT - 30 - tick * scale
        drawn += [_line(MARGIN, y, WIDTH - 10, y), _text(MARGIN - 6, y + 4, _tick_label(tick), "end")]
    for i, column in enumerate(columns):
        y = HEIGHT - 30.0
        named = f"step {column.first}" if column.first == column.last else f"steps {column.first} to {column.last}"
        for part in PARTS:
            ms = 1e3 * column.parts.get(part, 0.0)
            height = min(ms * scale, y - 10)
            y -= height
            if ms > 0:
                title = f"{named}: {words.in_time(column.seconds)}, of which {words.in_time(ms / 1e3)} {_LABELS[part]}"
                drawn.append(_rect(MARGIN + i * width, y, width * 0.9, height, part, title))
    drawn += [_text(MARGIN, HEIGHT - 12, "step 1"), _text(WIDTH - 10, HEIGHT - 12, f"step {len(steps)}", "end")]
    return _svg(HEIGHT, drawn, "time per step")


def _time_line(calls: Sequence[CallRecord], events: Sequence[Event], began: float, ended: float) -> str:
    scale = (WIDTH - MARGIN - 30) / max(ended - began, 1e-9)
    height = LANE * (len(_LANES) + 1) + 34
    drawn = []
    for tick in _ticks(ended - began, 8):
        x = MARGIN + 20 + tick * scale
        drawn += [_line(x, 4, x, height - 24), _text(x, height - 8, f"{tick:g} s", "middle")]
    drawn.append(_text(MARGIN + 12, LANE - 8, "calls", "end"))
    drawn += [
        _rect(MARGIN + 20 + x, 4, width, LANE - 8, kind, f"{kind}, {words.in_time(seconds)} of calls")
        for x, width, kind, seconds in _call_blocks(calls, began, scale)
    ]
    for row, lane in enumerate(_LANES, 1):
        drawn.append(_text(MARGIN + 12, (row + 1) * LANE - 8, _LANE_LABELS[lane], "end"))
        for event in events:
            if event.kind == lane:
                x = MARGIN + 20 + (event.end - event.seconds - began) * scale
                width = max(event.seconds * scale, 2.0)
                title = f"{event.target}: {_LANE_LABELS[lane]} at {words.in_time(event.end - began)}, {event.detail}"
                drawn.append(_rect(x, row * LANE + 4, width, LANE - 8, lane, title))
    return _svg(height, drawn, "timeline")


def _call_blocks(calls: Sequence[CallRecord], began: float, scale: float) -> list[tuple[float, float, str, float]]:
    """Runs of pixels in which the same kind of call took the most time, as x, width, kind, seconds.

    began: in seconds. scale: pixels per second.
    """
    # a rectangle for each call would be too many for a page: there may be MAX_CALLS
    pixels: dict[int, dict[str, float]] = {}
    for call in calls:
        left, right = int((call.end - call.seconds - began) * scale), int((call.end - began) * scale)
        for pixel in range(max(left, 0), right + 1):
            shares = pixels.setdefault(pixel, {})
            shares[call.kind] = shares.get(call.kind, 0.0) + call.seconds / (right - left + 1)
    blocks: list[tuple[float, float, str, float]] = []
    for pixel, shares in sorted(pixels.items()):
        kind, seconds = max(shares, key=shares.__getitem__), sum(shares.values())
        x, width, last, before = blocks[-1] if blocks else (0.0, 0.0, "", 0.0)
        if last == kind and x + width == pixel:
            blocks[-1] = (x, width + 1.0, kind, before + seconds)
        else:
            blocks.append((float(pixel), 1.0, kind, seconds))
    return blocks


# -- tables -----------------------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """A cell of a table: HTML, and the number by which the column is sorted. None: it is sorted by its text."""

    html: str
    number: float | None = None


def _table(head: Sequence[str], rows: Iterable[Sequence[str | Cell]]) -> str:
    """A table that a click on a title sorts. Cells that are text must be HTML; the titles are escaped here."""
    titles = "".join(f'<th><button type="button">{escape(title)}</button></th>' for title in head)
    lines = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>\n{lines}\n</tbody></table></div>'


def _cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return f"<td>{cell}</td>"
    return f"<td>{cell.html}</td>" if cell.number is None else f'<td data-by="{cell.number:.9g}">{cell.html}</td>'


def _time_cell(seconds: float | None, *, signed: bool = False) -> Cell:
    if seconds is None:
        return Cell("-", -math.inf)
    return Cell(("+" if signed and seconds >= 0 else "") + words.in_time(seconds), seconds)


_TITLES = (
    *("function", "state", "calls", "compiled", "a call on NumPy", "a compiled call", "per call"),
    *("time in it", "net gain", "largest error", "what keeps calls on NumPy"),
)


def _targets() -> str:
    books = [book for book in ledger.ledgers() if book.calls]
    books.sort(key=lambda book: -(book.spent_s))
    longest = max((book.spent_s for book in books), default=0.0)
    rows = [_row(book, figures_of(book), longest) for book in books]
    return _table(_TITLES, rows)


def _row(book: Ledger, given: Mapping[str, Any], longest: float) -> list[str | Cell]:
    parts = {
        COMPILED: book.compiled_total_s,
        COMPARED: book.costs["comparing"],
        NUMPY: max(0.0, book.numpy_total_s),
    }
    bars = "".join(
        f'<i class="{kind}" style="width:{100 * seconds / longest:.2f}%" title="{kind} {words.in_time(seconds)}"></i>'
        for kind, seconds in parts.items()
        if longest and seconds
    )
    speed, error = given["per_call_speedup"], given["max_rel_error"]
    return [
        f"<code>{escape(book.target)}</code>",
        escape(book.state),
        Cell(str(book.calls), book.calls),
        Cell(str(book.compiled_calls), book.compiled_calls),
        _time_cell(None if given["numpy_ms"] is None else given["numpy_ms"] / 1e3),
        _time_cell(None if given["compiled_ms"] is None else given["compiled_ms"] / 1e3),
        Cell(words.as_factor(speed), -math.inf if speed is None else speed),
        Cell(f'{words.in_time(book.spent_s)}<div class="bar">{bars}</div>', book.spent_s),
        _time_cell(book.saved_s, signed=True),
        Cell(words.number(error, ".0e"), -1.0 if error is None else error),
        Cell("".join(map(_reason, given["reasons"][:MAX_REASONS])), sum(each["count"] for each in given["reasons"])),
    ]


def _reason(reason: Mapping[str, Any]) -> str:
    """A reason: how often, where, the line of the source if it can be read, why, and what to do."""
    where = reason["where"]
    file, _, line = where.rpartition(":")
    source = linecache.getline(file, int(line)).strip() if line.isdigit() else ""
    code = f"<br><code>{escape(source)}</code>" if source else ""
    told = f"{reason['count']} times: {escape(where)}{' ' if where else ''}<b>{escape(reason['id'])}</b>{code}"
    return f'<p class="reason" title="{escape(reason["hint"])}">{told}<br>{escape(reason["why"])}</p>'


def _events(events: Sequence[Event], began: float) -> str:
    rows: list[list[str | Cell]] = [
        [
            Cell(words.in_time(event.end - began), event.end - began),
            _LANE_LABELS[event.kind],
            f"<code>{escape(event.target)}</code>",
            Cell(words.in_time(event.seconds) if event.seconds else "", event.seconds),
            escape(event.detail),
        ]
        for event in events[:MAX_ROWS]
    ]
    return _table(["at", "what", "function", "took", "detail"], rows)


# -- the page ---------------------------------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2328; --soft: #66727b; --line: #d9dfe3; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ec; --soft: #97a3ab; --line: #38424a; --paper: #14191d; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1040px;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p { color: var(--soft); max-width: 75ch; } p.key { max-width: none; } svg { width: 100%; height: auto; display: block; }
svg text { font-size: 12px; fill: var(--soft); } svg line { stroke: var(--line); }
table { border-collapse: collapse; font-size: 13px; width: 100%; } .wide { overflow-x: auto; }
th { text-align: left; color: var(--soft); font-weight: 500; }
th, td { padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
code { font-size: 12px; overflow-wrap: anywhere; }
.bar { display: flex; width: 200px; height: 12px; } .bar i { display: block; }
th button { all: unset; cursor: pointer; } th button:hover, th button:focus-visible { text-decoration: underline; }
th[aria-sort="ascending"] button::after { content: " \\2191"; }
th[aria-sort="descending"] button::after { content: " \\2193"; }
p.reason { margin: 0 0 .4rem; max-width: 60ch; min-width: 24ch; color: inherit; }
.key span { display: inline-block; width: .8em; height: .8em; margin: 0 .4em 0 1em; }
.key span:first-child { margin-left: 0; }
.compiled { fill: #2f7d5b; background: #2f7d5b; } .compared { fill: #d9a521; background: #d9a521; }
.numpy { fill: #b4532e; background: #b4532e; } .other { fill: #9aa7af; background: #9aa7af; }
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
"""Sorts a table by a click on a title: numbers first from the largest, texts from the first."""


def _key(parts: Sequence[str]) -> str:
    return f'<p class="key">{"".join(f"<span class={part}></span>{_LABELS[part]}" for part in parts)}</p>'


def _about_steps(steps: Sequence[Step], target: str | None, dropped: int) -> str:
    if not steps:
        return "<p>No function was called twice, so there are no steps to show.</p>"
    words = (
        f"A step is the time from the end of one call of <code>{escape(str(target))}</code> to the end of its next. "
        "Columns that reach the top are cut off; hover over one for its length."
    )
    if len(steps) > MAX_COLUMNS:
        words += f" Each column is the mean of {-(-len(steps) // MAX_COLUMNS)} steps."
    if dropped:
        words += f" The first {dropped} calls are not shown: only the newest {timeline.MAX_CALLS} are kept."
    return f"<p>{words}</p>"


def page(program: str) -> str:
    """The profile of this process so far, as one HTML page. program: the title."""
    calls, events, run = list(timeline.calls or ()), list(timeline.events), ledger.current_run()
    target = pacing_target(calls, run.pace)
    steps = steps_of(calls, target)
    lines = [escape(line) for line in summary.heading()]
    missing = f"<p>{timeline.dropped_events} later events are not shown.</p>" if timeline.dropped_events else ""
    parts = [
        f"<h1>{escape(program)}</h1>",
        *(f"<p>{line}</p>" for line in lines),
        "<h2>Time per step</h2>",
        _about_steps(steps, target, timeline.dropped_calls),
        *([_key(PARTS), _steps_chart(steps)] if steps else []),
        "<h2>Timeline</h2>",
        "<p>What answered calls, and when rare events happened. Hover over one for the function.</p>",
        _time_line(calls, events, run.started, time.perf_counter()),
        "<h2>Functions</h2>",
        "<p>A click on a title sorts. Net gain: what compiled calls took less than NumPy's, less all costs.</p>",
        _key(PARTS[:-1]),
        _targets(),
        "<h2>Events</h2>",
        _events(events, run.started),
        missing,
    ]
    body = "\n".join(part for part in parts if part)
    head = f'<meta charset="utf-8"><title>accel: {escape(program)}</title><style>{_STYLE}</style>'
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    body = f"{body}\n<script>{_SCRIPT}</script>"
    return f'<!doctype html>\n<html lang="en"><head>{head}{view}</head><body>\n{body}\n</body></html>\n'
