"""Inputs: where everything that a recording read came from, and what must hold of it on a later call.

An input is a *slot*: a way to fetch a value (from the call, or from an earlier slot) and a check. Fetching all slots
in order is both the guard of a variant and the reading of its inputs. It happens at every call, among programs that
empty the caches, so that all of it is one generated function instead of hundreds of small ones.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Mapping
from types import CellType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from accel.ir.bits import Content, same_constant
from accel.platform import interrupts
from accel.platform.own_code import is_alike, is_function_or_entry
from accel.record.state.environment import Environment


class Code(NamedTuple):
    """A Python expression of our own making. {0}, {1}, ... in it stand for the constants.

    One that fetches reads the call's arguments as v0 and v1, and the value of an earlier slot, its parent, as {parent};
    one that checks reads the slot's value as x.
    """

    text: str
    constants: tuple[Any, ...] = ()
    parent: int | None = None


Fetch = Code
Check = Code

MISSING = type("Missing", (), {"__repr__": lambda self: "<missing>", "__reduce__": lambda self: "MISSING"})()
"""The value of an attribute, item or variable that is missing."""


class Slot(NamedTuple):
    """One input. name: as the user would write it. fetch: from the slots before it. checks: all that must hold."""

    name: str
    fetch: Fetch
    checks: tuple[Check, ...] = ()


class Inputs:
    """The slots of one recording, in the order in which they were read.

    Slots 0 and 1 hold the call's positional arguments (a tuple) and keyword arguments (a dict).
    """

    ROOTS = 2

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self._by_key: dict[Any, int] = {}
        self.environment: dict[int, tuple[str, str | None]] = {}
        self._generated: Callable[..., list[Any] | int] | None = None

    def find(self, key: object) -> int | None:
        """The slot that `key` was given before."""
        return self._by_key.get(key)

    def add(self, key: object, name: str, fetch: Fetch, *checks: Check) -> int:
        """A new slot's index. key: what makes it the same input when read again."""
        self._generated = None
        self.slots.append(Slot(name, fetch, checks))
        index = len(self.slots) + self.ROOTS - 1
        self._by_key[key] = index
        return index

    def find_or_add(self, key: object, name: str, fetch: Fetch) -> int:
        """The slot that `key` was given before, or a new one; arguments as of `add`."""
        index = self.find(key)
        return self.add(key, name, fetch) if index is None else index

    def note(self, key: object, index: int) -> None:
        """Slot `index` holds what `key` names, too."""
        self._by_key[key] = index

    def add_variable(self, name: str, value: str | None) -> None:
        """An environment variable, which must stay what it is: all of them are checked together."""
        self.environment[self.add(("env", name), f"${name}", of_constant(value))] = name, value

    def entries(self) -> Iterable[tuple[Any, int]]:
        """Every input's key and slot."""
        return self._by_key.items()

    def narrow(self, index: int, check: Check) -> None:
        """Let slot `index` be checked by `check` too."""
        slot = self.slots[index - self.ROOTS]
        if not any(is_same_code(check, known) for known in slot.checks):
            self._generated = None
            self.slots[index - self.ROOTS] = slot._replace(checks=(*slot.checks, check))

    def renew(self, index: int, before: Check, check: Check) -> None:
        """Let slot `index` be checked by `check` where it was by `before`."""
        self._generated = None
        slot = self.slots[index - self.ROOTS]
        checks = tuple([check if is_same_code(each, before) else each for each in slot.checks])
        self.slots[index - self.ROOTS] = slot._replace(checks=checks)

    def replace(self, index: int, name: str, fetch: Fetch) -> None:
        """Let a slot have another name, and be fetched otherwise: the same value."""
        self._generated = None
        self.slots[index - self.ROOTS] = self.slots[index - self.ROOTS]._replace(name=name, fetch=fetch)

    def name(self, index: int) -> str:
        """The input of a slot, as the user would write it."""
        return self.slots[index - self.ROOTS].name

    def prepare(self) -> None:
        """Generate the function that fetches. Where that fails, nothing matches from then on."""
        self._generated = lambda args, kwargs: 0
        self._generated = self._generate()

    def fetch(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], Slot | None]:
        """Every slot's value, and None; or nothing, and the slot that could not be read or failed."""
        if self._generated is None:
            self.prepare()
        assert self._generated is not None
        found = self._generated(args, kwargs)
        if isinstance(found, list):
            return found, None
        return [], self.slots[found]

    def _generate(self) -> Callable[..., list[Any] | int]:
        """A function of args and kwargs that gives all values, or the position of the slot that failed.

        Environment variables are checked together, at the end.
        """
        # `at` says how far it came when an exception ends it: one `try` around everything costs nothing, one per slot
        # would.
        lines, constants = ["def fetch(v0, v1):", "  at = 0", "  try:"], ConstantNames()
        for position, slot in enumerate(self.slots):
            index = position + self.ROOTS
            lines += [f"    at = {position}", f"    x = v{index} = {constants.fill(slot.fetch)}"]
            lines += [f"    if not ({constants.fill(check)}): return at" for check in slot.checks]
        if self.environment:
            positions = {name: index - self.ROOTS for index, (name, _) in self.environment.items()}
            changed = constants.name(Environment(dict(self.environment.values()), positions).changed)
            lines += [f"    at = {changed}()", "    if at is not None: return at"]
        # a property of the user's, a missing item: another path
        lines += ["  except Exception as error:", "    pass_on(error)", "    return at"]
        lines.append(f"  return [{', '.join(f'v{i}' for i in range(len(self.slots) + self.ROOTS))}]")
        exec(compile("\n".join(lines), "<accel guards>", "exec"), constants.namespace)  # see HostTape
        fetch: Callable[..., list[Any] | int] = constants.namespace["fetch"]
        return fetch


class ConstantNames:
    """Names for what generated code refers to."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"pass_on": interrupts.pass_on}

    def name(self, value: object) -> str:
        """A new name for a constant."""
        name = f"c{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def fill(self, code: Code) -> str:
        """The text of an expression, with names for its constants."""
        return code.text.format(*map(self.name, code.constants), parent=f"v{code.parent}")


# -- ways to fetch ----------------------------------------------------------------------------------------------------


def item(parent: int, key: object) -> Fetch:
    """Fetch `parent[key]`."""
    return Code("{parent}[{0}]", (key,), parent)


def item_that_is_there(parent: int, key: object) -> Fetch:
    """An item of a dict that might make one that is missing: to look must change nothing."""
    return Code("{0}({parent}, {1}, {2})", (dict.get, key, MISSING), parent)


def attribute(parent: int, name: str) -> Fetch:
    """Fetch `parent.name`."""
    if name.isidentifier() and not keyword.iskeyword(name):
        return Code(f"{{parent}}.{name}", (), parent)
    return Code("getattr({parent}, {0})", (name,), parent)


def attribute_or_missing(parent: int, name: str) -> Fetch:
    """Fetch `parent.name`, or MISSING."""
    return Code("getattr({parent}, {0}, {1})", (name, MISSING), parent)


def of_object(owner: object, name: str) -> Fetch:
    """An attribute of `owner`, a module or class that the recording names itself."""
    return Code("getattr({0}, {1})", (owner, name))


def of_constant(value: object) -> Fetch:
    """Fetch an object that the recording names itself."""
    return Code("{0}", (value,))


def of_namespace(namespace: Mapping[str, Any], name: str) -> Fetch:
    """A name in a module's or class's namespace."""
    return Code("{0}[{1}]", (namespace, name))


def of_default(function: object, place: int) -> Fetch:
    """Fetch a function's default of a parameter, by its place among the defaults."""
    return Code("{0}.__defaults__[{1}]", (function, place))


def of_keyword_default(function: object, name: str) -> Fetch:
    """Fetch a function's default of a keyword-only parameter."""
    return Code("{0}.__kwdefaults__[{1}]", (function, name))


def of_class(kind: type, name: str) -> Fetch:
    """Fetch what a lookup of `name` through a class finds, before any descriptor acts; MISSING for nothing."""
    # The common case, and the cheap one: a single dict lookup. It suffices, since a class's own entry hides all
    # inherited ones.
    if name in kind.__dict__:
        return Code("{1}[{2}]", (kind, kind.__dict__, name))  # the class says whose namespace it is
    return Code("{0}({1}, {2})", (_look_up, kind, name))


def _look_up(kind: type, name: str) -> Any:
    for owner in kind.__mro__:
        if name in owner.__dict__:
            return owner.__dict__[name]
    return MISSING


def of_closure(parent: int, place: int) -> Fetch:
    """The cell at a place of the closure of a function that is an input."""
    return Code("{parent}.__closure__[{0}]", (place,), parent)


def of_cell(function: object, place: int) -> Fetch:
    """Fetch the cell at a place of the closure of a function that the recording names itself."""
    return Code("{0}.__closure__[{1}]", (function, place))


_OF_CELL = of_cell(None, 0).text


def named_cell(fetch: Fetch) -> CellType | None:
    """The cell that a fetch names, or whose contents it reads; None of another fetch."""
    if not fetch.text.startswith(_OF_CELL):
        return None
    function, place = fetch.constants
    cell: CellType = function.__closure__[place]
    return cell


def of_contents(cell: Fetch) -> Fetch:
    """Fetch a cell's contents. cell: how that is found."""
    return cell._replace(text=f"{cell.text}.cell_contents")


def of_slot(parent: int, function: Callable[[Any], Any]) -> Fetch:
    """Fetch `function(parent)`."""
    return Code("{0}({parent})", (function,), parent)


def length(parent: int) -> Fetch:
    """Fetch `len(parent)`."""
    return Code("len({parent})", (), parent)


CALL_SHAPE = Code("(len(v0), tuple(v1))")
"""Fetch the number of positional arguments and the keywords in order."""


# -- checks -----------------------------------------------------------------------------------------------------------


def is_same_code(one: Code, other: Code) -> bool:
    """Whether two expressions ask the same of the same objects."""
    return one.text == other.text and one.parent == other.parent and same_constant(one.constants, other.constants)


def satisfies(predicate: Callable[..., Any], *about: object) -> Check:
    """A value for which `predicate(value, *about)` holds. A function of a module, so that checks can be compared."""
    rest = "".join(f", {{{position}}}" for position in range(1, len(about) + 1))
    return Code(f"{{0}}(x{rest})", (predicate, *about))


def is_same(expected: object) -> Check:
    """The very object; of a function, whether or not accel has put a wrapper around it meanwhile."""
    if is_function_or_entry(expected):
        return Code("x is {0} or {1}(x, {0})", (expected, is_alike))
    return Code("x is {0}", (expected,))


def is_equal(expected: object) -> Check:
    """Equal value of the same type, for values without parts (str, bytes, bool, enum members)."""
    return Code("type(x) is {0} and x == {1}", (type(expected), expected))


def has_item(key: object, known: bool) -> Check:
    """A container that `key` is in, or is not."""
    return Code("({0} in x) is {1}", (key, known))


def has_own(name: str) -> Check:
    """An object with an attribute of its own of that name, not only its class's."""
    return Code("{0} in x.__dict__", (name,))


def has_type(kind: type) -> Check:
    """A value of exactly this type."""
    return Code("type(x) is {0}", (kind,))


def has_length(kind: type, length: int) -> Check:
    """A container of exactly this type and length."""
    return Code("type(x) is {0} and len(x) == {1}", (kind, length))


def has_least(count: int, known: bool) -> Check:
    """A container with at least `count` elements, or with fewer, as `known` says."""
    return Code("(len(x) >= {0}) is {1}", (count, known))


def has_keys(keys: tuple[Any, ...]) -> Check:
    """A dict with these keys in this order."""
    # Strings differ from everything else by `==`; but 1 == 1.0 == True, so that the types of other keys are compared
    # too.
    if all(type(key) is str for key in keys):
        return Code("tuple(x) == {0}", (keys,))
    return Code("tuple(x) == {0} and tuple(map(type, x)) == {1}", (keys, tuple(map(type, keys))))


def has_parts(value: object, parts: Callable[[Any], Iterable[Any]]) -> Check:
    """A value of this type whose `parts` (numbers and text) are the same, by type and bits, in any order."""

    return Code("type(x) is {0} and {1}({2}(x)) == {3}", (type(value), _described, parts, _described(parts(value))))


def _described(parts: Iterable[Any]) -> list[tuple[str, str]]:
    return sorted((type(part).__name__, repr(part)) for part in parts)


HAS_CODE = "x.__code__ is {0} and x.__defaults__ is {1} and x.__kwdefaults__ is {2}"


def has_code(function: Any) -> Check:
    """A function with the same code and defaults."""
    # the function itself says whose they are
    return Code(HAS_CODE, (function.__code__, function.__defaults__, function.__kwdefaults__, function))


def runs_code(code: object) -> Check:
    """A function without defaults that runs this code."""
    return Code("type(x) is {0} and x.__code__ is {1} and not x.__defaults__", (FunctionType, code))


def is_method_of(function: object) -> Check:
    """A method bound to whatever object."""
    return Code("type(x) is {0} and x.__func__ is {1}", (MethodType, function))


def is_array_like(array: np.ndarray[Any, Any]) -> Check:
    """An ndarray of the same dtype, shape and strides: strides decide what NumPy makes a view and what a copy."""
    return Code(
        "type(x) is {0} and x.shape == {1} and x.dtype == {2} and x.strides == {3}",
        (np.ndarray, array.shape, array.dtype, array.strides),
    )


is_writeable = Code("x.flags.writeable")


def has_flags(array: np.ndarray[Any, Any]) -> Check:
    """An array that owns its memory or not, and may be written to or not, as this one."""
    return Code(
        "(x.flags.owndata, x.flags.writeable, x.flags.aligned) == {0}",
        ((array.flags.owndata, array.flags.writeable, array.flags.aligned),),
    )


def has_content(array: np.ndarray[Any, Any]) -> Check:
    """An array of the same bits, its dtype and shape being checked already."""
    return Code("{0}.is_same(x)", (Content(array),))
