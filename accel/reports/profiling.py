"""The profile: one self-contained HTML page that shows the time of a run by function, step and event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from accel.platform import ledger, timeline
from accel.platform.clocks import time
from accel.platform.ledger import Ledger
from accel.platform.timeline import Event
from accel.reports import drawing, summary, words
from accel.reports.advice import IN_SHELL
from accel.reports.drawing import Step, pacing_target, steps_of
from accel.reports.figures import figures_of, figures_of_run
from accel.reports.html import table

MAX_REASONS = 5
"""Maximum number of reasons to show per function."""

MAX_ROWS = 300
"""Maximum rows in the table of events."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2328; --soft: #5c6871; --line: #d9dfe3; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ec; --soft: #97a3ab; --line: #38424a; --paper: #14191d; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1200px;
       margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.4rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p { color: var(--soft); max-width: 80ch; } p.summary { color: var(--ink); font-weight: 600; }
summary { color: var(--soft); cursor: pointer; }
.wide { overflow-x: auto; } svg { width: 100%; min-width: 720px; height: auto; display: block; }
svg text { font-size: 12px; fill: var(--soft); } svg line { stroke: var(--line); }
table { border-collapse: collapse; font-size: 13px; } th { color: var(--soft); font-weight: 500; }
th, td { border-bottom: 1px solid var(--line); vertical-align: top; }
.key span { margin-right: 1em; } .key i { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
.compiled { fill: #2f7d5b; background: #2f7d5b; } .compared { fill: #d9a521; background: #d9a521; }
.numpy { fill: #b4532e; background: #b4532e; } .other { fill: #9aa7af; background: #9aa7af; }
.recorded { fill: #2a6fb0; } .compile { fill: #7a5bb0; } .refused { fill: #9aa7af; } .demoted { fill: #c0392b; }
"""


def _functions(books: Sequence[Ledger]) -> str:
    titles = ("function", "state", "what keeps calls on NumPy", "time in it", *(title for title, _ in words.COLUMNS))
    rows = []
    for book in sorted(books, key=lambda book: -book.spent_s):
        given = figures_of(book)
        reasons = "; ".join(map(_reason, given["reasons"][:MAX_REASONS]))
        shown = (show(given) for _, show in words.COLUMNS)
        rows.append((book.target, str(book.state), reasons, words.in_time(book.spent_s), *shown))
    return f'<div class="wide">{table(titles, rows, left=3, wrapped=True)}</div>'


def _reason(reason: Mapping[str, object]) -> str:
    where = f"{reason['where']}: " if reason["where"] else ""
    return f"{where}{reason['why']} [{reason['id']}], {reason['count']} times; {reason['hint']}"


def _events(events: Sequence[Event], began: float) -> str:
    rows = [
        (
            words.in_time(event.end - began),
            drawing.LANE_LABELS[event.kind],
            event.target,
            words.in_time(event.seconds) if event.seconds else "",
            event.detail,
        )
        for event in events[:MAX_ROWS]
    ]
    return f'<div class="wide">{table(("at", "what", "function", "took", "detail"), rows, left=5, wrapped=True)}</div>'


def _about_steps(steps: Sequence[Step], target: str | None, dropped: int) -> Iterator[str]:
    if not steps:
        yield "<p>No function was called twice, so there are no steps to show.</p>"
        return
    words = (
        f"A step is the time from the end of one call of <code>{escape(str(target))}</code> to the end of its next. "
        "Columns that reach the top are cut off. Hover over one for its length."
    )
    if len(steps) > drawing.MAX_COLUMNS:
        words += f" Each column is the mean of {-(-len(steps) // drawing.MAX_COLUMNS)} steps."
    if dropped:
        words += f" The first {dropped} calls are not shown: only the newest {timeline.MAX_CALLS} are kept."
    key = "".join(f"<span><i class={part}></i>{escape(label)}</span>" for part, label in drawing.LABELS.items())
    yield f'<p>{words}</p><p class="key">{key}</p>{drawing.steps_chart(steps)}'


def page(program: str) -> str:
    """Return the profile of this process so far, as one HTML page. program: the title."""
    calls, events, run = list(timeline.calls or ()), list(timeline.events), ledger.current_run()
    target = pacing_target(calls, run.pace)
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
        *_about_steps(steps_of(calls, target), target, timeline.dropped_calls),
        "<h2>Timeline</h2>",
        "<p>What answered calls, and when rare events happened. Hover over one for the function.</p>",
        drawing.time_line(calls, events, run.started, time.perf_counter()),
        "<h2>Functions</h2>",
        "<p>Time in it: all its calls, without those of others inside them.</p>",
        _functions([book for book in ledger.ledgers() if book.calls]),
        "<h2>Events</h2>",
        _events(events, run.started),
        missing,
    ]
    body = "\n".join(part for part in parts if part)
    head = f'<meta charset="utf-8"><title>accel: {escape(program)}</title><style>{_STYLE}</style>'
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    return f'<!doctype html>\n<html lang="en"><head>{head}{view}</head><body>\n{body}\n</body></html>\n'
