"""Attributes and methods of recorded arrays and scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.ir.tape import Storage
from accel.ir.views import ComplexPart, Reshape, Transpose
from accel.record.state.inputs import has_flags
from accel.record.state.on_behalf import on_behalf
from accel.record.state.opaque import EFFECTS_IN_NUMPY
from accel.record.state.wrapper import StandIn, Wrapper, unwrap
from accel.record.values import compressed, rows
from accel.record.values.arrays import CompressedArray, RecordedArray, RecordedScalar, as_static, as_template, force
from accel.record.values.calls.call import record_rule
from accel.record.values.numbers import record_scalar, scalar_call
from accel.record.values.operands import assume_in_range, check_casts, view
from accel.record.values.settling import or_settled, settle
from accel.record.values.ufuncs import one_out, record_ufunc
from accel.record.values.wrapping import known, wrap
from accel.rules import core, scalars
from accel.rules.rule import RULES, Unsupported

SHAPES = frozenset({"shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags"})
"""Attributes that types and shapes decide; guards hold those."""

_SIZED: dict[str, Callable[[Any, Any], Any]] = {
    "shape": lambda value, real: (value.count(), *real.shape[1:]),
    "size": lambda value, real: value.count() * int(np.prod(real.shape[1:])),
    "nbytes": lambda value, real: value.count() * int(np.prod(real.shape[1:])) * real.itemsize,
}
"""Attributes that depend on how many elements a mask selects."""


def attribute_of(value: Any, name: str) -> Any:
    """`value.name` for a recorded array or scalar."""
    recording, real = value._recording_, value._plain_
    if name == "flags" and recording.active:
        return Flags(value)
    if name in SHAPES:
        if name in _SIZED and issubclass(type(value), CompressedArray):
            return _SIZED[name](value, real)
        return getattr(real, name)
    attribute = getattr(real, name)  # an AttributeError is the program's own
    if not recording.active:
        return attribute
    if name in METHODS and isinstance(real, (np.ndarray, np.generic)):
        return Method(value, name)
    if issubclass(type(value), RecordedScalar):
        return _attribute_of_scalar(value, name, attribute)
    if name in _VIEWS:
        return recording.write_down(lambda: _view(value, name, attribute), attribute)
    if issubclass(type(value), RecordedArray):
        # what it leads to may write into the array
        recording.storages.before_write(value._storage)
    effect = EFFECTS_IN_NUMPY.get(name)
    recording.break_(effect or "rule.missing", f"ndarray.{name}", touched=effect is not None)
    return attribute


def _attribute_of_scalar(value: RecordedScalar, name: str, attribute: Any) -> Any:
    """A part of a number or a method that is recorded; anything else needs the number itself."""
    recording, real = value._recording_, value._plain_
    if name in ("real", "imag"):
        return recording.write_down(lambda: _part(value, name, attribute), attribute)
    if name in _OF_NUMBERS:
        return lambda *args: scalar_call(recording, getattr(type(real), name), (value, *args))
    force(value, f".{name}")
    return attribute


class Method(StandIn):
    """A bound method of a recorded array or NumPy scalar."""

    __slots__ = ("_name", "_value")

    def __init__(self, value: Any, name: str) -> None:
        self._recording_ = value._recording_
        self._plain_ = getattr(value._plain_, name)
        self._value = value
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        value, name = self._value, self._name
        recording = value._recording_
        if name in _CHANGING and issubclass(type(value), RecordedArray):
            recording.storages.before_write(value._storage, value._plain_)
        for given in (*args, kwargs.get("out")):  # `out` may be given by position
            if issubclass(type(given), RecordedArray):
                recording.storages.before_write(given._storage, given._plain_)
        result = on_behalf(getattr(value._plain_, name), unwrap(args), unwrap(kwargs))
        given = (value, *args, *kwargs.values())
        return recording.write_down(
            lambda: or_settled(lambda: METHODS[name](value, name, args, kwargs, result), given), result
        )


class Flags(Wrapper):
    """An array's flags: reading them is what guards hold; setting them ends the tape."""

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "_recording_", value._recording_)
        object.__setattr__(self, "_plain_", value._plain_.flags)
        origin = value._storage.origin if issubclass(type(value), RecordedArray) else None
        if origin is not None:
            value._recording_.inputs.narrow(origin.args[0], has_flags(value._storage.base))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain_, name)

    def __getitem__(self, name: str) -> Any:
        return self._plain_[name]

    def __setattr__(self, name: str, value: object) -> None:
        self._recording_.break_("rule.missing", "an array's flags are set", touched=True)
        setattr(self._plain_, name, unwrap(value))

    def __setitem__(self, name: str, value: object) -> None:
        self._recording_.break_("rule.missing", "an array's flags are set", touched=True)
        self._plain_[name] = unwrap(value)


_OF_NUMBERS = frozenset({"is_integer", "bit_length", "bit_count", "as_integer_ratio", "hex"})
"""Methods of Python's numbers that the host evaluates."""

Writer = Callable[[Any, str, tuple[Any, ...], dict[str, Any], Any], Any]


def _as_function(value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """The method is the NumPy function of the same name with the array first."""
    rule = RULES.get(getattr(np, name))
    if rule is None:
        raise Unsupported("rule.missing", f"ndarray.{name}")
    return record_rule(value._recording_, rule, (value, *args), kwargs, result)


def _compress(value: RecordedArray, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> Any:
    """The function takes the condition first."""
    bound = {"condition": args[0], "a": value, **dict(zip(("axis", "out"), args[1:], strict=False)), **kwargs}
    return record_rule(value._recording_, RULES[np.compress], (), bound, result)


def _as_ufunc(ufunc: np.ufunc) -> Writer:
    def write(value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        return record_ufunc(value._recording_, ufunc, (value, *args), kwargs, result)

    return write


def _reshape(value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """reshape and ravel: a view where NumPy makes one, else a copy. In Fortran's order: that of transposed arrays."""
    options = {**kwargs}
    order = options.pop("order", "C")
    if name in ("ravel", "flatten") and args:
        order = args[0]
    else:
        as_static(args)  # the new shape
    as_static(options)
    recording, real = value._recording_, value._plain_
    if order is not None and not isinstance(order, str):
        raise Unsupported("rule.parameter", f"ndarray.{name}: order={order!r}")
    flags, order = real.flags, (order or "C").upper()
    if order == "K" and not flags.forc:
        raise Unsupported("rule.parameter", f"ndarray.{name}: order='K' of an array in neither C's nor Fortran's order")
    turned = order == "F" or (order != "C" and flags.fnc)
    if issubclass(type(value), CompressedArray):
        if result.shape != real.shape:
            raise Unsupported("shape.dynamic", f"{name} of a masked selection")
        # one axis: the order is of no account
        is_view = np.shares_memory(result, real)
        return compressed.view_of_all(value, result) if is_view else _copy(value, name, (), {}, result)
    before, after = (
        (Transpose(tuple(range(each.ndim))[::-1]),) * (turned and each.ndim > 1) for each in (real, result)
    )
    seen, made = (each.T if turned else each for each in (real, result))
    # Whether reshape gives a view depends on strides, which guards hold (`is_array_like`): it will be one again.
    if np.shares_memory(result, real):
        step = Reshape(made.shape, seen.shape)
        return view(recording, result, value._storage, (*value._chain, *before, step, *after))
    source = recording.writer.read_view(value._storage, (*value._chain, *before)) if before else value.node()
    node = recording.writer.node(core.RESHAPE, (source, made.shape), {}, made)
    if not after:
        return wrap(recording, result, node)
    return view(recording, result, Storage(made, node), after)


def _copy(value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    if issubclass(type(value), CompressedArray):
        return rows.new(value._recording_, result, value._full, value._mask)
    return wrap(value._recording_, result, value.node())


def _astype(value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """astype: the array itself where NumPy gives it back, else a cast."""
    recording = value._recording_
    as_static((args, kwargs))
    if issubclass(type(value), CompressedArray):
        return compressed.record_cast(recording, value, result)
    seen = known(recording, result) if isinstance(result, np.ndarray) else None
    if seen is not None:
        return seen
    node = value.node()
    if node.host:
        raise Unsupported("rule.missing", "astype of a scalar")
    check_casts(recording, value, result.dtype)
    return wrap(recording, result, recording.writer.node(core.CAST, (node, result.dtype), {}, result))


def _item(value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    if args and len(args) == value._plain_.ndim and all(isinstance(each, (int, np.integer)) for each in args):
        return _item(value[tuple(args)], name, (), {}, result)
    if args:
        index = as_static(args if len(args) > 1 else args[0])
        if isinstance(index, int):  # of the flattened array
            index = tuple(
                int(position) for position in np.unravel_index(range(value._plain_.size)[index], value._plain_.shape)
            )
        return _item(value[index], name, (), {}, result)
    node = value.node()
    if node.shape:
        node = value._recording_.writer.node(core.RESHAPE, (node, ()), {}, np.asarray(value._plain_).reshape(()))
    kind = type(result)
    if node.host:
        convert: Callable[..., Any] = kind
        made = value._recording_.writer.node(scalars.host_rule(convert), (node,), {}, result, host=True)
    else:
        if kind is int:
            assume_in_range(value._recording_, node, np.dtype(np.int64), result)
        made = value._recording_.writer.node(core.CONVERT, (node, kind), {}, result)
    return wrap(value._recording_, result, made)


MOST_LISTED = 1000
"""Maximum size of an array that becomes a list, each element a number of its own. Guess."""


def _tolist(value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    if value._plain_.size > MOST_LISTED:
        raise Unsupported("limit.nodes", f"a list of {value._plain_.size} numbers")
    if issubclass(type(value), CompressedArray):
        raise Unsupported("shape.dynamic", "a masked selection as a list")
    if not value._plain_.ndim:
        return _item(value, name, (), {}, result)
    return [_tolist(value[i], name, (), {}, part) for i, part in enumerate(result)]


def _transpose(value: RecordedArray, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> Any:
    axes = args[0] if len(args) == 1 and (args[0] is None or isinstance(args[0], (tuple, list))) else args or None
    return record_rule(value._recording_, RULES[np.transpose], (value, as_static(axes)), {}, result)


def _fill(value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    if not issubclass(type(value), RecordedArray):
        raise Unsupported("shape.dynamic", "fill of a masked selection")
    recording, real = value._recording_, value._plain_
    given = args[0] if args else kwargs["value"]
    check_casts(recording, given, real.dtype)
    fill = as_template(given)
    node = recording.writer.node(core.FULL, (real.shape, fill, real.dtype), {}, real)
    recording.writer.write_view(value._storage, value._chain, node)


def _sort(value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    """In place; the function `sort` on the value gives what it holds afterwards."""
    rule = RULES[np.sort]
    bound = {"a": value.node(), **dict(zip(("axis", "kind"), as_static(args), strict=False)), **as_static(kwargs)}
    if set(bound) - {"a", "axis", "kind"}:
        raise Unsupported("rule.parameter", f"ndarray.sort: {', '.join(bound)}")
    node = value._recording_.writer.node(rule, (), bound, value._plain_)
    one_out(value._recording_, node, value, True, value._plain_)


def _view_method(value: RecordedArray, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> Any:
    if issubclass(type(value), CompressedArray):
        raise Unsupported("shape.dynamic", "ndarray.view of a masked selection")
    if type(result) is not np.ndarray or result.dtype != value._plain_.dtype:
        raise Unsupported("rule.missing", "ndarray.view of another dtype or type")
    return view(value._recording_, result, value._storage, value._chain)


_CHANGING = frozenset({"fill", "put", "sort"})

METHODS: dict[str, Writer] = {
    **dict.fromkeys(
        """all any argmax argmin argsort clip cumprod cumsum diagonal dot max mean min nonzero prod repeat
        round searchsorted squeeze std sum swapaxes take trace var choose put""".split(),
        _as_function,
    ),
    **dict.fromkeys(("conj", "conjugate"), _as_ufunc(np.conjugate)),
    **dict.fromkeys(("reshape", "ravel", "flatten"), _reshape),
    "compress": _compress,
    "copy": _copy,
    "astype": _astype,
    "item": _item,
    "tolist": _tolist,
    "transpose": _transpose,
    "fill": _fill,
    "sort": _sort,
    "view": _view_method,
}
"""Recorders of methods, by name."""

_VIEWS = frozenset({"T", "mT", "real", "imag"})
_PARTS: dict[str, Any] = {"real": (np.real, scalars.REAL_PART), "imag": (np.imag, scalars.IMAG_PART)}
"""By name: the function by which Python takes a part of a number, and the rule by which the device does."""


def _part(value: RecordedScalar, name: str, attribute: Any) -> Any:
    """A part of a number, which may be complex."""
    recording, node = value._recording_, value.node()
    function, rule = _PARTS[name]
    if node.host:
        return record_scalar(recording, function, (value,), attribute)
    return wrap(recording, attribute, recording.writer.node(rule, (node,), {}, attribute))


def _view(value: RecordedArray, name: str, attribute: Any) -> Any:
    """T, mT, real and imag of an array: views of its memory, but for the imag of real numbers."""
    settle(value)
    recording, ndim = value._recording_, value._plain_.ndim
    if name in ("real", "imag"):
        if value._plain_.dtype.kind != "c":
            if name == "real":
                return view(recording, attribute, value._storage, value._chain)
            node = recording.writer.node(core.FULL, (attribute.shape, 0, attribute.dtype), {}, attribute)
            return wrap(recording, attribute, node)
        step: Any = ComplexPart(name)
    else:
        axes = tuple(range(ndim))
        step = Transpose(axes[::-1] if name == "T" else (*axes[:-2], axes[-1], axes[-2]))
    return view(recording, attribute, value._storage, (*value._chain, step))
