"""The loop nest: blocks in blocks, whose operations are sites.

A *block* is the body of a loop. Its operations are *sites*: each stands for one operation of every round. What a site
takes is a static value, a number from a table, or the content of a *register*: a variable that some sites write to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NewType

from accel.ir.tape import Node
from accel.lower.passes.loops.operands import Invariant, NestOperand, RegisterValue, looked_at

if TYPE_CHECKING:
    from accel.lower.passes.nests.layouts import Computed, RoundInt
    from accel.lower.passes.nests.vectorize import Vectorized

Register = NewType("Register", int)
"""The number of a register."""

UNSET = Register(-1)
"""The register of a site that has not got one yet."""


class Irregular(Exception):
    """What looked like a nest is none, or none that can be computed."""


@dataclass(slots=True, eq=False)
class Site:
    """One operation of a block's rounds. nodes: one for each round, of all times that the block is entered.

    Filled in step by step: operands, register and collected by `registers`; plan, which computes it, by `pad`.
    register: the one that it writes to. collected: whether values of single rounds are used after the nest, so that
    those of all rounds are kept.
    """

    nodes: list[Node]
    operands: list[NestOperand] = field(default_factory=list)
    plan: Computed | None = None
    register: Register = UNSET
    collected: bool = False

    @property
    def node(self) -> Node:
        """One of them: for what they have in common."""
        return self.nodes[0]


@dataclass(slots=True, eq=False)
class Block:
    """A loop's body. trips: rounds, for each time that it is entered. parent: the block that it is part of.

    In `for i in range(1, 4): for j in range(i): ...` the inner block has trips [1, 2, 3], the outer one [3].
    """

    items: list[Site | Block]
    trips: list[int]
    parent: Block | None = None

    @property
    def rounds(self) -> int:
        return sum(self.trips)

    def sites(self) -> Iterator[Site]:
        for item in self.items:
            if isinstance(item, Site):
                yield item
            else:
                yield from item.sites()

    def blocks(self) -> Iterator[Block]:
        yield self
        for item in self.items:
            if isinstance(item, Block):
                yield from item.blocks()


@dataclass(slots=True, eq=False)
class Nest:
    """A block that the program enters once, with what it takes and gives.

    registers: by index of a node, the register that holds it. initial: what registers hold before, where anything.
    final: nodes that are used afterwards and that a register still holds then. collected: nodes that are used
    afterwards otherwise, with their site and round.

    Filled in by `pad`: tables, the arrays of numbers that it looks up; trips, for each inner block how many rounds it
    has when it is entered; rows, for each collected site the row that a round's value gets; vectorized, the blocks
    whose rounds are computed at once, and how.
    """

    block: Block
    registers: dict[int, Register]
    initial: dict[Register, Node]
    final: dict[Register, Node]
    collected: list[tuple[Node, Site, int]]
    tables: list[Any] = field(default_factory=list)
    trips: dict[Block, RoundInt] = field(default_factory=dict)
    rows: dict[Site, RoundInt] = field(default_factory=dict)
    vectorized: dict[Block, Vectorized] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(1 for _ in self.block.sites())

    def operands(self) -> Iterator[Node]:
        """The values that it takes."""
        yield from self.initial.values()
        for site in self.block.sites():
            for base in map(looked_at, site.operands):
                if isinstance(base, Invariant) and isinstance(base.leaf, Node):
                    yield base.leaf


def register_of(registers: Mapping[int, Register], content: RegisterValue) -> Register:
    """The register whose content an operand is. registers: by index of the node.

    All of its nodes that the nest computes share one register. Those from before the nest have none: the register
    begins with them.
    """
    return next(registers[node.index] for node in content.nodes if node.index in registers)


@dataclass(frozen=True, slots=True)
class Carry:
    """What a block's loop carries: contents of registers, and for collected sites their values of all rounds."""

    registers: list[Register]
    columns: list[Site]


class Liveness:
    """Which registers a block's loop carries: those that it writes and that are used in a later round, or after it."""

    def __init__(self, nest: Nest) -> None:
        self._nest = nest
        self._uses = [(site, _registers(nest, site)) for site in nest.block.sites()]

    def carried(self, block: Block) -> Carry:
        written = {site.register for site in block.sites()}
        inside = set(block.sites())
        outside = set(self._nest.final)
        for site, used in self._uses:
            if site not in inside:
                outside |= used
        registers = written & (outside | self.exposed(block))
        return Carry(sorted(registers), [site for site in block.sites() if site.collected])

    def exposed(self, block: Block) -> set[Register]:
        """Registers whose content a round may take from before it (upward-exposed uses)."""
        found: set[Register] = set()
        written: set[Register] = set()
        for item in block.items:
            if isinstance(item, Block):  # what it writes is not added to `written`: rather too much is carried
                found |= self.exposed(item) - written
            else:
                found |= _registers(self._nest, item) - written
                written.add(item.register)
        return found


def _registers(nest: Nest, site: Site) -> set[Register]:
    bases = map(looked_at, site.operands)
    return {register_of(nest.registers, base) for base in bases if isinstance(base, RegisterValue)}
