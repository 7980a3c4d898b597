"""Nests in a traced program: each block is a `lax.fori_loop` over the registers that it carries, or vectorized.

Takes a nest that `accel.lower.passes.nests.pad` has planned, and sets the values that are used after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from accel.lower.passes.nests import vectorize
from accel.lower.passes.nests.layouts import Frame, NestCompute
from accel.lower.passes.nests.nest import Block, Liveness, Nest, Register, Site
from accel.lower.passes.value_store import ValueStore

if TYPE_CHECKING:
    from jax import Array


def run(nest: Nest, values: ValueStore, compute: NestCompute) -> None:
    """Compute a nest in a traced program.

    values: the program's values by node; those that are used later are set. compute: computes an operation.
    """
    from jax import numpy as jnp

    values.ensure(nest.operands())
    registers = {register: jnp.asarray(values.fetch(node)) for register, node in nest.initial.items()}
    columns: dict[Site, Any] = {
        site: jnp.zeros((len(site.nodes), *site.node.shape), site.node.dtype)
        for site in nest.block.sites()
        if site.collected
    }
    frame = Frame(values, compute, {}, registers, columns)
    _enter(nest, nest.block, np.int32(nest.block.rounds), frame, Liveness(nest))
    for register, node in nest.final.items():
        values.set(node, frame.registers[register])
    for node, site, row in nest.collected:
        values.set_row(node, frame.columns[site], row)


def _enter(nest: Nest, block: Block, trips: Array | np.generic, frame: Frame, liveness: Liveness) -> None:
    if block in nest.vectorized:
        vectorize.run(nest, block, frame)
        return
    from jax import lax
    from jax import numpy as jnp

    carried = liveness.carried(block)
    likes = {site.register: site.node for site in block.sites()}

    def first(register: Register) -> Any:
        held = frame.registers.get(register)
        # A loop has to carry something. What no round has written yet is written before it is read: otherwise the
        # register would have an initial content.
        return jnp.zeros(likes[register].shape, likes[register].dtype) if held is None else held

    def body(k: Array, carry: tuple[list[Any], list[Any]]) -> Any:
        inner = frame.inside(block, k)
        inner.set(carried, carry)
        for item in block.items:
            if isinstance(item, Block):
                inner.flush()  # the inner loop starts from the registers alone, without this round's pending writes
                _enter(nest, item, nest.trips[item].traced(inner), inner, liveness)
                continue
            inner.perform(item)
            if item.collected:
                value = inner.flushed(item.register)
                column, row = inner.columns[item], nest.rows[item].traced(inner)
                inner.columns[item] = lax.dynamic_update_index_in_dim(column, value, row, 0)
        inner.flush()
        return [inner.registers[register] for register in carried.registers], [
            inner.columns[site] for site in carried.columns
        ]

    before = [first(register) for register in carried.registers], [frame.columns[site] for site in carried.columns]
    frame.set(carried, lax.fori_loop(np.int32(0), trips, body, before))
