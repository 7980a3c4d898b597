"""View steps: how a view is read from, and written through to, the array that it looks at.

Each step works alike on NumPy and on JAX arrays. `write` returns a new base; nothing is changed in place.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jax import Array


@dataclass(frozen=True)
class Index:
    """Basic indexing: integers, slices, None and Ellipsis. key: always a tuple, its integers Python's own.

    NumPy's small integers would wrap in what is computed from them.
    """

    key: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", tuple(map(_with_own_integers, self.key)))

    def read(self, base: Any) -> Any:
        return base[self.key]

    def write(self, base: object, value: object) -> Any:
        return _set_item(base, self.key, value)

    # The dataclass would hash the key itself.
    def __hash__(self) -> int:  # slices are not hashable before Python 3.12
        return hash(tuple((s.start, s.stop, s.step) if isinstance(s, slice) else s for s in self.key))


def _with_own_integers(entry: object) -> Any:
    if isinstance(entry, slice):
        return slice(*(_with_own_integers(bound) for bound in (entry.start, entry.stop, entry.step)))
    return operator.index(entry) if hasattr(entry, "__index__") else entry


@dataclass(frozen=True)
class Transpose:
    """axes: as in numpy.transpose, all given and not negative."""

    axes: tuple[int, ...]

    def read(self, base: Any) -> Any:
        return base.transpose(self.axes)

    # A transposed or reshaped view shows all of the array: what is written through it is all of the new one.
    def write(self, base: object, value: Any) -> Any:
        return value.transpose(tuple(int(axis) for axis in np.argsort(self.axes)))


@dataclass(frozen=True)
class Reshape:
    """shape: the view's; base: the array's that it looks at."""

    shape: tuple[int, ...]
    base: tuple[int, ...]

    def read(self, base: Any) -> Any:
        return base.reshape(self.shape)

    def write(self, base: Any, value: Any) -> Any:
        return value.reshape(self.base)


@dataclass(frozen=True)
class Broadcast:
    """A view of the given shape: read-only, or as writeable as np.broadcast_arrays makes one (`by_arrays`)."""

    shape: tuple[int, ...]
    by_arrays: bool = False

    def read(self, base: Any) -> Any:
        if isinstance(base, np.ndarray):
            view = np.broadcast_to(base, self.shape)
            return np.broadcast_arrays(base, view)[0] if self.by_arrays else view
        from jax import numpy as jnp

        return jnp.broadcast_to(base, self.shape)

    def write(self, base: object, value: object) -> Any:
        raise TypeError("a broadcast view is read-only")


@dataclass(frozen=True)
class ComplexPart:
    """The real or imaginary part of a complex array."""

    name: str

    def read(self, base: object) -> Any:
        return getattr(base, self.name)

    def write(self, base: Any, value: Any) -> Any:
        if isinstance(base, np.ndarray):
            result = base.copy()
            setattr(result, self.name, value)
            return result
        from jax import lax

        return lax.complex(base.real, value) if self.name == "imag" else lax.complex(value, base.imag)


@dataclass(frozen=True)
class Diagonal:
    """A read-only view of the main or another diagonal."""

    offset: int
    axis1: int
    axis2: int

    def read(self, base: Any) -> Any:
        if isinstance(base, np.ndarray):
            return base.diagonal(self.offset, self.axis1, self.axis2)
        # every so many elements of the flattened rows: a slice, where jax.numpy gathers
        last = self.axis1 % base.ndim, self.axis2 % base.ndim
        base = base.transpose(*(axis for axis in range(base.ndim) if axis not in last), *last)
        base = base[..., max(-self.offset, 0) :, max(self.offset, 0) :]
        rows, width = min(base.shape[-2:]), base.shape[-1]
        flat = base[..., :rows, :].reshape(*base.shape[:-2], rows * width)
        return flat[..., : max(rows - 1, 0) * (width + 1) + 1 : width + 1]

    def write(self, base: object, value: object) -> Any:
        raise TypeError("a diagonal is read-only")


@dataclass(frozen=True)
class StridedElements:
    """Elements at regular distances, as numpy.lib.stride_tricks.as_strided sees them.

    strides: for each axis of `shape` the distance between its elements, counted in elements of the array in C order,
    from the first one on.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def last(self) -> int:
        """The largest place."""
        return sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))

    def read(self, base: Any) -> Any:
        if isinstance(base, np.ndarray) and base.flags.c_contiguous:
            return self._seen(base)
        return base.reshape(-1)[self._places(base)]

    def write(self, base: Any, value: Any) -> Any:
        if isinstance(base, np.ndarray):
            result = base.copy(order="C")
            self._seen(result)[...] = value
            return result
        flat = base.reshape(-1).at[self._places(base)]
        return flat.set(value, unique_indices=True, mode="promise_in_bounds").reshape(base.shape)

    def _seen(self, base: Any) -> Any:
        strides = [stride * base.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(base, self.shape, strides)

    def _places(self, base: Any) -> Any:
        """Computed where they are needed: they may be many more than the array's elements."""
        if isinstance(base, np.ndarray):
            return sum(map(operator.mul, self.strides, np.indices(self.shape, sparse=True)))
        from jax import lax

        dtype = np.dtype(np.int32 if base.size <= np.iinfo(np.int32).max else np.int64)
        places = [lax.broadcasted_iota(dtype, self.shape, axis) for axis in range(len(self.shape))]
        return functools.reduce(operator.add, map(operator.mul, places, map(dtype.type, self.strides)))


NEW = "new"
"""In an extent: a new axis, of length 1. A text that is compared by value, since programs are pickled."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The form of a box whose starts are values of the program: `a[i, 2:5]`, where data decide `i`.

    axes: for each entry of the key None where it picks one element along an axis, the length of a slice, or NEW. Reads
    and writes take the starts, one for each axis of the array. One below 0 counts from the end.
    """

    axes: tuple[Any, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The lengths along the array's axes."""
        return tuple([1 if length is None else length for length in self.axes if length != NEW])

    @property
    def given(self) -> tuple[int, ...]:
        """The shape that reading gives."""
        return tuple([1 if length == NEW else length for length in self.axes if length is not None])

    def at(self, shape: tuple[int, ...], starts: tuple[Any, ...]) -> Index:
        """The step at starts that are known, in an array of `shape`."""
        known = iter([(int(start) + size * (start < 0), size) for start, size in zip(starts, shape, strict=True)])
        key: list[Any] = []
        for length in self.axes:
            start, size = (None, 0) if length == NEW else next(known)
            if length in (None, NEW):
                key.append(start)
            else:
                key.append(slice(None) if length == size else slice(start, start + length))
        return Index(tuple(key))

    def read(self, base: Any, starts: tuple[Any, ...]) -> Any:
        if isinstance(base, np.ndarray):
            return self.at(base.shape, starts).read(base)
        return self._box(base.shape, starts).read(base)

    def write(self, base: Any, value: Any, starts: tuple[Any, ...]) -> Any:
        if isinstance(base, np.ndarray):
            return self.at(base.shape, starts).write(base, value)
        return self._box(base.shape, starts).write(base, value)

    def _box(self, shape: tuple[int, ...], starts: tuple[Any, ...]) -> Box:
        dtype = np.dtype(np.int32 if max(shape) <= np.iinfo(np.int32).max else np.int64)
        found = [_from_start(start, size, dtype) for start, size in zip(starts, shape, strict=True)]
        return Box(found, self.sizes, self.given)


def _from_start(start: Any, size: int, dtype: np.dtype[Any]) -> Any:
    """A start within an axis of `size`, counted from the axis's beginning, as XLA takes it."""
    if isinstance(start, (int, np.integer)):
        return dtype.type(int(start) + size * (start < 0))
    from jax import lax

    start = start.astype(dtype)
    return lax.select(start < 0, start + dtype.type(size), start)


@dataclass(frozen=True, slots=True)
class At:
    """A step of a recording's views: an extent at starts some of which are nodes. now: the step that it is at present.

    Equal for the same nodes. Programs do not know it: there the starts are operands of an operation.
    """

    extent: Extent
    starts: tuple[Any, ...]
    now: Index = field(compare=False)

    def read(self, base: Any) -> Any:
        return self.now.read(base)


@dataclass(frozen=True, slots=True)
class Placed:
    """A step of a view that leaves the call: an extent at starts that each run computes, or has computed."""

    extent: Extent
    starts: tuple[Any, ...]

    def read(self, base: Any) -> Any:
        if isinstance(base, np.ndarray):  # what leaves is an array, of a single element too: `x[i, ...]`
            return base[*self.extent.at(base.shape, self.starts).key, ...]
        return self.extent.read(base, self.starts)


Step = Index | Transpose | Reshape | Broadcast | ComplexPart | Diagonal | StridedElements | At | Placed
Chain = tuple[Step, ...]


def basic_key(key: object) -> tuple[Any, ...]:
    """An indexing key as a tuple. Its ranges are lists, as which NumPy takes them."""
    entries = key if isinstance(key, tuple) else (key,)
    return tuple([list(entry) if type(entry) is range else entry for entry in entries])


def _set_item(base: object, key: tuple[Any, ...], value: object) -> Any:
    if isinstance(base, np.ndarray):
        result = base.copy()
        result[key] = value
        return result
    return _update(base, key, value)


def _update(base: Any, key: tuple[Any, ...], value: Any) -> Any:
    """`base` with `value` at `key`: one dynamic-update-slice where the key is a box, else a scatter.

    XLA updates a box in place and vectorized; a scatter on CPU goes point by point.
    """
    box = box_of(base.shape, key)
    return base.at[key].set(value) if box is None else box.write(base, value)


@dataclass(frozen=True)
class Box:
    """A box of an array. starts, sizes: per axis; starts may be traced. given: the shape that its key gives."""

    starts: Any
    sizes: tuple[int, ...]
    given: tuple[int, ...]

    def moved(self, starts: Array) -> Box:
        """A box of the same form at other starts."""
        return Box(starts, self.sizes, self.given)

    def read(self, base: Any) -> Any:
        from jax import lax

        return lax.dynamic_slice(base, self._starts(), self.sizes).reshape(self.given)

    def write(self, base: Any, value: Any) -> Any:
        from jax import lax
        from jax import numpy as jnp

        value = jnp.broadcast_to(value, self.given).reshape(self.sizes)
        return value if self.sizes == base.shape else lax.dynamic_update_slice(base, value, self._starts())

    def _starts(self) -> list[Any]:
        return [np.int32(start) if isinstance(start, int) else start for start in self.starts]


def box_of(shape: tuple[int, ...], key: tuple[Any, ...]) -> Box | None:
    """The box that a basic key names in an array of `shape`; None if it is no box."""
    starts, sizes, given = [], [], []
    for entry, length in per_axis(shape, key):
        if entry is None:
            given.append(1)
        elif isinstance(entry, slice):
            start, stop, step = entry.indices(length)
            count = max(0, stop - start)
            if step != 1 or count == 0:  # with a step, or empty: left to plain indexing
                return None
            starts.append(start)
            sizes.append(count)
            given.append(count)
        else:
            starts.append(entry + length if entry < 0 else entry)
            sizes.append(1)
    return Box(tuple(starts), tuple(sizes), tuple(given))


def within(shape: tuple[int, ...], outer: Index, inner: Index) -> Index | None:
    """One step that equals `inner` after `outer` on an array of `shape`; None if either is no box."""
    view = box_of(shape, outer.key)
    if view is None or None in outer.key:
        return None
    box = box_of(view.given, inner.key)
    if box is None or None in inner.key:
        return None
    entries, starts, sizes = iter(per_axis(view.given, inner.key)), iter(box.starts), iter(box.sizes)
    key: list[Any] = []
    for (entry, length), start in zip(per_axis(shape, outer.key), view.starts, strict=True):
        if not isinstance(entry, slice):
            key.append(start)
            continue
        (part, _), begin, size = next(entries), start + next(starts), next(sizes)
        whole = slice(None) if size == length else slice(begin, begin + size)
        key.append(whole if isinstance(part, slice) else begin)
    while key and key[-1] == slice(None):
        key.pop()
    return Index(tuple(key))


def disjoint(shape: tuple[int, ...], one: Step, other: Step) -> bool:
    """Whether two steps into an array of `shape` certainly look at different elements."""
    if not (isinstance(one, Index) and isinstance(other, Index)):
        return False
    first, second = box_of(shape, one.key), box_of(shape, other.key)
    if first is None or second is None:
        return False
    return any(
        start + size <= begin or begin + count <= start
        for start, size, begin, count in zip(first.starts, first.sizes, second.starts, second.sizes, strict=True)
    )


def per_axis(shape: tuple[int, ...], key: tuple[Any, ...]) -> list[tuple[Any, int]]:
    """The key's entries with the length of the axis that each stands for, Ellipsis and missing ones filled in."""
    used = sum(entry is not None and entry is not Ellipsis for entry in key)
    rest = [slice(None)] * (len(shape) - used)  # the axes that the key does not name
    where = next((i for i, entry in enumerate(key) if entry is Ellipsis), len(key))
    full = [*key[:where], *rest, *key[where + 1 :]]
    lengths = iter(shape)
    return [(entry, 0 if entry is None else next(lengths)) for entry in full]


def seen_through(array: object, chain: Chain) -> Any:
    """The array or NumPy scalar that a chain of views gives of an array."""
    for step in chain:
        array = step.read(array)
    return array
