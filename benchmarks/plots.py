"""PNG plots of what the benchmarks measured. matplotlib is asked for here alone, and may be missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STYLES = {
    "numpy": ("NumPy", "#888888", "o"),
    "accel": ("accel, the call", "#1f5fbf", "s"),
    "program": ("accel, its program", "#7fb2f0", "D"),
    "jax": ("JAX by hand", "#d95f02", "^"),
    "numba": ("numba", "#1b9e77", "v"),
}


def of_functions(result: Mapping[str, Any], out: Path) -> list[Path]:
    """Time against grid size, log-log, and speed-ups as bars, beside `out`; nothing without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    import matplotlib

    matplotlib.use("Agg")
    made = [(_growth(result), "time"), (_bars(result), "speedup")]
    paths = []
    for figure, what in made:
        path = out.with_name(f"{out.stem}-{what}.png")
        figure.savefig(path, dpi=110)
        paths.append(path)
    return paths


def of_drift(result: Mapping[str, Any], out: Path) -> list[Path]:
    """How far each field drifts from NumPy's in each run, step by step, beside `out`; nothing without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    from matplotlib.figure import Figure

    drift = result["drift"]
    steps = [int(step) for step in drift]
    fields = list(next(iter(drift.values()))["one_ulp"])
    columns = min(4, len(fields))
    lines = -(-len(fields) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.8 * lines), layout="constrained")
    for place, field in enumerate(fields):
        axes = figure.add_subplot(lines, columns, place + 1)
        for run in next(iter(drift.values())):
            axes.loglog(steps, [max(each[run][field], 1e-17) for each in drift.values()], label=run, linewidth=1.2)
        axes.set_title(field, fontsize=9)
        axes.set_xlabel("steps")
        axes.grid(alpha=0.3, linewidth=0.4)
    figure.axes[0].legend(fontsize=7)
    figure.suptitle("drift from NumPy, of each field's largest magnitude", fontsize=10)
    path = out.with_name(f"{out.stem}-drift.png")
    figure.savefig(path, dpi=110)
    return [path]


def of_kernels(result: Mapping[str, Any], out: Path) -> list[Path]:
    """How many times faster each compiled kernel is, as bars from the slowest on, beside `out`; none for one kernel."""
    rows = sorted((row for row in result["kernels"] if row["state"] == "compiled"), key=lambda row: row["ratio"])
    if importlib.util.find_spec("matplotlib") is None or len(rows) < 2:
        return []
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 + 0.2 * len(rows), 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(range(len(rows)), [row["ratio"] for row in rows], color=STYLES["accel"][1])
    axes.axhline(1.0, color="#444444", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xticks(range(len(rows)), [f"{row['kernel']} {row['n']}" for row in rows], rotation=90, fontsize=6)
    axes.set_ylabel("times faster than NumPy")
    axes.set_title(f"{result['benchmark']}, {result['machine']['cpu']}", fontsize=9)
    path = out.with_name(f"{out.stem}-ratios.png")
    figure.savefig(path, dpi=110)
    return [path]


def _growth(result: Mapping[str, Any]) -> Any:
    from matplotlib.figure import Figure

    functions = _functions(result["rows"])
    columns = min(3, len(functions))
    lines = -(-len(functions) // columns)
    figure = Figure(figsize=(4.0 * columns, 3.2 * lines), layout="constrained")
    for place, function in enumerate(functions):
        axes = figure.add_subplot(lines, columns, place + 1)
        rows = [row for row in result["rows"] if row["function"] == function]
        for rival, (label, color, marker) in STYLES.items():
            points = [(row["points"], row[f"{rival}_ms"]) for row in rows if row[f"{rival}_ms"]]
            if points:
                slope = result["slopes"].get(function, {}).get(rival)
                text = label if slope is None else f"{label}, slope {slope:.2f}"
                axes.loglog(*zip(*points, strict=True), marker=marker, color=color, label=text, markersize=4)
        axes.set_title(function)
        axes.set_xlabel("grid points")
        axes.set_ylabel("ms per call")
        axes.grid(alpha=0.3, which="both", linewidth=0.4)
        axes.legend(fontsize=6)
    figure.suptitle(_title(result))
    return figure


def _bars(result: Mapping[str, Any]) -> Any:
    from matplotlib.figure import Figure

    functions = _functions(result["rows"])
    grids = list(dict.fromkeys(row["grid"] for row in result["rows"]))
    speedups = {(row["function"], row["grid"]): row["speedup"] or 0.0 for row in result["rows"]}
    figure = Figure(figsize=(1.5 + 1.6 * len(functions), 3.6), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(grids)
    for place, grid in enumerate(grids):
        at = [number + (place - (len(grids) - 1) / 2) * width for number in range(len(functions))]
        axes.bar(at, [speedups.get((name, grid), 0.0) for name in functions], width, label=grid)
    axes.axhline(1.0, color="#444444", linewidth=0.8)
    axes.set_xticks(range(len(functions)), functions)
    axes.set_ylabel("times faster than NumPy, per call")
    axes.legend(fontsize=7)
    axes.set_title(_title(result), fontsize=9)
    return figure


def _functions(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["function"] for row in rows))


def _title(result: Mapping[str, Any]) -> str:
    return f"{result['program']}, float64, {result['machine']['cpu']}, {result['machine']['cores']} cores"
