"""Derivatives of every row: forward mode against central differences, and reverse mode against forward mode.

A part of the expressions of tests/rules/cases.py by default; all of them with ACCEL_LONG_TESTS=1.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import accel
from accel.rules import load
from accel.rules.rule import RULES
from accel.rules.special import CallOnHost
from accel.transform.pure.places import places_of
from accel.transform.pure.program import PureProgram
from accel.transform.pure.recorded import recorded_calls
from tests.helpers import LONG
from tests.rules.cases import ROWS, Names, names_in, stable_hash
from tests.rules.oracle import SCIPY, expression
from tests.rules.scipy_cases import SCIPY_ROWS

jax = pytest.importorskip("jax")
load(everything=True)

PART = 1 if LONG else 32
TOGETHER = 20
"""Expressions that are compiled as one program."""
STEP = 1e-4
RTOL = 1e-6

KINKS = {
    "np.divmod(3, b)": "it jumps between the points",
    "np.floor_divide(3, b)": "it jumps between the points",
    "np.fmod(3, b)": "it jumps between the points",
    "a // b": "it jumps between the points",
    "a.round(2)": "it jumps between the points",
    "np.around(a, 3)": "it jumps between the points",
    "a.astype(np.float32)": "differences of single precision",
    "special.logsumexp(a > 0, b=np.abs(b.astype(np.float32)) + 1)": "differences of single precision",
    "a.astype(np.float16)": "differences of half precision",
    "np.gradient(v, np.sort(u))": "its curvature is large",
    "np.linalg.norm(a, ord=-np.inf, axis=-1)": "another element is the smallest at some points",
    "linalg.lu_factor(np.outer(v, u)[:, :2])": "the matrix is singular: it has no derivative",
    "np.linalg.pinv(np.diag(s[0] * 0 + np.array([1.0, 2.0, 4e-15])))": "a singular value is cut off at some points",
}
"""Expressions whose derivative is not what differences give, and why."""

FILTERS = (
    "ndimage.gaussian_filter(a, 1.0)",
    "ndimage.gaussian_filter1d(a, 1.0, axis=0)",
    "ndimage.uniform_filter(a, 3)",
    "ndimage.uniform_filter1d(a, 3)",
    "ndimage.maximum_filter(a, 3)",
    "ndimage.maximum_filter1d(a, 3)",
    "ndimage.minimum_filter(a, 3)",
    "ndimage.minimum_filter1d(a, 3)",
    "ndimage.median_filter(a, 3)",
    "ndimage.percentile_filter(a, 30, 3)",
    "ndimage.rank_filter(a, 2, 3)",
    "ndimage.convolve(a, np.array([[0.5, 1.0, 0.2]]))",
    "ndimage.convolve1d(a, np.array([0.5, 1.0, 0.2]))",
    "ndimage.correlate(a, np.array([[0.5, 1.0, 0.2]]))",
    "ndimage.correlate1d(a, np.array([0.5, 1.0, 0.2]))",
    "ndimage.laplace(a)",
    "ndimage.gaussian_laplace(a, 1.0)",
    "ndimage.gaussian_gradient_magnitude(a, 1.0)",
    "ndimage.prewitt(a)",
    "ndimage.sobel(a)",
    "ndimage.spline_filter(a)",
    "ndimage.spline_filter1d(a)",
    "ndimage.shift(a, 0.3)",
    "ndimage.zoom(a, 1.5)",
    "ndimage.rotate(a, 20.0)",
    "ndimage.affine_transform(a, np.array([[0.9, 0.1], [0.0, 1.1]]))",
    "ndimage.map_coordinates(a, np.array([[0.4, 1.3], [0.2, 1.6]]))",
    "fft.irfft2(fft.rfft2(a))",
    "fft.ifftn(fft.rfftn(a)).real",
)
"""Expressions of functions that the tables have none of: SciPy's filters have tests of their own (tests/ndimage)."""

NO_CASE = {
    "ufunc methods": ("reduce", "accumulate", "outer", "reduceat"),
    "integers, types and shapes": tuple(
        "isscalar ndim shape size result_type "
        "can_cast promote_types common_type issubdtype isrealobj iscomplexobj iterable isfortran mintypecode isdtype "
        "broadcast_shapes min_scalar_type".split()
    ),
    "calls back, or views, of which the parts have cases": ("frompyfunc", "fromiter", "as_strided"),
    "methods of SciPy's objects": ("piecewise_polynomial", "linear_on_line", "on_grid", "rows_times"),
}
"""Why a rule has no expression of its own here, with the last parts of such names. The methods of ufuncs are one
lowering each for all ufuncs, of which add, multiply, maximum and others have cases."""

NONE = frozenset({"np.spacing", "np.nextafter", "np.multiply.at"})
"""Functions for which JAX has no derivative: they are refused, by `pure.derivative`."""

RAISES, NO_FLOATS = "raises", "takes no floats"
"""Why an expression is no case: NumPy raises for floats, as bitwise operations do; or all that it takes is integer."""

REFUSED = {
    "rule.parameter": "ndimage.binary_erosion np.add.at "
    "np.add.outer np.array np.average np.convolve np.histogram np.histogram2d np.interp "
    "np.linspace np.max np.mean np.r_ np.ravel np.reshape np.unique np.unravel_index",
    "array.unknown": "integrate.cumulative_trapezoid",
    "shape.dynamic": "np.trim_zeros",
    "call.opaque": "np.apply_along_axis np.fromfunction np.mask_indices",
}
"""Functions of which some expression is refused, by the reason: a parameter, a form of an argument, or the function."""

MOST_REFUSED = 0.05
"""The most of all expressions that may be."""

SYSTEMS = frozenset("stpx")
"""Names of matrices and sorted vectors, which are drawn as they have to be."""


@dataclass
class Case:
    """One expression as a program, its leaves, and a direction for those that are floats."""

    text: str
    function: str
    program: PureProgram
    leaves: dict[str, Any]
    direction: dict[str, Any]

    def outputs(self, leaves: dict[str, Any]) -> list[Any]:
        """All floats that it returns and leaves."""
        output = self.program({**self.leaves, **leaves})
        given = [*output.result, *output.state.values()]
        return [each.astype(float) for each in given if each.dtype.kind == "f"]

    def at(self, step: float) -> list[Any]:
        return self.outputs({name: self.leaves[name] + step * each for name, each in self.direction.items()})

    def judged(self) -> Any:
        """The derivative along the direction by forward mode and by differences; its weighted sum by both modes."""
        leaves = {name: self.leaves[name] for name in self.direction}
        found, along = jax.jvp(self.outputs, (leaves,), (self.direction,))
        points = [self.at(by * STEP) for by in (2, 1, -1, -2)]
        differences = [(8 * (b - c) - (a - d)) / (12 * STEP) for a, b, c, d in zip(*points, strict=True)]
        weights = [jax.numpy.cos(jax.numpy.arange(each.size, dtype=float)).reshape(each.shape) for each in found]
        (back,) = jax.vjp(self.outputs, leaves)[1](weights)
        forward = sum((weight * each).sum() for weight, each in zip(weights, along, strict=True))
        backward = sum((back[name] * each).sum() for name, each in self.direction.items())
        return along, differences, forward, backward


def _texts() -> list[tuple[str, str]]:
    """The expressions that are tried, with the function of each."""
    rows = [row for row in (*ROWS, *SCIPY_ROWS) if "d" in row.dtypes and "matrix" in row.shapes]
    pairs = [(text, row.function) for row in rows for text in row.expressions]
    part = [(text, function) for text, function in dict(pairs).items() if stable_hash(f"{text}'") % PART == 0]
    filters = FILTERS if LONG else [text for text in FILTERS if stable_hash(text) % 4 == 0]
    return [*part, *((text, text.partition("(")[0]) for text in filters)]


_NAMESPACES: dict[str, Any] = {"np": np, **{name: import_module(module) for name, module in SCIPY.items()}}


def _functions_in(text: str) -> Iterator[Any]:
    """The functions that an expression names."""
    for chain in re.findall(rf"\b(?:{'|'.join(_NAMESPACES)})(?:\.\w+)+", text):
        first, *rest = chain.split(".")
        found = _NAMESPACES[first]
        for name in rest:
            found = getattr(found, name, None)
            yield found


def test_every_rule_has_an_expression_or_a_reason() -> None:
    rows = [row for row in (*ROWS, *SCIPY_ROWS) if "d" in row.dtypes and "matrix" in row.shapes]
    texts = [text for row in rows for text in (row.function, *row.expressions)]
    tried = {id(RULES[each]) for text in (*texts, *FILTERS) for each in _functions_in(text) if _is_key(each)}
    excused = {part for parts in NO_CASE.values() for part in parts}
    # what programs call on the host has no derivative: see tests/record/test_hosted.py
    computed = [rule for rule in RULES.values() if not isinstance(rule.recorded.special, CallOnHost)]
    left = [rule.name for rule in computed if id(rule) not in tried]
    assert [name for name in left if name.rpartition(".")[2] not in excused] == []
    assert excused <= {name.rpartition(".")[2] for name in left}, "a reason for what has a case"


def _is_key(value: object) -> bool:
    return callable(value) and isinstance(value, Hashable) and value in RULES


def _drawn(text: str) -> list[Any]:
    """Values between 0 and 1, where most functions are smooth."""
    names = Names("d", "matrix", 3, True)
    found = []
    for name in names_in(text):
        value = names.value(name)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and name not in SYSTEMS:
            value = np.random.default_rng(stable_hash(text + name)).uniform(0.15, 0.85, value.shape)
        found.append(value)
    return found


def _case(text: str, function: str) -> Case | str:
    """An expression as a case, or why it is none: RAISES, NO_FLOATS, or the reason of a refusal."""
    names = names_in(text)
    try:
        recorded = recorded_calls(expression(text, names), [(tuple(_drawn(text)), {})])
        places = places_of(recorded)
        program = PureProgram(recorded, places, list(places.leaves))
    except Exception as error:
        if _raises(text):
            return RAISES
        found = re.search(r"\[([\w.]+)\]", str(error)) if isinstance(error, accel.Refused) else None
        return found[1] if found is not None else f"{type(error).__name__}: {error}"
    leaves = {name: leaf.value for name, leaf in places.leaves.items()}
    rng = np.random.default_rng(stable_hash(text))
    direction = {name: rng.normal(size=value.shape) for name, value in leaves.items() if value.dtype.kind == "f"}
    return Case(text, function, program, leaves, direction) if direction else NO_FLOATS


def _raises(text: str) -> bool:
    """Whether NumPy itself raises for an expression with these values."""
    try:
        expression(text, names_in(text))(*_drawn(text))
    except Exception:
        return True
    return False


def _judge(cases: list[Case]) -> list[Any]:
    """What is found of some cases, compiled together; the reason of those that are refused."""
    try:
        return list(jax.jit(lambda: [case.judged() for case in cases])())
    except accel.Refused as refusal:
        if len(cases) == 1:
            return [str(refusal)]
        half = len(cases) // 2
        return _judge(cases[:half]) + _judge(cases[half:])


def _problem(case: Case, found: Any) -> str:
    if isinstance(found, str):
        has_none = ", by itself" in found or any(f"{name}(" in case.text for name in NONE)  # or is called on the host
        is_known = "[rule.parameter]" in found or ("[pure.derivative]" in found and has_none)
        return "" if is_known or "[pure.host]" in found else found
    along, differences, forward, backward = jax.tree.map(np.asarray, found)
    scale = abs(forward) + 1.0
    if not (abs(forward - backward) <= 1e-9 * scale or np.isnan(forward)):
        return f"reverse mode gives {backward}, forward mode {forward}"
    for one, other in zip(along, differences, strict=True):
        known = np.isfinite(other)
        error = np.abs(one - other)[known].max(initial=0.0)
        if not error <= RTOL * (1.0 + np.abs(other[known]).max(initial=0.0)):
            return f"differs from differences by {error}"
    return ""


@pytest.mark.filterwarnings("ignore")
def test_derivatives_of_all_rows_are_central_differences() -> None:
    with np.errstate(all="ignore"), jax.enable_x64(True):
        tried = [(text, function, _case(text, function)) for text, function in _texts()]
        _check_left_out([(text, function, why) for text, function, why in tried if isinstance(why, str)], len(tried))
        cases = [case for _, _, case in tried if isinstance(case, Case)]
        problems = []
        for start in range(0, len(cases), TOGETHER):
            part = cases[start : start + TOGETHER]
            for case, found in zip(part, _judge(part), strict=True):
                problem = _problem(case, found)
                if problem and case.text not in KINKS:
                    problems.append(f"{case.text}: {problem}")
    assert not problems, "\n".join(problems)


def _check_left_out(left: list[tuple[str, str, str]], tried: int) -> None:
    """Only those may be left out that `REFUSED` lists, for which NumPy raises, or that take no floats."""
    refused = [(function, why) for _, function, why in left if why not in (RAISES, NO_FLOATS)]
    known = {(function, why) for why, functions in REFUSED.items() for function in functions.split()}
    assert [each for each in left if each[1:] in set(refused) - known] == []
    assert len(refused) <= MOST_REFUSED * tried
    assert tried - len(left) > 0.85 * tried
    assert not LONG or known == set(refused), "a reason for what is not refused"
