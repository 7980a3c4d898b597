"""Functions that compute from their operands and do no more: one node, and the result that it stands for."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from typing import Any

import numpy as np

from accel.ir.tape import Node, nodes_in
from accel.ir.template import leaves
from accel.record.state.recording import Recording
from accel.record.state.wrapper import unwrap
from accel.record.values import compressed, late
from accel.record.values.arrays import CompressedArray, RecordedArray, known, remember, wrap
from accel.record.values.calls.arguments import assume_holds, check_parameters, check_stored, templates
from accel.record.values.operands import flat
from accel.record.values.ufuncs import one_out
from accel.rules import core, scalars
from accel.rules.hosted import RESULTS, hosted, structure_of
from accel.rules.rule import Rule, Unsupported


def record_bound(recording: Recording, rule: Rule, bound: dict[str, Any], result: Any) -> Any:
    """The general row: operands are templates, static parameters are plain, others are refused."""
    out = bound.pop("out", None)
    out = out[0] if isinstance(out, tuple) else out
    check_parameters(rule, bound)
    found = late.record_call(recording, rule, bound, result) if out is None else None
    if found is not None:
        return found
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


def rule_node(recording: Recording, rule: Rule, bound: dict[str, Any], result: object) -> Node:
    template = templates(recording, rule, bound)
    check_stored(recording, rule, bound, getattr(result, "dtype", None))
    assume_holds(recording, rule, bound, template, result)
    names = nodes_in(template)
    if names and all(node.host for node in names) and not isinstance(result, (np.ndarray, tuple, list)):
        by_place = [template.pop(name) for name in _only_by_place(rule) if name in template]
        return recording.writer.node(scalars.host_rule(rule.function), tuple(by_place), template, result, host=True)
    return recording.writer.node(rule, (), template, result, host=False)


def host_call(recording: Recording, rule: Rule, template: dict[str, Any], result: object) -> Node:
    """The node of a call of the function itself: the parts of its result, and whether they are of this form."""
    given = leaves({name: value for name, value in template.items() if name in rule.operands}, (Node, *RESULTS))
    parts = leaves(result, RESULTS)
    forms = tuple((np.shape(part), np.asarray(part).dtype.str) for part in parts)
    types = tuple(each.scalar if isinstance(each, Node) else type(each) for each in given)
    about = forms, types, structure_of(result)
    node = recording.writer.node(hosted(rule), (about,), template, (*parts, True), host=False)
    ends = recording.writer.node(core.PICK, (node, len(parts)), {}, True, host=False)
    recording.writer.outcome(ends, True)
    return node


def _only_by_place(rule: Rule) -> list[str]:
    """Parameters that NumPy does not take by name."""
    parameters = rule.signature.parameters.values() if rule.signature is not None else ()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY]


def without_out(rule: Rule, bound: dict[str, Any]) -> Any:
    """What the call gives where no array is named for it: `out` may have another dtype."""
    assert rule.signature is not None
    given = inspect.BoundArguments(rule.signature, OrderedDict(unwrap(bound)))
    return rule.function(*given.args, **given.kwargs)


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
            return remember(recording, RecordedArray(recording, result, operand._storage, (*operand._chain, step)))
    return wrap(recording, result, node)


def refuse_aliases(recording: Recording, rule: Rule, bound: dict[str, Any], results: Any) -> None:
    """Several results that are views of an operand need a rule of their own."""
    for operand in flat(bound.values()):
        if issubclass(type(operand), RecordedArray):
            for part in results:
                if isinstance(part, np.ndarray) and np.shares_memory(operand._plain_, part):
                    raise Unsupported("rule.missing", f"{rule.name} gave views")
