"""Selections along a later axis: `f[:, mask]`, kept as the full array and the mask while reductions follow.

Such a selection is an ordinary recorded array of the length that it has now, as soon as anything but what stands here
needs it: only then is its length an outcome (see accel.record.values.settling).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.ir.tape import Node, Storage
from accel.record.state.recording import Recording
from accel.record.state.wrapper import set_class, unwrap
from accel.record.values.arrays import CompressedArray, RecordedArray, as_static, as_template, remember, wrap
from accel.record.values.rows import is_compressed, product_rule
from accel.rules import core, selections
from accel.rules.columns import Locality, Reads
from accel.rules.rule import Rule, derived, lookup


class LateSelection(RecordedArray):
    """`f[:, mask]`: an array that has a storage once somebody asks for it.

    full: node of the array that is selected from; mask: bool node with the length of its axis `axis`.
    """

    __slots__ = ()

    def __init__(self, recording: Recording, value: Any, full: Node, mask: Node, axis: int) -> None:
        object.__setattr__(self, "_recording_", recording)
        object.__setattr__(self, "_plain_", value)
        recording.registry.born(self)
        for name, part in (("_full", full), ("_mask", mask), ("_axis", axis)):
            object.__setattr__(self, name, part)

    @property
    def _storage(self) -> Storage:  # type: ignore[override]
        settle(self)
        return self._storage

    @property
    def _chain(self) -> Any:  # type: ignore[override]
        settle(self)
        return self._chain


def is_late(value: object) -> bool:
    """Whether a value is a selection along a later axis."""
    return issubclass(type(value), LateSelection)


def settle(value: Any) -> None:
    """Make a late selection an ordinary recorded array."""
    if not is_late(value):
        return
    recording, plain, full = value._recording_, value._plain_, value._full
    node: Node = recording.write_down(lambda: _settled(value), full)
    set_class(value, RecordedArray)
    value._storage, value._chain = Storage(plain, node), ()


def _settled(value: Any) -> Node:
    writer, mask, axis = value._recording_.writer, value._mask, value._axis
    number = value._plain_.shape[axis]
    writer.outcome(writer.node(core.COUNT, (mask,), {}, number), number)
    node: Node = writer.node(selections.SELECTED, (value._full, mask, number, axis), {}, value._plain_)
    return node


def select(array: RecordedArray, key: tuple[Any, ...], mask: RecordedArray, result: Any) -> LateSelection | None:
    """`array[key]` where the key is a mask of one axis and slices besides; None if it is anything else."""
    place = next(place for place, entry in enumerate(key) if entry is mask)
    others = [entry for entry in key if entry is not mask]
    if mask._plain_.ndim != 1 or not all(x is Ellipsis or isinstance(x, slice) for x in others):
        return None
    axis = array._plain_.ndim - (len(key) - place) if any(x is Ellipsis for x in key[:place]) else place
    if not axis:
        return None
    rows: Any = array
    if any(x is not Ellipsis and x != slice(None) for x in others):
        rows = array[tuple([slice(None) if x is mask else x for x in key])]  # type: ignore[index]
    return _new(array._recording_, result, rows.node(), mask.node(), axis)


def shape(value: Any) -> tuple[Any, ...]:
    """The shape, with the number of selected elements as a recorded number."""
    recording, axis = value._recording_, value._axis
    sizes: tuple[int, ...] = value._plain_.shape
    now = sizes[axis]

    def write() -> Any:
        return wrap(recording, now, recording.writer.node(core.COUNT, (value._mask,), {}, now))

    return *sizes[:axis], recording.write_down(write, now), *sizes[axis + 1 :]


def _new(recording: Recording, value: Any, full: Node, mask: Node, axis: int) -> LateSelection:
    made: LateSelection = remember(recording, LateSelection(recording, value, full, mask, axis))
    return made


# -- computing with them ----------------------------------------------------------------------------------------------


def record_elementwise(
    recording: Recording, rule: Rule, operands: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> LateSelection | None:
    """An elementwise operation, operands by position; None where it needs the length."""
    like = next(filter(is_late, operands))
    if not all(_fits(operand, like) for operand in operands) or result.ndim != like._plain_.ndim:
        return None
    template = tuple([x._full if is_late(x) or is_compressed(x) else as_template(x) for x in operands])
    full = _full_node(recording, rule, template, kwargs, like, result, like._axis)
    return _new(recording, result, full, like._mask, like._axis)


def _fits(operand: Any, like: Any) -> bool:
    """Whether an operand is selected as `like` is, or the same for all that is selected."""
    plain, ndim, axis = unwrap(operand), like._plain_.ndim, like._axis
    if is_late(operand):
        return bool(operand._mask is like._mask and operand._axis == axis and plain.ndim == ndim)
    if is_compressed(operand):
        return bool(operand._mask is like._mask and plain.ndim == ndim - axis)
    shape = np.shape(plain)
    place = len(shape) - (ndim - axis)
    return len(shape) <= ndim and (place < 0 or bool(shape[place] == 1))


def _full_node(
    recording: Recording, rule: Rule, args: Any, kwargs: dict[str, Any], like: Any, result: Any, axis: int
) -> Node:
    shape = (*result.shape[:axis], like._mask.shape[0], *result.shape[axis + 1 :])
    sample = np.broadcast_to(np.zeros((), result.dtype), shape)
    return recording.writer.node(rule, args, kwargs, sample)


def record_call(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """A reduction of one late selection; None where it needs the length."""
    operand = rule.operands[0] if rule.operands else ""
    like: Any = bound.get(operand)
    if rule.function is np.dot:
        return record_product(recording, (bound["a"], bound["b"]), result)
    # any other operand, such as `where`, has axes of its own
    if rule.recorded.masked is None or not is_late(like) or any(name in bound for name in rule.operands[1:]):
        return None
    axis = as_static(bound.get("axis"))
    if axis is not None and type(axis) is not int:
        return None
    template = {name: like._full if name == operand else as_static(value) for name, value in bound.items()}
    along = like._axis
    if axis is None or axis % like._plain_.ndim == along:
        if rule.recorded.needs_elements:
            recording.writer.assume(core.ANY, (like._mask,))
        template |= {"mask": like._mask, "along": along}
        return wrap(recording, result, recording.writer.node(_reduction(rule), (), template, result))
    template["axis"] = axis % like._plain_.ndim
    if result.ndim < like._plain_.ndim and axis % like._plain_.ndim < along:
        along -= 1
    full = _full_node(recording, rule, (), template, like, result, along)
    if along:
        return _new(recording, result, full, like._mask, along)
    return remember(recording, CompressedArray(recording, result, full, like._mask))


@derived
def _reduction(rule: Rule) -> Rule:
    """A reduction over what a mask selects along the axis `along`, as a rule on the full array."""
    operand = rule.operands[0]

    def function(*, mask: Any, along: int, **kwargs: Any) -> Any:
        return rule.function(np.compress(mask, kwargs.pop(operand), along), **kwargs)

    def selected(*, mask: Any, along: int, **kwargs: Any) -> Any:
        return (mask.reshape(mask.shape + (1,) * (kwargs[operand].ndim - along - 1)),)

    reads = Locality(reads=Reads((operand,), selected))
    lower = selections.along_axis(rule.recorded.masked, operand)
    return Rule(name=rule.name + "[:, mask]", function=function, lower=lower, locality=reads)


def record_product(recording: Recording, operands: tuple[Any, ...], result: Any) -> Any:
    """`a[:, mask] @ b[mask]`: a sum over what the mask selects. None where it needs the length."""
    left, right = operands
    if not is_late(left) or not is_compressed(right) or left._mask is not right._mask or left._plain_.ndim != 2:
        return None
    if right._plain_.ndim > 2:
        return None
    dot = lookup(np.dot)
    assert dot is not None
    template = {"a": left._full, "b": right._full, "mask": left._mask}
    return wrap(recording, result, recording.writer.node(product_rule(dot), (), template, result))
