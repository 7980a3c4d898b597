"""The members' arrays and numbers by name. A value that is equal for all members is stored once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np

from accel.transform.ensembles.working_copy import is_same

Array = np.ndarray[Any, Any]


class MemberValues:
    """Values by name. arrays: on the device or not. apart: names of those with the members along their first axis."""

    def __init__(self, members: int) -> None:
        self.members = members
        self.arrays: dict[str, Any] = {}
        self.apart: frozenset[str] = frozenset()

    def set(self, name: str, array: Any, is_apart: bool) -> None:
        self.arrays[name] = array
        self.apart = self.apart | {name} if is_apart else self.apart - {name}

    def set_all(self, name: str, array: Array) -> None:
        """Set every member's value. array: has the members along its first axis."""
        first = np.array(array[0])
        is_apart = any(not is_same(first, np.asarray(each)) for each in array[1:])
        self.set(name, array if is_apart else first, is_apart)

    def all(self, name: str) -> Array:
        """Return every member's value, in a new array."""
        array = np.asarray(self.arrays[name])
        return np.array(array if name in self.apart else np.broadcast_to(array, (self.members, *array.shape)))

    def of(self, member: int) -> dict[str, Array]:
        """Return one member's values."""
        fetched = ((name, np.asarray(array)) for name, array in self.arrays.items())
        return {name: np.asarray(each[member] if name in self.apart else each) for name, each in fetched}


class _State(MutableMapping[str, Array]):
    """Arrays by names that are fixed. names: returns them."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def __delitem__(self, name: str) -> None:
        raise TypeError("an ensemble's state loses no names")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(list(self._names()))


class EnsembleState(_State):
    """The members' state by name, with the members along the first axis: a view of an ensemble.

    Reading returns a copy. An assigned value has the shape of one member's value, for all members, or has the members
    as an additional first axis.
    """

    def __init__(self, get: Callable[[str], Array], put: Callable[[str, Any], None], names: Callable[[], list[str]]):
        super().__init__(names)
        self._get, self._put = get, put

    def __getitem__(self, name: str) -> Array:
        return self._get(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._put(name, value)

    def __repr__(self) -> str:
        return f"<state of an ensemble: {', '.join(self)}>"


class MemberState(_State):
    """One member's state, for `perturb`: arrays that may be changed in place, or replaced.

    like: the values before. touched: the values that were read or set.
    """

    def __init__(self, like: Mapping[str, Array]) -> None:
        super().__init__(lambda: like)
        self._like = like
        self.touched: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self.touched:
            self.touched[name] = np.array(self._known(name))
        return self.touched[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.touched[name] = as_like(name, value, self._known(name))

    def _known(self, name: str) -> Array:
        if name not in self._like:
            raise KeyError(f"there is no state {name!r}; there is {', '.join(self._like)}")
        return self._like[name]


def as_like(name: str, value: Any, like: Array, *front: int) -> Array:
    """Copy a value to the dtype and shape of `like`. front: axes before that shape. Raises TypeError if it does not
    fit."""
    given = np.asarray(value)
    if given.shape != (*front, *like.shape) or not np.can_cast(given.dtype, like.dtype, "same_kind"):
        wanted = f"{like.dtype}{[*front, *like.shape]}"
        raise TypeError(f"{name} is {wanted}, not {given.dtype}{list(given.shape)}")
    return given.astype(like.dtype)
