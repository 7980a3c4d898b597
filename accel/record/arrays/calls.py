"""Calls of functions that have a rule: run NumPy's own, then write the call down."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.ir.tape import Node, nodes_in
from accel.ir.views import Broadcast
from accel.record.arrays import compressed
from accel.record.arrays.arrays import CompressedArray, RecordedArray, as_static, as_template, known, remember, wrap
from accel.record.arrays.indexing import get_item
from accel.record.arrays.numbers import record_scalar
from accel.record.arrays.operands import STORED, check_casts, flat
from accel.record.arrays.ufuncs import one_out, record_ufunc
from accel.record.recording import Recording, current
from accel.record.wrapper import isinstance_wrapper, unwrap
from accel.rules import core, scalars
from accel.rules.rule import Rule, Unsupported, lookup, truth_of
from accel.rules.special import (
    ArrayOf,
    BroadcastArrays,
    Finite,
    Flip,
    Indices,
    Like,
    NanToNum,
    Rewrite,
    Shaped,
    Special,
    Split,
    Static,
    Unrecordable,
    Where,
    WritesInto,
)


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a NumPy, SciPy or math function with recorded values among its arguments, or in a recorded frame."""
    recording = current()
    if recording is None or not recording.active:
        return function(*unwrap(args), **unwrap(kwargs))
    rule = lookup(function)
    if rule is None and not isinstance(function, np.ufunc) and function not in scalars.HOST_FUNCTIONS:
        return call_without_rule(recording, function, args, kwargs)
    for target in written_operands(function, rule, args, kwargs):
        recording.before_write(target._storage)
    result = function(*unwrap(args), **unwrap(kwargs))
    return recording.write_down(lambda: record(recording, function, rule, args, kwargs, result), result)


def call_without_rule(recording: Recording, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that no rule covers: the tape ends here, and the function may change what it is given."""
    name = f"{getattr(function, '__module__', '') or ''}.{getattr(function, '__name__', function)}".lstrip(".")
    for value in (*args, *kwargs.values()):
        if issubclass(type(value), RecordedArray):
            recording.before_write(value._storage)
    calls_back = any(callable(unwrap(value)) for value in (*args, *kwargs.values()))
    recording.break_("rule.missing", name, touched=calls_back)
    return function(*unwrap(args), **unwrap(kwargs))


def written_operands(function: Any, rule: Rule | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The recorded arrays that a call may write to."""
    outs = kwargs.get("out")
    found = [outs] if not isinstance(outs, tuple) else list(outs)
    if rule is not None and isinstance(rule.recorded.special, (WritesInto, NanToNum)):
        found.append(args[0] if args else kwargs.get(rule.operands[0]))
    elif rule is None or "out" in getattr(rule.signature, "parameters", ()):
        found.extend(args[function.nin if isinstance(function, np.ufunc) else 1 :])  # `out` given by position
    return [array for array in found if issubclass(type(array), RecordedArray)]


def record(
    recording: Recording, function: Any, rule: Rule | None, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Any:
    """Write a call down that NumPy has just run."""
    if isinstance(function, np.ufunc):
        return record_ufunc(recording, function, args, kwargs, result)
    if rule is None:
        return record_scalar(recording, function, args, result)
    return record_rule(recording, rule, args, kwargs, result)


# -- functions --------------------------------------------------------------------------------------------------------


def bind(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The call's arguments by parameter name, those left at their defaults not among them."""
    if rule.signature is None:
        return {**dict(zip((*rule.operands, *rule.static), args, strict=False)), **kwargs}
    bound = dict(rule.signature.bind(*args, **kwargs).arguments)
    for name, value in list(bound.items()):
        kind = rule.signature.parameters[name].kind
        if kind is kind.VAR_KEYWORD:
            bound.update(bound.pop(name))
        elif kind is not kind.VAR_POSITIONAL and is_default(value, rule.signature.parameters[name].default):
            del bound[name]
    return bound


def is_default(value: Any, default: Any) -> bool:
    """Whether an argument is its parameter's default; recorded values never are."""
    if isinstance_wrapper(value) or isinstance(value, np.ndarray):
        return False
    return value is default or (type(value) is type(default) and not isinstance(value, np.ndarray) and value == default)


Recorder = Callable[[Recording, Rule, dict[str, Any], Any], Any]
SPECIALS: dict[type[Special], Recorder] = {}
"""How rules are written down that are more than a computation of their operands (see accel.rules.special)."""


def records(kind: type[Special]) -> Callable[[Recorder], Recorder]:
    """Register the function that records calls of that kind."""

    def register(function: Recorder) -> Recorder:
        SPECIALS[kind] = function
        return function

    return register


def record_rule(recording: Recording, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """Write a call of a function with a rule down."""
    special = rule.recorded.special
    if isinstance(special, Static):
        return static_answer(special, args, kwargs, result)
    bound = bind(rule, args, kwargs)
    recorder = record_bound if special is None else SPECIALS[type(special)]
    return recorder(recording, rule, bound, result)


def static_answer(static: Static, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """An answer that depends on types and shapes alone is a plain value: guards hold those, of lists' elements too."""
    if static.by_value:
        as_static((args, kwargs))
    for value in flat((*args, *kwargs.values())):
        if issubclass(type(value), CompressedArray):
            len(value)
        elif isinstance_wrapper(value):
            as_template(value)
    return result


def record_bound(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """The general row: operands are templates, static parameters are plain, others are refused."""
    out = bound.pop("out", None)
    out = out[0] if isinstance(out, tuple) else out
    check_parameters(rule, bound)
    if any(issubclass(type(value), CompressedArray) for value in (*flat(bound.values()), out)):
        if out is not None:
            raise Unsupported("shape.dynamic", f"{rule.name} with out on a masked selection")
        return compressed.record_call(recording, rule, bound, result)
    if out is not None:
        if rule.recorded.out_decides and "dtype" not in bound:
            bound["dtype"] = np.promote_types(np.asarray(unwrap(bound[rule.operands[0]])).dtype, result.dtype)
        computed = without_out(rule, bound)
        if computed.dtype != result.dtype:  # NumPy may compute in that dtype, or store there what it has so far
            raise Unsupported("rule.parameter", f"{rule.name} with an out of less or another precision")
        node = rule_node(recording, rule, bound, computed)
        return one_out(recording, node, out, True, result)
    node = rule_node(recording, rule, bound, result)
    return wrap_result(recording, rule, bound, result, node)


def rule_node(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Node:
    template = templates(recording, rule, bound)
    _check_stored(recording, rule, bound, getattr(result, "dtype", None))
    assume_holds(recording, rule, bound, template, result)
    names = nodes_in(template)
    if names and all(node.host for node in names) and not isinstance(result, (np.ndarray, tuple, list)):
        by_place = [template.pop(name) for name in _only_by_place(rule) if name in template]
        return recording.writer.node(scalars.host_rule(rule.function), tuple(by_place), template, result, host=True)
    return recording.writer.node(rule, (), template, result, host=False)


def _only_by_place(rule: Rule) -> list[str]:
    """Parameters that NumPy does not take by name."""
    parameters = rule.signature.parameters.values() if rule.signature is not None else ()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY]


def _check_stored(recording: Recording, rule: Rule, bound: dict[str, Any], dtype: np.dtype[Any] | None) -> None:
    """Check the operands that the rule casts to the result's dtype, where they may not fit (see `check_casts`).

    And what the parameter dtype makes of each operand, which must not depend on when it is cast.
    """
    stored = STORED | {"v"} if rule.function is np.put else STORED
    named = as_static(bound.get("dtype")) if "dtype" in rule.static else None
    asked = None if named is None else np.dtype(named)
    for name, value in bound.items():
        if name not in rule.operands:
            continue
        if asked is not None and asked.kind not in "cb" and any(np.iscomplexobj(unwrap(x)) for x in flat((value,))):
            raise Unsupported("rule.parameter", f"{rule.name} of complex numbers in a real dtype")
        is_stored = name in stored or name in rule.cast
        for each in dict.fromkeys((dtype if is_stored else None, asked)):
            if each is not None:
                check_casts(recording, value, each)


def without_out(rule: Rule, bound: dict[str, Any]) -> Any:
    """What the call gives where no array is named for it: `out` may have another dtype."""
    assert rule.signature is not None
    given = inspect.BoundArguments(rule.signature, OrderedDict(unwrap(bound)))
    return rule.function(*given.args, **given.kwargs)


def assume_holds(
    recording: Recording, rule: Rule, bound: dict[str, Any], template: dict[str, Any], result: Any
) -> None:
    """Let replays check what the rule's lowering takes for granted of its arguments."""
    if rule.recorded.holds is None:
        return
    arrays = {
        name: unwrap(value) if name in rule.sequences else np.asarray(unwrap(value))
        for name, value in bound.items()
        if name in rule.operands
    }
    shape = np.shape(result) if isinstance(result, (np.ndarray, np.generic)) else ()
    holds = rule.recorded.holds(**{**bound, **arrays}, shape=shape)
    if holds is None:
        return
    node = recording.writer.node(truth_of(rule), (), {**template, "shape": shape}, True, host=False)
    recording.writer.outcome(node, bool(holds))  # other calls may well be able to go on where this one cannot
    if not holds:
        raise Unsupported("rule.parameter", f"{rule.name}: {rule.recorded.otherwise}")


def check_parameters(rule: Rule, bound: dict[str, Any]) -> None:
    missing = [name for name in bound if name not in rule.operands and name not in rule.static]
    if missing:
        raise Unsupported("rule.parameter", f"{rule.name}: {', '.join(missing)}")


def templates(recording: Recording, rule: Rule, bound: dict[str, Any]) -> dict[str, Any]:
    """Operands with nodes in the place of recorded values, static parameters plain."""
    return {
        name: _operand(recording, rule, name, value) if name in rule.operands else as_static(value)
        for name, value in bound.items()
    }


def _operand(recording: Recording, rule: Rule, name: str, value: Any) -> Any:
    """An operand; nested lists in the place of one array are that array."""
    template = as_template(value)
    if type(template) not in (list, tuple):
        return template
    if name in rule.sequences:
        parts = [_member(recording, rule, part, each) for part, each in zip(template, value, strict=True)]
        return type(template)(parts)
    return _stacked(recording, template, value)


def _member(recording: Recording, rule: Rule, template: Any, value: Any) -> Any:
    """One of several arrays, which may be a list of numbers; np.block goes through lists itself."""
    as_it_is = type(template) not in (list, tuple) or rule.recorded.nested
    return template if as_it_is else _stacked(recording, template, value)


def _stacked(recording: Recording, template: Any, value: Any) -> Node:
    array = np.asarray(unwrap(value))
    return recording.writer.node(core.STACK, (_nested(template), array.dtype, array.shape), {}, array, host=False)


def wrap_result(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any, node: Node) -> Any:
    """The recorded result, as the view that it is where it shares memory with an operand."""
    if not isinstance(result, np.ndarray):
        if isinstance(result, (list, tuple)):
            refuse_aliases(recording, rule, bound, result)
        return wrap(recording, result, node)
    seen = known(recording, result)
    if seen is not None:
        return seen
    for operand in flat(bound.values()):
        if issubclass(type(operand), RecordedArray) and np.may_share_memory(operand._plain_, result):
            if rule.places.view is None:
                if not np.shares_memory(operand._plain_, result):
                    continue
                raise Unsupported("rule.missing", f"{rule.name} gave a view")
            step = rule.places.view(operand._plain_, result, {k: unwrap(v) for k, v in bound.items()})
            return remember(recording, RecordedArray(recording, result, operand._storage, (*operand._chain, step)))
    return wrap(recording, result, node)


def refuse_aliases(recording: Recording, rule: Rule, bound: dict[str, Any], results: Any) -> None:
    """Several results that are views of an operand need a rule of their own."""
    for operand in flat(bound.values()):
        if issubclass(type(operand), RecordedArray):
            for part in results:
                if isinstance(part, np.ndarray) and np.shares_memory(operand._plain_, part):
                    raise Unsupported("rule.missing", f"{rule.name} gave views")


# -- rules with a way of their own ------------------------------------------------------------------------------------


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
    node = recording.writer.node(core.FULL, (result.shape, fill, result.dtype), {}, result, host=False)
    return wrap(recording, result, node)


@records(ArrayOf)
def _record_array(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
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
        return compressed.record_elementwise(recording, core.CAST, (source,), {"dtype": result.dtype}, result)
    if issubclass(type(source), RecordedArray) and np.shares_memory(source._plain_, result):
        raise Unsupported("rule.missing", f"{rule.name} gave a view")
    template = as_template(source)
    check_casts(recording, source, result.dtype)
    if isinstance(template, Node):
        node = recording.writer.node(core.CAST, (template, result.dtype), {}, result, host=False)
    else:
        template = _nested(template)
        node = recording.writer.node(core.STACK, (template, result.dtype, result.shape), {}, result, host=False)
    return wrap(recording, result, node)


def _nested(template: Any) -> Any:
    if type(template) in (list, tuple):
        return [_nested(part) for part in template]
    if isinstance(template, (Node, np.number, np.bool_, bool, int, float, complex)):
        return template
    raise Unsupported("array.unknown", f"an array made of {type(template).__name__}")


@records(NanToNum)
def _record_nan_to_num(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """With copy=False the argument itself is changed, and returned."""
    copy = as_static(bound.pop("copy", True))
    source = bound["x"]
    if not copy and issubclass(type(source), CompressedArray):
        raise Unsupported("shape.dynamic", "a masked selection changed in place")
    if copy or not issubclass(type(source), RecordedArray):
        return record_bound(recording, rule, bound, result)
    if not np.shares_memory(source._plain_, result):
        return record_bound(recording, rule, bound, result)
    if source._plain_.dtype.kind not in "fc":
        return source
    node = rule_node(recording, rule, bound, result)
    recording.writer.write_view(source._storage, source._chain, node)
    if known(recording, result) is not None:
        return known(recording, result)
    return remember(recording, RecordedArray(recording, result, source._storage, source._chain))


@records(WritesInto)
def _record_write(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """Functions that change their first argument: its new value is computed and stored."""
    name = rule.operands[0]
    target = bound[name]
    if not issubclass(type(target), RecordedArray):
        raise Unsupported("array.unknown", f"{rule.name} writes to an array whose origin the recording did not see")
    check_parameters(rule, bound)
    template = templates(recording, rule, bound)
    _check_stored(recording, rule, {**bound, name: None}, target._plain_.dtype)
    assume_holds(recording, rule, bound, template, result)
    node = recording.writer.node(rule, (), template, target._plain_, host=False)
    recording.writer.write_view(target._storage, target._chain, node)
    return result


@records(Indices)
def _record_indices(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """nonzero and one-argument where: as many indices as there are true elements."""
    condition = next(iter(bound.values()))
    return compressed.record_nonzero(recording, condition, result)


@records(Where)
def _record_where(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    if "x" not in bound:
        return compressed.record_nonzero(recording, bound["condition"], result)
    return record_bound(recording, rule, bound, result)


def _sliceable(rule: Rule, source: Any) -> Any:
    """An array that the result is slices of."""
    if not issubclass(type(source), RecordedArray):
        raise Unsupported("shape.dynamic", f"{rule.name} of a masked selection or a list")
    return source


@records(Split)
def _record_split(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """Parts of an array along an axis, each a view: taken as slices of it."""
    source = _sliceable(rule, next(iter(bound.values())))
    axis = as_static(bound.get("axis", 0))
    where = as_static(bound["indices_or_sections"])
    parts = []
    for places in np.array_split(np.arange(unwrap(source).shape[axis]), where):  # need not follow one another
        start = int(places[0]) if places.size else 0
        key = [slice(None)] * unwrap(source).ndim
        key[axis] = slice(start, start + places.size)
        parts.append(get_item(source, tuple(key)))
    return parts


@records(Unrecordable)
def _record_refused(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    refused = rule.recorded.special
    assert isinstance(refused, Unrecordable)
    raise Unsupported(refused.reason, f"{rule.name}: {refused.why}")


@records(Shaped)
def _record_shaped(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """Functions whose result's shape depends on values: the path fixes it, `rule.recorded.holds` makes sure of it."""
    check_parameters(rule, bound)
    template = templates(recording, rule, bound)
    assume_holds(recording, rule, bound, template, result)
    node = recording.writer.node(rule, (), {**template, "shape": np.shape(result)}, result, host=False)
    return wrap(recording, result, node)


@records(Rewrite)
def _record_rewrite(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """A function that is a few calls of others: those are written down, and must give the same result."""
    check_parameters(rule, bound)
    rewrite = rule.recorded.special
    assert isinstance(rewrite, Rewrite)
    try:
        made = rewrite.calls(**bound)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        given = (bound.get(name) for name in rule.operands if name not in rule.sequences)
        if any(type(operand) in (list, tuple) for operand in given):
            raise Unsupported("rule.parameter", f"{rule.name} of a list") from error
        raise
    if not recording.active:
        raise Unsupported("rule.missing", rule.name)
    sources = [unwrap(operand) for operand in flat(bound.values()) if issubclass(type(operand), RecordedArray)]
    return _in_place_of(recording, rule, made, result, sources)


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
        return made
    if value.ctypes.data == result.ctypes.data and value.strides == result.strides and result.size:
        return remember(recording, RecordedArray(recording, result, made._storage, made._chain))
    if any(np.shares_memory(source, result) for source in sources):
        raise Unsupported("rule.missing", f"{rule.name} gave a view")
    return wrap(recording, result, as_template(made) if isinstance_wrapper(made) else _constant(recording, value))


def _constant(recording: Recording, value: Any) -> Node:
    """A node for an array that the program's text decides."""
    return recording.writer.node(core.STACK, (value.tolist(), value.dtype, value.shape), {}, value, host=False)


@records(Finite)
def _record_finite(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """Linear algebra that raises for singular matrices: XLA gives infinities or NaN there."""
    wrapped = record_bound(recording, rule, bound, result)
    recording.writer.assume(core.ALL_FINITE, (wrapped.node(),))
    return wrapped


@records(Flip)
def _record_flip(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """flip and kin: a view with reversed axes."""
    source = _sliceable(rule, bound["m"])
    flip = rule.recorded.special
    assert isinstance(flip, Flip)
    axes = as_static(bound.get("axis", flip.axis))
    chosen = range(result.ndim) if axes is None else np.atleast_1d(axes) % result.ndim
    key = tuple(slice(None, None, -1) if axis in chosen else slice(None) for axis in range(result.ndim))
    return get_item(source, key)


@records(BroadcastArrays)
def _record_broadcast(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """broadcast_arrays: views that may be written to, with a warning, where those of broadcast_to may not."""
    parts = _record_rewrite(recording, rule, bound, result)
    for part in parts:
        if issubclass(type(part), RecordedArray) and part._chain and isinstance(part._chain[-1], Broadcast):
            part._chain = (*part._chain[:-1], Broadcast(part._plain_.shape, by_arrays=True))
    return parts
