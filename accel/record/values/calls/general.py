"""Arguments bound, checked and made operands; functions that only compute from them: one node, and its result."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.ir.tape import Node, nodes_in
from accel.ir.template import leaves
from accel.record.state.recording import Recording
from accel.record.state.wrapper import isinstance_wrapper, unwrap
from accel.record.values import compressed
from accel.record.values.arrays import CompressedArray, RecordedArray, as_static, as_template
from accel.record.values.operands import STORED, assume_holds, check_casts, flat, host_node, refuse_shared, view
from accel.record.values.ufuncs import one_out
from accel.record.values.wrapping import known, wrap
from accel.rules import core
from accel.rules.evaluation import call_by_name
from accel.rules.hosted import RESULTS, hosted, structure_of
from accel.rules.rule import Rule, Unsupported


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


def is_default(value: object, default: object) -> bool:
    """Whether an argument is its parameter's default; recorded values never are, and -0.0 is not 0.0."""
    if isinstance_wrapper(value) or isinstance(value, np.ndarray):
        return False
    return value is default or (type(value) is type(default) and value == default and repr(value) == repr(default))


def check_parameters(rule: Rule, bound: dict[str, Any]) -> None:
    """Refuse parameters that the rule does not know."""
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


def _member(recording: Recording, rule: Rule, template: object, value: object) -> Any:
    """One of several arrays, which may be a list of numbers; np.block goes through lists itself."""
    as_it_is = type(template) not in (list, tuple) or rule.recorded.nested
    return template if as_it_is else _stacked(recording, template, value)


def _stacked(recording: Recording, template: object, value: object) -> Node:
    array = np.asarray(unwrap(value))
    return recording.writer.node(core.STACK, (nested(template), array.dtype, array.shape), {}, array)


def nested(template: Any) -> Any:
    """A list of lists of nodes and numbers, of which an array is made. Raises Unsupported for anything else."""
    if type(template) in (list, tuple):
        return [nested(part) for part in template]
    if isinstance(template, (Node, np.number, np.bool_, bool, int, float, complex)):
        return template
    raise Unsupported("array.unknown", f"an array made of {type(template).__name__}")


def check_stored(recording: Recording, rule: Rule, bound: dict[str, Any], dtype: np.dtype[Any] | None) -> None:
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
        if rule.function in (np.concatenate, np.stack):  # which store the first array before they read the next
            refuse_shared(out, list(flat((bound[rule.operands[0]],)))[1:])
        if rule.recorded.out_decides and "dtype" not in bound:
            bound["dtype"] = np.promote_types(np.asarray(unwrap(bound[rule.operands[0]])).dtype, result.dtype)
        computed = call_by_name(rule, unwrap(bound))  # `out` may have another dtype
        if computed.dtype != result.dtype:  # NumPy may compute in that dtype, or store there what it has so far
            raise Unsupported("rule.parameter", f"{rule.name} with an out of less or another precision")
        if computed.shape != result.shape:  # scans of one element leave the rest of a longer out as it is
            raise Unsupported("rule.parameter", f"{rule.name} with an out of another shape")
        node = rule_node(recording, rule, bound, computed)
        return one_out(recording, node, out, True, result)
    node = rule_node(recording, rule, bound, result)
    return wrap_result(recording, rule, bound, result, node)


def rule_node(recording: Recording, rule: Rule, bound: dict[str, Any], result: object) -> Node:
    """The node of a call of a function with a rule: on the host where Python knows all operands."""
    template = templates(recording, rule, bound)
    check_stored(recording, rule, bound, getattr(result, "dtype", None))
    assume_holds(recording, rule, bound, template, result)
    names = nodes_in(template)
    if names and all(node.host for node in names) and not isinstance(result, (np.ndarray, tuple, list)):
        by_place = [template.pop(name) for name in _only_by_place(rule) if name in template]
        return host_node(recording, rule.function, tuple(by_place), template, result)
    return recording.writer.node(rule, (), template, result)


def host_call(recording: Recording, rule: Rule, template: dict[str, Any], result: object) -> Node:
    """The node of a call of the function itself: the parts of its result, and whether they are of this form."""
    given = leaves({name: value for name, value in template.items() if name in rule.operands}, (Node, *RESULTS))
    parts = leaves(result, RESULTS)
    forms = tuple((np.shape(part), np.asarray(part).dtype.str) for part in parts)
    types = tuple(each.scalar if isinstance(each, Node) else type(each) for each in given)
    about = forms, types, structure_of(result)
    node = recording.writer.node(hosted(rule), (about,), template, (*parts, True))
    ends = recording.writer.node(core.PICK, (node, len(parts)), {}, True)
    recording.writer.outcome(ends, True)
    return node


def _only_by_place(rule: Rule) -> list[str]:
    """Parameters that NumPy does not take by name."""
    parameters = rule.signature.parameters.values() if rule.signature is not None else ()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY]


def wrap_result(recording: Recording, rule: Rule, bound: dict[str, Any], result: object, node: Node) -> Any:
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
            if rule.locality.view is None:
                if not np.shares_memory(operand._plain_, result):
                    continue
                raise Unsupported("rule.missing", f"{rule.name} gave a view")
            step = rule.locality.view(operand._plain_, result, {k: unwrap(v) for k, v in bound.items()})
            return view(recording, result, operand._storage, (*operand._chain, step))
    return wrap(recording, result, node)


def refuse_aliases(recording: Recording, rule: Rule, bound: dict[str, Any], results: Any) -> None:
    """Several results that are views of an operand need a rule of their own."""
    for operand in flat(bound.values()):
        if issubclass(type(operand), RecordedArray):
            for part in results:
                if isinstance(part, np.ndarray) and np.shares_memory(operand._plain_, part):
                    raise Unsupported("rule.missing", f"{rule.name} gave views")
