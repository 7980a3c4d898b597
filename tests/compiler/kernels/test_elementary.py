"""Elementary functions in vector IR: within 1 unit in the last place, NumPy's special values, the same in all lanes."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from accel.compiler.kernels import machine_code
from accel.compiler.kernels.elementary import FUNCTIONS
from accel.compiler.kernels.ir import Emitter, Scope

pytest.importorskip("llvmlite")

NUMPY_NAMES = {
    "pow": "power",
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
}
OF_TWO = ("pow", "atan2", "hypot")
DTYPES = ("float64", "float32")
LIBRARY = {"erf": (math.erf, 1), "erfc": (math.erfc, 3)}
"""The C library's functions, which NumPy does not have, and how many floats theirs and ours may be apart."""

ERFC = {
    0.001: 0.9988716212090307,
    0.3: 0.6713732405408726,
    0.6269388757598171: 0.3752805813332172,
    0.65: 0.35797067264432814,
    0.7: 0.32219880616258156,
    1.0: 0.15729920705028513,
    1.75: 0.013328328780817557,
    2.5: 0.0004069520174449589,
    4.0: 1.541725790028002e-08,
    6.5: 3.8421483271206475e-20,
    11.0: 1.4408661379436948e-54,
    17.3: 3.409266382045084e-132,
    26.0: 5.663192408856143e-296,
    26.5: 2.2109076642637343e-307,
    27.0: 5.23705e-319,
    27.2: 1e-323,
    -0.3: 1.3286267594591274,
    -0.7: 1.6778011938374184,
    -1.5: 1.9661051464753108,
    -4.0: 1.999999984582742,
}
"""erfc of some numbers, computed with 200 digits and rounded."""

COUNT = 4000
"""Numbers of each kind of sample."""

wide = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="longdouble is not wider than float64 here")

Kernel = Callable[..., Any]


def reference(name: str) -> Any:
    if name in LIBRARY:
        return lambda x: np.array([LIBRARY[name][0](each) for each in x.tolist()]).astype(x.dtype)
    return getattr(np, NUMPY_NAMES.get(name, name))


def module(name: str, dtype: str, lanes: int) -> str:
    """A loop that stores the function of each element."""
    emitter = Emitter(innermost=1, lanes=lanes, scopes=[Scope(), Scope()])
    count = 2 if name in OF_TWO else 1
    operands = [emitter.load(f"%from{at}", np.dtype(dtype), 1) for at in range(count)]
    emitter.store(FUNCTIONS[name](*operands), "%to", 1)
    size = np.dtype(dtype).itemsize
    addresses = [f"%from{at} = getelementptr i8, ptr %in{at}, i64 %offset" for at in range(count)]
    return "\n".join(
        [
            *sorted(emitter.declared),
            *emitter.functions.values(),
            f"define void @run(i64 %count, ptr %out{''.join(f', ptr %in{at}' for at in range(count))}) {{",
            *("entry:", *emitter.scopes[0].lines, "br label %loop"),
            *("loop:", "%at = phi i64 [0, %entry], [%next, %loop]", f"%offset = mul i64 %at, {size}"),
            *(*addresses, "%to = getelementptr i8, ptr %out, i64 %offset", *emitter.scopes[1].lines),
            *(f"%next = add i64 %at, {lanes}", "%more = icmp ult i64 %next, %count"),
            *("br i1 %more, label %loop, label %end", "end:", "ret void", "}"),
        ]
    )


@functools.cache
def kernel(name: str, dtype: str, lanes: int | None = None) -> Kernel:
    lanes = machine_code.lanes(np.dtype(dtype).itemsize) if lanes is None else lanes
    loaded = machine_code.Loaded(machine_code.object_of(module(name, dtype, lanes)))

    def run(*operands: Any) -> Any:
        given = [np.append(each, np.ones(-each.size % lanes, dtype)).astype(dtype) for each in operands]
        out = np.empty(given[0].size, dtype)
        kinds = [ctypes.c_int64, *[ctypes.c_void_p] * (1 + len(given))]
        function = ctypes.CFUNCTYPE(None, *kinds)(loaded.address("run"))
        function(out.size, out.ctypes.data, *(each.ctypes.data for each in given))
        return out[: operands[0].size]

    return run


def samples(dtype: str, seed: int) -> Any:
    """All exponents with random digits; ranges where functions bend; neighbours of 1 and of multiples of pi/4."""
    rng = np.random.default_rng(seed)
    size = np.dtype(dtype).itemsize
    found = [
        rng.integers(0, 256, COUNT * size, dtype=np.uint8).view(dtype),
        *(rng.uniform(-limit, limit, COUNT) for limit in (1.2, 30.0, 800.0)),
        *(rng.normal(offset, 1.0, COUNT) * 2.0 ** rng.integers(-60, 30, COUNT) for offset in (0.0, 1.0)),
        1.0 + rng.normal(0.0, 1.0, COUNT) * 2.0 ** rng.integers(-52, 0, COUNT),
        rng.integers(-(2**28), 2**28, COUNT) * (np.pi / 4),
        rng.integers(-1100, 1100, COUNT),
    ]
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([each.astype(dtype) for each in found])


def specials(dtype: str) -> Any:
    """Zeros, infinities, NaN, the limits of the format and of functions, and the numbers next to each."""
    info = np.finfo(dtype)
    limits = [0.0, 0.5, 1.0, 2.0, 3.0, 1 / 3, 1e-8, 1e-20, 1e22, 2.0**30, 2.0**31, 2.0**53, 88.72284, 89.41599]
    limits += [103.27893, 103.97208, 127.0, 128.0, 149.0, 150.0, 709.782712893384, 710.4758600739439, 745.1332191019411]
    limits += [1022.0, 1023.0, 1024.0, 1074.0, 1075.0, 1076.0, np.pi, np.pi / 2, np.pi / 4, 2.0**-28, 2.0**-54]
    limits += [0.41421356237309503, float(info.tiny), float(info.smallest_subnormal), float(info.max), np.inf, np.nan]
    found = np.array(limits, dtype)
    with np.errstate(all="ignore"):
        found = np.concatenate(
            [found, np.nextafter(found, dtype_of(dtype, np.inf)), np.nextafter(found, dtype_of(dtype, 0.0))]
        )
    return np.unique(np.concatenate([found, -found]).view(f"u{found.itemsize}")).view(dtype)


def dtype_of(dtype: str, number: float) -> Any:
    return np.dtype(dtype).type(number)


def operands_of(name: str, dtype: str) -> list[Any]:
    x = samples(dtype, 1)
    if name not in OF_TWO:
        return [np.concatenate([x, specials(dtype)])]
    rng = np.random.default_rng(3)
    y = rng.permutation(samples(dtype, 2))
    positive = np.abs(x)
    with np.errstate(all="ignore"):
        if name == "pow":  # results of all exponents
            near = rng.uniform(-1080.0, 1030.0, x.size) / np.log2(positive.astype("float64"))
        else:
            near = x.astype("float64") * rng.uniform(-4.0, 4.0, x.size)
        near = near.astype(dtype)
    first, second = (each.ravel() for each in np.meshgrid(specials(dtype), specials(dtype)))
    return [np.concatenate([x, positive, first]), np.concatenate([y, near, second])]


def errors(found: Any, true: Any) -> Any:
    """Distances from true values in units in the last place, infinite where one is special and the other not."""
    info = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        rounded = true.astype(found.dtype)
        exponent = np.maximum(np.frexp(true)[1] - 1, info.minexp) - info.nmant
        distance = np.abs(found.astype(np.longdouble) - true) * np.ldexp(np.longdouble(1.0), -exponent)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return np.where(np.isfinite(rounded) & np.isfinite(found), distance, np.where(same, 0.0, np.inf))


@wide
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - set(LIBRARY)))
def test_results_are_within_a_unit_in_the_last_place(name: str, dtype: str) -> None:
    operands = operands_of(name, dtype)
    found = kernel(name, dtype)(*operands)
    with np.errstate(all="ignore"):
        true = reference(name)(*(each.astype(np.longdouble) for each in operands))
    wrong = errors(found, true)
    at = int(np.argmax(wrong))
    assert wrong[at] < 1.0, f"{wrong[at]} units at {[each[at] for each in operands]}: {found[at]}, not {true[at]}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LIBRARY)
def test_error_functions_are_near_the_librarys(name: str, dtype: str) -> None:
    x = samples(dtype, 1)
    x = np.concatenate([x[~np.isnan(x)], np.linspace(-6.0, 28.0, 10 * COUNT).astype(dtype)])
    found, expected = kernel(name, dtype)(x), reference(name)(x)
    np.testing.assert_array_max_ulp(found, expected, LIBRARY[name][1] if dtype == "float64" else 1)


def test_erfc_is_next_to_the_true_value() -> None:
    found = kernel("erfc", "float64")(np.array(list(ERFC)))
    np.testing.assert_array_max_ulp(found, np.array(list(ERFC.values())), 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_numpys(name: str, dtype: str) -> None:
    operands = [specials(dtype)]
    if name in OF_TWO:
        operands = [each.ravel() for each in np.meshgrid(operands[0], operands[0])]
    with np.errstate(all="ignore"):
        expected = reference(name)(*operands)
        # NumPy's vector code for AVX-512 flushes the least subnormal: exp2 of -149 in float32
        wider = reference(name)(*(each.astype(np.float64) for each in operands)).astype(dtype)
    expected = np.where((expected == 0.0) & (abs(wider) == np.finfo(dtype).smallest_subnormal), wider, expected)
    found = kernel(name, dtype)(*operands)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    is_special = ~np.isnan(expected) & ((expected == 0.0) | np.isinf(expected))
    np.testing.assert_array_equal(found[is_special], expected[is_special])
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(expected[is_number]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_lanes_do_not_change_bits(name: str, dtype: str) -> None:
    operands = operands_of(name, dtype)
    alone, together = kernel(name, dtype, 1)(*operands), kernel(name, dtype)(*operands)
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(np.signbit(alone), np.signbit(together))


@pytest.fixture
def plain_processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(machine_code, "target", lambda: ("", ""))
    kernel.cache_clear()
    yield
    kernel.cache_clear()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_processor_without_fma_gives_the_same_bits(name: str, request: pytest.FixtureRequest) -> None:
    operands = [each[::7] for each in operands_of(name, "float64")]
    expected = kernel(name, "float64")(*operands)
    request.getfixturevalue("plain_processor")
    np.testing.assert_array_equal(kernel(name, "float64")(*operands), expected)


def test_a_function_is_defined_once_a_module() -> None:
    emitter = Emitter(innermost=1, lanes=4, scopes=[Scope(), Scope()])
    x = emitter.load("%p", np.dtype("float64"), 1)
    FUNCTIONS["sin"](FUNCTIONS["sin"](x) + FUNCTIONS["sin"](x))
    assert list(emitter.functions) == ["sin.float64.4"]
    calls = [line for line in emitter.scopes[1].lines if "@sin" in line]
    assert len(calls) == 2


def test_a_value_of_an_outer_scope_is_computed_there() -> None:
    emitter = Emitter(innermost=1, lanes=4, scopes=[Scope(), Scope()])
    found = FUNCTIONS["exp"](emitter.load("%p", np.dtype("float64"), 0))
    assert found.level == 0
    assert list(emitter.functions) == ["exp.float64.1"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_of_numbers_may_be_mixed_with_one_of_an_outer_scope(dtype: str) -> None:
    emitter = Emitter(innermost=1, lanes=4, scopes=[Scope(), Scope()])
    x, y = (emitter.load("%p", np.dtype(dtype), level) for level in (1, 0))
    for first, second in itertools.permutations((x, y)):
        assert FUNCTIONS["pow"](first, second).level == 1
    assert list(emitter.functions) == [f"pow.{dtype}.4"]
