"""What a rule is: one row that says how NumPy computes a function and how JAX does.

A row names the NumPy function, its parameters that take recorded values (*operands*) and those that must be known
while recording (*static*). Every other parameter, given and different from its default, is a refusal: no parameter is
ever ignored. `lower` takes the row's own parameters and computes with `jax.numpy`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias, TypeVar

import numpy as np

from accel.ir.fingerprint import UFUNC_HOMES
from accel.ir.tape import Node
from accel.reasons import REASONS
from accel.rules.signatures import signature_of
from accel.rules.tables import WAITING


class Unsupported(Exception):
    """A rule cannot do this. reason: an id of accel.reasons; detail: what exactly."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        assert reason in REASONS, reason
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> Any:
        return type(self), (self.reason, self.detail)


class Rounding(Enum):
    """How the elements of a floating-point result are rounded.

    EXACT: not at all: each is one of the operands' elements, or follows from it alone. ROUNDED: the true result,
    rounded, in NumPy and, where it keeps to what it is told, in XLA. FREE: NumPy and XLA may differ in the last place.
    """

    EXACT = auto()
    ROUNDED = auto()
    FREE = auto()


class Contraction(Enum):
    """What XLA may merge an operation with, skipping the rounding in between, as a fused multiply-add does.

    NONE: with nothing. SUM: with others where it adds numbers. PRODUCT: with all kinds of operations. QUOTIENT: so too;
    and where it divides by a number or a row, XLA multiplies by the reciprocal.
    """

    NONE = auto()
    SUM = auto()
    PRODUCT = auto()
    QUOTIENT = auto()


T = TypeVar("T")
Fact: TypeAlias = "T | Callable[[Node], T]"
"""What a row says of its function; where that depends on the arguments, a function of the operation's node."""


def fact(column: Fact[T], node: Node) -> T:
    """What a column of `node.rule` says of this operation."""
    return column(node) if callable(column) else column


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One row: all that accel knows of a function. What asks about functions asks for a column, never for names.

    function: NumPy's own; runs while recording and when constants are folded.
    lower: same parameter names, over jax.numpy; None where only the host evaluates it.
    operands, static: parameter names. sequences: operands that are several arrays, written "*arrays" in a row; a list
        given for any other operand is one array.
    cast: operands are cast to the result's dtype before `lower`, except those named in `keep`.
    elementwise: element i of the result depends on elements i of the operands alone (with broadcasting).
    view: from the bound static parameters and the operand's shape, the view step that NumPy's result is where it
        shares memory with the operand.
    scattered: operands that are read at several places for one element of the result: they are stored first.
    special: how it is written down where that is more than a computation (see accel.record.arrays.calls.SPECIALS).
    notes: what that way needs to know.
    rowwise: from the bound arguments, whether row i of the result (along the first axis) depends on rows i alone.
    masked: how a reduction works over a compressed array, as lower with the keyword `mask`; None: it does not.
    holds: what must be true of the operands for `lower` to agree with NumPy, which raises or differs otherwise: takes
        the row's parameters and the result's `shape`, on NumPy and on JAX arrays alike. Replays check it. None where
        there is nothing to check; notes["holds"] says what is wrong where it does not hold.
    rewrite: the same call as a few calls of functions that have rules; takes recorded values by parameter name.

    The other columns are for the passes of accel.lower and for comparisons. They are about one operation of a tape: a
    row that is written down as several (`rewrite`) needs none.

    own: no function of NumPy's but the engine's: its arguments that are no operands are static.
    rounding, contraction: see the classes.
    jumps: whether an operand's last place may decide between quite different results. None: where the result is whole
        or bool and an operand a float.
    compares: there is a threshold: where the operands are closer than the tolerance, either answer is right.
    cost: work for each element, in simple operations.
    arithmetic: takes as long with a number that the program is told as with one that it knows.
    shifts: elements of the result come from other places of the operands: XLA computes those again where it fuses.
    stored: XLA stores the result, whatever reads it.
    reshapes: XLA may compute it in another shape than the result's. No matter where `elementwise` is set.
    by_shape: XLA makes the result, which is all one number, for less than it costs to read it from memory.
    neutral: of a reduction: from the operand's dtype the number that changes nothing in it, or None.
    product_axis: of a product of vectors and matrices: the right one's axis that is summed with the left one's last.
    careful: XLA's own reductions on the CPU may be wrong where they read the result.
    """

    name: str
    function: Callable[..., Any]
    lower: Callable[..., Any] | None
    operands: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    sequences: frozenset[str] = frozenset()
    keep: frozenset[str] = frozenset()
    cast: bool = False
    elementwise: bool = False
    view: Callable[..., Any] | None = None
    rowwise: Callable[[Mapping[str, Any]], bool] | None = None
    masked: Callable[..., Any] | None = None
    holds: Callable[..., Any] | None = None
    rewrite: Callable[..., Any] | None = None
    signature: inspect.Signature | None = None
    scattered: tuple[str, ...] = ()
    special: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    own: bool = False
    rounding: Fact[Rounding] = Rounding.FREE
    contraction: Contraction = Contraction.NONE
    jumps: Fact[bool | None] = None
    compares: bool = False
    cost: float = 1.0
    arithmetic: bool = False
    shifts: Fact[bool] = False
    stored: bool = False
    reshapes: Fact[bool] = True
    by_shape: bool = False
    neutral: Callable[[np.dtype[Any]], Any] | None = None
    product_axis: int | None = None
    careful: bool = False

    def __repr__(self) -> str:
        return f"<rule {self.name}>"

    def __reduce__(self) -> Any:
        """By the call that gives the same rule in another process. Raises PicklingError where there is none."""
        return origin_of(self)


RULES: dict[Any, Rule] = {}
"""Rules by the identity of the function that they stand for."""

_ORIGINS: dict[Rule, tuple[Callable[..., Rule], tuple[Any, ...]]] = {}
"""For rules that are no module's own: the function that makes or finds one, and its arguments."""


def origin_of(rule: Rule) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of accel's and arguments for which it gives this very rule, in any process.

    Raises PicklingError where none is known.
    """
    if rule not in _ORIGINS:
        _ORIGINS[rule] = _named, _find_name(rule)
    return _ORIGINS[rule]


def place(rule: Rule, find: Callable[..., Rule], *args: Any) -> None:
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
    def maker(*args: Any) -> Rule:
        made = make(*args)
        place(made, maker, *args)
        return made

    return maker


def fill(*, everything: bool = False) -> None:
    """Add the rows of libraries that have been imported since, or of all there are."""
    for module in [module for module in WAITING if everything or module in sys.modules]:
        importlib.import_module(WAITING.pop(module))


def lookup(function: Any) -> Rule | None:
    """The rule for a function object, by identity."""
    try:
        found = RULES.get(function)
    except Exception:  # what cannot be hashed has no rule
        return None
    if found is None and WAITING:
        fill()
        found = RULES.get(function)
    return found


def add_rule(function: Callable[..., Any], lower: Callable[..., Any] | None, names: str = "", **about: Any) -> Rule:
    """Add one row.

    names: operands, then after a bar the static parameters, as in "a | axis keepdims".
    """
    given, _, static = names.partition("|")
    operands = given.replace("*", "")
    rule = Rule(
        name=qualified_name(function),
        function=function,
        lower=lower,
        operands=tuple(operands.split()),
        static=tuple(static.split()),
        sequences=frozenset(name[1:] for name in given.split() if name.startswith("*")),
        signature=about.pop("signature", None) or signature_of(function),
        **about,
    )
    RULES[function] = rule
    place(rule, _of_function, function)
    return rule


def _of_function(function: Any) -> Rule:
    found = lookup(function)
    assert found is not None, function
    return found


def rule(function: Callable[..., Any], names: str = "", **about: Any) -> Callable[..., Any]:
    """`add_rule` as a decorator of the lowering function."""

    def decorate(lower: Callable[..., Any]) -> Callable[..., Any]:
        add_rule(function, lower, names, **about)
        return lower

    return decorate


def rewritten(function: Callable[..., Any], names: str = "", **about: Any) -> Callable[..., Any]:
    """Add a row for a function that is a few calls of others: those are written down in its place."""

    def decorate(rewrite: Callable[..., Any]) -> Callable[..., Any]:
        add_rule(function, None, names, rewrite=rewrite, **{"special": "rewrite", **about})
        return rewrite

    return decorate


def own_rule(name: str, function: Callable[..., Any], lower: Callable[..., Any] | None = None, **about: Any) -> Rule:
    """A rule of the engine's own: it rounds nothing, unless `about` says so."""
    return Rule(f"accel.{name}", function, lower, **{"own": True, "rounding": Rounding.EXACT, **about})


@derived
def truth_of(rule: Rule) -> Rule:
    """`rule.holds` as a row of its own."""
    assert rule.holds is not None
    return Rule(f"{rule.name}, arguments", rule.holds, rule.holds, operands=rule.operands)


def _home_of(function: Any) -> str:
    """The module of a ufunc, which does not say so."""
    name = getattr(function, "__name__", "")
    homes = (module for module in UFUNC_HOMES if getattr(sys.modules.get(module), name, None) is function)
    return next(homes, np.__name__)


@functools.cache
def qualified_name(function: Any) -> str:
    """A name as users write it: numpy.sum, scipy.ndimage.convolve, math.sqrt."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return ".".join(("numpy", owner.__name__, function.__name__))
    module = getattr(function, "__module__", None) or _home_of(function)
    public = ".".join(part for part in module.split(".") if not part.startswith("_") and part != "core")
    return f"{public}.{getattr(function, '__name__', function)}"
