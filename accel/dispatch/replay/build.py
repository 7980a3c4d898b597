"""Build: the program's values of a run's outputs, made from the templates of its plan."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from accel.ir.template import fill
from accel.ir.views import Chain, Placed, seen_through
from accel.record.state.leaves import COMPOSITE, FixedValue, FromSlot, Leaf, NewArray, NewSet, Number, SharedLeaf

if TYPE_CHECKING:
    from accel.dispatch.replay.commit import StagedOutputs


class Builder:
    """Fills the templates of one run. An object that is in several places is made once.

    Objects, lists and dicts in several places may contain one another. Each is there, empty, before its parts are
    built, and is filled by `finish`. No code of the program's runs.
    """

    def __init__(self, staged: StagedOutputs) -> None:
        self._staged = staged
        self._shared: dict[SharedLeaf, Any] = {}
        self._unfilled: list[tuple[Any, Any]] = []

    def __call__(self, template: Any) -> Any:
        return fill(template, self._leaf, Leaf)

    def finish(self) -> None:
        """Give what was built all of its parts."""
        while self._unfilled:
            empty, template = self._unfilled.pop()
            if type(template) is dict:
                empty.update(self(template))
            elif type(template) is list:
                empty.extend(self(template))
            else:
                template.fill(empty, self(template.parts))

    def _leaf(self, leaf: Any) -> Any:
        kind = type(leaf)
        if kind is NewArray or kind is FromSlot:
            array = self._staged.made[leaf.index] if kind is NewArray else self._staged.values[leaf.slot]
            return seen_through(array, chain_of(self._staged, leaf)) if leaf.chain else array
        if kind is Number:
            return as_scalar(self._staged.numbers[leaf.index], leaf.kind)
        if kind is SharedLeaf:
            return self._one(leaf)
        if kind in COMPOSITE:
            made = leaf.empty(self)
            leaf.fill(made, self(leaf.parts))
            return made
        if kind is NewSet:
            return leaf.members.copy()
        assert kind is FixedValue
        return leaf.value

    def _one(self, leaf: SharedLeaf) -> Any:
        """The one object of a leaf that is in several places: in `return (a, a)` both must be the same."""
        if leaf in self._shared:
            return self._shared[leaf]
        template = leaf.template
        if type(template) in (list, dict, *COMPOSITE):
            made: Any = template.empty(self) if type(template) in COMPOSITE else type(template)()
            self._unfilled.append((made, template))
        else:
            made = self(template)
        self._shared[leaf] = made
        return made


def chain_of(staged: StagedOutputs, leaf: NewArray | FromSlot) -> Chain:
    """The view that a leaf is of its array, its positions those of this run."""

    def position(number: Number) -> int:
        return operator.index(as_scalar(staged.numbers[number.index], number.kind))

    return tuple(
        [
            Placed(step.extent, fill(step.starts, position, Number)) if isinstance(step, Placed) else step
            for step in leaf.chain
        ]
    )


def as_scalar(value: object, kind: type) -> Any:
    """The number, converted to the type that NumPy or Python gave it in the recording."""
    return value if type(value) is kind else kind(value)
