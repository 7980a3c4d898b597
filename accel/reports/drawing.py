"""The two charts of a profile, as SVG: the time of each step, and the timeline of calls and rare events.

A step is the time from the end of one call of a target to the end of its next call. The target is the one that a
catalogue names as the program's step. Without one, it is the target with the most time among those called more than
once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from statistics import median
from typing import NamedTuple

from accel.platform import timeline
from accel.platform.timeline import COMPARED, COMPILED, NUMPY, CallRecord, Event
from accel.reports import words

OTHER = "other"
"""Kind of time that the program spends outside all targets."""

PARTS = (COMPILED, COMPARED, NUMPY, OTHER)
"""The kinds of time in a step."""


WIDTH = 960
HEIGHT = 220
LANE = 26
MARGIN = 64
MAX_COLUMNS = 240
"""Maximum columns in the chart of steps. In longer runs, a column is the mean of several steps."""

LABELS = {
    COMPILED: "compiled",
    COMPARED: "compiled, and NumPy for comparison",
    NUMPY: "NumPy (recordings included)",
    OTHER: "the program outside these functions",
}
_LANES = (timeline.RECORDED, timeline.COMPILE, timeline.REFUSED, timeline.DEMOTED)
LANE_LABELS = {
    timeline.RECORDED: "recorded",
    timeline.COMPILE: "compiling",
    timeline.REFUSED: "refused",
    timeline.DEMOTED: "demoted",
}


def _svg(height: float, parts: Iterable[str], label: str) -> str:
    body = "\n".join(parts)
    drawn = f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label)}">\n{body}\n</svg>'
    return f'<div class="wide">{drawn}</div>'


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


def steps_chart(steps: Sequence[Step]) -> str:
    """Draw the time of each step, divided by kind. steps: at least one; many are drawn as means.

    The usual step of each kind of time fits in. The few far longer ones are cut off.
    """
    columns = binned(steps, MAX_COLUMNS)
    kinds: dict[str, list[float]] = {}
    for column in columns:  # a single median would cut off NumPy's steps once programs run
        kinds.setdefault(max(column.parts, key=column.parts.__getitem__), []).append(column.seconds)
    top = 1.5e3 * max(map(median, kinds.values()))
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
                title = f"{named}: {words.in_time(column.seconds)}, of which {words.in_time(ms / 1e3)} {LABELS[part]}"
                drawn.append(_rect(MARGIN + i * width, y, width * 0.9, height, part, title))
    drawn += [_text(MARGIN, HEIGHT - 12, "step 1"), _text(WIDTH - 10, HEIGHT - 12, f"step {len(steps)}", "end")]
    return _svg(HEIGHT, drawn, "time per step")


def time_line(calls: Sequence[CallRecord], events: Sequence[Event], began: float, ended: float) -> str:
    """Draw which kind of call ran when, and rare events, from `began` to `ended` on the clock `time.perf_counter`."""
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
        drawn.append(_text(MARGIN + 12, (row + 1) * LANE - 8, LANE_LABELS[lane], "end"))
        for event in events:
            if event.kind == lane:
                x = MARGIN + 20 + (event.end - event.seconds - began) * scale
                width = max(event.seconds * scale, 2.0)
                title = f"{event.target}: {LANE_LABELS[lane]} at {words.in_time(event.end - began)}, {event.detail}"
                drawn.append(_rect(x, row * LANE + 4, width, LANE - 8, lane, title))
    return _svg(height, drawn, "timeline")


def _call_blocks(calls: Sequence[CallRecord], began: float, scale: float) -> list[tuple[float, float, str, float]]:
    """Return runs of pixels in which the same kind of call took the most time, as x, width, kind, seconds.

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


# -- steps ------------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One step, or the mean of the steps from `first` to `last`. parts: seconds by kind (see PARTS)."""

    first: int
    last: int
    seconds: float
    parts: dict[str, float]


def pacing_target(calls: Iterable[CallRecord], named: str | None) -> str | None:
    """Return the target whose calls delimit steps; None if no target was called twice. named: by a catalogue."""
    counts: dict[str, int] = {}
    totals: dict[str, float] = {}
    for call in calls:
        counts[call.target] = counts.get(call.target, 0) + 1
        totals[call.target] = totals.get(call.target, 0.0) + call.seconds
    several = [target for target, count in counts.items() if count > 1]
    return named if named in several else max(several, key=totals.__getitem__, default=None)


def steps_of(calls: Sequence[CallRecord], target: str | None) -> list[Step]:
    """Return the steps, in order. Calls before the end of the target's first call belong to no step."""
    steps: list[Step] = []
    begin: float | None = None
    parts: dict[str, float] = {}
    for call in calls:
        parts[call.kind] = parts.get(call.kind, 0.0) + call.seconds
        if call.target == target:
            if begin is not None:
                seconds = call.end - begin
                parts[OTHER] = max(0.0, seconds - sum(parts.values()))
                steps.append(Step(len(steps) + 1, len(steps) + 1, seconds, parts))
            begin, parts = call.end, {}
    return steps


def binned(steps: Sequence[Step], columns: int) -> list[Step]:
    """Return at most `columns` steps, each the mean of neighbouring ones."""
    size = -(-len(steps) // columns) if steps else 1
    return [_mean(steps[start : start + size]) for start in range(0, len(steps), size)]


def _mean(steps: Sequence[Step]) -> Step:
    count = len(steps)
    parts = {part: sum(step.parts.get(part, 0.0) for step in steps) / count for part in PARTS}
    return Step(steps[0].first, steps[-1].last, sum(step.seconds for step in steps) / count, parts)
