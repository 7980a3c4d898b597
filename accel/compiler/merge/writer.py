"""The merged tape: the operations of several recorded paths, each once, with phis where paths come together.

A *column* is what one instruction computed on those paths that reached it. Where their operands are the same values,
it is one operation. Where they differ, a *phi* in front of it chooses among them by a *choice*: an outcome that tells
those paths apart. The rest of the paths then has one operation again, and so on behind it. (Phi as in static single
assignment form: Cytron et al., TOPLAS 1991.)

Which side of a choice needs which operations is not noted here: it follows from who reads them (see
accel.compiler.lower.passes.branches). So what both sides compute is one operation, wherever each of them came to it.
"""

from __future__ import annotations

import contextlib
import operator
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from accel.compiler.merge.alignment import Keys, aligned, keys_of, static_form
from accel.compiler.merge.recorded import Recorded, likeness
from accel.ir.tape import Node, Place, Tape
from accel.ir.template import fill
from accel.record.state.joins import Join
from accel.rules import core

Column = dict[int, Node]
"""A node of each path that has one, by the number of the path."""

_INDEX = operator.attrgetter("index")

Joined = dict[int, Join]
"""A join of each path that comes to it. The states are of one form."""


Settled = Mapping[int, Mapping[int, int]]
"""Merged nodes that each path has assumed something of, and when it did."""


class Inseparable(Exception):
    """No outcome tells these paths apart, or no phi can stand for their values."""


class Writer:
    """Writes the merged tape of some recordings. paths: of each, with the merged slots of its own. Raises TooLong.

    tape: its operations; it has no outcomes of its own. node_of: for each path, the merged node of each of its nodes.
    expected: by index of a merged node, what it has to be on each of the paths that assume something of it.
    """

    def __init__(self, paths: Sequence[Recorded]) -> None:
        self.tape = Tape()
        self.node_of: list[dict[int, Node]] = [{} for _ in paths]
        self.expected: dict[int, dict[int, Any]] = {}
        self._paths = paths
        self._assumed = [{each.node.index: each.expected for each in path.tape.outcomes} for path in paths]
        self._numbered: dict[Hashable, Node] = {}
        self._joined: list[dict[int, Node]] = [{} for _ in paths]  # by node: the phi that stands for it since a join
        self._inputs: dict[int, Node] = {}  # by merged slot
        for column in _columns(paths):
            if isinstance(next(iter(column.values())), Join):
                self._join(column)  # type: ignore[arg-type]
            else:
                self._write(column)  # type: ignore[arg-type]

    def current(self, path: int, node: Node) -> Node:
        """Return the merged node that stands for a path's node from now on.

        That is the node for all paths brought together by the path's last join, or the path's own.
        """
        joined = self._joined[path].get(node.index)
        # what Python computes before launch cannot wait for a choice of the device's
        return joined if joined is not None and (joined.host or not node.host) else self.node_of[path][node.index]

    def _operand(self, path: int, node: Node, *, on_host: bool) -> Node:
        found = self.current(path, node)
        return self.node_of[path][node.index] if on_host and not found.host else found

    def _write(self, column: Column) -> None:
        """Write one column: as one operation if phis can make its operands the same, else as several."""
        operands = {
            path: [self._operand(path, each, on_host=node.host) for each in node.operands()]
            for path, node in column.items()
        }
        model = next(iter(column.values()))
        try:
            chosen = [
                self.phi({path: row[position] for path, row in operands.items()}, model.where, on_host=model.host)
                for position in range(len(model.operands()))
            ]
        except Inseparable:
            alike: dict[tuple[int, ...], Column] = {}
            for path, node in column.items():
                alike.setdefault(tuple(each.index for each in operands[path]), {})[path] = node
            for part in alike.values():
                self._note(part, self._operation(model, operands[next(iter(part))], next(iter(part))))
        else:
            self._note(column, self._operation(model, chosen, next(iter(column))))

    def _note(self, column: Column, merged: Node) -> None:
        for path, node in column.items():
            self.node_of[path][node.index] = merged
            if node.is_input:
                self._inputs[merged.args[0]] = merged
            if node.index in self._assumed[path]:
                self.expected.setdefault(merged.index, {})[path] = self._assumed[path][node.index]

    def _operation(self, model: Node, operands: Iterable[Node], path: int) -> Node:
        """The operation of a recorded node, with these operands."""
        left = iter(operands)
        args, kwargs = fill((model.args, model.kwargs), lambda leaf: next(left), Node)
        if model.is_input:
            args = (self._paths[path].slots[model.args[0]],)
        return self._node(model, model.rule, args, kwargs)

    def _node(self, model: Node, rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any], **about: Any) -> Node:
        """A node like `model`; the same as before if it computes the same."""
        about = {name: getattr(model, name) for name in ("shape", "dtype", "scalar", "host", "where", "site")} | about
        key = id(rule), static_form((args, kwargs), _INDEX), about["shape"], about["dtype"], about["scalar"]
        if key not in self._numbered:
            self._numbered[key] = self.tape.add(rule, args, kwargs, **about)
        return self._numbered[key]

    # -- joins --------------------------------------------------------------------------------------------------------

    def _join(self, column: Joined) -> None:
        """Let one phi stand, for all paths that come to a join, for what the program holds there.

        So what comes after it is written for the values of all of them, also of those that have not been recorded.
        """
        settled = {path: self._settled(path, join) for path, join in column.items()}
        where = max((node.where for join in column.values() for node in join.values), default=("", 0))
        chosen: dict[int, dict[int, set[int]]] = {path: {} for path in column}
        for values, merged in self._held(column):
            phi = self._joining(merged, where, settled)
            for path, node in values.items():
                # also where it stands for itself: it may be held at another place, too, where a phi would stand for it
                chosen[path].setdefault(node.index, set()).add((phi or merged[path]).index)
        for path, join in column.items():
            self._rename(path, join, chosen[path])

    def _joining(self, values: Column, where: Place, settled: Settled) -> Node | None:
        """The phi for what paths bring to a join; None where it is one, or no phi can stand for it."""
        if len({node.index for node in values.values()}) < 2:
            return None
        for on_host in (True, False) if all(node.host for node in values.values()) else (False,):
            with contextlib.suppress(Inseparable):
                return self.phi(values, where, on_host=on_host, settled=settled)
        return None

    def _held(self, column: Joined) -> Iterator[tuple[Column, Column]]:
        """Yield the paths' values at a join, place by place, then the arrays from outside that some have written to.

        Each as the paths' own nodes, and as merged ones.
        """
        rows = {path: join.values for path, join in column.items()}
        for place in range(len(next(iter(rows.values())))):
            values = {path: row[place] for path, row in rows.items()}
            yield values, {path: self.current(path, node) for path, node in values.items()}
        written: dict[int, Column] = {}
        for path, join in column.items():
            for slot, content in join.written:
                written.setdefault(self._paths[path].slots[slot], {})[path] = content
        for origin, values in written.items():
            if origin in self._inputs:
                unwritten = dict.fromkeys(column, self._inputs[origin])
                yield values, unwritten | {path: self.current(path, node) for path, node in values.items()}

    def _settled(self, path: int, join: Join) -> dict[int, int]:
        """The merged nodes of which a path has assumed something by a join, with when it did."""
        found: dict[int, int] = {}
        for order, outcome in enumerate(self._paths[path].tape.outcomes[: join.outcomes]):
            for node in (self.node_of[path][outcome.node.index], self.current(path, outcome.node)):
                found[node.index] = order
        return found

    def _rename(self, path: int, join: Join, chosen: dict[int, set[int]]) -> None:
        """Let the phis of a join stand for a path's own nodes, where it is certain which is meant."""
        nodes = {node.index: node for node in (*join.values, *(content for _, content in join.written))}
        later = {outcome.node.index for outcome in self._paths[path].tape.outcomes[join.outcomes :]}
        for index, phis in chosen.items():
            if len(phis) > 1 or self._paths[path].may_be_read_again(nodes[index]):
                continue
            phi = self.tape.nodes[next(iter(phis))]
            self._joined[path][index] = phi
            if index in later and phi.rule is core.PHI:
                self.expected.setdefault(phi.index, {})[path] = self._assumed[path][index]

    # -- phis ---------------------------------------------------------------------------------------------------------

    def phi(
        self, values: Mapping[int, Node | None], where: Place, *, on_host: bool = False, settled: Settled | None = None
    ) -> Node:
        """One node for values that differ from path to path; None stands for any value. Raises Inseparable.

        on_host: whether Python needs it before launch. settled: for each path what may decide.
        """
        found = {node.index: node for node in values.values() if node is not None}
        if len(found) == 1 and None not in values.values():
            return next(iter(found.values()))
        model = next(iter(found.values()))
        if model.dtype is None or any(form_of(each) != form_of(model) for each in found.values()):
            raise Inseparable
        decision = self._decision(values, on_host=on_host, settled=settled)
        cases: dict[Any, dict[int, Node | None]] = {}
        for path, node in values.items():
            cases.setdefault(outcome_key(self.expected[decision.index][path]), {})[path] = node
        sides = [self._side(case, where, on_host, settled) for case in cases.values()]
        # cases that choose the same value are one
        by_side: dict[int | None, list[Any]] = {}
        for value, side in zip(cases, sides, strict=True):
            by_side.setdefault(None if side is None else side.index, []).append(value)
        distinct = {None if side is None else side.index: side for side in sides}
        if len(distinct) == 1:
            raise Inseparable  # all of them any value
        choice = self._node(
            decision,
            core.CHOICE,
            (decision, tuple(tuple(sorted(each)) for each in by_side.values())),
            {},
            shape=(),
            dtype=np.dtype(np.int64),
            scalar=int,
        )
        host = choice.host and all(side is not None and side.host for side in distinct.values())
        args, form = (choice, list(distinct.values())), {"form": (model.shape, model.dtype)}
        return self._node(model, core.PHI, args, form, host=host, where=where, site=hash((choice.site, where)))

    def _side(
        self, case: Mapping[int, Node | None], where: Place, on_host: bool, settled: Settled | None
    ) -> Node | None:
        if all(node is None for node in case.values()):
            return None
        return self.phi(case, where, on_host=on_host, settled=settled)

    def _decision(self, values: Mapping[int, Node | None], *, on_host: bool, settled: Settled | None) -> Node:
        """The node by whose value to choose. Raises Inseparable.

        Best is one that tells all different values apart; what others leave is chosen among by more of them. And best
        is the last one before the values part: later ones tell these paths apart by chance. At a join it is known what
        the paths had assumed by then: the last of that.
        """
        parting = max(node.index for node in values.values() if node is not None)
        best: tuple[tuple[bool, bool, int], Node] | None = None
        for index, expected in self.expected.items():
            node = self.tape.nodes[index]
            if (on_host and not node.host) or not values.keys() <= expected.keys():
                continue
            sides: dict[Any, set[int | None]] = {}
            for path, value in values.items():
                sides.setdefault(outcome_key(expected[path]), set()).add(None if value is None else value.index)
            if len(sides) < 2 or (settled is not None and not all(index in settled[path] for path in values)):
                continue
            is_before = index < parting if settled is None else True
            last = index if settled is None else min(settled[path][index] for path in values)
            rank = all(len(each) == 1 for each in sides.values()), is_before, last
            if best is None or rank > best[0]:
                best = rank, node
        if best is None:
            raise Inseparable
        return best[1]

    # -- the proof ----------------------------------------------------------------------------------------------------

    def check(self) -> bool:
        """Whether the merged tape, followed as a path goes, is that path's own tape, node for node."""
        return all(self._is_same(number, node) for number, path in enumerate(self._paths) for node in path.tape.nodes)

    def _is_same(self, path: int, node: Node) -> bool:
        merged = self.node_of[path][node.index]
        if node.is_input:
            return merged.is_input and bool(merged.args[0] == self._paths[path].slots[node.args[0]])
        followed = [self.followed(operand, path).index for operand in merged.operands()]
        own = [self.node_of[path][operand.index].index for operand in node.operands()]
        return (
            merged.rule is node.rule
            and followed == own
            and (merged.shape, merged.dtype, merged.host) == (node.shape, node.dtype, node.host)
            and merged.form == node.form
        )

    def followed(self, node: Node, path: int) -> Node:
        """Return the node that a node stands for on a path: itself, or a phi's choice there."""
        while node.rule is core.PHI:
            choice, sides = node.args
            decision, cases = choice.args
            expected = outcome_key(self.expected[decision.index][path])
            node = next(side for side, case in zip(sides, cases, strict=True) if expected in case)
        return node


def _columns(paths: Sequence[Recorded]) -> list[dict[int, Node | Join]]:
    """The operations and joins of all paths in one order. Raises TooLong."""
    columns: list[dict[int, Node | Join]] = []
    keys: Keys = []
    for number, path in enumerate(paths):
        items, own = _with_joins(path)
        wider: list[dict[int, Node | Join]] = []
        wider_keys: Keys = []
        for known, new in aligned(keys, own):
            column = {} if known is None else columns[known]
            if new is not None:
                column[number] = items[new]
            wider.append(column)
            wider_keys.append(keys[known] if known is not None else own[new or 0])
        columns, keys = wider, wider_keys
    return columns


def _with_joins(path: Recorded) -> tuple[list[Node | Join], Keys]:
    """The operations of a path with its joins between them, and what tells each from the others."""
    nodes = path.tape.nodes
    own = keys_of(nodes, path.slots)
    items: list[Node | Join] = []
    keys: Keys = []
    met: Counter[Hashable] = Counter()
    done = 0
    for join in path.joins:
        like = likeness(join)
        items += nodes[done : join.nodes]
        keys += own[done : join.nodes]
        done = join.nodes
        items.append(join)
        keys.append((like, met[like]))
        met[like] += 1
    return [*items, *nodes[done:]], [*keys, *own[done:]]


def form_of(node: Node) -> Hashable:
    """Return the properties that two values must share for one to replace the other."""
    return node.shape, node.dtype, node.scalar


def outcome_key(expected: Any) -> Any:
    """An outcome as a choice knows it: truths and integers by their number."""
    return int(expected) if isinstance(expected, (bool, np.bool_)) else expected
