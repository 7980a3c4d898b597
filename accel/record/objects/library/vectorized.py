"""numpy.vectorize: a function that only computes is recorded for all elements at once; NumPy calls it for each.

Its code is looked at first: it must be one expression after another, without branches and effects, so that to run it
once more changes nothing. Then it is followed with elements (accel.record.values.elements).
"""

from __future__ import annotations

import builtins
import dis
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from accel.record.objects.names.namespaces import SubstitutedGlobals, programs_own
from accel.record.objects.proxy import one_per_object
from accel.record.state import inputs
from accel.record.state.on_behalf import on_behalf
from accel.record.state.recording import Recording, current
from accel.record.state.wrapper import StandIn, unwrap
from accel.record.values.arrays import RecordedArray, as_static, wrap
from accel.record.values.elements import MATH, Elements, is_number
from accel.record.values.numbers import TYPE_STAND_INS, TypeStandIn
from accel.rules import core
from accel.rules.rule import Unsupported

RTOL = 1e-12
"""Maximum relative difference between the operations on whole arrays and the function of each element."""

MOST_CALLS = 5
"""Maximum depth of calls that the function makes of others like it. Guess."""

_COMPUTING = tuple(
    """LOAD_FAST LOAD_CONST LOAD_SMALL_INT LOAD_GLOBAL LOAD_ATTR LOAD_METHOD LOAD_DEREF BINARY_OP COMPARE_OP
    UNARY_NEGATIVE CALL PRECALL PUSH_NULL RETURN_VALUE RETURN_CONST STORE_FAST RESUME CACHE NOP COPY_FREE_VARS
    EXTENDED_ARG""".split()
)
"""Prefixes of instructions that only compute."""


def why_not(function: Any, depth: int = 0) -> str:
    """Why a function is not known to compute only, or ""."""
    if not isinstance(function, FunctionType):
        return "that is no Python function"
    if depth > MOST_CALLS or function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return "that calls itself, or takes any number of arguments"
    instructions = list(dis.get_instructions(function.__code__))
    if any(each.opcode in dis.hasjrel or each.opcode in dis.hasjabs for each in instructions):
        return "that branches"
    strange = next((each.opname for each in instructions if not each.opname.startswith(_COMPUTING)), "")
    if strange:
        return f"that does more than compute ({strange})"
    reasons = (_why_not_used(used, depth) for used in _used(function, instructions))
    return next(filter(None, reasons), "")


def _used(function: FunctionType, instructions: list[dis.Instruction]) -> Iterator[Any]:
    """Values that a function reads from outside: of names, and attributes of modules; None for other attributes."""
    namespace = programs_own(function.__globals__)
    value: Any = None
    for each in instructions:
        if each.opname.startswith("LOAD_GLOBAL"):
            value = namespace.get(each.argval, vars(builtins).get(each.argval))
            if not isinstance(value, ModuleType):
                yield value
        elif each.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            value = getattr(value, each.argval, None) if isinstance(value, ModuleType) else None
            yield value
        elif each.opname == "LOAD_DEREF":
            cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
            yield unwrap(cells[each.argval].cell_contents) if each.argval in cells else None
        else:
            value = None


def _why_not_used(used: Any, depth: int) -> str:
    if is_number(used) or used is abs or (isinstance(used, np.ufunc) and used.nout == 1):
        return ""
    if isinstance(used, FunctionType):
        return why_not(used, depth + 1)
    try:
        return "" if used in MATH else f"that uses {getattr(used, '__name__', type(used).__name__)}"
    except TypeError:  # not hashable
        return f"that uses a {type(used).__name__}"


def _is_substituted(function: FunctionType) -> bool:
    return isinstance(function.__globals__, SubstitutedGlobals)


class VectorizedFunction(StandIn):
    """A numpy.vectorize object. follow: its function, as recorded code calls it."""

    __slots__ = ("_follow",)

    def __init__(self, recording: Recording, made: Any, follow: Callable[..., Any]) -> None:
        self._recording_, self._plain_, self._follow = recording, made, follow

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording, made = self._recording_, self._plain_
        if recording.active:
            why = self._why_not(args, kwargs)
            if why:
                recording.break_("call.opaque", f"numpy.vectorize of a function {why}", touched=True)
        result = on_behalf(made, unwrap(args), unwrap(kwargs))
        if not recording.active:
            return result
        traced = self._follow(*(_elements(each) for each in args))
        return recording.write_down(lambda: _written(recording, traced, result), result)

    def _why_not(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        made = self._plain_
        if kwargs or made.signature is not None or made.excluded or made.cache:
            return "with keywords, a signature, excluded arguments or a cache"
        arrays = [each for each in args if issubclass(type(each), RecordedArray)]
        if not arrays or any(each._plain_.dtype != float or not each._plain_.size for each in arrays):
            return "of other than float64 arrays"
        if not all(issubclass(type(each), RecordedArray) or is_number(each) for each in args):
            return "of other than arrays and numbers"
        return why_not(made.pyfunc)


def _elements(value: Any) -> Any:
    """An argument as the function gets it: NumPy makes Python's numbers of what an array holds."""
    if not issubclass(type(value), RecordedArray):
        return value
    plain = value._plain_
    return Elements(value._recording_, plain.flat[0].item(), value.node(), plain)


def _written(recording: Recording, traced: Any, result: Any) -> Any:
    """Give NumPy's result the node that was traced. Raises Unsupported where the two differ."""
    if type(traced) is not Elements or type(result) is not np.ndarray or result.dtype.kind not in "fb":
        raise Unsupported("call.opaque", "numpy.vectorize of a function whose results are no floats or truths")
    if traced.array.shape != result.shape or not np.allclose(
        traced.array.astype(result.dtype), result, rtol=max(RTOL, _epsilon(result.dtype)), atol=0.0, equal_nan=True
    ):
        raise Unsupported("call.opaque", "numpy.vectorize of a function that gives an array something else")
    node = traced.node
    if node.dtype != result.dtype:
        node = recording.writer.node(core.CAST, (node, result.dtype), {}, result)
    return wrap(recording, result, node)


def _epsilon(dtype: np.dtype[Any]) -> float:
    return 4 * float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0


def options(made: Any) -> tuple[Any, ...]:
    """The attributes of a numpy.vectorize object that a program may change."""
    return made.otypes, made.signature, made.cache, frozenset(made.excluded)


def has_options(made: Any, other: Any, known: tuple[Any, ...]) -> bool:
    """Whether it is this object, as it was."""
    return made is other and options(made) == known


def enter_vectorized(recording: Recording, value: Any, slot: int) -> tuple[inputs.Check, Any]:
    """Guard and stand-in of a numpy.vectorize object from outside: its function is entered."""
    fetch, name = inputs.attribute(slot, "pyfunc"), f"{recording.inputs.name(slot)}.pyfunc"
    function = recording.enter(value.pyfunc, ("attr", slot, "pyfunc"), name, fetch)
    made = VectorizedFunction(recording, value, function)
    check = inputs.satisfies(has_options, value, options(value))
    return check, one_per_object(recording, value, lambda *_: made)


class VectorizeType(TypeStandIn):
    """numpy.vectorize itself."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = current()
        function: Any = args[0] if args else None
        if recording is None or not recording.active:
            return self._plain_(*unwrap(args), **unwrap(kwargs))
        plain = unwrap(function)
        if not isinstance(plain, FunctionType) or (_is_substituted(plain) and plain.__closure__):
            recording.break_(
                "call.opaque", "numpy.vectorize of a function that accel cannot run by itself", touched=True
            )
            return self._plain_(*unwrap(args), **unwrap(kwargs))
        if _is_substituted(plain):
            # made by the recorded call: for single numbers it runs as the program would have made it
            plain = FunctionType(plain.__code__, programs_own(plain.__globals__), plain.__name__, plain.__defaults__)
        options = as_static(tuple(args[1:])), as_static(kwargs)
        return VectorizedFunction(recording, self._plain_(plain, *options[0], **options[1]), function)


TYPE_STAND_INS[np.vectorize] = VectorizeType(np.vectorize)
