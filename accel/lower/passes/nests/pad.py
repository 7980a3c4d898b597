"""Padding: values of one shape, where slices change their length from round to round.

A value has the largest shape of all rounds, and each round says which part of it counts (see
`accel.lower.passes.nests.layouts`). The padding holds garbage: elementwise operations compute it, sums and products
mask it, writes do not store it.

Takes a nest whose operands are known; gives each site its `plan`, from which `accel.lower.passes.nests.emit` computes
it, and picks the blocks whose rounds are computed at once. Raises Irregular where an operation cannot be padded; then,
or where the padding would be most of the work, the nest's operations stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.ir.tape import Node
from accel.ir.views import Index, Transpose
from accel.lower.passes.loops.operands import (
    LARGEST_TABLE,
    Invariant,
    NestOperand,
    RegisterValue,
    Table,
    VaryingIndex,
    Window,
    filled,
    may_vary,
)
from accel.lower.passes.nests import vectorize
from accel.lower.passes.nests.layouts import Computed, Cut, Frame, Layout, RoundInt, cut_of, even, joined
from accel.lower.passes.nests.masking import mask_of, masked, shifted
from accel.lower.passes.nests.nest import Block, Irregular, Liveness, Nest, Site, register_of
from accel.lower.passes.nests.vectorize import Use
from accel.rules import core, fusion, gathers

WASTE = 4
"""A nest may compute so many times as many elements as NumPy does. Where one length grows from 1 to n (`a[i, :i]`) it
computes twice as many, where two do (`a[:i, :i]`) three times, where three do four times. No measurement is known."""

_SAME_ELEMENTS = frozenset({core.CAST, core.SCALAR, core.SELECT})
"""Rules of the engine's own that are elementwise."""


def plan(nest: Nest) -> bool:
    """Make a nest ready to be computed. Whether that is worth while; raises Irregular where it cannot be."""
    planner = _Planner(nest)
    planner.block(nest.block)
    for site in nest.block.sites():
        layout = planner.layouts[site]
        # Rows of what is collected are the nodes' values as they stand: there is nobody to cut the padding off.
        if site.collected and (not layout.uniform or len(site.nodes) * int(np.prod(layout.shape)) > LARGEST_TABLE):
            raise Irregular
    planner.check_assumed()
    planner.check_carried()
    return planner.computed <= WASTE * planner.needed


class _Planner:
    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.layouts: dict[Site, Layout] = {}
        self.computed = 0
        self.needed = 0
        self._planned: dict[int, tuple[Site, int]] = {}  # by node: its site and round; of the sites planned so far
        self._assumed: list[Node] = []  # nodes that a site takes before their own site is planned
        self._uses: list[Use] = []  # in the current block
        self._lives = Liveness(nest)
        self.current: Block = nest.block

    def block(self, block: Block) -> None:
        self._uses = []
        for item in block.items:
            self.current = block  # again after each inner block
            if isinstance(item, Block):
                self.nest.trips[item] = self.ints(item.trips)
                self.block(item)
                continue
            if item.collected:
                self.nest.rows[item] = self.ints(np.arange(len(item.nodes)))
            layout, item.plan = self._site(item)
            if any(size == 0 for size in layout.shape):  # empty in all rounds: not handled
                raise Irregular
            self.layouts[item] = layout
            for round_, node in enumerate(item.nodes):
                self._planned[node.index] = item, round_
            if item.node.rule is not core.WRITE:  # a write costs what its value does, which was counted
                self._count(layout)
        if not any(isinstance(item, Block) for item in block.items):
            self._plan_vectorized(block)  # innermost: `self._uses` are all of its uses

    def _plan_vectorized(self, block: Block) -> None:
        in_place = {use.write for use in self._uses}
        made = [self.layouts[site].shape for site in block.sites() if site not in in_place]
        widest = max((int(np.prod(shape)) for shape in made), default=0)
        carried = self._lives.carried(block).registers
        found = vectorize.plan(block, self._uses, carried, self._lives.exposed(block), widest)
        if found is not None:
            self.nest.vectorized[block] = found

    def check_assumed(self) -> None:
        """Values that come from the round before have one shape: `_layout` took them for unpadded."""
        for node in self._assumed:
            if node.index in self._planned:
                layout = self.layouts[self._planned[node.index][0]]
                if layout.shape != node.shape or not layout.uniform:
                    raise Irregular

    def check_carried(self) -> None:
        """What a loop carries has one shape and dtype."""
        lives = self._lives
        carried = {register for block in self.nest.block.blocks() for register in lives.carried(block).registers}
        carried |= set(self.nest.initial)
        kinds = {register: {(node.shape, node.dtype)} for register, node in self.nest.initial.items()}
        for site in self.nest.block.sites():
            if site.register in carried:
                layout = self.layouts[site]
                kinds.setdefault(site.register, set()).add((layout.shape, site.node.dtype))
                if len(kinds[site.register]) > 1 or not layout.uniform:
                    raise Irregular

    def ints(self, values: NDArray[Any] | list[Any]) -> RoundInt:
        return RoundInt(values, self.current, self.nest.tables)

    # -- operands -----------------------------------------------------------------------------------------------------

    def operand(self, operand: NestOperand, rounds: int) -> tuple[Layout | None, Computed]:
        """The layout of an operand, None for a static one, and what computes it.

        Takes down as well what the block uses of arrays (`_uses`), and what the rounds look up (the nest's `tables`).
        """
        match operand:
            case Invariant(leaf):
                if not isinstance(leaf, Node):
                    return None, lambda frame: leaf
                return self._layout([leaf] * rounds, rounds), lambda frame: frame.values.fetch(leaf)
            case Table(values):
                return self._numbers(values)
            case RegisterValue(nodes):
                register = register_of(self.nest.registers, operand)
                self._uses.append(Use(register, None))
                return self._layout(nodes, rounds), lambda frame: frame.flushed(register)
            case Window(RegisterValue(whole) as base, nodes):
                register = register_of(self.nest.registers, base)
                cut = self._cut(self._layout(whole, rounds), nodes)
                self._uses.append(Use(register, cut))
                return cut.layout, lambda frame: frame.read(register, cut)
            case Window(base, nodes):
                layout, computed = self.operand(base, rounds)
                assert layout is not None
                cut = self._cut(layout, nodes)
                if isinstance(base, Invariant):
                    self._uses.append(Use(None, cut, array=computed))
                return cut.layout, lambda frame: frame.look(cut, computed)
            case _:
                raise Irregular

    def _cut(self, layout: Layout, reads: Sequence[Node]) -> Cut:
        steps, bases = [node.args[1] for node in reads], [node.args[0] for node in reads]
        return cut_of(layout, steps, bases, self.current, self.nest.tables)

    def _numbers(self, values: Any) -> tuple[Layout, Computed]:
        layout = Layout((), np.zeros((len(values), 0), int), np.zeros((len(values), 0), int))
        self.nest.tables.append(values)
        row = RoundInt(np.arange(len(values)), self.current, self.nest.tables)
        return layout, lambda frame: frame.table(values)[row.traced(frame)]

    def _layout(self, nodes: Sequence[Node], rounds: int) -> Layout:
        """The layout of a value that is one of `nodes` in each round. A node has the shape of what counts of it."""
        shapes = set()
        offsets = np.zeros((rounds, len(nodes[0].shape)), int)
        for k, node in enumerate(nodes):
            if node.index in self._planned:
                site, round_ = self._planned[node.index]
                shapes.add(self.layouts[site].shape)
                offsets[k] = self.layouts[site].offsets[round_]
            else:
                if node.index in self.nest.registers:  # planned later: it comes from a round before
                    self._assumed.append(node)
                shapes.add(node.shape)
        if len(shapes) != 1:  # the rounds take it from sites of different sizes
            raise Irregular
        return Layout(shapes.pop(), np.array([node.shape for node in nodes], int).reshape(rounds, -1), offsets)

    # -- sites --------------------------------------------------------------------------------------------------------

    def _site(self, site: Site) -> tuple[Layout, Computed]:
        node, rounds = site.node, len(site.nodes)
        if node.rule is core.WRITE and isinstance(node.args[1], Index):
            return self._write(site)
        if node.rule is core.READ:
            return self._read(site)
        found = [self.operand(operand, rounds) for operand in site.operands]
        arrays = [layout for layout, _ in found if layout is not None]
        shapes = {each.shape for each in site.nodes}
        # Nothing is padded: any operation will do. Otherwise it has to be one whose padding can be dealt with.
        if len(shapes) == 1 and all(layout.uniform for layout in arrays):
            _check_plain(site)
            return even(node.shape, rounds), _filled(node, [computed for _, computed in found], node.shape)
        if node.rule.locality.elementwise or node.rule in _SAME_ELEMENTS or node.rule is core.BROADCAST:
            return self._elementwise(site, found)
        if node.rule.padding.product_axis is not None:
            return self._product(site, found)
        if node.rule.padding.neutral is not None:
            return self._reduction(site, found)
        if node.rule is gathers.GATHER:
            return self._gather(site, found)
        raise Irregular

    def _elementwise(self, site: Site, found: list[tuple[Layout | None, Computed]]) -> tuple[Layout, Computed]:
        node, rounds = site.node, len(site.nodes)
        result = even(tuple(np.max([each.shape for each in site.nodes], axis=0).tolist()), rounds)
        result.lengths = np.array([each.shape for each in site.nodes], int).reshape(rounds, -1)
        placed: set[int] = set()
        parts: list[Computed] = []
        for layout, computed in found:
            for axis in range(len(layout.shape)) if layout is not None else ():
                assert layout is not None
                over = axis + len(result.shape) - len(layout.shape)
                if layout.shape[axis] == 1 and not layout.is_ragged(axis):
                    continue  # broadcast
                # An axis whose length is 1 in some rounds only would be broadcast in those alone.
                if over < 0 or (layout.lengths[:, axis] != result.lengths[:, over]).any():
                    raise Irregular
                if over not in placed:  # the first operand says where the result counts; the others move there
                    placed.add(over)
                    result.offsets[:, over] = layout.offsets[:, axis]
                computed = shifted(computed, layout, axis, result.offsets[:, over], self.ints)
            parts.append(computed)
        if node.rule is core.BROADCAST:
            shape, broadcast = result.shape, core.BROADCAST.lower
            assert broadcast is not None
            return result, lambda frame: broadcast(parts[0](frame), shape)
        _check_plain(site)
        return result, _filled(node, parts, result.shape)

    def _mask(self, layout: Layout, axes: Sequence[int]) -> Computed | None:
        mask = mask_of(layout, axes, self.ints)
        if mask is not None:  # choosing by it costs as much as computing the value
            self._count(layout)
        return mask

    def _count(self, layout: Layout) -> None:
        """Note what computing a value of this layout costs, and what of that NumPy computes too."""
        self.computed += len(layout.lengths) * int(np.prod(layout.shape))
        self.needed += int(np.prod(layout.lengths, axis=1).sum())

    def _product(self, site: Site, found: list[tuple[Layout | None, Computed]]) -> tuple[Layout, Computed]:
        """Sum over an axis of both operands. Both are masked: the padding of one may hold NaN, and 0 * NaN is NaN."""
        (left, one), (right, other) = [(layout, computed) for layout, computed in found if layout is not None]
        if not 1 <= len(left.shape) <= 2 or not 1 <= len(right.shape) <= 2:
            raise Irregular
        axis = len(left.shape) - 1  # of the left operand the last; of the right one what its rule says
        product_axis = site.node.rule.padding.product_axis
        assert product_axis is not None
        over = max(len(right.shape) + product_axis, 0)
        other = shifted(other, right, over, left.offsets[:, axis], self.ints)
        moved = Layout(right.shape, right.lengths, right.offsets.copy())
        moved.offsets[:, over] = left.offsets[:, axis]
        if left.shape[axis] != right.shape[over]:
            raise Irregular
        one = masked(one, self._mask(left, [axis]), 0)
        other = masked(other, self._mask(moved, [over]), 0)
        kept = [(left, each) for each in range(len(left.shape)) if each != axis]
        kept += [(moved, each) for each in range(len(right.shape)) if each != over]
        result = joined(kept, len(site.nodes))
        parts = iter((one, other))
        filled = [computed if layout is None else next(parts) for layout, computed in found]
        return result, _filled(site.node, filled, result.shape)

    def _reduction(self, site: Site, found: list[tuple[Layout | None, Computed]]) -> tuple[Layout, Computed]:
        node = site.node
        arrays = [layout for layout, _ in found if layout is not None]
        # `where`, `initial` and `keepdims` are not handled.
        if len(arrays) != 1 or node.args or not set(node.kwargs) <= {"a", "axis", "dtype"}:
            raise Irregular
        _check_plain(site)
        layout = arrays[0]
        given = node.kwargs.get("axis")
        axes = (
            range(len(layout.shape)) if given is None else [each % len(layout.shape) for each in np.atleast_1d(given)]
        )
        operand = node.operands()[0]
        assert operand.dtype is not None and node.rule.padding.neutral is not None
        neutral = node.rule.padding.neutral(operand.dtype)
        if neutral is None:
            raise Irregular
        parts = [
            computed if each is None else masked(computed, self._mask(layout, list(axes)), neutral)
            for each, computed in found
        ]
        result = joined([(layout, axis) for axis in range(len(layout.shape)) if axis not in axes], len(site.nodes))
        return result, _filled(node, parts, result.shape)

    def _gather(self, site: Site, found: list[tuple[Layout | None, Computed]]) -> tuple[Layout, Computed]:
        """Gather rows by an index array of varying length. The indices in its padding are arbitrary."""
        arrays = [layout for layout, _ in found if layout is not None]
        if len(site.node.args[1]) != 1 or len(arrays) != 2:
            raise Irregular
        rows, indices = arrays
        if not rows.uniform or rows.offsets.any():
            raise Irregular
        axes = [(indices, axis) for axis in range(len(indices.shape))]
        result = joined(axes + [(rows, axis) for axis in range(1, len(rows.shape))], len(site.nodes))
        return result, _filled(site.node, [computed for _, computed in found], result.shape)

    def _read(self, site: Site) -> tuple[Layout, Computed]:
        """Read a view. A window gets here only if its array is written before its last use, so that sinking left it."""
        rounds = len(site.nodes)
        layout, computed = self.operand(site.operands[0], rounds)
        assert layout is not None
        step = site.node.args[1]
        steps = [node.args[1] for node in site.nodes]
        if isinstance(step, Index) and not _is_flip(step):
            cut = self._cut(layout, site.nodes)
            return cut.layout, lambda frame: cut.read(computed(frame), frame)
        if any(each != step for each in steps):  # one step is computed for all rounds
            raise Irregular
        if isinstance(step, Index):  # axes turned round: what counts stands as far from the other end
            axes = [axis for axis, entry in enumerate(step.key) if entry != slice(None)]
            offsets = layout.offsets.copy()
            for axis in axes:
                offsets[:, axis] = layout.shape[axis] - layout.offsets[:, axis] - layout.lengths[:, axis]
            return Layout(layout.shape, layout.lengths, offsets), lambda frame: step.read(computed(frame))
        if isinstance(step, Transpose):
            order = list(step.axes)
            shape = tuple(layout.shape[axis] for axis in order)
            return Layout(shape, layout.lengths[:, order], layout.offsets[:, order]), lambda frame: step.read(
                computed(frame)
            )
        if not layout.uniform:
            raise Irregular
        return even(site.node.shape, rounds), lambda frame: step.read(computed(frame))

    def _write(self, site: Site) -> tuple[Layout, Computed]:
        rounds = len(site.nodes)
        whole = site.operands[0]
        # In place where the register already holds the array. Otherwise the array is put there first: the write is to a
        # value from elsewhere (an input, or the result of another operation).
        in_place = isinstance(whole, RegisterValue) and register_of(self.nest.registers, whole) == site.register
        base: Layout | None
        stored: Computed | None = None
        if in_place:
            base = self._layout([node.args[0] for node in site.nodes], rounds)
        else:
            base, stored = self.operand(whole, rounds)
        value_layout, value = self.operand(site.operands[2], rounds)
        assert base is not None and value_layout is not None
        cut = self._cut(base, site.nodes)
        if len(value_layout.shape) != len(cut.layout.shape):
            raise Irregular
        for axis in range(len(value_layout.shape)):
            value = shifted(value, value_layout, axis, cut.layout.offsets[:, axis], self.ints)
        if value_layout.shape != cut.layout.shape:
            raise Irregular
        mask = self._mask(cut.layout, cut.layout.padded)
        endangered = any(node.endangered for node in site.nodes)
        if in_place:
            self._uses.append(Use(site.register, cut, write=site))

        def write(frame: Frame) -> None:
            new = fusion.snapshot(value(frame)) if endangered else value(frame)
            if stored is not None:
                frame.registers[site.register] = stored(frame)
            frame.write(site.register, cut, new, None if mask is None else mask(frame))

        return base, write


def _check_plain(site: Site) -> None:
    """Most rules of the engine's own take static values, and those must be the same in all rounds."""
    fixed = site.node.rule.own and not may_vary(site.node)
    if fixed and any(isinstance(each, (Table, VaryingIndex)) for each in site.operands):
        raise Irregular


def _filled(node: Node, parts: Sequence[Computed], shape: tuple[int, ...]) -> Computed:
    def computed(frame: Frame) -> Any:
        args, kwargs = filled(node, [part(frame) for part in parts])
        return frame.compute(node, args, kwargs, shape)

    return computed


def _is_flip(step: Index) -> bool:
    """Whether axes are turned round as a whole, and nothing else happens."""
    whole = (slice(None), slice(None, None, -1))
    return all(entry in whole for entry in step.key) and whole[1] in step.key
