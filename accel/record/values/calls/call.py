"""Calls of functions that have a rule: run NumPy's own, then write the call down."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.record.state.on_behalf import on_behalf
from accel.record.state.recording import Recording, current
from accel.record.state.wrapper import has_wrapper, isinstance_wrapper, unwrap
from accel.record.values.arrays import CompressedArray, RecordedArray, as_static, as_template
from accel.record.values.calls.general import bind, record_bound
from accel.record.values.calls.special import SPECIALS
from accel.record.values.numbers import record_scalar
from accel.record.values.operands import flat
from accel.record.values.settling import or_settled
from accel.record.values.ufuncs import record_ufunc
from accel.rules import scalars
from accel.rules.hosted import WRITES, with_operands
from accel.rules.rule import Rule, Unsupported, lookup
from accel.rules.special import CallOnHost, NanToNum, Static, WritesInto


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a NumPy, SciPy or math function with recorded values among its arguments, or in a recorded frame."""
    recording = current()
    if recording is None or not recording.active:
        return on_behalf(function, unwrap(args), unwrap(kwargs))
    rule = lookup(function)
    is_known = rule is not None or isinstance(function, np.ufunc) or function in scalars.HOST_FUNCTIONS
    if not is_known or calls_back(args, kwargs):
        return call_without_rule(recording, function, args, kwargs)
    for target in written_operands(function, rule, args, kwargs):
        recording.storages.before_write(target._storage, target._plain_)
    result = on_behalf(function, unwrap(args), unwrap(kwargs))
    given = (*args, *kwargs.values())
    write = lambda: record(recording, function, rule, args, kwargs, result)  # noqa: E731
    return recording.write_down(lambda: or_settled(write, given), result)


def call_without_rule(recording: Recording, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that no rule covers, or that runs code of the program's: it may change what it is given."""
    name = f"{getattr(function, '__module__', '') or ''}.{getattr(function, '__name__', function)}".lstrip(".")
    for value in (*args, *kwargs.values()):
        if issubclass(type(value), RecordedArray):
            recording.storages.before_write(value._storage)
    if calls_back(args, kwargs):
        recording.break_("call.opaque", f"{name}, which calls a function of the program's", touched=True)
    recording.break_("array.masked" if name.startswith("numpy.ma.") else "rule.missing", name)
    return on_behalf(function, unwrap(args), unwrap(kwargs))


def calls_back(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether code of the program's runs inside, and may change anything: `np.apply_along_axis(f, ...)`."""
    given = map(unwrap, flat((*args, *kwargs.values())))
    return any(callable(each) and not isinstance(each, type) and lookup(each) is None for each in given)


def written_operands(function: object, rule: Rule | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The recorded arrays that a call may write to."""
    outs = kwargs.get("out")
    found = [outs] if not isinstance(outs, tuple) else list(outs)
    if rule is not None and isinstance(rule.recorded.special, (WritesInto, NanToNum)):
        found.append(args[0] if args else kwargs.get(rule.operands[0]))
    elif isinstance(function, np.ufunc):
        found.extend(args[function.nin :])  # `out` given by position
    given = {**dict(zip(getattr(getattr(rule, "signature", None), "parameters", ()), args, strict=False)), **kwargs}
    for name in filter(WRITES.fullmatch, given):
        # an array to write to, or whether the operands may be overwritten
        found.extend(given.values() if name.startswith("overwrite_") and unwrap(given[name]) else [given[name]])
    return [array for array in found if issubclass(type(array), RecordedArray)]


def record(
    recording: Recording, function: Any, rule: Rule | None, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Any:
    """Write a call down that NumPy has just run."""
    if isinstance(function, np.ufunc) and not (rule is not None and isinstance(rule.recorded.special, CallOnHost)):
        return record_ufunc(recording, function, args, kwargs, result)
    if rule is None:
        return record_scalar(recording, function, args, result)
    return record_rule(recording, rule, args, kwargs, result)


def record_rule(recording: Recording, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> Any:
    """Write a call of a function with a rule down."""
    special = rule.recorded.special
    if isinstance(special, Static):
        return static_answer(special, args, kwargs, result)
    bound = bind(rule, args, kwargs)
    recorder = record_bound if special is None else SPECIALS[type(special)]
    try:
        return recorder(recording, rule, dict(bound), result)
    except Unsupported as gap:
        if gap.reason != "rule.parameter" or not rule.recorded.or_on_host:
            raise
        recorded = tuple(name for name, value in bound.items() if has_wrapper(value))
        return SPECIALS[CallOnHost](recording, with_operands(rule, recorded), bound, result)


def static_answer(static: Static, args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> Any:
    """An answer that depends on types and shapes alone is a plain value: guards hold those, of lists' elements too."""
    if static.by_value:
        as_static((args, kwargs))
    for value in flat((*args, *kwargs.values())):
        if issubclass(type(value), CompressedArray):
            len(value)
        elif isinstance_wrapper(value):
            as_template(value)
    return result
