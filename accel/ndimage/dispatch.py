"""Running a lowering from outside a trace: compiled once per set of static parameters.

A caller's own trace inlines the lowering instead; then there is nothing to compile here.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import jax
import numpy as np

from accel.platform import tuning

MOST_PROGRAMS = 1024
compiling = True  # False, for tests of thousands of tiny arrays, runs operation by operation
_programs: OrderedDict[Hashable, Callable[..., Any]] = OrderedDict()


def is_traced(*values: object) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(values))


def is_jax(*values: object) -> bool:
    """Whether any value, or any entry of a sequence, is a JAX array."""
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(values))


def frozen(value: object) -> Hashable:
    """A key that is equal for equal parameters, and never for 1, 1.0 and True."""
    if isinstance(value, np.ndarray | jax.Array):
        array = np.asarray(value)
        return ("array", array.shape, array.dtype.str, array.tobytes())
    if isinstance(value, list | tuple):
        return (type(value), *map(frozen, value))
    if isinstance(value, dict):
        return ("dict", *((name, frozen(entry)) for name, entry in sorted(value.items())))
    if isinstance(value, float | complex):
        return (type(value), repr(value))  # tells -0.0 from 0.0 and finds nan equal to itself
    return (type(value), value)


def _jitted(function: Callable[..., Any], static: dict[str, Any]) -> Callable[..., Any]:
    tuning.keep_freed()
    return jax.jit(lambda *arrays: function(*arrays, **static))


def compiled(function: Callable[..., Any], static: dict[str, Any]) -> Callable[..., Any]:
    """function(*arrays, **static) under `jax.jit`, from a cache of the `MOST_PROGRAMS` last used.

    A parameter without a stable hash is compiled afresh.
    """
    if not compiling:
        return lambda *arrays: function(*jax.tree_util.tree_map(jax.numpy.asarray, arrays), **static)
    try:
        key: Hashable = (function, frozen(static))
        program = _programs.pop(key, None)
    except TypeError:
        return _jitted(function, static)
    if program is None:
        program = _jitted(function, static)
    _programs[key] = program
    if len(_programs) > MOST_PROGRAMS:
        _programs.popitem(last=False)
    return program
