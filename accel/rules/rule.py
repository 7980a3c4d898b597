"""Rules: one row says how NumPy computes a function and how JAX does.

A row names the NumPy function, its parameters that take recorded values (*operands*) and those that must be known
while recording (*static*). Every other parameter, given and different from its default, is a refusal: no parameter is
ever ignored. `lower` takes the row's own parameters and computes with `jax.numpy`. What else is known of the function
stands in columns, which accel.rules.columns explains.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from types import FunctionType
from typing import Any

import numpy as np

from accel.ir.fingerprint import home_of
from accel.platform.reasons import REASONS
from accel.rules.columns import Cost, Locality, Numerics, RecordedAs, Rounding, Slope
from accel.rules.opcodes import OPCODES
from accel.rules.signatures import signature_of
from accel.rules.special import Rewrite
from accel.rules.tables import WAITING


class Unsupported(Exception):
    """A rule cannot do this. reason: an id of accel.platform.reasons; detail: what exactly."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        assert reason in REASONS, reason
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> Any:
        return type(self), (self.reason, self.detail)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One row: all that accel knows of a function. What asks about functions asks for a column, never for names."""

    name: str
    """Name as users write it, such as numpy.sum; the engine's own begin with "accel."."""
    function: Callable[..., Any]
    """NumPy's own. Runs while recording, and where constants are folded."""
    lower: Callable[..., Any] | None
    """The function by jax.numpy: takes the parameters by the same names, the operands as JAX arrays. None where the
    operation is only ever computed on the host, or recorded as others (see `RecordedAs.special`)."""
    operands: tuple[str, ...] = ()
    """Parameters that take recorded values. Read by accel.record.values and lower.operations, as are the next four."""
    static: tuple[str, ...] = ()
    """Parameters that must be known while recording."""
    sequences: frozenset[str] = frozenset()
    """Operands that are several arrays, written "*arrays" in a row. A list given for any other operand is one array."""
    cast: tuple[str, ...] = ()
    """Operands that are cast to the result's dtype before `lower`."""
    signature: inspect.Signature | None = None
    """The function's own, which gives parameters their names and defaults. None: the row's, in their order."""
    own: bool = False
    """An operation of the engine's, no function of NumPy's (see accel.rules.core). Its arguments that are no recorded
    values are static. Read by the reroll and pad passes."""
    recorded: RecordedAs = field(default_factory=RecordedAs)
    locality: Locality = field(default_factory=Locality)
    numerics: Numerics = field(default_factory=Numerics)
    slope: Slope = field(default_factory=Slope)
    cost: Cost = field(default_factory=Cost)

    def __repr__(self) -> str:
        return f"<rule {self.name}>"

    def __reduce__(self) -> Any:
        """By the call that gives the same rule in another process. Raises PicklingError where there is none."""
        return origin_of(self)


_GROUPS = {"recorded": RecordedAs, "locality": Locality, "numerics": Numerics, "slope": Slope, "cost": Cost}


def make_rule(name: str, function: Callable[..., Any], lower: Callable[..., Any] | None, **columns: Any) -> Rule:
    """A rule from its columns by name: those of a group are put into that. TypeError for what is no column."""
    for group, kind in _GROUPS.items():
        given = {each.name: columns.pop(each.name) for each in fields(kind) if each.name in columns}
        columns[group] = kind(**given)
    return Rule(name, function, lower, **columns)


RULES: dict[Any, Rule] = {}
"""Rules by the identity of the function that they stand for."""

_LIBRARIES = frozenset({"numpy", "scipy", "uarray", "builtins", __name__.partition(".")[0]})
"""Packages of the functions that have rows, or of their types. SciPy's transforms are of a type of uarray's."""

_ORIGINS: dict[Rule, tuple[Callable[..., Rule], tuple[Any, ...]]] = {}
"""For rules that are no module's own: the function that makes or finds one, and its arguments."""


def origin_of(rule: Rule) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of accel's and arguments for which it gives this very rule, in any process.

    Raises PicklingError where none is known.
    """
    # neither made by a function nor found by NumPy's: an attribute of one of accel's modules
    if rule not in _ORIGINS:
        _ORIGINS[rule] = _named, _find_name(rule)
    return _ORIGINS[rule]


def note_origin(rule: Rule, find: Callable[..., Rule], *args: object) -> None:
    """Note that `find(*args)` gives the rule in any process."""
    _ORIGINS[rule] = find, args


def _find_name(rule: Rule) -> tuple[str, str]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == __name__.partition(".")[0]:
            for attribute, value in list(vars(module).items()):
                if value is rule:
                    return name, attribute
    raise pickle.PicklingError(f"{rule} is in no module of accel's")


def _named(module: str, attribute: str) -> Rule:
    found: Rule = getattr(importlib.import_module(module), attribute)
    return found


def derived(make: Callable[..., Rule]) -> Callable[..., Rule]:
    """A function that makes rules: for the same arguments it gives the same rule, in this process and in others."""

    @functools.cache
    @functools.wraps(make)
    def maker(*args: object) -> Rule:
        made = make(*args)
        note_origin(made, maker, *args)
        return made

    return maker


def fill(*, everything: bool = False) -> None:
    """Add the rows of libraries that have been imported since, or of all there are."""
    # Several threads may come here at once. A table stays in WAITING until it has been imported. A thread that finds it
    # there imports it too, and waits for its rows at Python's own lock of that import.
    for module, table in tuple(WAITING.items()):
        if everything or module in sys.modules:
            try:
                importlib.import_module(table)
            finally:
                WAITING.pop(module, None)


def lookup(function: object) -> Rule | None:
    """The rule for a function object, by identity."""
    try:
        found = RULES.get(function)
    except Exception:  # what cannot be hashed has no rule
        return None
    # the program may have imported the library since the last look
    if found is None and WAITING:
        fill()
        found = RULES.get(function)
    return found


def add_rule(
    function: Callable[..., Any], lower: Callable[..., Any] | None, names: str = "", *, cast: str = "", **columns: Any
) -> Rule:
    """Add one row.

    names: operands, then after a bar the static parameters, as in "a | axis keepdims"; a star marks an operand that is
    several arrays. cast: the operands that are cast to the result's dtype, as in "x y". columns: see
    accel.rules.columns.
    """
    given, _, static = names.partition("|")
    rule = make_rule(
        qualified_name(function),
        function,
        lower,
        operands=tuple(given.replace("*", "").split()),
        static=tuple(static.split()),
        sequences=frozenset(name[1:] for name in given.split() if name.startswith("*")),
        signature=columns.pop("signature", None) or signature_of(function),
        cast=tuple(cast.split()),
        **columns,
    )
    if _is_librarys(function):
        RULES[function] = rule
    note_origin(rule, _of_function, function)
    return rule


def _is_librarys(function: Callable[..., Any]) -> bool:
    """Whether a function is NumPy's, SciPy's or Python's own.

    False for what the program has put in the place of one, before accel looked: it may do more, or another thing.
    """
    home = function.__globals__.get("__name__") if isinstance(function, FunctionType) else type(function).__module__
    return str(home).partition(".")[0] in _LIBRARIES


def _of_function(function: object) -> Rule:
    found = lookup(function)
    assert found is not None, function
    return found


def rule(function: Callable[..., Any], names: str = "", **about: Any) -> Callable[..., Any]:
    """`add_rule` as a decorator of the lowering function."""

    def decorate(lower: Callable[..., Any]) -> Callable[..., Any]:
        add_rule(function, lower, names, **about)
        return lower

    return decorate


def rewritten(
    function: Callable[..., Any], names: str = "", *, kind: type[Rewrite] = Rewrite, **about: Any
) -> Callable[..., Any]:
    """Add a row for a function that is a few calls of others: those are recorded in its place."""

    def decorate(calls: Callable[..., Any]) -> Callable[..., Any]:
        add_rule(function, None, names, special=kind(calls), **about)
        return calls

    return decorate


def own_rule(name: str, function: Callable[..., Any], lower: Callable[..., Any] | None = None, **about: object) -> Rule:
    """A rule of the engine's own, which `OPCODES` explains: it rounds nothing, unless `about` says so."""
    assert name in OPCODES, name
    return make_rule(f"accel.{name}", function, lower, **{"own": True, "rounding": Rounding.EXACT, **about})


@derived
def truth_of(rule: Rule) -> Rule:
    """`rule.recorded.holds` as a row of its own."""
    holds = rule.recorded.holds
    assert holds is not None
    return Rule(f"{rule.name}, arguments", holds, holds, operands=rule.operands)


@functools.cache
def qualified_name(function: Any) -> str:
    """A name as users write it: numpy.sum, scipy.ndimage.convolve, math.sqrt."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return ".".join(("numpy", owner.__name__, function.__name__))
    module = home_of(function) if isinstance(function, np.ufunc) else getattr(function, "__module__", None)
    public = [part for part in (module or "").split(".") if part and not part.startswith("_") and part != "core"]
    return ".".join((*public, getattr(function, "__name__", str(function))))
