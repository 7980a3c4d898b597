"""Calls of NumPy's or SciPy's own function in the middle of a compiled program's run.

For functions that only compute, but that XLA cannot stand for: a label for each region of an image, eigenvalues of a
matrix that is not symmetric, the peaks of a signal. The results are NumPy's own to the last bit. Their shapes and types
are those of the recording; a run for which they would be others, or in which the function raises, is discarded.

The program has to be on the CPU, which shares its memory with NumPy.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any

import numpy as np

from accel.ir.template import fill, form, leaves
from accel.rules.columns import RecordedAs
from accel.rules.evaluation import call_by_name
from accel.rules.made import Question, answer
from accel.rules.rule import Rule, Unsupported, add_rule, derived, lookup, make_rule
from accel.rules.signatures import signature_of
from accel.rules.special import CallOnHost

RESULTS = (np.ndarray, np.generic, int, float, complex)
"""Types of the parts of a result that are computed; the rest is structure."""


def ufuncs_on_host(module: ModuleType, known: Collection[str]) -> None:
    """Add rows for the ufuncs of a module of SciPy's, but for those that have these names."""
    for name in module.__all__:
        ufunc = getattr(module, name)
        if isinstance(ufunc, np.ufunc) and ufunc.__name__ not in known and not ufunc.signature:
            names = [f"x{at}" for at in range(ufunc.nin)]
            signature = Signature([Parameter(each, Parameter.POSITIONAL_ONLY) for each in names])
            add_rule(ufunc, None, " ".join(names), special=CallOnHost(), signature=signature)


WRITES = re.compile("out|output|distances|indices|overwrite_.*")
"""Parameters by which a function writes to what it is given."""


def on_host(module: ModuleType, rows: str) -> None:
    """Add rows for functions that only compute from what they are given, and give no view of it.

    rows: a line each, "label: input structure", the function's name and the parameters that take recorded values (see
    `accel.rules.rule.add_rule`). All others are static, but for those by which it may write to what it is given; one
    of these names that it does not write to stands after a bar.
    """
    for row in rows.strip().splitlines():
        name, _, about = row.strip().partition(":")
        operands, _, named = about.partition("|")
        function = getattr(module, name)
        signature = signature_of(function)
        given = operands.replace("*", "").split()
        parameters = given if signature is None else list(signature.parameters)
        assert given and set(given) <= set(parameters), row
        static = [each for each in parameters if each not in given and not WRITES.fullmatch(each)] + named.split()
        add_rule(function, None, f"{operands} | {' '.join(static)}", special=CallOnHost())


@dataclass(frozen=True)
class _Hole:
    """The place of an operand. scalar: its type as a Python or NumPy number; None for an array."""

    index: int
    scalar: type | None


@dataclass(frozen=True)
class _HostCall:
    """A call with holes for its operands. structure: of the result, see `structure_of`."""

    rule: Rule
    bound: dict[str, Any]
    structure: str

    def __call__(self, *operands: Any) -> list[Any]:
        def value_of(hole: _Hole) -> Any:
            value = operands[hole.index]
            return value if hole.scalar is None else hole.scalar(value.item())

        with np.errstate(all="ignore"):  # a replay warns of nothing
            result = call_by_name(self.rule, fill(self.bound, value_of, _Hole))
        return leaves(result, RESULTS) if structure_of(result) == self.structure else []


def is_plain(result: object) -> bool:
    """Whether a result is arrays and numbers, in tuples, lists, dicts and plain namedtuples."""
    if isinstance(result, tuple):  # some of SciPy's own kinds of it hold more than their elements
        return not hasattr(result, "__dict__") and all(map(is_plain, result))
    if type(result) is list:
        return all(map(is_plain, result))
    if type(result) is dict:
        return all(map(is_plain, result.values()))
    return result is None or type(result) is str or (isinstance(result, RESULTS) and not isinstance(result, bool))


def structure_of(result: object) -> str:
    """A key of a result's structure: everything but its arrays and numbers, and their types."""
    return repr(form(result, lambda leaf: type(leaf).__name__, RESULTS))


def _rule_of(function: Any) -> Rule:
    if isinstance(function, Question):
        return answer(function)
    found = lookup(function)
    assert found is not None, function
    return found


About = tuple[tuple[Any, ...], tuple[Any, ...], str]
"""Facts about the recorded call: shape and dtype of each part of the result, the type of each operand that is a number
(None for arrays), and the result's structure."""


def _lowered(function: Any, operand_names: tuple[str, ...], about: About, /, **bound: Any) -> Any:
    import jax
    from jax import numpy as jnp

    from accel.platform import callbacks

    rule = _rule_of(function)
    device = getattr(jax.config, "jax_default_device", None) or jax.devices()[0]
    if getattr(device, "platform", device) != "cpu":
        raise Unsupported("rule.missing", f"{rule.name} is called by programs on the CPU alone")
    if not callbacks.are_possible():
        raise Unsupported("rule.missing", f"{rule.name} cannot be called by programs of this version of JAX")
    (forms, scalars, structure), operands = about, list[Any]()

    def hole_of(operand: Any) -> _Hole:
        operands.append(jnp.asarray(operand))
        return _Hole(len(operands) - 1, scalars[len(operands) - 1])

    given = {name: value for name, value in bound.items() if name in operand_names}
    template = {**bound, **fill(given, hole_of, (jax.Array, *RESULTS))}
    try:
        return callbacks.call(_HostCall(rule, template, structure), operands, forms)
    except ValueError as error:  # of JAX, where derivatives are taken
        raise NotImplementedError(f"{rule.name} has no derivative") from error


def _computed(function: Any, about: About, /, **bound: Any) -> tuple[Any, ...]:
    """Compute the same by NumPy."""
    (forms, _, structure), rule = about, _rule_of(function)
    try:
        result = call_by_name(rule, bound)
        found = leaves(result, RESULTS) if structure_of(result) == structure else []
    except Exception:  # as of a singular matrix: the path assumes that it raises nothing
        found = []
    if [(np.shape(each), np.asarray(each).dtype.str) for each in found] == list(forms):
        return (*found, True)
    return (*(np.zeros(shape, dtype) for shape, dtype in forms), False)


@derived
def with_operands(rule: Rule, names: tuple[str, ...]) -> Rule:
    """The row for calls on the host in which these parameters are recorded values."""
    parameters = (*rule.signature.parameters, *rule.operands, *rule.static) if rule.signature else ()
    known = {name for name in parameters if name in rule.operands or not WRITES.fullmatch(name)}
    others = known.difference(rule.operands)  # a pair of numbers there is no array
    return replace(
        rule,
        operands=tuple(name for name in names if name in known),
        sequences=rule.sequences | others,
        static=tuple(sorted(known.difference(names))),
        recorded=RecordedAs(special=CallOnHost(), nested=rule.recorded.nested),
    )


LIBRARY_WORK = 40.0
"""A guess: `distance_transform_edt` takes 80 ns for an element, `label` 2, an addition in a program 1 to 2."""


@derived
def hosted(rule: Rule) -> Rule:
    """The call as an operation of the tape. It takes an `About`, and the row's parameters by name.

    It gives the parts of the result in order, and whether they are of the forms that the recording saw.
    """
    return make_rule(
        f"{rule.name}, by itself",
        functools.partial(_computed, rule.function),  # by the function: it has a name in every process
        functools.partial(_lowered, rule.function, rule.operands),
        operands=rule.operands,
        sequences=rule.sequences,
        work=LIBRARY_WORK,
    )
