"""Every covered function against SciPy itself, over dtype, mode, order, shape and parameters."""

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accel import ndimage
from accel.ndimage.table import COVERED, REFUSED, lowering

FILTER_MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-wrap", "grid-mirror", "grid-constant")
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")

# A run draws the same examples each time; every new one costs a compilation.
few = settings(max_examples=20, derandomize=True)


def agree(ours: Any, theirs: NDArray[Any], slack: float = 1.0) -> None:
    """Same type, shape and dtype; integers equal; floats within 1e-12 of the largest value (float32: its epsilon)."""
    assert type(ours) is np.ndarray
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    if theirs.dtype.kind in "biu":
        np.testing.assert_array_equal(ours, theirs)
    elif theirs.size:
        relative = (1e-12 if theirs.dtype.itemsize == 8 else 4e-7) * slack
        finite = np.abs(theirs[np.isfinite(theirs)])
        np.testing.assert_allclose(ours, theirs, rtol=relative, atol=relative * finite.max(initial=1e-300))


def compare(name: str, *args: Any, slack: float = 1.0, **kwargs: Any) -> None:
    """The function `name` of accel and of SciPy on the same arguments: same result, or the same type of exception."""
    try:
        theirs = getattr(scipy.ndimage, name)(*args, **kwargs)
    except (RuntimeError, ValueError, TypeError) as error:
        with pytest.raises(type(error)):
            getattr(ndimage, name)(*args, **kwargs)
        return
    agree(getattr(ndimage, name)(*args, **kwargs), theirs, slack)


@st.composite
def arrays(draw: st.DrawFn, ndim: tuple[int, int] = (1, 3)) -> NDArray[Any]:
    """Arrays of few, moderate values: what is tested are the rules."""
    shape = draw(st.lists(st.integers(1, 6), min_size=ndim[0], max_size=ndim[1]))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    values = rng.normal(size=shape) * 40
    return (np.abs(values) if dtype.kind == "u" else values).astype(dtype)


def kernel(data: st.DataObject, shape: list[int], integral: bool) -> NDArray[np.float64]:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    return rng.integers(-3, 4, size=shape).astype(float) if integral else rng.normal(size=shape)


def origin(data: st.DataObject, size: int) -> int:
    return data.draw(st.integers(-(size // 2), (size - 1) // 2))


modes = st.sampled_from(FILTER_MODES)
cvals = st.sampled_from([0.0, 2.5, -3.0])


@pytest.mark.parametrize("name", ["correlate1d", "convolve1d"])
@given(x=arrays(), mode=modes, cval=cvals, data=st.data())
@few
def test_correlation_along_an_axis(name: str, x: NDArray[Any], mode: str, cval: float, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 7))
    weights = kernel(data, [size], integral=data.draw(st.booleans()))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    compare(name, x, weights, axis=axis, mode=mode, cval=cval, origin=data.draw(st.integers(-size // 2, size // 2)))


@pytest.mark.parametrize("name", ["correlate", "convolve"])
@given(x=arrays(), mode=modes, cval=cvals, data=st.data())
@few
def test_correlation_with_a_kernel(name: str, x: NDArray[Any], mode: str, cval: float, data: st.DataObject) -> None:
    axes = data.draw(st.sampled_from([None, *range(x.ndim)]))
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1 if axes is not None else x.ndim, max_size=x.ndim))
    weights = kernel(data, shape, integral=data.draw(st.booleans()))
    compare(name, x, weights, mode=mode, cval=cval, origin=origin(data, min(shape)), axes=axes)


@given(x=arrays(), cval=cvals, data=st.data())
@settings(few, max_examples=30)
def test_gaussian_family(x: NDArray[Any], cval: float, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["gaussian_filter", "gaussian_laplace", "gaussian_gradient_magnitude"]))
    mode = data.draw(st.lists(modes, min_size=x.ndim, max_size=x.ndim) | modes)
    sigma = data.draw(st.sampled_from([0.4, 1.0, 2.3]))
    options: dict[str, Any] = {"truncate": data.draw(st.sampled_from([2.0, 4.0]))}
    if name == "gaussian_filter":
        options |= {"order": data.draw(st.integers(0, 3)), "axes": data.draw(st.sampled_from([None, (0,), (-1,)]))}
        if options["axes"]:
            mode = mode if isinstance(mode, str) else mode[:1]
    compare(name, x, sigma, mode=mode, cval=cval, slack=50.0, **options)


@given(x=arrays(), name=st.sampled_from(["sobel", "prewitt", "laplace"]), cval=cvals, data=st.data())
@few
def test_differences(x: NDArray[Any], name: str, cval: float, data: st.DataObject) -> None:
    mode = data.draw(st.lists(modes, min_size=x.ndim, max_size=x.ndim) | modes)
    options = {} if name == "laplace" else {"axis": data.draw(st.integers(-x.ndim, x.ndim - 1))}
    compare(name, x, mode=mode, cval=cval, **options)


@given(x=arrays(), cval=cvals, data=st.data())
@settings(few, max_examples=30)
def test_uniform(x: NDArray[Any], cval: float, data: st.DataObject) -> None:
    mode = data.draw(st.lists(modes, min_size=x.ndim, max_size=x.ndim) | modes)
    size = data.draw(st.integers(1, 13))
    if x.dtype.kind in "biu":
        cval = float(int(cval))  # SciPy's running sum of halves may fall short of an integer
    compare("uniform_filter", x, size, mode=mode, cval=cval, origin=origin(data, size), slack=50.0)


@pytest.mark.parametrize("name", ["minimum_filter", "maximum_filter"])
@given(x=arrays(), cval=cvals, data=st.data())
@few
def test_extremes(name: str, x: NDArray[Any], cval: float, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        mode = data.draw(st.lists(modes, min_size=x.ndim, max_size=x.ndim) | modes)
        size = data.draw(st.integers(1, 13))
        compare(name, x, size, mode=mode, cval=cval, origin=origin(data, size))
    else:
        footprint = kernel(data, [3] * x.ndim, integral=True) > 0
        compare(name, x, footprint=footprint, mode=data.draw(modes), cval=cval, origin=data.draw(st.integers(-1, 1)))


@given(x=arrays(), mode=modes, cval=st.sampled_from([0.0, 2.0, -3.0]), data=st.data())
@settings(few, max_examples=30)
def test_ranks(x: NDArray[Any], mode: str, cval: float, data: st.DataObject) -> None:
    name, args = data.draw(
        st.sampled_from(
            [("median_filter", ()), ("rank_filter", (1,)), ("rank_filter", (-2,)), ("percentile_filter", (30,))]
        )
    )
    widest = 4 if x.ndim > 1 else min(x.size, 4)  # SciPy's one-dimensional algorithm needs a line as long as the window
    size = [data.draw(st.integers(1, widest)) for _ in x.shape]
    window = {"size": size} if data.draw(st.booleans()) else {"footprint": kernel(data, size, integral=True) >= 0}
    if x.dtype.kind == "u":
        cval = abs(cval)  # a negative double has no unsigned value: each of SciPy's two algorithms makes its own of it
    compare(name, x, *args, mode=mode, cval=cval, origin=origin(data, min(size)), **window)


orders = st.integers(0, 5)
outputs = st.sampled_from([None, "float32", "float64", "int16", "uint8"])


@given(x=arrays(ndim=(1, 2)), order=orders, mode=modes, cval=cvals, prefilter=st.booleans(), data=st.data())
@settings(few, max_examples=60)
def test_map_coordinates(
    x: NDArray[Any], order: int, mode: str, cval: float, prefilter: bool, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    points = rng.uniform(-15, 20, size=(x.ndim, 40))
    if order < 2:
        points[:, :20] = rng.integers(-15, 20, size=(x.ndim, 20))  # exact multiples of every period
    output = None if x.dtype.kind == "c" else data.draw(outputs)
    compare(
        "map_coordinates", x, points, output=output, order=order, mode=mode, cval=cval, prefilter=prefilter, slack=10.0
    )


@given(x=arrays(ndim=(1, 2)), order=orders, mode=modes, cval=cvals, data=st.data())
@settings(few, max_examples=40)
def test_resampling(x: NDArray[Any], order: int, mode: str, cval: float, data: st.DataObject) -> None:
    options = {"order": order, "mode": mode, "cval": cval, "slack": 10.0}
    assume(x.dtype.kind != "b" or order < 2)  # SciPy truncates: 1 - 1e-16 is False
    factor = data.draw(st.sampled_from([0.37, 0.81, 1.13, 2.29]))
    name = data.draw(st.sampled_from(["shift", "zoom", "affine_transform", "rotate"]))
    if name == "shift":
        compare(name, x, data.draw(st.sampled_from([0.31, -7.7, 3])), **options)
    elif name == "zoom":
        grid_mode = mode not in ("constant", "wrap") and data.draw(st.booleans())
        compare(name, x, factor, grid_mode=grid_mode, **options)
    elif name == "affine_transform":
        matrix = kernel(data, [x.ndim] * data.draw(st.integers(1, 2)), integral=False)
        compare(name, x, matrix, offset=0.73, output_shape=(5,) * x.ndim, **options)
    elif x.ndim == 2:
        compare(name, x, 100 * factor, reshape=data.draw(st.booleans()), **options)


@pytest.mark.parametrize("cval", [1.7, 300.0, np.nan])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_splines_extend_by_the_fill_value_in_the_dtype_of_the_array(dtype: Any, cval: float) -> None:
    x = (np.random.default_rng(0).uniform(0.0, 3.0, (7, 12)) * 60).astype(dtype)
    points = np.indices(x.shape) * 1.07 - 0.3
    with np.errstate(invalid="ignore"):
        compare("map_coordinates", x, points, order=2, mode="grid-constant", cval=cval, slack=10.0)
        compare("zoom", x, 1.7, order=3, mode="grid-constant", cval=cval, slack=10.0)


@given(x=arrays(), order=st.integers(2, 5), mode=st.sampled_from(["mirror", "reflect", "grid-wrap"]))
@few
def test_spline_filter(x: NDArray[Any], order: int, mode: str) -> None:
    compare("spline_filter", x, order, mode=mode, output=np.float64, slack=10.0)


@pytest.mark.parametrize("mode", ["nearest", "reflect", "mirror", "wrap", "grid-wrap", "constant", "grid-constant"])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_not_a_number_and_infinity(order: int, mode: str) -> None:
    """NaN in the input spreads as in SciPy, through taps of weight 0 too; so do NaN coordinates."""
    x = np.arange(20.0)
    x[7], x[12] = np.nan, np.inf
    points = np.array([[0.0, 6.0, 6.5, 7.0, 8.0, 11.0, 11.5, 12.0, 13.0, 19.0, np.nan, -3.25, 30.0]])
    ours = ndimage.map_coordinates(x, points, order=order, mode=mode, cval=-1.0, prefilter=False)
    theirs = scipy.ndimage.map_coordinates(x, points, order=order, mode=mode, cval=-1.0, prefilter=False)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("mode", FILTER_MODES)
def test_infinite_coordinates(mode: str, order: int, rows: int) -> None:
    # NaN in some modes, outside in others: behind a run that diverged, NaN must not become a number
    x = np.arange(6.0 * rows).reshape(rows, 6) ** 2
    for axis in range(2):
        points = np.array([[0.5, 1.5, 2.0, 0.25]] * 2)
        points[axis, 1:3] = np.inf, -np.inf
        compare("map_coordinates", x, points, order=order, mode=mode, cval=-5.0, slack=100.0)


@pytest.mark.parametrize("mode", FILTER_MODES)
@pytest.mark.parametrize("order", [0, 1, 3])
def test_huge_coordinates_stay_within_the_array(order: int, mode: str) -> None:
    """What is left of them is a place in the array or next to it, or `cval` is returned."""
    x = np.random.default_rng(0).uniform(1.0, 2.0, (7, 9))
    huge = np.array([1e16, -1e16, 2.0**53, -(2.0**62), 1e18, 1e300, -1e300, np.inf, -np.inf])
    points = np.array([np.concatenate([huge, huge, np.full(9, 2.0)]), np.concatenate([huge, np.full(9, 3.0), huge])])
    with np.errstate(all="ignore"):
        ours = ndimage.map_coordinates(x, points, order=order, mode=mode, cval=7.0, prefilter=False)
    finite = np.isfinite(points).all(axis=0)
    assert np.all(np.abs(ours[finite]) < 20.0)
    assert np.all((np.abs(ours) < 20.0) | np.isnan(ours))


@pytest.mark.parametrize("order", [0, 1])
def test_single_precision_counts_more_cells_than_its_floats_do(order: int) -> None:
    """An index computed in float32 would be even beyond 2**24."""
    import jax
    import jax.numpy as jnp

    side = 4100
    x = np.zeros((side, side), np.int8)
    x[-1, -2] = 5
    with jax.enable_x64(False):
        points = jnp.asarray([[side - 1.0, side - 1.0], [side - 2.0, side - 3.0]])
        found = ndimage.map_coordinates(jnp.asarray(x), points, order=order, mode="wrap", prefilter=False)
    assert (side * side - 2) % 2 == 0 and np.asarray(found).tolist() == [5, 0]


@pytest.mark.parametrize("mode", FILTER_MODES)
def test_zero_weights_meet_nan(mode: str) -> None:
    """A weight of 0 hides a NaN in an n-dimensional kernel and spreads it in a one-dimensional one, as in SciPy."""
    x = np.arange(30.0).reshape(5, 6)
    x[2, 3] = np.nan
    compare("correlate", x, np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0.0]]), mode=mode)
    compare("correlate1d", x, np.array([0.0, 1, 2]), mode=mode)
    compare("sobel", x, mode=mode)


@pytest.mark.parametrize("weights", [[1, 2, np.nan], [np.nan, 1, 2], [1, np.nan, 2], [1, 2, 3, np.nan, 1]])
def test_weights_that_are_nan_count_as_symmetric(weights: list[float]) -> None:
    """SciPy reads one half of a symmetric kernel: what is NaN in the other one is never seen."""
    x = np.arange(8.0) ** 2
    compare("correlate1d", x, np.array(weights))
    compare("convolve1d", x, np.array(weights), mode="wrap")


def test_casts_of_values_out_of_range() -> None:
    x = np.array([1.0, 300.0, -5.0, -5.7, np.nan, 1e20, -1e20, 2.0**31, 2.0**63, -(2.0**63)])
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        compare("correlate1d", x, [1.0], output=dtype)


def test_signatures_are_scipys() -> None:
    for name in COVERED:
        expected = inspect.signature(getattr(scipy.ndimage, name)).parameters.values()
        for function in (lowering(name), getattr(ndimage, name)):
            ours = inspect.signature(function).parameters.values()
            assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in expected], name


def test_every_function_of_scipy_is_covered_or_refused() -> None:
    public = {name for name in scipy.ndimage.__all__ if callable(getattr(scipy.ndimage, name))}
    assert public <= COVERED.keys() | REFUSED.keys()
    assert not COVERED.keys() & REFUSED.keys()


@pytest.mark.parametrize("name", ["minimum_filter", "maximum_filter", "median_filter"])
@pytest.mark.parametrize("footprint", [[True, True, False], [True, False, True], [True, True, True]])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "uint16", "uint32", "int32"])
@pytest.mark.parametrize("cval", [-3.0, 2.5, 100.0])
def test_a_fill_value_that_no_element_is(name: str, footprint: list[bool], dtype: str, cval: float) -> None:
    """SciPy keeps it in the input's type where the footprint has holes: -3.0 is 253 among bytes and bools."""
    compare(name, np.array([0, 5]).astype(dtype), footprint=np.array(footprint), mode="constant", cval=cval)
