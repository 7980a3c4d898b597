"""Elements: what a function of single numbers gets where it is recorded for all elements of an array at once.

Each stands for one number as Python would have it, a float or a NumPy number, and knows the node of the whole array.
Operations are Python's where Python computes them for each element, so that what they raise is an outcome.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.ir.tape import Node
from accel.record.state.recording import Recording
from accel.record.state.wrapper import StandIn, isinstance_wrapper, unwrap
from accel.record.values.arrays import as_template
from accel.record.values.operands import BINARY, COMPARE, UNARY, Operations, ufunc_kwargs
from accel.rules import scalars
from accel.rules.rule import Unsupported
from accel.rules.tables import ufuncs

KINDS = (float, bool, np.float64, np.bool_)
"""Types of elements: Python's integers have no bounds, and complex numbers only come of roots."""

_ARITHMETIC: Operations = {name: BINARY[name] for name in "add sub mul truediv floordiv mod pow".split()}
_OTHERS: Operations = {
    **COMPARE,
    **{name: UNARY[name] for name in ("neg", "abs")},
    "pos": (operator.pos, np.positive),
}

_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "fabs": "absolute"}
MATH: dict[Callable[..., Any], np.ufunc] = {
    getattr(math, name): getattr(np, _NAMES.get(name, name))
    for name in """sqrt exp log log10 log2 expm1 sin cos tan asin acos atan atan2 sinh cosh tanh fabs radians degrees
    isnan isinf isfinite copysign""".split()
}
"""Functions of Python's for single numbers, with what NumPy has for arrays."""


class Elements(StandIn):
    """One element, as far as the program's function can see. _plain_: the first one; node, array: all of them."""

    __slots__ = ("array", "node")

    def __init__(self, recording: Recording, plain: Any, node: Node, array: NDArray[Any]) -> None:
        self._recording_, self._plain_, self.node, self.array = recording, plain, node, array

    def as_operand(self) -> Any:
        raise Unsupported("call.opaque", "numpy.vectorize of a function that NumPy gives an element as an array")

    def __bool__(self) -> bool:
        self._recording_.break_("call.opaque", "numpy.vectorize of a function that branches on an element")
        return bool(self._plain_)

    def __float__(self) -> float:
        self._recording_.break_("call.opaque", "numpy.vectorize of a function that needs an element as a float")
        return float(self._plain_)


def operate(function: Callable[..., Any], ufunc: np.ufunc, *operands: Any) -> Any:
    """`function(*operands)` of elements and numbers, as it is for each element."""
    recording = next(each._recording_ for each in operands if type(each) is Elements)
    with np.errstate(all="ignore"):  # NumPy's own call warns
        plain = function(*unwrap(operands))
    return recording.write_down(lambda: _written(recording, function, ufunc, operands, plain), plain)


def _written(
    recording: Recording, function: Callable[..., Any], ufunc: np.ufunc, operands: tuple[Any, ...], plain: Any
) -> Elements:
    """The elements of a result, with a node for the whole array. Raises Unsupported."""
    if type(plain) not in KINDS or any(type(unwrap(each)) not in (*KINDS, int) for each in operands):
        raise Unsupported("call.opaque", f"numpy.vectorize of a function with a {type(plain).__name__} in it")
    template = tuple(each.node if type(each) is Elements else as_template(each) for each in operands)
    arrays = [each.array if type(each) is Elements else unwrap(each) for each in operands]
    with np.errstate(all="ignore"):
        array = np.asarray(ufunc(*arrays))
    if any(isinstance(unwrap(each), np.generic) for each in operands) or isinstance(function, np.ufunc):
        kwargs = ufunc_kwargs(ufunc, tuple(arrays), None)
        node = recording.writer.node(ufuncs.rule_for(ufunc), template, kwargs, array)
    else:
        node = _pythons(recording, function, ufunc, template, arrays, array)
    return Elements(recording, plain, node, array)


def _pythons(
    recording: Recording,
    function: Callable[..., Any],
    ufunc: np.ufunc,
    template: tuple[Any, ...],
    arrays: list[Any],
    array: NDArray[Any],
) -> Node:
    """Python's own operation on each element: where it would raise, replays do not go on."""
    row, writer = scalars.PYTHON[function], recording.writer
    is_whole_power = function is operator.pow and not isinstance(template[1], Node) and template[1] in range(1, 100)
    for check in () if is_whole_power else row.checks:
        used = 1 if len(template) > 1 and check is scalars.FINITE else len(template)
        writer.assume(scalars.each_holds(check), template[:used], tuple(arrays[:used]))
    node = writer.node(scalars.each_of(function, ufunc), template, {}, array)
    if row.after is not None:
        writer.assume(scalars.each_holds(row.after), (node,), (array,))
    return node


def call_with_elements(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a ufunc or a function of `math` with elements among its arguments."""
    ufunc = MATH.get(function) if not isinstance(function, np.ufunc) else function
    if ufunc is None or kwargs or len(args) != ufunc.nin or ufunc.nout != 1:
        recording = next(each._recording_ for each in args if type(each) is Elements)
        name = getattr(function, "__name__", "")
        recording.break_("call.opaque", f"numpy.vectorize of a function that calls {name}")
        return function(*unwrap(args), **unwrap(kwargs))
    return operate(function, ufunc, *args)


def has_elements(args: tuple[Any, ...]) -> bool:
    """Whether there are elements among arguments."""
    return any(type(each) is Elements for each in args)


def is_number(value: object) -> bool:
    """Whether a value from outside may be computed with elements."""
    return type(unwrap(value)) in (int, *KINDS) and (not isinstance_wrapper(value) or type(value) is not Elements)


def _forward(function: Callable[..., Any], ufunc: np.ufunc, *, reflected: bool) -> Callable[..., Any]:
    def method(self: Elements, *others: Any) -> Any:
        if not all(type(each) is Elements or is_number(each) for each in others):
            return NotImplemented
        return operate(function, ufunc, *(*others, self) if reflected else (self, *others))

    return method


for _name, (_function, _ufunc) in {**_ARITHMETIC, **_OTHERS}.items():
    setattr(Elements, f"__{_name}__", _forward(_function, _ufunc, reflected=False))
for _name, (_function, _ufunc) in _ARITHMETIC.items():
    setattr(Elements, f"__r{_name}__", _forward(_function, _ufunc, reflected=True))
