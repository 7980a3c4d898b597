"""Objects of SciPy's that the program holds: interpolators that are called, sparse matrices that are multiplied.

The methods are known by their code. Each becomes one operation on the object's arrays, which are read, and guarded, as
attributes are. What is not of the plainest kind is an opaque call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from accel.ir.template import leaves
from accel.record.objects.follow import LATE, WRAPPERS
from accel.record.objects.objects import CONSTRUCTORS, ObjectProxy
from accel.record.objects.own_attributes import own_names
from accel.record.state.on_behalf import on_behalf
from accel.record.state.opaque import call_opaque
from accel.record.state.recording import Recording
from accel.record.state.wrapper import StandIn, Wrapper, unwrap
from accel.record.values.arrays import RecordedArray, RecordedScalar
from accel.record.values.calls.call import call, record_rule
from accel.rules.lowering import Lazy
from accel.rules.made import Question, answer
from accel.rules.tables.scipy.made import METHODS

Made = Callable[..., Any]

# SciPy's modules are imported with them: the program has done that by then
_interpolate, _sparse = (Lazy(f"accel.rules.tables.scipy.{name}") for name in ("interpolate", "sparse"))


def _method(function: Any, kinds: tuple[type, ...], make: Made) -> None:
    """Let calls of a method be what `make(proxy, *args)` gives. kinds: the only classes whose objects are known.

    `make` gives NotImplemented where it leaves the call to SciPy.
    """

    def known(recording: Recording, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = NotImplemented
        if args and issubclass(type(args[0]), ObjectProxy) and type(unwrap(args[0])) in kinds:
            try:
                found = make(*args, **kwargs)
            except (TypeError, AttributeError):  # other arguments than it knows: SciPy says what is wrong with them
                found = NotImplemented
        return call_opaque(recording, function, args, kwargs) if found is NotImplemented else found

    WRAPPERS[function.__code__] = known


def _read(proxy: Any, *names: str) -> list[Any]:
    """Attributes, by the name that this version of SciPy keeps them under."""
    own = own_names(unwrap(proxy))
    return [getattr(proxy, f"_{name}" if f"_{name}" in own else name) for name in names]


def _is_numbers(value: Any) -> bool:
    return issubclass(type(value), (RecordedArray, RecordedScalar)) or type(value) in (int, float)


def _piecewise(proxy: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
    if not _is_numbers(x):
        return NotImplemented
    held = proxy
    if "_delegate_to" in own_names(unwrap(proxy)):  # SciPy 1.18: an object of another class, for each kind of arrays
        held = getattr(proxy, "_delegate_to")  # noqa: B009
    c, points, axis = _read(held, "c", "x", "axis")
    extrapolate = getattr(held, "extrapolate") if extrapolate is None else extrapolate  # noqa: B009
    return call(_interpolate.piecewise_polynomial, (c, points, x), {"nu": nu, "extrapolate": extrapolate, "axis": axis})


def _on_line(proxy: Any, x: Any) -> Any:
    """interp1d of kind linear, with values along one axis."""
    if not _is_numbers(x) or unwrap(proxy)._kind != "linear" or getattr(proxy, "_kind") != "linear":  # noqa: B009
        return NotImplemented
    points, values, axis = (getattr(proxy, name) for name in ("x", "y", "axis"))
    if unwrap(values).ndim != 1:
        return NotImplemented
    extrapolates, raises = (bool(_read(proxy, name)[0]) for name in ("extrapolate", "bounds_error"))
    bounds = "extrapolate" if extrapolates else "error" if raises else "fill"
    if bounds != "fill":
        return call(_interpolate.linear_on_line, (points, values, x), {"axis": axis, "bounds": bounds})
    below, above = (getattr(proxy, f"_fill_value_{side}") for side in ("below", "above"))
    if any(np.ndim(unwrap(side)) and unwrap(side).shape != (1,) for side in (below, above)):
        return NotImplemented
    ends = [side[0] if np.ndim(unwrap(side)) else side for side in (below, above)]
    return call(_interpolate.linear_on_line, (points, values, x, *ends), {"axis": axis, "bounds": bounds})


def _on_grid(proxy: Any, xi: Any, method: Any = None, *, nu: Any = None) -> Any:
    """RegularGridInterpolator by the methods linear and nearest."""
    if nu is not None:
        return NotImplemented
    if type(xi) is tuple and len(xi) > 1 and all(map(_is_numbers, xi)):
        xi = call(np.stack, (call(np.broadcast_arrays, xi, {}),), {"axis": -1})
    grid, values, own = _read(proxy, "grid", "values", "method")
    method = own if method is None else method
    if not issubclass(type(xi), RecordedArray) or method not in ("linear", "nearest") or type(grid) is not tuple:
        return NotImplemented
    bounds_error, fill_value = (getattr(proxy, name) for name in ("bounds_error", "fill_value"))
    about = {"method": method, "bounds_error": bounds_error, "fill_value": fill_value}
    return call(_interpolate.on_grid, (grid, values, xi), about)


def _times(proxy: Any, other: Any) -> Any:
    if not issubclass(type(other), RecordedArray) or unwrap(other).ndim not in (1, 2):
        return NotImplemented
    shape = tuple(map(int, _shape(proxy)))
    if len(shape) != 2 or unwrap(other).shape[0] != shape[1]:
        return NotImplemented
    data, indices, indptr = (getattr(proxy, name) for name in ("data", "indices", "indptr"))
    longest = int(np.diff(unwrap(indptr)).max(initial=0))
    return call(_sparse.rows_times, (data, indices, indptr, other), {"sizes": shape, "longest": longest})


def _shape(proxy: Any) -> Any:
    return getattr(proxy, "_shape")  # noqa: B009


def _ndim(proxy: Any) -> int:
    return len(_shape(proxy))


def _dtype(proxy: Any) -> Any:
    return getattr(proxy, "data").dtype  # noqa: B009


def _interpolators() -> None:
    from scipy import interpolate

    piecewise = (
        interpolate.PPoly,
        interpolate.CubicSpline,
        interpolate.PchipInterpolator,
        interpolate.Akima1DInterpolator,
    )
    _method(interpolate.PPoly.__call__, piecewise, _piecewise)
    _method(interpolate.interp1d.__call__, (interpolate.interp1d,), _on_line)
    _method(interpolate.RegularGridInterpolator.__call__, (interpolate.RegularGridInterpolator,), _on_grid)


def _matrices() -> None:
    from scipy import sparse

    kinds = (sparse.csr_array, sparse.csr_matrix)
    for function in (sparse.csr_array.__matmul__, sparse.csr_array.dot, sparse.csr_matrix.__mul__):
        _method(function, kinds, _times)
    for name, made in (("shape", _shape), ("ndim", _ndim), ("dtype", _dtype)):
        for found in {getattr(kind, name) for kind in kinds}:
            if isinstance(found, property):
                _method(found.fget, kinds, made)


OBJECTS = {
    "scipy.interpolate": "calls of CubicSpline, PchipInterpolator, Akima1DInterpolator and PPoly (derivatives and "
    "periodic ones too), of interp1d of kind linear with one column, and of RegularGridInterpolator by the methods "
    "linear and nearest",
    "scipy.spatial": "`query` and `query_ball_point` of a cKDTree or KDTree that the call makes",
    "scipy.sparse": "products of a csr_array or csr_matrix and a vector or matrix, by `@`, `dot` and `*`, where its "
    "rows have lengths that do not differ much; its `shape`, `ndim` and `dtype`",
}
"""Objects of SciPy's that recorded code may use, in words for the documents."""

LATE.update({"scipy.interpolate": _interpolators, "scipy.sparse": _matrices})


def _public_name(kind: type) -> str:
    """The name under which users find a class of SciPy's that is known; else ""."""
    home: Any = getattr(kind, "__module__", None)
    if not (issubclass(type(home), str) and home.startswith("scipy.")):
        return ""
    for name in METHODS:
        module, _, own = name.rpartition(".")
        if own == kind.__name__ and getattr(sys.modules.get(module), own, None) is kind:
            return name
    return ""


def _contents(value: Any) -> list[Any]:
    """Nodes of the present contents of recorded arrays."""
    return [each.node() for each in leaves(value, Wrapper) if issubclass(type(each), RecordedArray)]


class DerivedObject(StandIn):
    """Such an object. Its methods and attributes are operations on the arguments that it was made of."""

    __slots__ = ("_args", "_kwargs", "_made_of", "_methods")

    def __init__(self, recording: Recording, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._recording_ = recording
        self._methods = METHODS[_public_name(kind)].split()
        self._args, self._kwargs = args, kwargs
        self._made_of = _contents((args, kwargs))
        self._plain_ = on_behalf(kind, unwrap(args), unwrap(kwargs))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._plain_, name)
        if name in self._methods:
            return lambda *args, **kwargs: self._ask(name, args, kwargs)
        if callable(value):
            self._recording_.break_("call.opaque", f"{type(self._plain_).__qualname__}.{name}")
            return value
        return self._written(Question(type(self._plain_), name, False, tuple(self._kwargs), ()), (), {}, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ask("__call__", args, kwargs)

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = on_behalf(getattr(self._plain_, name), unwrap(args), unwrap(kwargs))
        question = Question(type(self._plain_), name, True, tuple(self._kwargs), tuple(kwargs))
        return self._written(question, args, kwargs, result)

    def _written(self, question: Question, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        recording = self._recording_
        if recording.active and _contents((self._args, self._kwargs)) != self._made_of:
            # a tree of points looks at the memory that it was given, a spline does not
            recording.break_("call.opaque", f"{type(self._plain_).__qualname__} of an array that has changed since")
        bound = {"made": [*self._args, *self._kwargs.values()], "asked": [*args, *kwargs.values()]}
        return recording.write_down(lambda: record_rule(recording, answer(question), (), bound, result), result)


CONSTRUCTORS.append((lambda kind: bool(_public_name(kind)), DerivedObject))
