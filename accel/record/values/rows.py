"""Selections by a mask, row by row: functions that give as many rows, and reductions over what a mask selects."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.record.state.recording import Recording
from accel.record.values.arrays import CompressedArray, as_static
from accel.record.values.wrapping import known, remember
from accel.rules import selections
from accel.rules.columns import Locality, Reads
from accel.rules.rule import Rule, derived


def is_compressed(value: object) -> bool:
    """Whether a value is a selection along the first axis."""
    return issubclass(type(value), CompressedArray)


def new(recording: Recording, value: Any, full: Node, mask: Node) -> CompressedArray:
    """A selection. full: node of the full array; mask: node of its truths."""
    seen = known(recording, value)
    if seen is not None:  # NumPy gave back an operand
        return seen  # type: ignore[no-any-return]
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
