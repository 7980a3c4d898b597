"""What a run of the benchmarks found, as Markdown: `summary.md` beside it, and the marked part of docs/benchmarks.md.

`python -m benchmarks.publish [--results DIR] [--page]` only reads what the benchmarks wrote, so that no table can
say anything else than the JSON beside it. With `--page`, what it read elsewhere is copied to docs/results first.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import functions, goals, harness, races, starts
from benchmarks.harness import BadInput

PAGE = harness.REPOSITORY / "docs" / "benchmarks.md"
"""The document with the marked section."""

PUBLISHED = PAGE.with_name("results")
"""The results that the page shows; they are part of the repository."""

KERNELS = {"collection": "A public collection, npbench", "kernels": "Small kernels"}
"""Benchmarks that hold races of kernels, and how the page names them."""

SHOWN = ("goals.*", "summary.md", *(f"{name}[.-]*" for name in (*KERNELS, "starts", "functions", "ndimage")))
"""Which files of a results folder the page is made of: patterns."""

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.publish", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--results", metavar="DIR", type=Path, default=PUBLISHED)
    arguments.add_argument("--page", action="store_true", help="also replace the marked section of docs/benchmarks.md")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Write the summary, and the page's section where asked."""
    options = parser().parse_args(argv)
    text = summary(options.results)
    (options.results / "summary.md").write_text(text)
    print(f"summary: {options.results / 'summary.md'}")
    if options.page:
        show(options.results)
        print(f"section: {PAGE}")
    return 0


def show(folder: Path, published: Path = PUBLISHED, page: Path = PAGE) -> None:
    """Make the results of a folder those that the page shows, and remove the ones that it has shown so far."""
    if folder.resolve() != published.resolve():
        kept = [path for pattern in SHOWN for path in sorted(folder.glob(pattern))]
        shutil.rmtree(published, ignore_errors=True)
        published.mkdir(parents=True)
        for path in kept:
            shutil.copy(path, published)
    page.write_text(replaced(page.read_text(), section(published, page)))


def section(folder: Path, page: Path = PAGE) -> str:
    """The summary without its long tables; links lead from where the page is."""
    try:
        place = folder.resolve().relative_to(page.resolve().parent)
    except ValueError:
        raise BadInput(f"--results {folder}: docs/benchmarks.md can show only what is under docs/") from None
    parts = [*_goals(folder), *_starts(folder), *_kernels(folder), *_plots(folder), *_interpolation(folder)]
    more = "[All tables](summary.md): times of single functions and filters."
    return "\n\n".join([*parts, more]).replace("](", f"]({place.as_posix()}/") + "\n"


def replaced(page: str, text: str) -> str:
    """`page` with `text` between the marks."""
    before, mark, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise BadInput(f"docs/benchmarks.md has no section between {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}"


def summary(folder: Path) -> str:
    """All tables and plots of a results folder. Raises BadInput where it holds none."""
    parts = [*_goals(folder), *_starts(folder), *_kernels(folder), *_functions(folder), *_ndimage(folder)]
    if not parts:
        raise BadInput(f"--results {folder}: no results there; run python -m benchmarks first")
    return "\n\n".join(parts) + "\n"


def _goals(folder: Path) -> list[str]:
    result = _read(folder / "goals.json")
    if result is None:
        return []
    return [f"**Goals**, measured on {result['date']}:", goals.describe(result)]


def _starts(folder: Path) -> list[str]:
    result = _read(folder / "starts.json")
    return [] if result is None else ["**Whole processes**, imports and exit included:", starts.describe(result)]


def _functions(folder: Path) -> list[str]:
    parts = []
    for path in sorted(folder.glob("functions-*.json")):
        result = _read(path)
        assert result is not None
        parts += [
            f"**Functions of {result['program']}**, medians in ms, {_machine(result)}:",
            functions.times_table(result["rows"]),
            functions.slopes_table(result["slopes"]),
            *(f"![{plot.stem}]({plot.name})" for plot in sorted(folder.glob(f"{path.stem}-*.png"))),
        ]
    return parts


def _plots(folder: Path) -> list[str]:
    return [f"![{plot.stem}]({plot.name})" for plot in sorted(folder.glob("functions-*-speedup.png"))]


def _interpolation(folder: Path) -> list[str]:
    """One line for the functions of `scipy.ndimage`."""
    result = _read(folder / "ndimage.json")
    if result is None:
        return []
    grids = dict.fromkeys(timing["grid"] for timing in result["timings"])
    ratios = {grid: [each["ratio"] for each in result["timings"] if each["grid"] == grid] for grid in grids}
    means = (f"{harness.geometric_mean(found):.1f} at {grid}" for grid, found in ratios.items())
    return [f"**`scipy.ndimage`**, {_machine(result)}: times as fast as SciPy, geometric mean: {', '.join(means)}."]


def _kernels(folder: Path) -> list[str]:
    parts = []
    for name, title in KERNELS.items():
        result = _read(folder / f"{name}.json")
        if result is not None:
            parts += [f"**{title}**, {_machine(result)}: {races.summary(result)}."]
            parts += [f"![{plot.stem}]({plot.name})" for plot in sorted(folder.glob(f"{name}-*.png"))]
    return parts


def _ndimage(folder: Path) -> list[str]:
    result = _read(folder / "ndimage.json")
    if result is None:
        return []
    keys = ("case", "grid", "scipy_ms", "compiled_ms", "ratio")
    rows = [[timing[key] for key in keys] for timing in result["timings"]]
    header = ["function", "grid", "SciPy ms", "compiled ms", "times faster"]
    return [f"**`scipy.ndimage`**, {_machine(result)}:", harness.markdown_table(header, rows)]


def _machine(result: Mapping[str, Any]) -> str:
    shown, versions = result["machine"], result["versions"]
    return f"{shown['cpu']}, {shown['cores']} cores, NumPy {versions['numpy']}, JAX {versions['jax']}"


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text()) if path.is_file() else None


if __name__ == "__main__":
    harness.run_command(main)
