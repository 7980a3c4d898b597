"""The passes: transformations of a program's operations before JAX traces them, one after the other.

First come those of `PASSES`, then the arrangement into branches and loops (`with_loops`). Which iterations of a loop
are computed at once is decided later, while JAX traces (`accel.compiler.lower.values`).

A pass takes operations and returns operations. Neither the tape nor the pass's input changes, as another thread may be
lowering the same tape with other constants. A node that a pass replaces (`Node.replaced`) keeps its index and stands in
the list alone: operands still refer to the tape's node. So passes keep their notes of nodes by index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from accel.compiler.lower.passes import aliasing, arrange, branches, nesting, positions
from accel.compiler.lower.passes.arrange import Part
from accel.ir.tape import Node


@dataclass(frozen=True, slots=True)
class About:
    """Facts for the passes about the program that the operations belong to.

    results: indices of the nodes that it returns. state: what it leaves where its next call reads, by slot. value_of:
    a node's value where it is known before launch, else None. left: results that something outside goes on to compute
    with.
    """

    results: frozenset[int]
    state: Iterable[tuple[int, Node]]
    value_of: Callable[[Node], Any]
    left: Sequence[Node] = ()

    def kept(self) -> set[int]:
        """Indices of all nodes that something outside takes."""
        return {*self.results, *(node.index for _, node in self.state), *(node.index for node in self.left)}


class Pass(NamedTuple):
    """One pass. what: what it does, for `explain --passes`."""

    name: str
    what: str
    run: Callable[[Sequence[Node], About], Sequence[Node]]


# The first two replace operations. The others only mark them, so that their order does not matter. Loops come last:
# they are found in what is marked, and give more than operations.
PASSES = (
    Pass(
        "positions",
        "make a static view of each box whose position is known",
        lambda body, about: positions.settled(body, about.value_of),
    ),
    Pass(
        "nesting",
        "read and write a view of a view as a part of the array itself",
        lambda body, about: nesting.flattened(body, about.kept()),
    ),
    Pass(
        "aliasing",
        "copy what is written to an array before the write overwrites what it is computed from",
        lambda body, about: aliasing.copied_before_writes(body),
    ),
)

Watch = Callable[[str, str, Sequence[Part]], None]
"""Is given each pass's name, what it does, and the operations that it gives."""


def optimized(body: Sequence[Node], about: About, watch: Watch | None = None) -> Sequence[Node]:
    """The operations after these passes."""
    for each in PASSES:
        body = each.run(body, about)
        if watch is not None:
            watch(each.name, each.what, body)
    return body


def with_loops(body: Sequence[Node], about: About, watch: Watch | None = None) -> Sequence[Part]:
    """The operations with their loops: the last pass, which gives more than operations."""
    items = branches.branched(body, about.results)
    if watch is not None and len(items) < len(body):
        watch("branches", "compute what only one side of a branch needs only where the path takes that side", items)
    parts = arrange.arranged(items, about.results, about.value_of)
    if watch is not None:
        watch("loops", "roll up what the program's own loops repeat", parts)
    return parts
