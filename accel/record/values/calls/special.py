"""Functions that do more than compute from their operands: views, writes, rewritten calls (see accel.rules.special)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.ir.tape import Node, nodes_in
from accel.ir.template import fill, leaves
from accel.ir.views import Broadcast, Index
from accel.record.state.recording import Recording
from accel.record.state.wrapper import isinstance_wrapper, unwrap
from accel.record.values import compressed, rows
from accel.record.values.arrays import CompressedArray, RecordedArray, as_static, as_template
from accel.record.values.calls.general import (
    check_parameters,
    check_stored,
    host_call,
    nested,
    record_bound,
    refuse_aliases,
    rule_node,
    templates,
)
from accel.record.values.operands import assume_holds, check_casts, flat, refuse_shared, view
from accel.record.values.wrapping import known, wrap
from accel.rules import core
from accel.rules.hosted import RESULTS, is_plain
from accel.rules.rule import Rule, Unsupported
from accel.rules.special import (
    ArrayOf,
    BroadcastArrays,
    CallOnHost,
    Finite,
    Like,
    NanToNum,
    OfArray,
    Rewrite,
    Shaped,
    Special,
    Unrecordable,
    Where,
    WritesInto,
)

Recorder = Callable[[Recording, Rule, dict[str, Any], Any], Any]
SPECIALS: dict[type[Special], Recorder] = {}
"""Recorders of rules that do more than compute from their operands (see accel.rules.special)."""


def records(kind: type[Special]) -> Callable[[Recorder], Recorder]:
    """Register the function that records calls of that kind."""

    def register(function: Recorder) -> Recorder:
        SPECIALS[kind] = function
        return function

    return register


@records(Like)
def _record_like(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """zeros_like and kin: only the shape and dtype of the prototype matter."""
    like = rule.recorded.special
    assert isinstance(like, Like)
    given = bound.get("fill_value", like.fill)
    for value in bound.values():
        if issubclass(type(value), CompressedArray):
            return compressed.record_like(recording, bound, given, result)
    check_casts(recording, given, result.dtype)
    fill = as_template(given)
    node = recording.writer.node(core.FULL, (result.shape, fill, result.dtype), {}, result)
    return wrap(recording, result, node)


@records(ArrayOf)
def _record_array(recording: Recording, rule: Rule, bound: dict[str, Any], result: object) -> Any:
    """array, asarray and kin: the operand itself, a view of it, a copy, or an array of nested values."""
    source = next(iter(bound.values()))
    for name in bound:
        if name in ("like", "ndmin", "subok") and unwrap(bound[name]):
            raise Unsupported("rule.parameter", f"{rule.name}: {name}")
    if not isinstance(result, np.ndarray):
        raise Unsupported("rule.missing", f"{rule.name} gave {type(result).__name__}")
    if known(recording, result) is not None:
        return known(recording, result)
    if issubclass(type(source), CompressedArray):
        return compressed.record_cast(recording, source, result)
    if issubclass(type(source), RecordedArray) and np.shares_memory(source._plain_, result):
        # a dtype that equals the operand's but is another object, or an axis for an array that has none
        key = (Ellipsis,) if result.ndim == source.ndim else (None,)
        return view(recording, result, source._storage, (*source._chain, Index(key)))
    template = as_template(source)
    check_casts(recording, source, result.dtype)
    if isinstance(template, Node):
        node = recording.writer.node(core.CAST, (template, result.dtype), {}, result)
    else:
        template = nested(template)
        node = recording.writer.node(core.STACK, (template, result.dtype, result.shape), {}, result)
    return wrap(recording, result, node)


@records(NanToNum)
def _record_nan_to_num(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """With copy=False the argument itself is changed, and returned."""
    copy = as_static(bound.pop("copy", True))
    source = bound["x"]
    if not copy and issubclass(type(source), CompressedArray):
        raise Unsupported("shape.dynamic", "a masked selection changed in place")
    # NumPy makes a copy all the same of what is no array, or of another dtype than the result's.
    if copy or not issubclass(type(source), RecordedArray):
        return record_bound(recording, rule, bound, result)
    if not np.shares_memory(source._plain_, result):
        return record_bound(recording, rule, bound, result)
    if source._plain_.dtype.kind not in "fc":
        return source
    node = rule_node(recording, rule, bound, result)
    recording.writer.write_view(source._storage, source._chain, node)
    return view(recording, result, source._storage, source._chain)


_READ_UNCOPIED: dict[Any, tuple[str, ...]] = {np.copyto: ("where",), np.place: ("mask", "vals")}
"""Parameters of which NumPy makes no copy where they share the memory that it writes to."""


@records(WritesInto)
def _record_write(recording: Recording, rule: Rule, bound: dict[str, Any], result: object) -> Any:
    """Functions that change their first argument: its new value is computed and stored."""
    name = rule.operands[0]
    target = bound[name]
    if not issubclass(type(target), RecordedArray):
        raise Unsupported("array.unknown", f"{rule.name} writes to an array whose origin the recording did not see")
    check_parameters(rule, bound)
    refuse_shared(target, (bound.get(read) for read in _READ_UNCOPIED.get(rule.function, ())))
    template = templates(recording, rule, bound)
    check_stored(recording, rule, {**bound, name: None}, target._plain_.dtype)
    assume_holds(recording, rule, bound, template, result)
    node = recording.writer.node(rule, (), template, target._plain_)
    recording.writer.write_view(target._storage, target._chain, node)
    return result


@records(Where)
def _record_where(recording: Recording, rule: Rule, bound: dict[str, Any], result: object) -> Any:
    """nonzero and one-argument where: as many indices as there are true elements."""
    if "x" not in bound:
        return compressed.record_nonzero(recording, next(iter(bound.values())), result)
    return record_bound(recording, rule, bound, result)


@records(Unrecordable)
def _record_refused(recording: Recording, rule: Rule, bound: dict[str, Any], result: object) -> Any:
    refused = rule.recorded.special
    assert isinstance(refused, Unrecordable)
    raise Unsupported(refused.reason, f"{rule.name}: {refused.why}")


@records(Shaped)
def _record_shaped(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """Functions whose result's shape depends on values: the path fixes it, `rule.recorded.holds` makes sure of it."""
    check_parameters(rule, bound)
    template = templates(recording, rule, bound)
    assume_holds(recording, rule, bound, template, result)
    shape = np.shape(result[0] if isinstance(result, tuple) else result)
    node = recording.writer.node(rule, (), {**template, "shape": shape}, result)
    return wrap(recording, result, node)


@records(CallOnHost)
def _record_on_host(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """A call of the function itself: what of the result is arrays and numbers, and that it has this form again."""
    check_parameters(rule, bound)
    template = templates(recording, rule, bound)
    assume_holds(recording, rule, bound, template, result)
    parts = leaves(result, RESULTS)
    if not parts or not is_plain(result):
        raise Unsupported("rule.missing", f"{rule.name} gave {type(result).__name__}")
    nodes = nodes_in(template)
    if nodes and all(node.host for node in nodes) and isinstance(result, (np.generic, int, float, complex)):
        return wrap(recording, result, rule_node(recording, rule, bound, result))
    refuse_aliases(recording, rule, bound, parts)
    made = iter(wrap(recording, tuple(parts), host_call(recording, rule, template, result)))
    return fill(result, lambda part: next(made), RESULTS)


@records(Rewrite)
def _record_rewrite(recording: Recording, rule: Rule, bound: dict[str, Any], result: object) -> Any:
    """A function that is a few calls of others: those are written down, and must give the same result."""
    check_parameters(rule, bound)
    rewrite = rule.recorded.special
    assert isinstance(rewrite, Rewrite)
    if rule.recorded.holds is not None:
        assume_holds(recording, rule, bound, templates(recording, rule, bound), result)
    try:
        with np.errstate(all="ignore"):  # NumPy's own call has warned of what it warns of
            made = rewrite.calls(**bound)
    # Rewrites are written for arrays (`x.ndim`); NumPy's functions take lists as well.
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        given = (bound.get(name) for name in rule.operands if name not in rule.sequences)
        if any(type(operand) in (list, tuple) for operand in given):
            raise Unsupported("rule.parameter", f"{rule.name} of a list") from error
        raise
    if not recording.active:
        raise Unsupported("rule.missing", rule.name)
    arrays = (RecordedArray, CompressedArray)
    sources = [unwrap(operand) for operand in flat(bound.values()) if issubclass(type(operand), arrays)]
    return _in_place_of(recording, rule, made, result, sources)


@records(OfArray)
def _record_of_array(recording: Recording, rule: Rule, bound: dict[str, Any], result: object) -> Any:
    for name in rule.operands:
        if not issubclass(type(bound[name]), (RecordedArray, CompressedArray)):
            bound[name] = _record_array(recording, rule, {name: bound[name]}, np.asarray(unwrap(bound[name])))
    return _record_rewrite(recording, rule, bound, result)


def _in_place_of(recording: Recording, rule: Rule, made: Any, result: Any, sources: list[Any]) -> Any:
    """The recorded form of `result`, which the recorded value `made` equals. sources: arrays it may be a view of."""
    if isinstance(result, (list, tuple)) and len(made) == len(result):
        parts = [_in_place_of(recording, rule, a, b, sources) for a, b in zip(made, result, strict=True)]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    value = unwrap(made)
    if np.shape(value) != np.shape(result) or getattr(value, "dtype", None) != getattr(result, "dtype", None):
        raise Unsupported(
            "recorder.gap", f"{rule.name} was rewritten wrongly: {np.shape(value)} for {np.shape(result)}"
        )
    if not isinstance(result, np.ndarray):
        return wrap(recording, result, made.node()) if isinstance_wrapper(made) else result
    seen = known(recording, result)
    if seen is not None:
        return seen
    if not isinstance(value, np.ndarray):
        raise Unsupported("rule.missing", f"{rule.name} of an array without axes")
    if issubclass(type(made), CompressedArray):
        if made._is_shared:
            return made
        if any(np.shares_memory(source, result) for source in sources):
            raise Unsupported("shape.dynamic", f"{rule.name} gave a view of a masked selection")
        return rows.new(recording, result, made._full, made._mask)
    # The same memory seen in the same way: NumPy's function made the view that the rewritten calls make.
    if value.ctypes.data == result.ctypes.data and value.strides == result.strides and result.size:
        return view(recording, result, made._storage, made._chain)
    if any(np.shares_memory(source, result) for source in sources):
        raise Unsupported("rule.missing", f"{rule.name} gave a view")
    return wrap(recording, result, as_template(made) if isinstance_wrapper(made) else _constant(recording, value))


def _constant(recording: Recording, value: Any) -> Node:
    """A node for an array that the program's text decides."""
    return recording.writer.node(core.STACK, (value.tolist(), value.dtype, value.shape), {}, value)


@records(Finite)
def _record_finite(recording: Recording, rule: Rule, bound: dict[str, Any], result: object) -> Any:
    """Linear algebra that raises for singular matrices: XLA gives infinities or NaN there."""
    wrapped = record_bound(recording, rule, bound, result)
    recording.writer.assume(core.ALL_FINITE, (wrapped.node(),))
    return wrapped


@records(BroadcastArrays)
def _record_broadcast(recording: Recording, rule: Rule, bound: dict[str, Any], result: object) -> Any:
    """broadcast_arrays: views that may be written to, with a warning, where those of broadcast_to may not."""
    given = set(map(id, bound["args"]))
    for part in (parts := _record_rewrite(recording, rule, bound, result)):
        made = issubclass(type(part), RecordedArray) and id(part) not in given
        if made and part._chain and isinstance(part._chain[-1], Broadcast):
            part._chain = (*part._chain[:-1], Broadcast(part._plain_.shape, by_arrays=True))
    return parts
