"""Ufuncs at the edges: zeros of both signs, infinities and NaN, where a tolerance would hide a difference."""

from __future__ import annotations

import functools
import re
from typing import Any, cast

import numpy as np
import pytest
from numpy._core import _umath_tests
from scipy import fft, special

import accel
from accel.platform.ledger import open_ledger
from accel.rules import load
from accel.rules.rule import Unsupported
from accel.rules.tables import ufuncs
from tests.xla_options import QUICK, known

load(everything=True)

FLOATS = np.array(
    [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25, 64.0, 70.5, 1e-30, 1e30, np.inf, np.nan]
    + [-0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -7.25, -64.0, -1e30, -np.inf]
)
PARTS = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e30, 0.5, -1.0, 3.0])
COMPLEX = np.empty((len(PARTS), len(PARTS)), complex)
COMPLEX.real, COMPLEX.imag = PARTS[:, None], PARTS[None, :]

ARITHMETIC = (
    "absolute add subtract true_divide multiply square reciprocal negative conjugate sign less less_equal greater "
    "greater_equal equal not_equal maximum minimum fmax fmin isnan isinf isfinite logical_and logical_not"
).split()
"""Ufuncs of complex numbers that agree at infinities and NaN too."""

FUNCTIONS = (
    "sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh"
).split()
"""Functions of a complex variable, whose parts are NumPy's at zeros, infinities and NaN, and on branch cuts."""


def everything() -> list[tuple[np.ufunc, Any]]:
    """Each ufunc with values to try it on."""
    found = {getattr(np, name) for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
    real = sorted((ufunc for ufunc in found if not ufunc.signature), key=lambda ufunc: ufunc.__name__)
    cases: list[tuple[np.ufunc, Any]] = [(ufunc, FLOATS) for ufunc in real]
    cases += [(ufunc, FLOATS.astype(np.float32)) for ufunc in real]
    cases += [(getattr(np, name), COMPLEX.ravel()) for name in ARITHMETIC]
    return cases + [(getattr(np, name), COMPLEX.ravel().astype(char)) for name in FUNCTIONS for char in "FD"]


def prepared(ufunc: np.ufunc, values: Any) -> tuple[Any, ...] | None:
    """Operands, the loop and the lowering; None where NumPy or accel has none for them."""
    operands = (values,) if ufunc.nin == 1 else (np.repeat(values, len(values)), np.tile(values, len(values)))
    try:
        loop = ufuncs.loop_of(ufunc, operands, None)
        return operands, loop, ufuncs.rule_for(ufunc).lower
    except (TypeError, Unsupported):
        return None


CASES = {
    (ufunc.__name__, values.dtype.char): (ufunc, *case)
    for ufunc, values in everything()
    if (case := prepared(ufunc, values)) is not None
}
"""By ufunc and dtype: the ufunc, operands, the loop and the lowering."""


@functools.cache
def results() -> dict[tuple[str, str], tuple[Any, Any, Any]]:
    """By ufunc and dtype: operands, NumPy's results and accel's, all compiled as one."""
    import jax

    def together(given: Any) -> Any:
        return {key: case[3](*given[key], loop=case[2]) for key, case in CASES.items()}

    given = {key: case[1] for key, case in CASES.items()}
    with jax.enable_x64(True):
        found = jax.jit(together, compiler_options=known(QUICK))(given)
    with np.errstate(all="ignore"):
        return {key: (given[key], CASES[key][0](*given[key]), found[key]) for key in CASES}


def outputs(value: Any) -> list[Any]:
    return [np.asarray(part) for part in (value if isinstance(value, (tuple, list)) else (value,))]


def parts(array: Any) -> list[Any]:
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def differs(name: str, mine: Any, theirs: Any, size: Any) -> Any:
    """Where two arrays differ by more than rounding of values of `size`; the sign of a zero counts."""
    if mine.dtype.kind != "f":
        return mine != theirs
    eps = np.finfo(mine.dtype).eps
    tiny = np.finfo(mine.dtype).tiny  # smaller ones may be flushed to zero
    with np.errstate(all="ignore"):
        near = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        near |= np.isfinite(mine) & np.isfinite(theirs) & (abs(mine - theirs) <= 32 * eps * size + tiny)
    if name not in ("maximum", "minimum", "fmax", "fmin"):  # NumPy's own answer depends on the processor
        near &= ~((mine == 0) & (theirs == 0) & (np.signbit(mine) != np.signbit(theirs)))
    return ~near


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_ufuncs_at_the_edges(case: tuple[str, str]) -> None:
    operands, mine, theirs = results()[case]
    for one, other in zip(outputs(mine), outputs(theirs), strict=True):
        assert one.dtype == other.dtype
        for part, its in zip(parts(one), parts(other), strict=True):
            size = np.where(np.isfinite(one), abs(one), abs(part))  # beside NaN or infinity, the part's own
            wrong = np.flatnonzero(differs(case[0], part, its, size))
            shown = [(*(operand[i] for operand in operands), "NumPy", one[i], "accel", other[i]) for i in wrong[:5]]
            assert not wrong.size, f"{wrong.size} of {part.size}: {shown}"


EXACT = (
    "absolute add subtract multiply divide negative square sqrt sign rint trunc floor ceil fmod remainder floor_divide "
    "divmod modf copysign signbit nextafter heaviside rad2deg deg2rad fabs isnan"
).split()
"""Ufuncs of floats that give NumPy's bits, subnormal numbers left out."""

INTEGERS = (
    "absolute add subtract multiply negative positive square sign remainder floor_divide fmod divmod power left_shift "
    "right_shift invert bitwise_and bitwise_or bitwise_xor bitwise_count gcd lcm maximum minimum less equal"
).split()
"""Ufuncs of integers: what overflows wraps, and division by zero gives 0."""


def whole(dtype: Any) -> Any:
    info = np.iinfo(dtype)
    near = {*range(-3, 10), 31, 32, 33, 63, 64, 65, 100, -100, info.max // 2, info.max // 3}
    return np.array(
        sorted({info.min, info.min + 1, info.max - 1, info.max} | {i for i in near if i >= info.min}), dtype
    )


def fractions(dtype: Any) -> Any:
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=40) * 10.0 ** rng.integers(-6, 7, 40)
    with np.errstate(over="ignore"):
        return np.concatenate([FLOATS, [1e16, 2.0**52 + 0.5, 0.1, 0.3], drawn]).astype(dtype)


EXACTLY = {
    **{(name, char): fractions(char) for name in EXACT for char in "efd"},
    **{(name, char): whole(char) for name in INTEGERS for char in "bBhHiIqQ"},
}


@functools.cache
def exact_results() -> dict[tuple[str, str], tuple[Any, Any, Any]]:
    """As `results`, of the ufuncs that give NumPy's bits."""
    import jax

    cases: dict[Any, Any] = {}
    with np.errstate(all="ignore"):
        for (name, char), values in EXACTLY.items():
            ufunc = getattr(np, name)
            case = prepared(ufunc, values)
            if case is None:
                continue
            operands, loop, lower = case
            if name == "power":
                operands = tuple(operand[operands[1] >= 0] for operand in operands)
            cases[name, char] = (functools.partial(lower, loop=loop), operands, ufunc(*operands))
        with jax.enable_x64(True):
            together = jax.jit(
                lambda given: {key: case[0](*given[key]) for key, case in cases.items()}, compiler_options=known(QUICK)
            )
            found = together({key: case[1] for key, case in cases.items()})
    return {key: (case[1], case[2], found[key]) for key, case in cases.items()}


def tiny(array: Any) -> Any:
    """Subnormal numbers, and the smallest normal ones, beside which they are in between."""
    return (
        (array != 0) & (abs(array) < 1e8 * np.finfo(array.dtype).tiny) if array.dtype.char in "fd" else array != array
    )


@pytest.mark.parametrize("case", EXACTLY, ids="-".join)
def test_arithmetic_gives_numpys_bits(case: tuple[str, str]) -> None:
    if case not in exact_results():
        pytest.skip("NumPy or accel has none")
    operands, mine, theirs = exact_results()[case]
    for one, other in zip(outputs(mine), outputs(theirs), strict=True):
        assert one.dtype == other.dtype
        wrong = (one != other) & ~((one != one) & (other != other))
        if one.dtype.kind == "f":
            wrong |= (one == 0) & (np.signbit(one) != np.signbit(other))
        wrong &= ~tiny(one) & ~np.logical_or.reduce([tiny(operand) for operand in operands])
        at = np.flatnonzero(wrong)
        shown = [(*(operand[i] for operand in operands), "NumPy", one[i], "accel", other[i]) for i in at[:5]]
        assert not at.size, f"{at.size} of {one.size}: {shown}"


def test_powers_of_two_are_exact() -> None:
    import jax

    x = np.arange(-100.0, 101.0)
    lower: Any = ufuncs.rule_for(np.exp2).lower
    with jax.enable_x64(True):
        found = jax.jit(lambda given: lower(given, loop=(x.dtype, x.dtype)))(x)
    assert (np.asarray(found) == np.exp2(x)).all()


OUTER = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 30.0, 1.0])

SPECIAL = (
    "erf erfc expit logit ndtr ndtri erfinv gamma gammaln psi i0 i0e i1 i1e entr log_expit exp10 xlogy xlog1py"
).split()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", SPECIAL)
def test_scipys_functions_at_the_edges(name: str, dtype: Any) -> None:
    import jax

    ufunc = getattr(special, name)
    operands, loop, lower = prepared(ufunc, OUTER.astype(dtype)) or pytest.fail("there is no rule")
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(lambda *given: lower(*given, loop=loop))(*operands))
    with np.errstate(all="ignore"):
        expected = ufunc(*operands)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("name", ["tan", "tanh", "sin", "cos", "sinh", "cosh"])
def test_complex_functions_near_poles_and_near_the_largest_number(name: str, dtype: Any) -> None:
    import jax

    apart = np.outer([1e-15, 1e-9, 1e-6, 1e-3, 0.1], np.exp(1j * np.arange(6))).ravel()
    largest = np.log(np.finfo(dtype).max)
    turned = largest + np.array([-1.0, 0.1, 0.5, 0.6]) + 1j * np.array([[0.3], [1.5], [-1.4], [3.0]])
    values = np.concatenate([apart + pole * np.pi / 2 for pole in (0, 1, -1, 2, 3)] + [turned.ravel(), -turned[0]])
    values = (values if name in ("tan", "sin", "cos") else 1j * values).astype(dtype)
    values = np.concatenate([values, (1j * values).conj()])
    operands, loop, lower = prepared(getattr(np, name), values) or pytest.fail("there is no rule")
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(lambda *given: lower(*given, loop=loop))(*operands))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(values)
    for part, its in zip(parts(expected), parts(found), strict=True):
        wrong = np.flatnonzero(differs(name, part, its, abs(part)))
        assert not wrong.size, [(values[i], part[i], its[i]) for i in wrong[:5]]


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_complex_arctan_beside_its_poles(dtype: Any) -> None:
    apart = np.array([0.0, 1e-200, 1e-37, 1e-30, 1e-20, 1e-12, 1e-9, 1e-3])
    values = np.concatenate([1j * pole + side * apart for pole in (1, -1) for side in (1, -1)]).astype(dtype)
    for ufunc, points in ((np.arctan, values), (np.arctanh, 1j * values)):
        with np.errstate(all="ignore"):
            expected = ufunc(points)
        found = lowered(ufunc, points)
        np.testing.assert_allclose(found.real, expected.real, rtol=1e-6)
        np.testing.assert_allclose(found.imag, expected.imag, rtol=1e-6)


def lowered(ufunc: np.ufunc, *operands: Any) -> Any:
    import jax

    loop, lower = ufuncs.loop_of(ufunc, operands, None), cast("Any", ufuncs.rule_for(ufunc).lower)
    traced = [operand for operand in operands if isinstance(operand, np.ndarray)]

    def call(*given: Any) -> Any:
        rest = iter(given)
        values = [next(rest) if isinstance(operand, np.ndarray) else operand for operand in operands]
        return lower(*values, loop=loop)

    with jax.enable_x64(True):
        return np.asarray(jax.jit(call)(*traced))


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("exponent", [-7, -4, -3, -1, 2, 3, 4, 6, 7, 20, 64, 99])
def test_whole_powers_of_complex_numbers_on_axes_stay_there(exponent: int, as_array: bool) -> None:
    """Roots and logarithms of them would fall on another side of their branch cut."""
    values = np.array([-1, 1j, -1j, -2, 0.5j, complex(-0.3, -0.0), 3, 1j * 0.7, 0, complex(-0.0, -0.0)])
    values = values if exponent > 0 else values[:8]
    given = np.full(values.shape, exponent) if as_array else exponent
    found, expected = lowered(np.power, values, given), np.power(values, given)
    for one, other in zip(parts(found), parts(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=0)
    if exponent > 2:
        assert not np.signbit(found[8:].real).any() and not np.signbit(found[8:].imag).any()


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_complex_quotients_and_powers_near_the_largest_number(dtype: Any) -> None:
    largest = float(np.finfo(dtype).max)
    parts_of = [0.9 * largest, 0.3 * largest, 0.0, -0.5 * largest, 1.0]
    values = np.array([complex(a, b) for a in parts_of for b in parts_of if a or b]).astype(dtype)
    near = 1e-4 if dtype == np.complex64 else 1e-12
    cases: list[tuple[Any, ...]] = [
        (np.divide, np.repeat(values, len(values)), np.tile(values, len(values))),
        (np.divide, np.ones(1, dtype), values / 4),
        (np.reciprocal, values / 4),
        (np.power, values, 0.5),
        (np.power, np.sqrt(values), np.full(len(values), 1.99, dtype)),
        (np.log1p, values),
        (np.sign, values),
    ]
    for ufunc, *operands in cases:
        with np.errstate(all="ignore"):
            found, expected = lowered(ufunc, *operands), ufunc(*operands)
        known = np.isfinite(expected)  # where NumPy's own steps do not overflow
        assert known.any()
        np.testing.assert_allclose(found[known], expected[known], near, 4 * np.finfo(dtype).tiny, err_msg=str(ufunc))


@pytest.mark.parametrize("ufunc", [_umath_tests.matmul, np.frompyfunc(lambda x: x, 1, 1)], ids=["C", "Python"])
def test_another_librarys_ufunc_is_not_taken_for_numpys(ufunc: np.ufunc) -> None:
    """Its name may be that of one of NumPy's: these have no module."""
    with pytest.raises(Unsupported, match=re.escape(ufunc.__name__)):
        ufuncs.rule_for(ufunc)


@pytest.mark.usefixtures("foreground")
@pytest.mark.parametrize("module", [np.fft, fft], ids=["numpy", "scipy"])
def test_frequencies_of_spacings_without_a_finite_reciprocal(module: Any) -> None:
    """NumPy multiplies by it, so that 0 becomes a NaN. Nor does SciPy's take less precision than NumPy's."""

    @accel.accelerate
    def step(d: Any) -> Any:
        return [each(1, d) for each in (module.fftfreq, module.rfftfreq)]

    for spacing in (*range(1, 12), 5e-324, -1e-310, 0.0, -np.inf, np.nan):
        d = np.array([spacing], float)
        with np.errstate(all="ignore"):
            for found, expected in zip(step(d), step.__wrapped__(d), strict=True):
                np.testing.assert_array_equal(found, expected)
                np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    assert open_ledger(step._self_target.name).compiled_calls
    for _ in range(5):
        assert [each.dtype for each in step(np.array([0.3], np.float32))] == [np.float64] * 2


@pytest.mark.usefixtures("foreground")
@pytest.mark.parametrize("endpoint", [True, False])
def test_spacings_beside_a_column_that_does_not_move(endpoint: bool) -> None:
    """One step of 0 has NumPy divide before it multiplies, in all columns: another last place."""

    @accel.accelerate
    def step(low: Any, high: Any) -> Any:
        return np.linspace(low, high, 7, endpoint=endpoint)

    for seed in range(40):
        low, high = np.random.default_rng(seed).random((2, 5))
        if seed > 10:
            high[1] = low[1]
        np.testing.assert_array_equal(step(low, high), step.__wrapped__(low, high))
    assert open_ledger(step._self_target.name).compiled_calls


@pytest.mark.usefixtures("foreground")
def test_listed_edges_among_values_whose_number_varies() -> None:
    @accel.accelerate
    def step(x: Any) -> Any:
        return np.digitize(x[x > 0.0], [0, 1, 2]).sum(), np.histogram(x[x < 0.0], bins=[-2, -1, 0])[0]

    x = np.random.default_rng(5).normal(size=400)
    for call in range(12):
        given = x if call % 2 else -x
        for found, expected in zip(step(given), step.__wrapped__(given), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert open_ledger(step._self_target.name).compiled_calls


@pytest.mark.usefixtures("foreground")
@pytest.mark.parametrize("size", [1, 2, 9, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_medians_of_negative_zeros(dtype: Any, size: int) -> None:
    """They are means, whose sums start at 0."""

    @accel.accelerate
    def step(x: Any) -> Any:
        return np.median(x), np.nanmedian(x), np.median(x[None], axis=0)

    for value in (*range(1, 30), -0.0):
        x = np.full(size, value, dtype)
        for found, expected in zip(step(x), step.__wrapped__(x), strict=True):
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    assert open_ledger(step._self_target.name).compiled_calls


@pytest.mark.usefixtures("foreground")
def test_a_default_of_zero_and_a_negative_zero() -> None:
    step = accel.accelerate(lambda x: np.nan_to_num(x, nan=-0.0))
    for _ in range(9):
        assert np.signbit(step(np.full(3, np.nan))).all()
    assert open_ledger(step._self_target.name).compiled_calls
