"""A call's arguments: bound to parameters, checked, and made operands of a node."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.record.state.recording import Recording
from accel.record.state.wrapper import isinstance_wrapper, unwrap
from accel.record.values.arrays import as_static, as_template
from accel.record.values.operands import STORED, check_casts, flat
from accel.rules import core
from accel.rules.rule import Rule, Unsupported, truth_of


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
    """Whether an argument is its parameter's default; recorded values never are."""
    if isinstance_wrapper(value) or isinstance(value, np.ndarray):
        return False
    return value is default or (type(value) is type(default) and not isinstance(value, np.ndarray) and value == default)


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


def _member(recording: Recording, rule: Rule, template: object, value: object) -> Any:
    """One of several arrays, which may be a list of numbers; np.block goes through lists itself."""
    as_it_is = type(template) not in (list, tuple) or rule.recorded.nested
    return template if as_it_is else _stacked(recording, template, value)


def _stacked(recording: Recording, template: object, value: object) -> Node:
    array = np.asarray(unwrap(value))
    return recording.writer.node(core.STACK, (nested(template), array.dtype, array.shape), {}, array, host=False)


def nested(template: Any) -> Any:
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


def assume_holds(
    recording: Recording, rule: Rule, bound: dict[str, Any], template: dict[str, Any], result: object
) -> None:
    """Let replays check what the rule's lowering takes for granted of its arguments."""
    if rule.recorded.holds is None:
        return
    arrays = {
        name: unwrap(value) if name in rule.sequences else np.asarray(unwrap(value))
        for name, value in bound.items()
        if name in rule.operands
    }
    first = result[0] if isinstance(result, tuple) and result else result
    shape = np.shape(first) if isinstance(first, (np.ndarray, np.generic)) else ()
    holds = rule.recorded.holds(**{**bound, **arrays}, shape=shape)
    if holds is None:
        return
    node = recording.writer.node(truth_of(rule), (), {**template, "shape": shape}, True, host=False)
    recording.writer.outcome(node, bool(holds))  # other calls may well be able to go on where this one cannot
    if not holds:
        raise Unsupported("rule.parameter", f"{rule.name}: {rule.recorded.otherwise}")
