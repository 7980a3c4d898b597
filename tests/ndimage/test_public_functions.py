"""The public functions as users call them: kinds of arrays, outputs, jit, grad, refusals, settings left alone."""

import math
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.ndimage

from accel import ndimage
from accel.ndimage import boundary, dispatch
from accel.ndimage.filters import rank
from accel.ndimage.interpolation import spline
from accel.ndimage.table import COVERED, REFUSED, lowering

X = np.random.default_rng(0).normal(size=(9, 11))
POINTS = np.random.default_rng(1).uniform(-4, 14, size=(2, 30))

# One ordinary call of every function, beside the image itself.
CALLS: dict[str, tuple[Any, ...]] = {
    "affine_transform": (np.array([[0.9, 0.2], [-0.1, 1.1]]), (0.3, -0.4)),
    "convolve": (np.arange(9.0).reshape(3, 3),),
    "convolve1d": ([1.0, 2.0, 4.0],),
    "correlate": (np.arange(9.0).reshape(3, 3),),
    "correlate1d": ([1.0, 2.0, 4.0],),
    "gaussian_filter": (1.2,),
    "gaussian_filter1d": (1.2,),
    "gaussian_gradient_magnitude": (1.2,),
    "gaussian_laplace": (1.2,),
    "laplace": (),
    "map_coordinates": (POINTS,),
    "maximum_filter": (3,),
    "maximum_filter1d": (3,),
    "median_filter": (3,),
    "minimum_filter": (3,),
    "minimum_filter1d": (3,),
    "percentile_filter": (30, 3),
    "prewitt": (),
    "rank_filter": (2, 3),
    "rotate": (33.0,),
    "shift": (1.3,),
    "sobel": (),
    "spline_filter": (),
    "spline_filter1d": (),
    "uniform_filter": (3,),
    "uniform_filter1d": (3,),
    "zoom": (1.4,),
}
TRACEABLE = sorted(COVERED)


@pytest.mark.parametrize("name", sorted(COVERED))
def test_numpy_in_numpy_out_in_double_precision(name: str) -> None:
    result = getattr(ndimage, name)(X, *CALLS[name])
    expected = getattr(scipy.ndimage, name)(X, *CALLS[name])
    assert type(result) is np.ndarray
    assert result.flags.writeable and result.flags.owndata
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("name", TRACEABLE)
def test_jax_in_jax_out_under_the_callers_jit(name: str) -> None:
    image = jnp.asarray(X, jnp.float32)
    call = getattr(ndimage, name)
    expected = getattr(scipy.ndimage, name)(X, *CALLS[name])
    for result in (call(image, *CALLS[name]), jax.jit(lambda x: call(x, *CALLS[name]))(image)):
        assert isinstance(result, jax.Array)
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
        assert result.dtype == jnp.float32


@pytest.mark.parametrize("name", TRACEABLE)
def test_lowering_inside_a_trace(name: str) -> None:
    """What the engine does: 64-bit types on, a traced image, SciPy's dtype and shape out."""
    expected = getattr(scipy.ndimage, name)(X, *CALLS[name])
    with jax.enable_x64(True):
        result = jax.jit(lambda x: lowering(name)(x, *CALLS[name]))(X)
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["convolve", "correlate1d", "gaussian_filter", "map_coordinates", "zoom", "sobel"])
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    with jax.enable_x64(True):
        direction = jnp.asarray(np.cos(np.arange(X.size)).reshape(X.shape))

        def value(t: jax.Array) -> jax.Array:
            return jnp.sum(jnp.sin(lowering(name)(jnp.asarray(X) + t * direction, *CALLS[name])))

        step = 1e-5
        slope = (value(step) - value(-step)) / (2 * step)
        np.testing.assert_allclose(jax.grad(value)(0.0), slope, rtol=1e-6)


def test_gradient_with_respect_to_coordinates_and_shift() -> None:
    line = jnp.arange(6.0) * 3
    slope = jax.grad(lambda c: ndimage.map_coordinates(line, c[None, None], order=1)[0])(jnp.asarray(2.5))
    np.testing.assert_allclose(slope, 3.0, rtol=1e-5)
    slope = jax.grad(lambda s: ndimage.shift(line, s, order=1)[3])(jnp.asarray(0.5))
    np.testing.assert_allclose(slope, -3.0, rtol=1e-5)


@pytest.mark.parametrize("name", ["convolve", "correlate", "convolve1d", "correlate1d"])
def test_traced_kernels(name: str) -> None:
    weights = np.asarray(CALLS[name][0])
    with jax.enable_x64(True):
        result = jax.jit(lowering(name))(X, weights)
    np.testing.assert_allclose(result, getattr(scipy.ndimage, name)(X, weights), rtol=1e-12)


def test_output_arrays() -> None:
    out = np.zeros_like(X, dtype=np.float32)
    assert ndimage.gaussian_filter(X, 1.0, output=out) is out
    np.testing.assert_allclose(out, scipy.ndimage.gaussian_filter(X, 1.0, output=np.float32), rtol=1e-6)
    own = X.copy()
    ndimage.gaussian_filter(own, 1.0, output=own)
    np.testing.assert_allclose(own, scipy.ndimage.gaussian_filter(X, 1.0), rtol=1e-12)
    with pytest.raises(RuntimeError, match="output shape not correct"):
        ndimage.sobel(X, output=np.zeros(3))
    with pytest.raises(ndimage.NotCovered, match="JAX"):
        ndimage.sobel(jnp.asarray(X), output=out)


def test_an_argument_edited_after_the_call_does_not_change_the_result() -> None:
    image = np.ascontiguousarray(X)
    result = ndimage.uniform_filter(image, 3)
    kept = result.copy()
    image[:] = 0
    np.testing.assert_array_equal(result, kept)


def test_warnings_come_in_every_call() -> None:
    for _ in range(2):
        with pytest.warns(UserWarning, match="ignoring size"):
            ndimage.median_filter(X, size=3, footprint=np.ones((3, 3)))


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_the_rest_is_refused_with_a_reason(name: str) -> None:
    with pytest.raises(ndimage.NotCovered, match=f"accel.ndimage.{name}: .*Use scipy.ndimage.{name}"):
        getattr(ndimage, name)(X)


@pytest.mark.parametrize("name", ["gaussian_filter", "map_coordinates", "shift", "spline_filter", "uniform_filter1d"])
def test_complex_numbers_are_refused(name: str) -> None:
    with pytest.raises(ndimage.NotCovered, match="complex"):
        getattr(ndimage, name)(X * 1j, np.ones((2, 3)) if name == "map_coordinates" else 2)
    with pytest.raises(ndimage.NotCovered, match="complex"):
        ndimage.correlate1d(X, [1.0, 2j])


def test_fill_values_that_c_cannot_cast_are_left_to_scipy():
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    for function in (ndimage.maximum_filter, ndimage.median_filter):
        with pytest.raises(ndimage.NotCovered, match="cval=nan in an array of bool"):
            function(np.ones((4, 5), bool), footprint=cross, mode="constant", cval=math.nan)


def test_values_that_must_be_known_are_refused_when_traced() -> None:
    with pytest.raises(ndimage.NotCovered, match="zoom"):
        jax.jit(ndimage.zoom)(X, 2.0)
    with pytest.raises(ndimage.NotCovered, match="rotate"):
        jax.jit(ndimage.rotate)(X, 2.0)
    with pytest.raises(AttributeError):
        _ = ndimage.no_such_function


def test_programs_are_reused_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MOST_PROGRAMS", 3)
    monkeypatch.setattr(dispatch, "_programs", type(dispatch._programs)())
    for weight in (1.0, 1.0, 2.0, 3.0, 4.0):
        np.testing.assert_allclose(ndimage.correlate1d(X, [weight]), X * weight)
    assert len(dispatch._programs) == 3
    assert len({dispatch.frozen(v) for v in (1, 1.0, True, 0.0, -0.0, "1", (1,), [1], None)}) == 9
    assert dispatch.frozen(float("nan")) == dispatch.frozen(float("nan"))


def test_selection_networks_select() -> None:
    """The 0-1 principle: a network that is right for all sequences of zeros and ones is right for all."""
    for n in range(1, 11):
        bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        for wanted in range(n):
            values = [bits[:, i] for i in range(n)]
            for i, j, low, high in rank.selection_network(n, wanted):
                a, b = values[i], values[j]
                values[i] = np.minimum(a, b) if low else values[i]
                values[j] = np.maximum(a, b) if high else values[j]
            np.testing.assert_array_equal(values[wanted], np.sort(bits, axis=1)[:, wanted])


@pytest.mark.parametrize("order", range(2, 6))
def test_spline_weights_and_both_prefilters(order: int) -> None:
    fraction = np.linspace(-0.5, 0.49, 9) if order % 2 == 0 else np.linspace(0, 0.99, 9)
    weights = np.array(spline.weights(fraction, order))
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    assert weights.min() > -1e-15
    long = np.random.default_rng(2).normal(size=(spline.SHORT_AXIS + 9, 3))
    for mode in ("mirror", "reflect", "grid-wrap"):
        with jax.enable_x64(True):
            looped = spline.prefilter_axis(jnp.asarray(long), order, 0, spline.PREFILTER_RULES[mode])
        matrix = spline._filter_matrix(len(long), order, spline.PREFILTER_RULES[mode])
        np.testing.assert_allclose(looped, matrix @ long, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", ["mirror", "reflect", "wrap", "grid-wrap"])
def test_folding_is_exact_at_multiples_of_the_period(mode: str) -> None:
    """XLA multiplies by the reciprocal of a constant, which is one period short at some multiples."""
    for n in (2, 3, 50, 240):
        c = np.arange(-3000.0, 3000.0)
        with jax.enable_x64(True):
            folded = jax.jit(lambda c, n=n: boundary.fold(c, n, mode))(c)
        np.testing.assert_allclose(folded, boundary.fold(c, n, mode, np), atol=1e-14)
        line = np.arange(float(n))
        expected = scipy.ndimage.map_coordinates(line, c[None], order=1, mode=mode)
        np.testing.assert_array_equal(ndimage.map_coordinates(line, c[None], order=1, mode=mode), expected)


def test_importing_accel_does_not_import_jax() -> None:
    code = "import sys, accel; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
