"""The merged tape: the operations of several recorded paths, each once, with phis where paths come together.

A *column* is what one instruction computed on those paths that reached it. Where their operands are the same values,
it is one operation. Where they differ, a *phi* in front of it chooses among them by a *choice*: an outcome that tells
those paths apart. The rest of the paths then has one operation again, and so on behind it. (Phi as in static single
assignment form: Cytron et al., TOPLAS 1991.)

Which side of a choice needs which operations is not noted here: it follows from who reads them (see
accel.lower.passes.branches). So what both sides compute is one operation, wherever each of them came to it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from accel.ir.tape import Node, Place, Tape
from accel.ir.template import fill
from accel.merge.alignment import Keys, aligned, keys_of, static_form
from accel.rules import core

Column = dict[int, Node]
"""A node of each path that has one, by the number of the path."""


class Inseparable(Exception):
    """No outcome tells these paths apart, or no phi can stand for their values."""


class Writer:
    """Writes the merged tape of some recorded tapes. slots: of each, the merged slots of its own ones. Raises TooLong.

    tape: its operations; it has no outcomes of its own. node_of: for each path, the merged node of each of its nodes.
    expected: by index of a merged node, what it has to be on each of the paths that assume something of it.
    """

    def __init__(self, tapes: Sequence[Tape], slots: Sequence[Sequence[int]]) -> None:
        self.tape = Tape()
        self.node_of: list[dict[int, Node]] = [{} for _ in tapes]
        self.expected: dict[int, dict[int, Any]] = {}
        self._slots = slots
        self._assumed = [{outcome.node.index: outcome.expected for outcome in tape.outcomes} for tape in tapes]
        self._numbered: dict[Hashable, Node] = {}
        for column in _columns(tapes, slots):
            self._write(column)

    def _write(self, column: Column) -> None:
        """Write one column: as one operation if phis can make its operands the same, else as several."""
        operands = {path: [self.node_of[path][each.index] for each in node.operands()] for path, node in column.items()}
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
            if node.index in self._assumed[path]:
                self.expected.setdefault(merged.index, {})[path] = self._assumed[path][node.index]

    def _operation(self, model: Node, operands: Iterable[Node], path: int) -> Node:
        """The operation of a recorded node, with these operands."""
        left = iter(operands)
        args, kwargs = fill((model.args, model.kwargs), lambda leaf: next(left), Node)
        if model.is_input:
            args = (self._slots[path][model.args[0]],)
        return self._node(model, model.rule, args, kwargs)

    def _node(self, model: Node, rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any], **about: Any) -> Node:
        """A node like `model`; the same as before if it computes the same."""
        about = {name: getattr(model, name) for name in ("shape", "dtype", "scalar", "host", "where", "site")} | about
        key = id(rule), static_form((args, kwargs), _index), about["shape"], about["dtype"], about["scalar"]
        if key not in self._numbered:
            self._numbered[key] = self.tape.add(rule, args, kwargs, **about)
        return self._numbered[key]

    # -- phis ---------------------------------------------------------------------------------------------------------

    def phi(self, values: Mapping[int, Node | None], where: Place, *, on_host: bool = False) -> Node:
        """One node for values that differ from path to path; None stands for any value. Raises Inseparable.

        on_host: whether Python needs it before launch.
        """
        found = {node.index: node for node in values.values() if node is not None}
        if len(found) == 1 and None not in values.values():
            return next(iter(found.values()))
        model = next(iter(found.values()))
        if model.dtype is None or any(_kind(each) != _kind(model) for each in found.values()):
            raise Inseparable
        decision = self._decision(values, on_host=on_host)
        cases: dict[Any, dict[int, Node | None]] = {}
        for path, node in values.items():
            cases.setdefault(_key(self.expected[decision.index][path]), {})[path] = node
        sides = [self._side(case, where, on_host) for case in cases.values()]
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

    def _side(self, case: Mapping[int, Node | None], where: Place, on_host: bool) -> Node | None:
        return None if all(node is None for node in case.values()) else self.phi(case, where, on_host=on_host)

    def _decision(self, values: Mapping[int, Node | None], *, on_host: bool) -> Node:
        """The node by whose value to choose. Raises Inseparable.

        Best is one that tells all different values apart; what others leave is chosen among by more of them. And best
        is the last one before the values part: later ones tell these paths apart by chance.
        """
        parting = max(node.index for node in values.values() if node is not None)
        best: tuple[tuple[bool, bool, int], Node] | None = None
        for index, expected in self.expected.items():
            node = self.tape.nodes[index]
            if (on_host and not node.host) or not values.keys() <= expected.keys():
                continue
            sides: dict[Any, set[int | None]] = {}
            for path, value in values.items():
                sides.setdefault(_key(expected[path]), set()).add(None if value is None else value.index)
            if len(sides) < 2:
                continue
            rank = all(len(each) == 1 for each in sides.values()), index < parting, index
            if best is None or rank > best[0]:
                best = rank, node
        if best is None:
            raise Inseparable
        return best[1]

    # -- the proof ----------------------------------------------------------------------------------------------------

    def check(self, tapes: Sequence[Tape]) -> bool:
        """Whether the merged tape, followed as a path goes, is that path's own tape, node for node."""
        return all(self._is_same(path, node) for path, tape in enumerate(tapes) for node in tape.nodes)

    def _is_same(self, path: int, node: Node) -> bool:
        merged = self.node_of[path][node.index]
        if node.is_input:
            return merged.is_input and bool(merged.args[0] == self._slots[path][node.args[0]])
        followed = [self.followed(operand, path).index for operand in merged.operands()]
        own = [self.node_of[path][operand.index].index for operand in node.operands()]
        return (
            merged.rule is node.rule
            and followed == own
            and (merged.shape, merged.dtype, merged.host) == (node.shape, node.dtype, node.host)
            and static_form((merged.args, merged.kwargs), _nothing) == static_form((node.args, node.kwargs), _nothing)
        )

    def followed(self, node: Node, path: int) -> Node:
        """What a node stands for on a path: itself, or what a phi chooses there."""
        while node.rule is core.PHI:
            choice, sides = node.args
            decision, cases = choice.args
            expected = _key(self.expected[decision.index][path])
            node = next(side for side, case in zip(sides, cases, strict=True) if expected in case)
        return node


def _columns(tapes: Sequence[Tape], slots: Sequence[Sequence[int]]) -> list[Column]:
    """The operations of all tapes in one order. Raises TooLong."""
    columns: list[Column] = []
    keys: Keys = []
    for path, tape in enumerate(tapes):
        nodes, own = tape.nodes, keys_of(tape.nodes, slots[path])
        wider: list[Column] = []
        wider_keys: Keys = []
        for known, new in aligned(keys, own):
            column = {} if known is None else columns[known]
            if new is not None:
                column[path] = nodes[new]
            wider.append(column)
            wider_keys.append(keys[known] if known is not None else own[new or 0])
        columns, keys = wider, wider_keys
    return columns


def _kind(node: Node) -> Hashable:
    return node.shape, node.dtype, node.scalar


def _key(expected: Any) -> Any:
    """An outcome as a choice knows it: truths and integers by their number."""
    return int(expected) if isinstance(expected, (bool, np.bool_)) else expected


def _index(node: Node) -> int:
    return node.index


def _nothing(node: Node) -> None:
    return None
