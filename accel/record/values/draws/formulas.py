"""Draws whose parameters or arrays the program computes: a draw before launch, then NumPy's formula or a gather.

NumPy draws each of these numbers as a standard one, and scales it. For each recorded draw, a twin of the generator
tries which formula this version of NumPy has, and whether a standard draw leaves the generator in the same state.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accel.record.state.recording import Recording
from accel.record.state.wrapper import isinstance_wrapper, unwrap
from accel.record.values.arrays import RecordedArray, RecordedScalar, force_bool
from accel.record.values.calls.call import call
from accel.record.values.draws.early import is_same_array
from accel.record.values.draws.generators import KINDS, is_same_state
from accel.record.values.numbers import convert
from accel.rules.rule import Unsupported


def twin_of(generator: Any, state: Any) -> Any:
    """A generator of the same kind, in a state that this one was in."""
    kind = type(generator)
    if kind is random.Random:
        made: Any = random.Random(0)
    else:
        bits = generator.bit_generator if kind is np.random.Generator else generator._bit_generator
        made = kind(type(bits)(0))
    KINDS[kind].put_back(made, state)
    return made


def tried(generator: Any, state: Any, draw: Callable[[Any], Any]) -> Any:
    """The result of another draw in the place of a generator's latest; None if the streams part.

    state: the generator's before that draw.
    """
    twin = twin_of(generator, state)
    made = draw(twin)
    get = KINDS[type(generator)].state
    return made if is_same_state(get(twin), get(generator)) else None


class Formula(NamedTuple):
    """NumPy's formula for a draw from a standard one.

    method: of the standard draw, `standard` its parameters. parameters: names and defaults, in the order in which
    `apply` takes them behind the standard draw. holds: what NumPy or Python asks of the parameters, else it raises.
    """

    method: str
    standard: tuple[float, ...]
    parameters: dict[str, float]
    apply: Callable[..., Any]
    holds: Callable[..., Any]


def _is_scale(scale: Any) -> Any:
    """NumPy takes NaN, but no -0.0."""
    return ~_call(np.signbit, scale) | _call(np.isnan, scale)


def _is_range(low: Any, high: Any) -> Any:
    return _call(np.isfinite, high - low) & ~_call(np.signbit, high - low)


def _call(function: Any, value: Any) -> Any:
    return call(function, (value,), {})


def _location_scale(method: str) -> Formula:
    parameters = {"loc": 0.0, "scale": 1.0}
    return Formula(method, (0.0, 1.0), parameters, lambda z, loc, scale: loc + scale * z, lambda _, s: _is_scale(s))


def _scale(method: str) -> Formula:
    return Formula(method, (1.0,), {"scale": 1.0}, lambda z, scale: scale * z, _is_scale)


FORMULAS: dict[str, Formula] = {
    **{method: _location_scale(method) for method in ("normal", "laplace", "gumbel", "logistic")},
    **{method: _scale(method) for method in ("exponential", "rayleigh")},
    "lognormal": Formula(
        "normal",
        (0.0, 1.0),
        {"mean": 0.0, "sigma": 1.0},
        lambda z, mean, sigma: _call(np.exp, mean + sigma * z),
        lambda _, sigma: _is_scale(sigma),
    ),
    "uniform": Formula(
        "uniform", (0.0, 1.0), {"low": 0.0, "high": 1.0}, lambda z, low, high: low + (high - low) * z, _is_range
    ),
}
"""By the method's name, for `np.random.Generator`."""

LEGACY = {**FORMULAS, "uniform": FORMULAS["uniform"]._replace(holds=lambda low, high: _call(np.isfinite, high - low))}
"""For `np.random.RandomState`, which takes ranges below zero."""

CLOSE = 1e-9
"""Maximum difference of the formula's value from NumPy's, relative to its terms."""


class Standard(NamedTuple):
    """A standard draw to be written down: its method and arguments, and what it has given."""

    method: str
    args: tuple[Any, ...]
    made: Any


def standard_of(formula: Formula, generator: Any, state: Any, result: Any, size: Any) -> Standard:
    """The standard draw that can stand for a draw which has given `result`. Raises Unsupported.

    state: the generator's before that draw. size: the argument of that name.
    """
    shape = result.shape if isinstance(result, np.ndarray) else size
    args = (*formula.standard, shape)
    made = tried(generator, state, lambda twin: getattr(twin, formula.method)(*args))
    if made is None or np.shape(made) != np.shape(result):
        raise Unsupported("effect.random", "a standard draw would leave the generator in another state")
    return Standard(formula.method, args, made)


def applied(recording: Recording, formula: Formula, bound: dict[str, Any], z: Any, result: Any) -> Any:
    """The node of `result`, computed from a standard draw by the formula. Raises Unsupported.

    bound: the arguments of the call by name. z: the recorded standard draw.
    """
    given = [_double(recording, bound.get(name, default)) for name, default in formula.parameters.items()]
    with np.errstate(all="ignore"):
        holds = formula.holds(*given)
        if isinstance_wrapper(holds):
            truth = holds.all() if issubclass(type(holds), RecordedArray) else holds
            if not unwrap(truth):  # else the path would take what NumPy does not
                raise Unsupported("effect.random", "this version of NumPy takes other parameters")
            force_bool(truth, True)
        made = formula.apply(z, *given)
        terms = [_largest(unwrap(each)) for each in (*given, result)]
        close = np.allclose(unwrap(made), result, rtol=CLOSE, atol=CLOSE * max(terms), equal_nan=True)
    if not close:
        raise Unsupported("effect.random", "this version of NumPy draws by another formula")
    if not isinstance(result, np.ndarray):
        made = convert(recording, type(result), made)
    if not isinstance_wrapper(made) or np.shape(unwrap(made)) != np.shape(result):
        raise Unsupported("effect.random", "it gives an array of another shape")
    return made.node()


def _largest(value: Any) -> float:
    magnitude = np.abs(np.asarray(value))
    return float(np.max(magnitude, initial=0.0, where=np.isfinite(magnitude)))


def _double(recording: Recording, value: Any) -> Any:
    """A parameter as the C code of NumPy takes it."""
    if not isinstance_wrapper(value):
        if isinstance(value, (int, float, np.number)):
            return float(value)
        raise Unsupported("effect.random", f"a parameter that is a {type(value).__name__}")
    if issubclass(type(value), RecordedScalar):
        return convert(recording, float, value)
    if issubclass(type(value), RecordedArray):
        return value.astype(np.float64)
    raise Unsupported("effect.random", f"a parameter that is a selection or a {type(unwrap(value)).__name__}")


def axis_of(axis: Any, array: Any) -> int:
    """The axis along which a draw takes elements, counted from the first."""
    if type(axis) is not int or not -array.ndim <= axis < array.ndim:
        raise Unsupported("effect.random", "an array without that axis")
    return int(axis % array.ndim)


def indices_of(
    generator: Any, state: Any, draw: Callable[[Any], Any], array: np.ndarray[Any, Any], axis: int, result: Any
) -> Any:
    """The indices whose draw can stand for a draw of an array's elements that gave `result`. Raises Unsupported.

    NumPy draws the order or the choice of elements without looking at them. A twin of the generator tries whether this
    version of NumPy draws the indices alone from the same numbers.
    state: the generator's before that draw. draw: draws indices from a generator.
    """
    indices = tried(generator, state, draw)
    if indices is None or not is_same_array(np.asarray(np.take(array, indices, axis=axis)), np.asarray(result)):
        raise Unsupported("effect.random", "indices alone would leave the generator in another state")
    return indices


def taken(array: Any, indices: Any, axis: int) -> Any:
    """The elements of a recorded array at recorded indices."""
    return call(np.take, (array, indices), {"axis": axis})
