"""QD_JAX_EXACT: programs give NumPy's bits, whatever functions they call; XLA computes no part of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import fft, ndimage, special

from accel.compiler.kernels.segments import Segmented
from accel.dispatch.replay.commit import commit
from accel.platform import config
from accel.record import record
from accel.rules.rule import Unsupported
from tests.replays import variant_of

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("foreground", "optimized")

X = np.random.default_rng(5).normal(size=(37, 60)) * 3.0
POSITIVE = np.abs(X) + 0.01


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    with config.override(exact=True, cache_dir=None):
        yield


def interpolated(x: Any) -> Any:
    rows, columns = np.meshgrid(np.arange(37.0), np.arange(60.0), indexing="ij")
    return ndimage.map_coordinates(x, [rows - 0.1 * x, columns + 7.0 * x], order=1, mode="wrap")


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exponentials": lambda x: np.exp(x) + np.expm1(x) * np.exp2(x),
    "logarithms": lambda x: np.log(x) + np.log2(x) * np.log10(x) - np.log1p(x),
    "powers": lambda x: x**3 + x**-2 + x**0.25 + x**1.7 + x**0.5 + 1.3**x + np.cbrt(x),
    "angles": lambda x: np.sin(x) + np.cos(x) * np.tan(x) + np.arctan2(x, x - 1.0) + np.hypot(x, 2.0),
    "hyperbolic": lambda x: np.tanh(x) + np.sinh(x) * np.cosh(x) - np.arcsinh(x),
    "special": lambda x: special.erf(x) + special.expit(x),
    "sums": lambda x: x.sum(axis=1) + x.mean() * x.std(axis=1) - np.cumsum(x, axis=1)[:, -1],
    "masked sums": lambda x: np.where(x > 1.0, x[x > 2.0].mean(), x) - x[x < 1.0].sum(),
    "products": lambda x: (x[:, :37] @ x) + (x.reshape(-1, 3) @ x[0, :3])[:37, None],
    "interpolation": interpolated,
    "filters": lambda x: ndimage.gaussian_filter(x, 1.3) - ndimage.uniform_filter(x, 3, mode="wrap"),
    "order": lambda x: np.median(x, axis=1) + np.percentile(x, 30.0, axis=1),
    "borders": lambda x: np.pad(x, 1, constant_values=3.0) + np.pad(x, 1, mode="reflect", reflect_type="odd"),
    "transforms": lambda x: fft.dct(x, axis=1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_each_bit_is_numpys(name: str, dtype: Any) -> None:
    function, given = FUNCTIONS[name], POSITIVE.astype(dtype)
    variant = variant_of(lambda x: (function(x),), lambda seed: (given + dtype(seed),))
    assert variant is not None
    assert isinstance(variant.executable.compiled, Segmented)
    for seed in range(3):
        values, failed = variant.trace.inputs.fetch((given + dtype(seed),), {})
        assert failed is None
        staged = variant.run(values)
        assert not isinstance(staged, tuple)
        (found,) = commit(staged)
        with np.errstate(all="ignore"):
            expected = function(given + dtype(seed))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_a_number_has_its_type_in_what_numpy_computes() -> None:
    """A Python number leaves float32 as it is, one of NumPy's does not."""
    given = POSITIVE.astype(np.float32)
    variant = variant_of(lambda x, n: (np.power(x, n), np.arctan2(x, n)), lambda seed: (given, 1.3 + seed))
    assert variant is not None
    values, _ = variant.trace.inputs.fetch((given, 2.7), {})
    staged = variant.run(values)
    assert not isinstance(staged, tuple)
    for mine, theirs in zip(commit(staged), (np.power(given, 2.7), np.arctan2(given, 2.7)), strict=True):
        assert mine.dtype == theirs.dtype == np.float32
        np.testing.assert_array_equal(mine, theirs)


def test_what_xla_would_compute_stays_on_numpy() -> None:
    with pytest.raises(Unsupported) as refused:
        variant_of(lambda x: (x * (1.0 + 2.0j) + 1.0,), lambda seed: (X + 0.5j,))
    assert refused.value.reason == "compile.exact"


ORDERS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x,
    "with gaps": lambda x: x[1:-1, ::2],
    "transposed": lambda x: x.T,
    "copied in Fortran order": np.asfortranarray,
    "columns by a list": lambda x: x[:, [3, 1, 2]],
    "computed from a transposed one": lambda x: x.T * 1.5,
    "backwards": lambda x: x[0, ::-1],
    "rows backwards": lambda x: x[::-1],
}
ORDERED: dict[str, Callable[[Any], Any]] = {
    "a sum": lambda v: v.sum(),
    "a mean of rows": lambda v: v.mean(axis=-1),
    "a running product": lambda v: np.cumprod(v),
    "exponentials, copied": lambda v: np.ascontiguousarray(np.exp(v)),
    "roots of cubes": lambda v: np.array(np.cbrt(v), order="C"),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ORDERED)
def test_orders_of_memory_keep_their_bits_or_stay_on_numpy(order: str, name: str) -> None:
    """NumPy adds in the order of memory, and has other functions for arrays that go backwards."""

    def work(x: Any) -> Any:
        return (ORDERED[name](ORDERS[order](x)),)

    recorded = record(work, (X,), {}, max_nodes=1000)
    if order not in ("as it is", "with gaps") and recorded.refusal is not None:
        assert recorded.refusal.reason == "compile.exact"
        return
    variant = variant_of(work, lambda seed: (X + seed,))
    assert variant is not None
    for seed in range(6):
        values, _ = variant.trace.inputs.fetch((X + seed,), {})
        staged = variant.run(values)
        assert not isinstance(staged, tuple)
        np.testing.assert_array_equal(commit(staged)[0], work(X + seed)[0])


def test_new_arrays_that_numpy_has_in_another_order_stay_on_numpy() -> None:
    """The next call would add such an array's elements in another order."""
    recorded = record(lambda x: x.T + 1.0, (X,), {}, max_nodes=1000)
    assert recorded.refusal is not None
    assert recorded.refusal.reason == "compile.exact"
