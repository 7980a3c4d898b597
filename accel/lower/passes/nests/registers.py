"""Registers: the variables of a nest, and whether they hold what its operations take.

Takes a run of equal rounds; gives a nest whose operands are known (see `accel.lower.passes.loops.operands`). Values
that one operand takes in different rounds share a register, and so do the versions of an array that is written to.
Whether each register then holds the right value at the right time is not proved but tried: all rounds are followed in
the order of the tape, with the contents of the registers. Raises Irregular where a register holds another value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.ir.template import frozen_static
from accel.ir.views import Index
from accel.lower.passes.loops.operands import (
    LARGEST_TABLE,
    Invariant,
    NestOperand,
    RegisterValue,
    Table,
    VaryingIndex,
    Window,
    leaves_of,
    looked_at,
    may_vary,
)
from accel.lower.passes.nests.loop_tree import Run, block_of, split
from accel.lower.passes.nests.nest import Block, Irregular, Nest, Register, Site, register_of
from accel.lower.passes.nests.program_order import ProgramOrder
from accel.lower.passes.union_find import UnionFind
from accel.rules import core


@dataclass(frozen=True, slots=True)
class Body:
    """A program's operations, in which nests are looked for.

    order: all of them. virtual: indices of the reads that move to their users. readers: by index of a node, that of the
    last operation that takes it. used: indices of nodes that are results. value_of: a node's value where it is known
    before launch, else None.
    """

    order: ProgramOrder
    virtual: set[int]
    readers: dict[int, int]
    used: frozenset[int]
    value_of: Callable[[Node], Any]


def nest_of(run: Run, body: Body) -> Nest:
    """The nest that computes a run; raises Irregular if there is none."""
    block = block_of([run], None)
    inside = {node.index for site in block.sites() for node in site.nodes}
    sets = UnionFind()
    for site in block.sites():
        operands = zip(*(leaves_of(node) for node in site.nodes), strict=True)
        site.operands = [_operand(site.node, column, inside, body) for column in operands]
        # One register for what the site computes in all rounds, one for what each of its operands is in all rounds. A
        # write shares the register of the array that it writes to, so that it happens in place.
        together = [site.nodes, *_contents(site)]
        if site.node.rule is core.WRITE:
            together += [(node, node.args[0]) for node in site.nodes]
        for nodes in together:
            own = [node for node in nodes if node.index in inside]
            for node in own[1:]:
                sets.join(node, own[0])
    # Not before the operands are known: where their boxes jump back shows that a long loop is two.
    for innermost in [each for each in block.blocks() if not any(isinstance(item, Block) for item in each.items)]:
        split(innermost)
    registers = {node.index: Register(sets.of(node)) for site in block.sites() for node in site.nodes}
    for site in block.sites():
        site.register = registers[site.node.index]
    follower = _Follower(registers)
    follower.enter(block)
    initial = {register: body.order.origin(node) for register, node in follower.initial.items()}
    nest = Nest(block, follower.registers, initial, {}, [])
    _note_results(nest, follower, run, body)
    return nest


def _contents(site: Site) -> Iterator[Sequence[Node]]:
    """What a register has to hold for the site, round by round: one register for each of its operands."""
    for base in map(looked_at, site.operands):
        if isinstance(base, RegisterValue):
            yield base.nodes


def _operand(
    user: Node,
    column: Sequence[Any],
    inside: set[int],
    body: Body,
) -> NestOperand:
    """What an operation takes over all rounds.

    user: the operation in the first round. inside: indices of the nest's nodes.
    """
    first, origin = column[0], body.order.origin
    if not isinstance(first, Node):
        return _static(user, column)
    if first.index in body.virtual:  # a read that moved here: what it looks at is the operand
        base = _operand(user, [node.args[0] for node in column], inside, body)
        return base if first.rule is core.SCALAR else Window(base, column)
    if first.index not in inside and all(origin(node).index == origin(first).index for node in column):
        return Invariant(origin(first))
    if any(node.index in inside for node in column):  # the first rounds may take it from before the nest
        return RegisterValue(column)
    # Another value from before the nest in each round. Only numbers that are known are handled: arrays would have to be
    # stacked, as `Stacked` does in rolled loops.
    if first.shape or len(column) > LARGEST_TABLE:
        raise Irregular
    known = [body.value_of(origin(node)) for node in column]
    if any(value is None for value in known):  # computed on the device: no table can be filled
        raise Irregular
    return Table(np.array(known, first.dtype))


def _static(user: Node, column: Sequence[Any]) -> NestOperand:
    first = column[0]
    if isinstance(first, Index):
        return Invariant(first) if all(step == first for step in column) else VaryingIndex(column)
    if all(frozen_static(leaf) == frozen_static(first) for leaf in column):
        return Invariant(first)
    if not may_vary(user) or len({type(leaf) for leaf in column}) != 1:
        raise Irregular  # an axis or a size, for instance, which a compiled program cannot look up
    return Table(np.array(column))


class _Follower:
    """Goes through all rounds in the program's order, and sees whether registers hold what sites take.

    registers: by index of the node. contents: the node that each register holds. initial: the node that it has to hold
    when the nest begins. Only nodes are compared, no values: this is as long as the tape, not as the computation.
    """

    def __init__(self, registers: dict[int, Register]) -> None:
        self.registers = registers
        self.contents: dict[Register, Node] = {}
        self.initial: dict[Register, Node] = {}
        self._rounds: dict[Block, int] = {}  # how many are done, over all entries: the position in a site's nodes
        self._entries: dict[Block, int] = {}  # how often it was entered

    def enter(self, block: Block) -> None:
        entry = self._entries.get(block, 0)
        self._entries[block] = entry + 1
        for _ in range(block.trips[entry]):
            position = self._rounds.get(block, 0)
            self._rounds[block] = position + 1
            for item in block.items:
                if isinstance(item, Block):
                    self.enter(item)
                else:
                    self._follow(item, position)

    def _follow(self, site: Site, position: int) -> None:
        for base in map(looked_at, site.operands):
            if isinstance(base, RegisterValue):
                self._take(base, position)
        self.contents[site.register] = site.nodes[position]

    def _take(self, operand: RegisterValue, position: int) -> None:
        register = register_of(self.registers, operand)
        node = operand.nodes[position]
        held = self.contents.get(register)
        if held is None and node.index not in self.registers:
            # Nothing was written to it yet, and the value is from before the nest: the register begins with it.
            self.contents[register] = self.initial[register] = node
        elif held is None or held.index != node.index:  # a value of two rounds before, for instance
            raise Irregular


def _note_results(nest: Nest, follower: _Follower, run: Run, body: Body) -> None:
    """What is used after the nest."""
    last = max(node.index for node in run.nodes)
    for site in nest.block.sites():
        for position, node in enumerate(site.nodes):
            # Nothing outside takes a repeated copy: there the tape's own node stands for it.
            if body.order.is_repeat(node) or (node.index not in body.used and body.readers.get(node.index, 0) <= last):
                continue
            if follower.contents[site.register].index == node.index:
                nest.final[site.register] = body.order.origin(node)
            else:
                site.collected = True
                nest.collected.append((body.order.origin(node), site, position))
