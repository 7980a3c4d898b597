"""Selections by a mask, row by row: their rows moved to the front, counted, and functions that give as many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.ir.tape import Node
from accel.record.state.recording import Recording
from accel.record.values.arrays import CompressedArray, as_static
from accel.record.values.wrapping import remember
from accel.rules import selections
from accel.rules.columns import Locality, Reads
from accel.rules.rule import Rule, Unsupported, derived


def is_compressed(value: object) -> bool:
    """Whether a value is a selection along the first axis."""
    return issubclass(type(value), CompressedArray)


def new(recording: Recording, value: Any, full: Node, mask: Node) -> CompressedArray:
    """A selection. full: node of the full array; mask: node of its truths."""
    wrapper: CompressedArray = remember(recording, CompressedArray(recording, value, full, mask))
    return wrapper


def full_node(
    recording: Recording, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], mask: Node, result: Any
) -> Node:
    """A node on full arrays: shaped like `result`, with the mask's length along the first axis."""
    sample = np.broadcast_to(np.zeros((), result.dtype), (*mask.shape, *result.shape[1:]))
    return recording.writer.node(rule, args, kwargs, sample)


def like_mask(mask: Node) -> Any:
    """A sample of a mask's shape and dtype, without memory."""
    return np.broadcast_to(np.bool_(True), mask.shape)


def record_rows(
    recording: Recording, rule: Rule, bound: dict[str, Any], chosen: CompressedArray, result: Any
) -> CompressedArray:
    """A function that gives as many rows as the selection has."""
    template = {name: value._full if is_compressed(value) else as_static(value) for name, value in bound.items()}
    template["mask"] = chosen._mask
    full = full_node(recording, _rows_rule(rule), (), template, chosen._mask, result)
    return new(recording, result, full, _first_rows(chosen) if rule.recorded.reorders else chosen._mask)


@derived
def _rows_rule(rule: Rule) -> Rule:
    """The function over what a mask selects, as a rule on the full array with the mask as a keyword."""
    operand, reorders = rule.operands[0], rule.recorded.reorders

    def function(*, mask: Any, **kwargs: Any) -> Any:
        rows = rule.function(kwargs.pop(operand)[mask], **kwargs)
        result = np.zeros((len(mask), *rows.shape[1:]), rows.dtype)
        result[selections.FIRST.function(mask) if reorders else mask] = rows
        return result

    return Rule(name=rule.name + "[mask]", function=function, lower=rule.recorded.rows)


def _first_rows(chosen: CompressedArray) -> Node:
    """The mask of as many rows as are selected, the first ones."""
    mask = chosen._mask
    if mask.rule is selections.FIRST:
        return mask
    return chosen._recording_.writer.node(selections.FIRST, (mask,), {}, like_mask(mask))


def _pack(chosen: CompressedArray) -> None:
    """Keep the same selection with its rows in front."""
    first = _first_rows(chosen)
    if first is chosen._mask:
        return
    if chosen._is_shared:
        raise Unsupported("shape.dynamic", "a masked selection in another order while views of it exist")
    args = (chosen._full, chosen._mask)
    chosen._full = full_node(chosen._recording_, selections.PACKED, args, {}, chosen._mask, chosen._plain_)
    chosen._mask = first


def align(chosen: list[CompressedArray]) -> None:
    """Keep selections by different masks with their rows in front, by one mask. That they are as many is an outcome."""
    length = len(chosen[0]._plain_)
    if any(len(value._plain_) != length or value._is_shared for value in chosen):
        raise Unsupported("shape.dynamic", "selections by different masks in one operation")
    first = _first_rows(chosen[0])
    for value in chosen:
        _pack(value)
        if value._mask is not first:
            if value._mask.shape != first.shape:
                raise Unsupported("shape.dynamic", "selections of different arrays in one operation")
            value._recording_.writer.assume(selections.ALIKE, (first, value._mask))
            value._mask = first


def counted_range(recording: Recording, rule: Rule, start: int, chosen: Node, result: NDArray[Any]) -> CompressedArray:
    """`np.arange(start, start + n)` for as many elements as the mask `chosen` selects."""
    size = chosen.shape[0]
    numbers = np.arange(start, start + size, dtype=result.dtype)
    bounds = {"start_or_stop": start, "stop": start + size, "dtype": result.dtype}
    full = recording.writer.node(rule, (), bounds, numbers)
    first = recording.writer.node(selections.FIRST, (chosen,), {}, like_mask(chosen))
    return new(recording, result, full, chosen if chosen.rule is selections.FIRST else first)


@derived
def product_rule(rule: Rule) -> Rule:
    """The product over what a mask selects: along the last axis of `a` and the first of `b`."""

    def function(*, a: Any, b: Any, mask: Any) -> Any:
        return rule.function(a[..., mask], b[mask])

    return Rule(name=rule.name + "[mask]", function=function, lower=rule.recorded.masked)


@derived
def masked_rule(rule: Rule) -> Rule:
    """The reduction over what a mask selects, as a rule on the full array with the mask as a keyword."""
    operand = rule.operands[0]

    def function(*, mask: Any, **kwargs: Any) -> Any:
        return rule.function(kwargs.pop(operand)[mask], **kwargs)

    def selected(*, mask: Any, **kwargs: Any) -> Any:
        return (mask.reshape(mask.shape + (1,) * (kwargs[operand].ndim - mask.ndim)),)

    reads = Locality(reads=Reads((operand,), selected))
    return Rule(name=rule.name + "[mask]", function=function, lower=rule.recorded.masked, locality=reads)
