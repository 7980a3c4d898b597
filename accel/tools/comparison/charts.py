"""Charts of a comparison run, where matplotlib is installed: the time of each step, and the differences of fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MAX_CHARTS = 12
"""Maximum number of fields to draw: those with the largest differences."""

_COLOURS = {"numpy": "#5b6770", "accel": "#c8502a", "perturbed": "#2a6fb0"}


def charts(result: Mapping[str, Any], out: Path) -> list[str]:
    """Draw steps.png and fields.png. Returns the names of the files; none if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    drawn = []
    if result["runs"]["accel"]["step_ms"]:
        _steps(Figure(figsize=(9, 4), layout="constrained"), result, out / "steps.png")
        drawn.append("steps.png")
    if result["fields"]:
        _fields(Figure(figsize=(9, 5), layout="constrained"), result, out / "fields.png")
        drawn.append("fields.png")
    return drawn


def _steps(figure: Any, result: Mapping[str, Any], path: Path) -> None:
    axes = figure.add_subplot()
    for way in ("perturbed", "numpy", "accel"):
        step_ms, usual = (result["runs"][way][key] for key in ("step_ms", "ms_per_step"))
        axes.plot(range(1, len(step_ms) + 1), step_ms, lw=0.7, alpha=0.5, color=_COLOURS[way])
        if usual is not None:
            axes.axhline(usual, lw=1.5, ls="--", color=_COLOURS[way], label=f"{way}: {usual:.3g} ms after warm-up")
    axes.set(xlabel="step", ylabel="ms", yscale="log", title="time per step")
    axes.grid(alpha=0.3)
    axes.legend(title="median")
    figure.savefig(path, dpi=130)


FLOOR = 1e-17
"""Differences below this are drawn on a linear scale, so that zero is drawn as zero."""


def _fields(figure: Any, result: Mapping[str, Any], path: Path) -> None:
    fields = result["fields"]
    by_size = sorted(fields, key=lambda name: [-max(fields[name][way]) for way in ("accel", "perturbed")])
    worst, *others = by_size[:MAX_CHARTS]
    axes = figure.add_subplot()
    for name in others:
        label = f"accel: {len(others)} other fields" if name == others[0] else None
        axes.plot(fields[name]["calls"], fields[name]["accel"], lw=0.7, color="0.75", label=label)
    for way, label in (("perturbed", "drift: NumPy perturbed"), ("accel", "accel")):
        axes.plot(fields[worst]["calls"], fields[worst][way], ".-", ms=5, lw=1.5, color=_COLOURS[way], label=label)
    axes.set_yscale("symlog", linthresh=FLOOR)
    top = max(max(fields[name][way]) for name in fields for way in ("accel", "perturbed"))
    highest = max(-14, math.ceil(math.log10(top))) if 0.0 < top < math.inf else 0
    exponents = range(-16, highest + 1, 1 if highest < -9 else 2)
    axes.set(xscale="log", xlabel="call", ylabel="difference by largest magnitude")
    axes.set(title=f"the field with the largest difference: {'.'.join(worst.split('.')[-2:])}")
    axes.set_yticks([0.0, *(10.0**exponent for exponent in exponents)])
    axes.set_ylim(-FLOOR / 2, 10.0**highest)
    axes.grid(alpha=0.3)
    axes.legend(loc="best")
    figure.savefig(path, dpi=130)
