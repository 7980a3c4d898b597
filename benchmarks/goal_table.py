"""All goals of "fast", in one table: what is measured, what it has to reach, and which command measures it.

Where two limits stand, the first is what is counted on and the second what is wanted. Every benchmark that measures a
row takes its limits from here, and `python -m benchmarks.goals` measures them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import Goal

OLD, NEW = "1742bf9", "72b7af5"
"""The revisions of PyGCM that goals are set on."""

FINE_GRID = "361x720"
PEER_GRID = "121x240"


@dataclass(frozen=True)
class Row:
    """One goal. text: what is measured. limits: in `unit`, the first to be counted on. at_least: on which side."""

    id: str
    text: str
    limits: tuple[float, ...]
    unit: str = "x"
    at_least: bool = False


ROWS = {
    row.id: row
    for row in (
        Row("step-old", f"{OLD}, {PEER_GRID}: steady step faster than NumPy by", (8.0, 12.0), at_least=True),
        Row("step-new", f"{NEW}, {PEER_GRID}: steady step faster than NumPy by", (5.0, 8.0), at_least=True),
        Row("step-fine", f"{OLD}, {FINE_GRID}: steady step faster than NumPy by", (10.0, 15.0), at_least=True),
        Row("wall-cold", "240 steps from a cold process: whole run faster than NumPy's by", (1.3, 2.0), at_least=True),
        Row("wall-warm", "240 steps with the disk cache of an earlier run: faster by", (4.0, 5.0), at_least=True),
        Row("collection", "a public collection, geometric mean of compiled kernels", (3.6, 4.5), at_least=True),
        Row("kernels", "32 small kernels, geometric mean of compiled ones", (3.0, 4.0), at_least=True),
        Row("slowest", "the slowest compiled kernel against NumPy", (0.97,), at_least=True),
        Row("peer", "time against hand-written JAX, arrays held by JAX", (1.1,)),
        Row("pause", "longest pause of a single step", (0.25,), "s"),
        Row("memory", "peak memory beyond JAX's own and 1.5 times NumPy's", (0.0,), "MB"),
        Row("guards", "guard, fetch and commit of a whole-step target", (60.0,), "us"),
        Row("stay", "a call that stays on NumPy costs", (1.0,), "us"),
    )
}


def of_row(id_: str, records: Iterable[Mapping[str, Any]]) -> list[Goal]:
    """The goals of a row among those that a benchmark wrote to its JSON."""
    return [Goal.from_record(record) for record in records if record["name"].startswith(ROWS[id_].text)]


def goals(id_: str, measured: float, of: str = "") -> list[Goal]:
    """The goals of a row for a measured value; `of` names which of several things it is."""
    row = ROWS[id_]
    name = f"{row.text} ({of})" if of else row.text
    return [Goal(name, measured, limit, row.unit, row.at_least) for limit in row.limits]
