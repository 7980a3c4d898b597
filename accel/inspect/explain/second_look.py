"""Second look: lowers a recording, and checks whether JAX accepts every operation."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from accel.ir.tape import INPUT
from accel.lower import PACKS, Known, Program, lower
from accel.record import Trace

_PLACE = re.compile(r"^(\S+) at (\S+:\d+): ")


def lowered(trace: Trace, values: dict[int, Any], *, with_jax: bool) -> dict[str, Any]:
    """The numbers of operations of the lowered program, and of those that fold if all but the arguments is constant.

    Raises Unsupported if it cannot be lowered.
    """
    program = lower(trace, Known())
    if with_jax:
        _trace_with_jax(program, trace)
    folded = lower(trace, _known(trace, values))
    return {
        "operations": program.operations,
        "foldable": max(0, program.operations - folded.operations),
        "host": len(program.host),
        "jax": with_jax,
    }


def _known(trace: Trace, values: dict[int, Any]) -> Known:
    """Inputs that may be constant: those that are neither arguments nor written to."""
    changing = {slot for slot, _ in trace.outputs.changed}
    writes = {(write.owner, f"[{write.name!r}]" if write.is_item else write.name) for write in trace.outputs.writes}
    changing |= {slot for key, slot in trace.inputs.entries() if key[0] in ("arg", "kwarg") or key[1:] in writes}
    known = {slot: value for slot, value in values.items() if slot not in changing}
    return Known(
        {slot: known[slot] for slot in trace.scalar_slots if slot in known},
        {slot: known[slot] for slot in trace.array_slots if slot in known},
    )


def _trace_with_jax(program: Program, trace: Trace) -> None:
    """Let JAX trace every operation without computing anything. Raises Unsupported."""
    os.environ["JAX_PLATFORMS"] = "cpu"  # shapes and dtypes are the same everywhere
    import jax

    nodes = {node.args[0]: node for node in trace.tape.nodes if node.rule.name == INPUT}
    arrays = [jax.ShapeDtypeStruct(nodes[slot].shape, nodes[slot].dtype) for slot in program.slots]
    scalars = {pack: np.zeros(len(some), PACKS[pack]) for pack, some in program.scalars.items() if some}
    with jax.enable_x64(True):
        assert program.function is not None
        jax.eval_shape(program.function, arrays, program.constants, scalars)


def place(detail: str) -> tuple[str, str]:
    """Split the detail of a lowering error into the source line that it begins with, "" if none, and the rest."""
    found = _PLACE.match(detail)
    return (found[2], f"{found[1]}: {detail[found.end() :]}") if found else ("", detail)
