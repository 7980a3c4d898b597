"""The tape: what one recorded NumPy call computed, as a graph of nodes.

A `Node` is one value. Its `rule` says how NumPy computes it (`rule.function`) and how JAX does (`rule.lower`); its
`args` and `kwargs` are that call's arguments with nodes in the place of recorded values (a *template*, see
`accel.ir.template`). Nodes hold shape and dtype, never values: a step of a model has more than a thousand.

Arrays that share memory share a `Storage`. A storage has versions (nodes); a view is a storage plus a chain of view
steps. Reading a view applies the chain to the newest version, writing through it makes a new version.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Container, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.ir.bits import array_key
from accel.ir.template import form, leaves

if TYPE_CHECKING:
    from accel.rules.rule import Rule

WEAK = (int, float, complex)
"""Python scalar types: their promotion is weak in NumPy 2."""

INPUT = "accel.input"
"""Name of the rule whose nodes come from outside."""

Place = tuple[str, int]
"""File and line of the user's program."""


class Node:
    """One value on the tape.

    index: its position on the tape.
    rule, args, kwargs: how it is computed. Nodes stand in the arguments for recorded values.
    shape, dtype: what NumPy produced. scalar: the Python or NumPy scalar type if the value is no array.
    host: computed from scalars alone, so Python evaluates it before launch. constant: computed from literals alone.
    where: file and line.
    site: a hash of the call stack's bytecode positions. Nodes from the same instruction, reached by the same calls,
    share it: the iterations of a loop do.

    The nodes of a finished tape do not change. The passes of the lowering make others of the same index, with
    endangered: the value of a write has to be copied first (see accel.compiler.lower.passes.aliasing).
    """

    __slots__ = (
        "_form",
        "_operands",
        "args",
        "constant",
        "dtype",
        "endangered",
        "host",
        "index",
        "kwargs",
        "rule",
        "scalar",
        "shape",
        "site",
        "where",
    )

    def __init__(
        self,
        index: int,
        rule: Rule,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        shape: tuple[int, ...],
        dtype: np.dtype[Any] | None,
        scalar: type | None,
        host: bool,
        where: Place,
        site: int = 0,
    ) -> None:
        self.index = index
        self.rule = rule
        self.args = args
        self.kwargs = kwargs
        self.shape = shape
        self.dtype = dtype
        self.scalar = scalar
        self.host = host
        self.where = where
        self.site = site
        self.endangered = False
        self._operands = (*nodes_in(args), *nodes_in(kwargs))  # once: passes ask for them again and again
        self._form: Hashable = None
        self.constant: bool = not self.is_input and all(operand.constant for operand in self._operands)

    @property
    def is_input(self) -> bool:
        """Whether it comes from outside: its first argument is the slot."""
        return self.rule.name == INPUT

    @property
    def weak(self) -> type | None:
        """The Python scalar type whose promotion is weak in NumPy 2, or None."""
        return self.scalar if self.scalar in WEAK else None

    def replaced(self, **changes: object) -> Node:
        """A copy of the node with these attributes changed."""
        other = copy.copy(self)
        for name, value in changes.items():
            setattr(other, name, value)
        if not changes.keys().isdisjoint(("args", "kwargs")):
            other._operands, other._form = (*nodes_in(other.args), *nodes_in(other.kwargs)), None
        return other

    def operands(self) -> tuple[Node, ...]:
        """The nodes that this one is computed from."""
        return self._operands

    @property
    def form(self) -> Hashable:
        """A key of its arguments, whichever nodes stand in them. It is made once: merges ask for it again and again."""
        if self._form is None:
            self._form = template_key((self.args, self.kwargs), lambda node: None)
        return self._form

    def __repr__(self) -> str:
        name = getattr(self.rule, "name", self.rule)
        return f"%{self.index} = {name} {self.dtype}{list(self.shape)}"


def template_key(template: object, key_of: Callable[[Node], Hashable]) -> Hashable:
    """A key of a template, its arrays by their bits. key_of: gives that of a node."""
    found: Hashable = form(
        template, lambda leaf: key_of(leaf) if isinstance(leaf, Node) else array_key(leaf), (Node, np.ndarray)
    )
    return found


def nodes_in(template: object) -> list[Node]:
    """The nodes of a template, in order."""
    return leaves(template, Node)


def needed_by(roots: Iterable[Node], known: Container[int] = ()) -> list[Node]:
    """The roots and all that they are computed from, in the order of the tape.

    known: indices of nodes that are left out, with what only these are computed from.
    """
    found: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.index not in found and node.index not in known:
            found[node.index] = node
            stack.extend(node.operands())
    return [found[index] for index in sorted(found)]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A value that the recorded path assumed: replays check it. expected: bool, int or float."""

    node: Node
    expected: Any
    where: Place


@dataclass(slots=True)
class Tape:
    """Nodes in the order NumPy computed them, and the outcomes that the path assumed."""

    nodes: list[Node] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def add(self, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], **about: Any) -> Node:
        """Append a node; `about` as in `Node`."""
        node = Node(len(self.nodes), rule, args, kwargs, **about)
        self.nodes.append(node)
        return node


SERIAL = itertools.count()
"""Numbers for what recordings make, in its order."""


class Storage:
    """The memory of one array, with its newest version.

    base: the ndarray itself. version: node with base's shape and dtype. origin: the input node where the memory
    came from outside, else None. written: whether the recording wrote to it. before: its bytes at the first write; of a
    vast one, of which only what is written to is journalled, the base itself.
    number: counts what recordings make, so that what was made later has a larger one.
    """

    __slots__ = ("_reads", "base", "before", "number", "origin", "version", "written")

    def __init__(self, base: np.ndarray[Any, Any], version: Node, origin: Node | None = None) -> None:
        self.base = base
        self.version = version
        self.origin = origin
        self.number = next(SERIAL)
        self.written = False
        self.before: np.ndarray[Any, Any] | None = None
        self._reads: dict[Any, Node] = {}  # of the newest version: equal reads are one node

    def cached(self, chain: tuple[Any, ...]) -> Node | None:
        """The node that reading `chain` of the newest version gave before."""
        return self._reads.get(chain)

    def remember(self, chain: tuple[Any, ...], node: Node) -> None:
        """Keep the node of a view's present value."""
        self._reads[chain] = node

    def tie(self, version: Node) -> None:
        """Let another node stand for what is in the memory now (see accel.record.run.loops.trimming)."""
        self.version = version
        self._reads.clear()

    def advance(self, version: Node) -> None:
        """Make `version` the newest; reads of older ones are forgotten."""
        self.tie(version)
        self.written = True
