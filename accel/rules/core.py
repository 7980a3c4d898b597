"""The engine's own operations: inputs, reading and writing views, casts, and truths that replays check.

Each computes the same twice: on NumPy, for recording and folding, and on JAX. accel.rules.opcodes says what each is.
Those with index arrays are in `gathers.py`, those on selections in `selections.py`.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.ir.views import Extent
from accel.rules.columns import Reads, Rounding
from accel.rules.derivatives import derived_from
from accel.rules.lowering import Array
from accel.rules.rule import own_rule

LOOP_WORK = 1e6
"""Work that a loop by data counts as: its iterations are computed only where they are needed. Guess."""

IS_X86 = platform.machine() in ("x86_64", "AMD64")


def _never(*args: object) -> Any:
    raise AssertionError("an input has no computation")


def _cast_numpy(x: NDArray[Any] | float, dtype: np.dtype[Any]) -> Any:
    return np.asarray(x).astype(dtype)[()] if np.ndim(x) == 0 else np.asarray(x).astype(dtype)


def cast(x: Any, dtype: Any) -> Any:
    """`x` as dtype, as NumPy's astype casts where `fits`; complex to real drops the imaginary part."""
    from jax import lax
    from jax import numpy as jnp

    if type(x) is int:  # JAX takes none beyond int64
        with np.errstate(all="ignore"):
            x = np.asarray(x).astype(dtype)
    x = jnp.asarray(x)
    if x.dtype == dtype:
        return x
    # the imaginary part is dropped, but for the truth of a complex number, which regards both parts
    if x.dtype.kind == "c" and np.dtype(dtype).kind not in "cb":
        x = x.real
    if x.dtype.kind == "c" and np.dtype(dtype).kind == "b":
        return x != jnp.zeros((), x.dtype)
    if x.dtype.kind == "b" and np.dtype(dtype).kind in "fc":
        # XLA turns the product with a converted truth into a choice, and 0 * NaN into 0
        return lax.select(x, jnp.ones(x.shape, dtype), jnp.zeros(x.shape, dtype))
    if x.dtype.kind == "f" and np.dtype(dtype).kind in "iu":
        x = x.astype(cast_through(dtype))
    if x.dtype == np.float64 and np.dtype(dtype) == np.float16:
        return derived_from(_to_odd(x).astype(np.float32).astype(dtype), x.astype(dtype))
    return x.astype(dtype)


def cast_through(dtype: Any) -> Any:
    """The integer dtype to which NumPy casts floats first, on their way to the integer `dtype`.

    C casts to an `int` on x86-64, and cuts that off: 300.0 is 44 as int8. On other processors only what fits is sure.
    """
    return np.dtype(np.int32) if IS_X86 and np.dtype(dtype).itemsize < 4 else np.dtype(dtype)


def _to_odd(x: Array) -> Any:
    """float64 numbers that float32 holds exactly and that round to the same float16: their digits are rounded to odd.

    XLA on the CPU casts by way of float32, which would round to even twice.
    """
    from jax import lax

    rest = np.int64(2**29 - 1)
    bits = lax.bitcast_convert_type(x, np.int64)
    sticky = ((bits & rest) != 0).astype(np.int64) << 29
    return lax.bitcast_convert_type((bits & ~rest) | sticky, np.float64)


def in_common_dtype(*arrays: Any) -> list[Any]:
    """Arrays in the dtype that holds all of them."""
    dtype = np.result_type(*(array.dtype for array in arrays))
    return [cast(array, dtype) for array in arrays]


def _write_numpy(base: object, step: Any, value: object) -> Any:
    return step.write(base, value)


def _write(base: object, step: Any, value: object) -> Any:
    return step.write(base, value)


def _select_numpy(condition: Any, value: Any, base: Any) -> Any:
    return np.where(condition, np.asarray(value).astype(base.dtype), base)


def _select(condition: Array, value: Array | float, base: Array) -> Any:
    from accel.rules.lowering import jnp, where

    return where(jnp.asarray(condition), cast(value, base.dtype), base)


def _selected_sides(condition: Any, value: Any, base: Any) -> Any:
    from accel.rules.lowering import jnp

    return jnp.asarray(condition), ~jnp.asarray(condition)


def every(truths: Any) -> Any:
    """Whether all of them hold. Truths about plain numbers are a plain bool; works on NumPy and JAX too."""
    return truths if isinstance(truths, bool) else truths.all()


def all_finite(**bound: Any) -> Any:
    """Whether no floating-point argument, nor one in a tuple of them, has an infinity or NaN; on NumPy and JAX."""
    found: Any = True
    for value in bound.values():
        for part in value if isinstance(value, tuple) else (value,):
            if hasattr(part, "dtype") and part.dtype.kind in "fc":
                found = found & (abs(part) < np.inf).all()
    return found


def fits(x: Array | NDArray[Any] | float, dtype: np.dtype[Any]) -> Any:
    """Whether every element of `x`, or its real part, can be cast to the integer `dtype`; works on NumPy and JAX."""
    x = x.real if np.iscomplexobj(x) else x
    info = np.iinfo(dtype)
    # the largest float below the bound: the bound itself may round up to a value that does not fit
    low, high = np.float64(info.min), np.nextafter(np.float64(info.max) + 1.0, 0.0)
    # casts cut off fractions, so -128.9 fits into int8; at 64 bits, `low - 1.0` would be `low` itself
    return ((x > low - 1.0 if info.bits < 64 else x >= low) & (x <= high)).all()


def selected_fit(x: Any, mask: Any, dtype: np.dtype[Any]) -> Any:
    """As `fits`, of the rows that the mask selects."""
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return fits(namespace_of(x).where(mask, x, 0), dtype)


def in_bounds(index: Array | NDArray[Any] | float, size: int) -> Any:
    """Whether every index is within an axis of `size`; works on NumPy, JAX and Python's numbers."""
    index = index if hasattr(index, "dtype") else np.asarray(index)
    return is_within(index, size).all()


def is_within(index: Any, size: int) -> Any:
    """Whether each index is within an axis of `size`. Compared in 64 bits: a small dtype cannot hold every size."""
    if index.dtype.kind == "u":
        return index.astype(np.uint64) < np.uint64(size)
    index = index.astype(np.int64)
    return (index >= -size) & (index < size)


def counted(mask: Any, **about: Any) -> Any:
    """Number of true elements of a traced `mask`, as int64.

    Counted in 32 bits where those suffice: XLA adds twice as many of these at once.
    """
    # the count cannot be larger than the size
    small = mask.size <= np.iinfo(np.int32).max
    return mask.sum(dtype=np.int32 if small else np.int64, **about).astype(np.int64)


def _strip(value: Array | NDArray[Any], shape: tuple[int, ...]) -> Any:
    """Assignment drops leading axes of length 1 that what is assigned to does not have."""
    extra = value.ndim - len(shape)
    return value.reshape(value.shape[extra:]) if extra > 0 else value


def broadcast_to_assign(value: NDArray[Any] | np.generic | complex, shape: tuple[int, ...]) -> Any:
    """`value` as NumPy assigns it to an array of `shape`."""
    return np.broadcast_to(_strip(np.asarray(value), shape), shape)


def _broadcast(value: Array, shape: tuple[int, ...]) -> Any:
    from jax import numpy as jnp

    return jnp.broadcast_to(_strip(jnp.asarray(value), shape), shape)


def _stack_numpy(nested: list[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    return np.array(nested, dtype=dtype)


def _stack(nested: list[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    from jax import numpy as jnp

    parts = [cast(part, dtype).reshape(-1) for part in leaves(nested)]
    return (jnp.concatenate(parts) if parts else jnp.zeros(0, dtype)).reshape(shape)


def leaves(nested: object) -> Iterator[Any]:
    """Yield what nested lists and tuples hold, in order."""
    if isinstance(nested, (list, tuple)):
        for part in nested:
            yield from leaves(part)
    else:
        yield nested


def _full_numpy(shape: tuple[int, ...], value: float, dtype: np.dtype[Any]) -> Any:
    return np.full(shape, value, dtype)


def _full(shape: tuple[int, ...], value: Array | np.generic | float, dtype: np.dtype[Any]) -> Any:
    from jax import numpy as jnp

    return jnp.broadcast_to(cast(value, dtype), shape)


def _unravelled(shape: tuple[int, ...], axis: int) -> Any:
    """The index along `axis` of each element of an array of `shape`, flat."""
    return np.indices(shape)[axis].reshape(-1)


def _unravelled_lowered(shape: tuple[int, ...], axis: int) -> Any:
    from jax import lax
    from jax import numpy as jnp

    return lax.broadcasted_iota(jnp.int64, shape, axis).reshape(-1)


def _choice_numpy(value: object, cases: tuple[tuple[Any, ...], ...]) -> int:
    return next((place for place, case in enumerate(cases) if value in case), len(cases) - 1)


def _choice(value: Array, cases: tuple[tuple[Any, ...], ...]) -> Any:
    from jax import numpy as jnp

    place = jnp.int64(len(cases) - 1)
    for each, case in enumerate(cases[:-1]):
        is_here = jnp.isin(value.reshape(()), np.array(case))
        place = jnp.where(is_here, each, place)
    return place


def _phi(choice: Array, sides: list[Any], form: tuple[tuple[int, ...], np.dtype[Any]]) -> Any:
    """Choose among values that are all there. `None` stands for any value."""
    from jax import lax

    shape, dtype = form
    values = [any_value(form) if side is None else cast(side, dtype).reshape(shape) for side in sides]
    return lax.select_n(cast(choice, np.int32), *values)


def agree(values: Iterable[Any], expected: Iterable[Any]) -> Any:
    """Whether values without axes are the expected ones, as replays compare outcomes; works on NumPy and JAX."""
    truth: Any = True
    for value, wanted in zip(values, expected, strict=True):
        truth = truth & (namespace_of(value).asarray(value).astype(np.float64).reshape(()) == float(wanted))
    return truth


def any_value(form: tuple[tuple[int, ...], np.dtype[Any]]) -> Any:
    """A stand-in for a value that nobody reads."""
    from jax import numpy as jnp

    return jnp.zeros(*form)


def namespace_of(x: object) -> Any:
    """numpy for its own arrays and Python's numbers, else jax.numpy."""
    if isinstance(x, (np.ndarray, np.generic, int, float, complex)):
        return np
    from jax import numpy as jnp

    return jnp


def _read_at(base: Any, extent: Extent, starts: tuple[Any, ...]) -> Any:
    return extent.read(base, starts)


def _write_at(base: Any, extent: Extent, value: Any, starts: tuple[Any, ...]) -> Any:
    return extent.write(base, value, starts)


def _is_slice(start: Any, stop: Any, length: int, size: int) -> Any:
    """Whether `start:stop` is a slice of this length within an axis of `size`, counted from its beginning."""
    low, high = (x if isinstance(x, int) else x.astype(np.int64) for x in (start, stop))
    return (low >= 0) & (low <= size - length) & (high - low == length)


def _counter(value: float) -> Any:
    from jax import numpy as jnp

    return jnp.asarray(value, np.asarray(value).dtype)


def _all_finite(x: Any) -> Any:
    return namespace_of(x).isfinite(x).all()


def _grid_numpy(grid: Any, key: object, part: int | None = None) -> Any:
    made = grid[key]
    return made if part is None else made[part]


def _grid(grid: object, key: object, part: int | None = None) -> Any:
    from jax import numpy as jnp

    return jnp.asarray(_grid_numpy(grid, key, part))


# -- the operations: accel.rules.opcodes says what each is ------------------------------------------------------------


INPUT = own_rule("input", _never, rounding=Rounding.FREE)
READ = own_rule("read", lambda base, step: step.read(base), lambda base, step: step.read(base))
WRITE = own_rule("write", _write_numpy, _write)
READ_AT = own_rule("read_at", _read_at, _read_at)
WRITE_AT = own_rule("write_at", _write_at, _write_at)
CAST = own_rule("cast", _cast_numpy, cast)
SELECT = own_rule("select", _select_numpy, _select, reads=Reads((1, 2), _selected_sides))
FITS = own_rule("fits", fits, fits)
SELECTED_FIT = own_rule("selected_fit", selected_fit, selected_fit)
IN_BOUNDS = own_rule("in_bounds", in_bounds, in_bounds)
IS_SLICE = own_rule("is_slice", _is_slice, _is_slice)
TRUTH = own_rule("truth", lambda x: bool(x), lambda x: x.reshape(()) != 0)
PICK = own_rule("pick", lambda parts, i: parts[i], lambda parts, i: parts[i])
CHOICE = own_rule("choice", _choice_numpy, _choice)
PHI = own_rule("phi", lambda choice, sides, form: sides[choice], _phi)
COUNTER = own_rule("counter", lambda value: value, _counter)
AGREE = own_rule("agree", lambda values, expected: np.bool_(agree(values, expected)), agree)
# computed by accel.compiler.lower.looping
LOOP = own_rule("loop", _never, rounding=Rounding.FREE, jumps=True, work=LOOP_WORK)
SCALAR = own_rule("scalar", lambda x: x, lambda x: x)
FULL = own_rule("full", _full_numpy, _full, by_shape=True)
STACK = own_rule("stack", _stack_numpy, _stack)
BROADCAST = own_rule("broadcast", broadcast_to_assign, _broadcast)
RESHAPE = own_rule("reshape", lambda x, shape: np.reshape(x, shape), lambda x, shape: x.reshape(shape))
UNRAVELLED = own_rule("unravelled", _unravelled, _unravelled_lowered)
COUNT = own_rule("count", lambda mask: int(np.count_nonzero(mask)), counted)
BOTH = own_rule("both", lambda mask, other: mask & other, lambda mask, other: mask & other)
ANY = own_rule("any", lambda mask: mask.any(), lambda mask: mask.any())
CONVERT = own_rule("convert", lambda x, kind: kind(x), lambda x, kind: cast(x, np.dtype(kind)))
ALL_FINITE = own_rule("all_finite", _all_finite, _all_finite, jumps=False)
GRID = own_rule("grid", _grid_numpy, _grid)
