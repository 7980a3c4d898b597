"""Deep copies of a call's arguments. Arrays that share memory also share it in the copy."""

from __future__ import annotations

import copy
import functools
import gc
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from accel.entry.callables import PlainCall
from accel.platform import interrupts
from accel.platform.addresses import address_of
from accel.transform.ensembles.addresses import Roots
from accel.transform.pure.recorded import refused

Array = np.ndarray[Any, Any]

_WHOLE = (ModuleType, type, FunctionType, BuiltinFunctionType, CodeType, FrameType, MappingProxyType, str, bytes)
"""Types that `copy.deepcopy` treats as atoms."""


@dataclass(slots=True)
class MemberParts:
    """The arrays and objects found in copied values. held: number of holders of each array, by its id in the copy.

    originals: the values that were copied, by id; arrays by weak references.
    """

    held: Counter[int]
    originals: dict[int, Callable[[], Any]]

    def is_shared(self, array: object) -> bool:
        """Return whether an array of the copy has two holders, or shares its memory with another array."""
        return self.held[id(array)] > 1

    def was_copied(self, value: object) -> bool:
        """Return whether a value is one of the originals."""
        found = self.originals.get(id(value))
        return found is not None and found() is value


@dataclass(slots=True)
class Copy(MemberParts):
    """A call's arguments, copied."""

    roots: Roots


def copied(call: PlainCall) -> Copy:
    """Copy a call's arguments. Raises Refused."""
    given = call.args, call.kwargs
    memo = _copied_views(_parts_of(given)[0], call.name)
    try:
        args, kwargs = copy.deepcopy(given, memo)
    except Exception as error:
        interrupts.pass_on(error)
        raise refused(call.name, "ensemble.copy", f"{type(error).__name__}: {error}") from error
    parts = _parts_in(given, memo)
    return Copy(parts.held, parts.originals, Roots(list(args), kwargs))


def copied_each(given: Mapping[str, Any], name: str) -> tuple[dict[str, Any], dict[str, str], MemberParts]:
    """Copy values by name, preserving what they share with each other. name: of the program, for refusals.

    Also returns, by name, why some values could not be copied, and the parts that were copied. Raises Refused.
    """
    memo = _copied_views(_parts_of(given)[0], name)
    made: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for each, value in given.items():
        before = dict(memo)
        try:
            made[each] = copy.deepcopy(value, memo)
        except Exception as error:
            interrupts.pass_on(error)
            failed[each] = f"{type(error).__name__}: {error}"
            memo = before  # half of a copy is none
    return made, failed, _parts_in({each: given[each] for each in made}, memo)


def _parts_in(given: object, memo: Mapping[int, Any]) -> MemberParts:
    """Collect the parts of copied values. memo: the copies by the originals' ids."""
    arrays, others, held = _parts_of(given)
    by_memory = Counter(address_of(_root(each)) for each in arrays)
    counts: Counter[int] = Counter()
    for each in arrays:
        if id(each) in memo:
            sharing = by_memory[address_of(_root(each))]
            counts[id(memo[id(each)])] = max(held[id(each)], sharing)
    originals: dict[int, Callable[[], Any]] = {id(each): weakref.ref(each) for each in arrays}
    for each in others:
        if memo.get(id(each), each) is not each:
            originals[id(each)] = functools.partial(lambda value: value, each)
    return MemberParts(counts, originals)


def _parts_of(given: object) -> tuple[list[Array], list[Any], Counter[int]]:
    """Return all arrays that objects hold, all other mutable objects, and how often each array is held."""
    held: Counter[int] = Counter()
    found: list[Array] = []
    others: list[Any] = []
    seen: set[int] = set()
    stack: list[Any] = [given]
    while stack:
        parts = gc.get_referents(stack.pop())
        held.update(id(part) for part in parts if isinstance(part, np.ndarray))
        for part in parts:
            if id(part) in seen or isinstance(part, _WHOLE):
                continue
            seen.add(id(part))
            if type(part) is np.ndarray:
                found.append(part)
            elif isinstance(part, (dict, list, set)) or hasattr(part, "__dict__"):
                others.append(part)
            stack.append(part)
    return found, others, held


def _root(array: Array) -> Array:
    """Return the array that owns an array's memory, or the base that is nearest to the owner."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _copied_views(arrays: list[Array], name: str) -> dict[int, Any]:
    """Copy arrays, by id. Views of one array become views of its copy."""
    roots: dict[int, tuple[Array, Array]] = {}
    foreign: set[int] = set()
    memo: dict[int, Any] = {}
    for array in arrays:
        root = _root(array)
        if root.dtype.hasobject:
            continue
        if not root.flags.owndata and root.base is not None:  # memory of another library's
            if id(root.base) in foreign:
                raise refused(name, "ensemble.copy", "two arrays share memory that is not NumPy's")
            foreign.add(id(root.base))
            continue
        if id(root) not in roots:
            roots[id(root)] = root, root.copy(order="K")
        memo[id(array)] = _view_in(array, *roots[id(root)])
    return memo


def _view_in(array: Array, root: Array, other: Array) -> Array:
    """Return the view of `other` that corresponds to the view `array` of `root`."""
    if array is root:
        return other
    offset = address_of(array) - address_of(root)
    memory = np.ndarray((other.nbytes,), np.uint8, other.T if other.flags.f_contiguous else other)
    view: Array = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
    view.flags.writeable = array.flags.writeable
    return view
