"""Lower a recording, and check whether JAX accepts every operation."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from accel.compiler.lower import PACKS, Known, LoweredProgram, lower
from accel.compiler.lower.folding import foldable
from accel.compiler.lower.listing import listing
from accel.compiler.lower.passes.arrange import Part
from accel.record import Trace
from accel.record.state.changes import Item, Write

_PLACE = re.compile(r"^(\S+) at (\S+:\d+): ")


def lowered(trace: Trace, values: dict[int, Any], *, with_jax: bool, passes: bool = False) -> dict[str, Any]:
    """Return the number of operations of the lowered program, and how many fold if only the arguments vary.

    passes: list the operations after each pass, too. Raises Unsupported if the recording cannot be lowered.
    """
    program = lower(trace, Known())
    if with_jax:
        _trace_with_jax(program, trace)
    listings: list[dict[str, Any]] = []

    def list_operations(name: str, what: str, parts: Sequence[Part]) -> None:
        listings.append({"pass": name, "what": what, "operations": listing(parts, trace.inputs.name)})

    folded = lower(trace, _known(trace, values), watch=list_operations if passes else None)
    return {
        "operations": program.operations,
        "foldable": max(0, program.operations - folded.operations),
        "host": len(program.host),
        "jax": with_jax,
        "passes": listings,
    }


def _known(trace: Trace, values: dict[int, Any]) -> Known:
    """Return the inputs that may be constant, without attributes and items that the call itself sets."""
    changes = (change for change in trace.outputs.writes if isinstance(change, Write))
    writes = {(write.owner, Item(write.name) if write.is_item else write.name) for write in changes}
    slots = foldable(trace) - {slot for key, slot in trace.inputs.entries() if key[1:] in writes}
    slots -= {slot for slot, _ in trace.outputs.state}
    known = {slot: value for slot, value in values.items() if slot in slots}
    return Known(
        {slot: known[slot] for slot in trace.scalar_slots if slot in known},
        {slot: known[slot] for slot in trace.array_slots if slot in known},
    )


def _trace_with_jax(program: LoweredProgram, trace: Trace) -> None:
    """Trace every operation with JAX, without computing anything. Raises Unsupported."""
    os.environ["JAX_PLATFORMS"] = "cpu"  # in the child alone; shapes and dtypes are the same everywhere
    import jax

    nodes = {node.args[0]: node for node in trace.tape.nodes if node.is_input}
    arrays = [jax.ShapeDtypeStruct(nodes[slot].shape, nodes[slot].dtype) for slot in program.slots]
    scalars = {pack: np.zeros(len(some), PACKS[pack]) for pack, some in program.scalars.items() if some}
    with jax.enable_x64(True):
        assert program.function is not None
        jax.eval_shape(program.function, arrays, program.constants, scalars)


def locate(detail: str) -> tuple[str, str]:
    """Split the detail of a lowering error into its leading source line ("" if none) and the rest."""
    found = _PLACE.match(detail)
    return (found[2], f"{found[1]}: {detail[found.end() :]}") if found else ("", detail)
