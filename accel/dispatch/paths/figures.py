"""Figures of a compiled program, for the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.backend.disk import cache
from accel.dispatch.paths import work
from accel.dispatch.paths.program import Program
from accel.dispatch.paths.stages import Stage
from accel.ir.tape import Place


def figures(program: Program) -> dict[str, Any]:
    """Describe a program, and the outcomes that tell its calls from others."""
    whole, executable = program.whole, program.variant.executable
    folded, shards = {*executable.program.known.scalars, *executable.program.known.arrays}, executable.shards
    name, shared = whole.trace.inputs.name, cache.shared_with(program.kept)
    several = {"paths": len(program.paths), "branches": _branches(program)} if program.is_merged else {}
    return {
        "state": "given up" if program.stage is Stage.GIVEN_UP else "in use",
        "replays": whole.replays,
        "operations": executable.program.operations,
        # by the path's own recording: the lines of a merged trace from disk may be those of an earlier text
        "work": work.groups(max(program.paths, key=lambda path: path.replays).trace.tape.nodes),
        "compile_s": executable.seconds,
        "found_on_disk": program.found_on_disk,
        "shared": None if shared is None else str(shared),
        "kept_bytes": cache.size_of(program.kept) if program.kept else None,
        "unkept": None if program.kept else program.unkept,
        "inputs": len(whole.trace.inputs.slots),
        "constants": sorted({name(slot) for slot in folded}),
        "outcomes": [
            f"line {outcome.where[1]}: {_text(outcome.expected)}"
            for outcome in whole.trace.tape.outcomes
            if outcome.expected is not None
        ],
        "apart": whole.apart,
        "devices": 1 if shards is None else len(shards.devices),
        "undivided": executable.undivided or None,
        **several,
    }


def _branches(program: Program) -> list[dict[str, Any]]:
    """Where the paths part, and how many replays went which way.

    A line that a path runs several times may have several outcomes in each path, and the same ones in all.
    """
    sides: dict[Place, dict[str, int]] = {}
    ways: dict[Place, set[tuple[str, ...]]] = {}
    for path in program.paths:
        taken: dict[Place, list[str]] = {}
        for outcome in path.trace.tape.outcomes:
            taken.setdefault(outcome.where, []).append(_text(outcome.expected))
        for where, each in taken.items():
            ways.setdefault(where, set()).add(tuple(each))
            counts = sides.setdefault(where, {})
            for side in dict.fromkeys(each):
                counts[side] = counts.get(side, 0) + path.replays
    parting = (where for where, found in ways.items() if len(found) > 1 and len(sides[where]) > 1)
    return [{"line": where[1], "sides": sides[where]} for where in parting]


def _text(expected: Any) -> str:
    """An outcome as Python writes the number."""
    return repr(expected.item() if isinstance(expected, np.generic) else expected)
