"""Exact: operations that have to round as NumPy does, because a jump reads what they give.

Elsewhere a last place more or less is what XLA is allowed. It is not worth its price where a value has another last
place anyway: behind a sum, an exponential, or an input that an earlier call left so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from accel.ir.tape import Node
from accel.rules.columns import Rounding, fact


def rounded_as_numpy(
    body: Sequence[Node], left: Iterable[tuple[int, Node]], outside: Sequence[Node] = ()
) -> Sequence[Node]:
    """Mark operations whose rounding a jump can see as `exact`. left: slots and nodes of what the next call reads.

    outside: results that jumps may read which are not in the body.
    """
    jumps = [node for node in body if _is_jump(node)]
    if not jumps:
        return body
    state: dict[int, list[Node]] = {}
    for slot, node in left:
        state.setdefault(slot, []).append(node)
    exact = _Exactness(body, state)
    found = exact.read_by(jumps, state, outside)
    # A rolled loop computes all rounds by the operations of one. So rounds are marked alike, though the jump may
    # read but one of them.
    sites = {(node.rule.name, node.site) for node in found}
    return [node.replaced(exact=True) if (node.rule.name, node.site) in sites else node for node in body]


def _is_jump(node: Node) -> bool:
    """Whether the result may be quite another one where an operand differs in its last place."""
    jumps: bool | None = fact(node.rule.numerics.jumps, node)
    return _is_whole(node) and any(map(_is_float, node.operands())) if jumps is None else jumps


def _is_float(node: Node) -> bool:
    return node.dtype is not None and node.dtype.kind == "f"


class _Exactness:
    """Which values of a program are NumPy's to the last bit, if every operation rounds as NumPy does."""

    def __init__(self, body: Sequence[Node], state: Mapping[int, list[Node]]) -> None:
        self._body = {node.index for node in body}
        # What this program leaves in a slot is what its next call reads there. So at first all slots count as NumPy's,
        # and those that turn out to be left otherwise are taken away, until there are no more.
        self._spoilt: frozenset[int] = frozenset()  # slots that earlier calls left otherwise than NumPy
        while True:
            self._inexact: set[int] = set()
            for node in body:
                if not self._follows(node):
                    self._inexact.add(node.index)
            spoilt = frozenset(slot for slot, nodes in state.items() if not all(map(self._holds, nodes)))
            if spoilt == self._spoilt:
                break
            self._spoilt = spoilt

    def _holds(self, node: Node) -> bool:
        if node.dtype is None or node.dtype.kind == "c":  # several results, and complex numbers, are not handled
            return False
        if node.is_input:
            return node.args[0] not in self._spoilt
        return node.index not in self._inexact

    def _follows(self, node: Node) -> bool:
        """Whether an operation's result is exact, if those before it are."""
        rounding, operands = fact(node.rule.numerics.rounding, node), node.operands()
        if rounding is Rounding.EXACT and not _is_whole(node):
            return not operands or any(map(self._holds, operands))  # what is chosen may be that one
        return (rounding is not Rounding.FREE or _is_whole(node)) and all(map(self._holds, operands))

    def read_by(
        self, jumps: Iterable[Node], state: Mapping[int, list[Node]], outside: Iterable[Node] = ()
    ) -> list[Node]:
        """The program's operations whose exact results the jumps read, in this call or in later ones.

        outside: results that are read by jumps which are not looked at.
        """
        found: dict[int, Node] = {}
        stack = [*outside, *(operand for jump in jumps for operand in jump.operands())]
        while stack:
            node = stack.pop()
            if node.index in found or not _is_float(node) or not self._holds(node):
                continue
            found[node.index] = node
            stack.extend(state.get(node.args[0], ()) if node.is_input else node.operands())
        return [node for node in found.values() if node.index in self._body]


def _is_whole(node: Node) -> bool:
    return node.dtype is not None and node.dtype.kind in "biu"
