"""Small programs whose results jump on one rounding error: under accel they give NumPy's bits.

Each is called on ordinary data until its program is in use, then on data that lie on the edge: equal products, double
roots, parallel vectors, particles at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import fft, linalg, ndimage, special
from scipy.spatial import distance

import accel
from accel.platform import config
from accel.platform.ledger import open_ledger
from tests.rounding.bits import Call, differs_in_kind, replay_mismatches

pytestmark = pytest.mark.usefixtures("foreground", "optimized")

SIZE = 1000
USUAL, EDGE = 20, 30
"""Calls on ordinary data, and calls on the edge after them."""

Draw = np.random.Generator


def random_arrays(draw: Draw, count: int, low: float = 0.1, high: float = 10.0) -> list[np.ndarray]:
    return list(draw.uniform(low, high, (count, SIZE)))


def calls_of(usual: Callable[[Draw], Call], edge: Callable[[Draw], Call]) -> Iterator[Call]:
    """Arguments of ordinary calls, then of calls on the edge."""
    draw = np.random.default_rng(7)
    for number in range(USUAL + EDGE):
        yield usual(draw) if number < USUAL else edge(draw)


def four(draw: Draw) -> Call:
    return tuple(random_arrays(draw, 4))


def equal_products(draw: Draw) -> Call:
    """a, b, c, d with a*b equal to c*d."""
    a, b = random_arrays(draw, 2)
    return a, b, a.copy(), b.copy()


def swapped_products(draw: Draw) -> Call:
    """a, b, c, d with a*b equal to c*d, the factors in the other order."""
    a, b = random_arrays(draw, 2)
    return a, b, b.copy(), a.copy()


# -- differences of products -------------------------------------------------------------------------------------------


def reciprocal(a: Any, b: Any, c: Any, d: Any) -> Any:
    return 1.0 / (a * b - c * d)


def quotient(a: Any, b: Any, c: Any, d: Any) -> Any:
    return (a - b) / (a * b - d * c)


def root(a: Any, b: Any, c: Any, d: Any) -> Any:
    return np.sqrt(a * b - c * d)


def root_in_place(a: Any, b: Any, c: Any, d: Any) -> Any:
    a *= b
    a -= c * d
    np.sqrt(a, out=a)
    return a.max()


def signs(a: Any, b: Any, c: Any, d: Any) -> Any:
    moved = a * b - c * d
    return np.sign(moved), np.floor(moved), np.count_nonzero(moved), np.where(moved > 0, a, b)


def triangle_heights(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Neighbours and shifts, so that XLA computes products again for each reader."""
    twice = a * np.roll(b, 1) - c * np.roll(d, 1)
    return twice / (1.0 + a), np.maximum(twice, 0.0) > 0, twice[1:] == twice[:-1]


@pytest.mark.parametrize("function", [reciprocal, quotient, root, root_in_place, signs, triangle_heights])
@pytest.mark.parametrize("edge", [equal_products, swapped_products])
def test_equal_products_cancel(function: Any, edge: Any) -> None:
    assert not replay_mismatches(function, calls_of(four, edge), function.__name__)


def test_equal_products_of_float32_cancel() -> None:
    def single(make: Callable[[Draw], Call]) -> Callable[[Draw], Call]:
        return lambda draw: tuple(array.astype(np.float32) for array in make(draw))

    assert not replay_mismatches(reciprocal, calls_of(single(four), single(equal_products)), "reciprocal of float32")


def log_of_determinant(a: Any, b: Any, c: Any, d: Any) -> Any:
    return np.log(np.abs(a * d - b * c))


def test_the_logarithm_of_a_zero_determinant_is_infinite() -> None:
    def singular(draw: Draw) -> Call:
        a, b = random_arrays(draw, 2)
        return a, b, a.copy(), b.copy()

    assert not replay_mismatches(log_of_determinant, calls_of(four, singular), "log", differs_in_kind)


# -- particles that come to rest ---------------------------------------------------------------------------------------

STEPS = 250
"""All particles are at rest after 150."""


class Beam:
    """Particles of five masses, MeV, that lose energy until they are at rest."""

    def __init__(self) -> None:
        draw = np.random.default_rng(3)
        self.mass = draw.choice([0.51099895, 105.6583755, 139.57039, 493.677, 938.27208816], SIZE)
        self.energy = self.mass + 40.0 + 20.0 * draw.random(SIZE)
        self.z = np.zeros(SIZE)


def slow_down(beam: Beam) -> None:
    momentum = np.sqrt(beam.energy * beam.energy - beam.mass * beam.mass)
    beam.z += 0.1 * momentum / beam.energy
    beam.energy = np.maximum(beam.energy - 0.4, beam.mass)


def slow_down_and_count(beam: Beam) -> Any:
    moving = beam.energy * beam.energy - beam.mass * beam.mass
    slow_down(beam)
    return np.count_nonzero(moving)


@pytest.mark.parametrize("step", [slow_down, slow_down_and_count])
def test_particles_at_rest_have_no_momentum(step: Any) -> None:
    beam = Beam()
    assert not replay_mismatches(step, [(beam,)] * STEPS, step.__name__)
    assert np.array_equal(beam.energy, beam.mass)
    assert np.isfinite(beam.z).all()


# -- double roots, parallel vectors, flat polygons ---------------------------------------------------------------------


def roots(a: Any, b: Any, c: Any) -> Any:
    spread = np.sqrt(b * b - 4.0 * a * c)
    return (-b + spread) / (2.0 * a), (-b - spread) / (2.0 * a), np.isnan(spread).sum()


def test_double_roots_stay_one_root() -> None:
    def two(draw: Draw) -> Call:
        a, left, right = random_arrays(draw, 3)
        return a, -a * (left + right), a * left * right

    def double(draw: Draw) -> Call:
        """b*b equal to 4*a*c: factors of few bits, scaled by powers of two, and products that round."""
        a, left, _ = random_arrays(draw, 3)
        few = np.round(left * 4096.0) / 4096.0
        return np.where(draw.random(SIZE) < 0.5, a, few), 2.0 * np.where(few > 5.0, few, a), np.where(few > 5.0, few, a)

    assert not replay_mismatches(roots, calls_of(two, double), "roots")


def angle(u: Any, v: Any) -> Any:
    inner = u[0] * v[0] + u[1] * v[1] + u[2] * v[2]
    lengths = np.sqrt(u[0] ** 2 + u[1] ** 2 + u[2] ** 2) * np.sqrt(v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
    return np.arccos(inner / lengths)


def test_parallel_vectors_have_the_angle_of_numpy() -> None:
    """Rounded cosines lie at 1 or beside it: NumPy's angle is 0, 1.5e-8 or NaN."""

    def any_two(draw: Draw) -> Call:
        return draw.normal(size=(3, SIZE)), draw.normal(size=(3, SIZE))

    def parallel(draw: Draw) -> Call:
        u = draw.normal(size=(3, SIZE))
        return u, u * draw.choice([1.0, -1.0, 0.3, 7.0], SIZE)

    assert not replay_mismatches(angle, calls_of(any_two, parallel), "angle", differs_in_kind)


def proper_speed(g: Any, u: Any, v: Any) -> Any:
    return np.sqrt(g * g - 1.0 - u * u - v * v)


def test_the_last_component_of_a_momentum_on_the_edge() -> None:
    def inside(draw: Draw) -> Call:
        u, v, w = random_arrays(draw, 3)
        return np.sqrt(1.0 + u * u + v * v + w * w), u, v

    def on_the_edge(draw: Draw) -> Call:
        u, v = random_arrays(draw, 2)
        return np.sqrt(1.0 + u * u + v * v), u, v

    assert not replay_mismatches(proper_speed, calls_of(inside, on_the_edge), "proper speed")


def area(x: Any, y: Any) -> Any:
    """Root of the signed area of polygons, corners along the first axis."""
    twice = x * np.roll(y, -1, axis=0) - np.roll(x, -1, axis=0) * y
    total = twice[0] + twice[1] + twice[2] + twice[3]
    return np.sqrt(0.5 * total)


def test_flat_polygons_have_the_area_of_numpy() -> None:
    def convex(draw: Draw) -> Call:
        x, y = (np.array(random_arrays(draw, 4)) for _ in range(2))
        return x + np.array([[0.0], [10.0], [10.0], [0.0]]), y + np.array([[0.0], [0.0], [10.0], [10.0]])

    def flat(draw: Draw) -> Call:
        x = np.array(random_arrays(draw, 4))
        return x, x * draw.choice([1.0, 3.0, 0.1], SIZE)

    assert not replay_mismatches(area, calls_of(convex, flat), "area")


# -- constants ---------------------------------------------------------------------------------------------------------


def counted(x: Any, y: Any) -> Any:
    return (
        np.count_nonzero(x * y - y * x != 0.0),
        np.count_nonzero((x + 1e16) - 1e16 == x),
        np.count_nonzero(x / 3.0 == x * (1 / 3.0)),
        np.count_nonzero((x + 1.5 * 2**52) - 1.5 * 2**52 == x),
        np.count_nonzero(x * 0.1 * 0.3 == x * 0.03),
        np.count_nonzero((x * y) / y == x),
    )


def rounded_by_constants(x: Any, y: Any) -> Any:
    return (
        (x + 1e16) - 1e16,
        (x + 1.5 * 2**52) - 1.5 * 2**52,
        x / 3.0 + y / 3.0,
        x * 0.1 * 0.3,
        x - (x - y),
        (x + y) + -y,
        x * 3.0 / 3.0,
        7.0 / x / y,
        x / y * y,
        x * 0.0 + y,
        0.0 - (x - x),
    )


@pytest.mark.parametrize("function", [counted, rounded_by_constants])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_algebra_that_rounds_otherwise_is_not_used(function: Any, dtype: Any) -> None:
    def pair(draw: Draw) -> Call:
        return tuple(array.astype(dtype) for array in random_arrays(draw, 2, -1e3, 1e3))

    assert not replay_mismatches(function, calls_of(pair, pair), function.__name__)


# -- repeated rows and outer products ----------------------------------------------------------------------------------


def divided_by_meshgrid(x: Any, u: Any, v: Any, s: Any) -> Any:
    row = np.meshgrid(u, v)[0]
    return x / (row * 2.0), x / (row * s), x / np.sqrt(row), x / (1.0 - row), x / np.clip(row, 2.0, 3.0), x / row**2 / s


def divided_by_spread(x: Any, u: Any, v: Any, s: Any) -> Any:
    return x / (x[:, :1] + 1.0), x / (x[:1] * s), x / np.maximum(x[:, -1:], s) / 3.0


def divided_by_repeats(x: Any, u: Any, v: Any, s: Any) -> Any:
    return x / np.tile(u, (20, 1)), x / (np.repeat(u[None], 20, axis=0) * 0.3), x / (np.indices(x.shape)[1] + 0.3)


def outer_products(x: Any, u: Any, v: Any, s: Any) -> Any:
    return np.einsum("i,j->ij", v, u) - x, np.dot(v[:, None], u[None]) + x, np.tensordot(v, u, axes=0) - x


def products_along_axes(x: Any, u: Any, v: Any, s: Any) -> Any:
    return x[:2].prod(axis=0) - u, np.prod(x[:, :3], axis=1) + v, np.cumprod(x[:2], axis=0) - 1.0


@pytest.mark.parametrize(
    "function", [divided_by_meshgrid, divided_by_spread, divided_by_repeats, outer_products, products_along_axes]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_repeat_and_outer_products(function: Any, dtype: Any) -> None:
    def grid(draw: Draw) -> Call:
        x, u, v = draw.uniform(0.5, 5.0, (20, 50)), draw.uniform(1.5, 5.0, 50), draw.uniform(0.5, 5.0, 20)
        return x.astype(dtype), u.astype(dtype), v.astype(dtype), dtype(draw.uniform(0.5, 5.0))

    assert not replay_mismatches(function, calls_of(grid, grid), function.__name__)


# -- casts -------------------------------------------------------------------------------------------------------------


def halves(x: Any) -> Any:
    return x.astype(np.float16), x.astype(np.float32), x.astype(np.float32).astype(np.float16)


def test_float64_becomes_float16_by_one_rounding() -> None:
    """Just beside the middle between two float16: by way of float32 it would be the middle, which goes to even."""

    def anywhere(draw: Draw) -> Call:
        return (draw.uniform(-1000.0, 1000.0, SIZE),)

    def near_the_middle(draw: Draw) -> Call:
        left = draw.uniform(-1000.0, 1000.0, SIZE).astype(np.float16)
        middle = (left.astype(float) + np.nextafter(left, np.float16(np.inf)).astype(float)) / 2.0
        return (middle + draw.choice([-1e-12, 0.0, 1e-12], SIZE),)

    assert not replay_mismatches(halves, calls_of(anywhere, near_the_middle), "halves")


def whole_quotients_of_halves(x: Any, s: float) -> Any:
    return x // 0.3, x // s, np.floor_divide(0.1, x), divmod(x, 0.1)


def test_whole_quotients_of_halves_take_a_number_as_a_half() -> None:
    """0.3 as a half is 0.30005."""
    draw = np.random.default_rng(7)
    calls = [((100.0 * draw.normal(size=SIZE)).astype(np.float16), number / 7.0) for number in range(1, 21)]
    assert not replay_mismatches(whole_quotients_of_halves, calls, "quotients of halves")


# -- subnormal numbers -------------------------------------------------------------------------------------------------


def halved(x: Any) -> Any:
    x *= 0.5
    return np.count_nonzero(x > 0.0), x * 2.0 == 0.0


@pytest.mark.parametrize(("dtype", "steps"), [(np.float64, 1080), (np.float32, 155)])
def test_halving_counts_subnormal_numbers(dtype: Any, steps: int) -> None:
    x = np.linspace(0.5, 1.0, 33, dtype=dtype)
    assert not replay_mismatches(halved, [(x,)] * steps, f"halved {dtype.__name__}")
    assert not x.any()


@pytest.mark.usefixtures("by_xla")
def test_extremes_of_singles_and_a_zero_have_numpys_sign() -> None:
    """XLA's own maximum of zeros is 0.0; NumPy's is the second."""
    x = np.array([0.0, -0.0, 1.0, np.nan] * 5, np.float32)

    def extremes(x: Any) -> Any:
        return np.maximum(x, -0.0), np.minimum(x, 0.0), np.maximum(0.0, x), np.minimum(-0.0, x)

    assert not replay_mismatches(extremes, [(x,)] * 6, "extremes of singles")


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_clipped_zeros_keep_numpys_sign(kernels: bool, dtype: Any) -> None:
    """Bounds that are numbers leave a zero as it is; arrays as bounds replace it, except of halves."""
    draw = np.random.default_rng(7)
    zeros = np.array([0.0, -0.0, 1.0, -1.0, np.nan], dtype)

    def clipped(x: Any, low: Any, high: Any, least: float, most: float) -> Any:
        return np.clip(x, low, high), x.clip(low, most), np.clip(x, least, most), x.clip(least), np.clip(x, None, high)

    calls = [(*draw.choice(zeros, (3, 77)), *draw.choice([0.0, -0.0, 0.5], 2).tolist()) for _ in range(20)]
    with accel.override(kernels=kernels):
        assert not replay_mismatches(clipped, calls, f"clipped {dtype.__name__} {kernels}")


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex128])
def test_known_zeros_that_are_added_keep_numpys_sign(kernels: bool, dtype: Any) -> None:
    """XLA took `x - -0.0` for `x`, which may be -0.0 where NumPy has 0.0."""
    zeros = np.array([0.0, -0.0, 1.0, -1.0], np.dtype(dtype).type(0).real.dtype)

    def added(x: Any) -> Any:
        known = x + 0.0, x + -0.0, x - 0.0, x - -0.0, 0.0 - x, -0.0 - x, x - np.full(77, -0.0), -x - np.zeros(77)
        return tuple(part for each in known for part in (each.real, each.imag))

    draw = np.random.default_rng(7)
    calls = [(draw.choice(zeros, (77, 2 if dtype is np.complex128 else 1)).view(dtype)[:, 0],) for _ in range(20)]
    with accel.override(kernels=kernels):
        assert not replay_mismatches(added, calls, f"zeros {np.dtype(dtype)} {kernels}")


@pytest.mark.parametrize("percent", [10, 30, 77.7])
def test_quantiles_of_singles_are_interpolated_in_double_precision(percent: float) -> None:
    draw = np.random.default_rng(7)
    calls = [(draw.standard_normal((19, 50)).astype(np.float32),) for _ in range(20)]
    assert not replay_mismatches(lambda x: np.percentile(x, percent, axis=0), calls, f"percentile {percent}")


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("method", ["linear", "weibull", "midpoint", "interpolated_inverted_cdf", "normal_unbiased"])
@pytest.mark.parametrize("size", [1, 2, 6])
def test_quantiles_at_both_ends_are_numpys(method: Any, size: int) -> None:
    """Infinities beside an end make it NaN, or do not; the sign of negative zeros shows how NumPy counts there."""
    draw = np.random.default_rng(7)
    numbers = [np.full((size, 3), -0.0), *(draw.choice([1.0, np.inf, -np.inf], (size, 40)) for _ in range(5))]
    ends = [0.0, 0.02, 0.5, 0.99, 1.0]
    mismatches = replay_mismatches(
        lambda x: np.quantile(x, ends, axis=0, method=method), [(x,) for x in numbers for _ in range(2)], "ends"
    )
    assert not mismatches


def test_traces_are_added_in_numpys_order() -> None:
    draw = np.random.default_rng(7)
    calls = [(draw.standard_normal((33, 40)),) for _ in range(20)]
    assert not replay_mismatches(lambda x: (np.trace(x * 1.1), np.trace(x, 2)), calls, "traces")


def halved_and_counted(x: Any, count: int) -> Any:
    x = x * 0.5
    return x, count + int((x > 0.0).sum())


@pytest.mark.usefixtures("by_xla")
@pytest.mark.parametrize(("dtype", "steps"), [(np.float64, 1080), (np.float32, 155)])
def test_a_flushed_number_is_seen_in_programs_with_outcomes(dtype: Any, steps: int) -> None:
    """NumPy compares the outcomes with those expected, which clears the processor's flag."""
    calls = [(np.full(33, 2.0**-step, dtype), step) for step in range(steps)]
    assert not replay_mismatches(halved_and_counted, calls, f"halved and counted {dtype.__name__}")


@pytest.mark.usefixtures("by_xla")
def test_functions_that_programs_of_xla_call_keep_subnormal_numbers() -> None:
    """XLA's mode of the processor made a tiny factor of SciPy's 0: beta was infinite, and iv 0.3 % off."""

    def called(x: Any, y: Any) -> Any:
        return special.iv(2.5, x), special.beta(-0.0927, y)

    draw = np.random.default_rng(7)
    calls = [(draw.uniform(*ends, 33), draw.uniform(-170.9, -170.1, 33)) for ends in [(1.0, 9.0), (699.5, 700.5)] * 6]
    assert not replay_mismatches(called, calls, "called by XLA")


@pytest.mark.parametrize("exponent", [3, 4, 6, 7, 12, 20, 64, -2, -3, -12])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_whole_powers_are_within_two_units(exponent: int, dtype: Any) -> None:
    """Products of products are off by a unit for each factor."""
    draw = np.random.default_rng(7)
    calls = [(draw.uniform(-2.0, 2.0, 5000).astype(dtype),) for _ in range(12)]

    def differ(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
        return differs_in_kind(found, expected, 2.5 if dtype is np.float64 else 1.0)

    assert not replay_mismatches(lambda x: x**exponent, calls, f"power {exponent}", differ)


FAR_IN_XLA: dict[str, tuple[Callable[[Any], Any], float]] = {
    "sinh": (np.sinh, 709.0),
    "cosh": (np.cosh, 709.0),
    "log1p": (np.log1p, 0.99),
    "arctanh": (np.arctanh, 0.99),
    "arctan": (np.arctan, 9.0),
}
"""Functions that XLA computes with hundreds of wrong units or, with vectors of 512 bits, wrongly; largest argument."""


@pytest.mark.usefixtures("by_xla")
@pytest.mark.parametrize("name", FAR_IN_XLA)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_of_xla_are_within_few_units(name: str, dtype: Any) -> None:
    function, largest = FAR_IN_XLA[name]
    largest = largest if dtype is np.float64 else min(largest, 88.0)
    draw, edges = np.random.default_rng(7), [0.0, -0.0, 1e-20, -1.0, 1.0, np.inf, -np.inf, np.nan, -2.0, 720.0, 1e-3]
    calls = [(draw.uniform(-largest, largest, 5000).astype(dtype),) for _ in range(12)]
    calls += [(np.array([*edges, 710.2 if dtype is np.float64 else 89.2], dtype),)] * 14

    def differ(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
        return differs_in_kind(found, expected, 7.0)

    assert not replay_mismatches(lambda x: function(x), calls, f"XLA's {name} {dtype.__name__}", differ)


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_spacing_is_exact_near_zero_and_at_the_largest(dtype: Any, kernels: bool) -> None:
    about, draw = np.finfo(dtype), np.random.default_rng(7)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, about.max, -about.max, about.max / 2, about.tiny, -about.tiny * 3]
    edges += [about.tiny / about.eps * power for power in (0.5, 1.0, 2.0, -2.0)]
    edges += [about.smallest_subnormal, about.tiny / 3] if kernels else []
    calls = [(draw.standard_normal(33).astype(dtype),) for _ in range(12)] + [(np.array(edges, dtype),)] * 14
    with config.override(kernels=kernels):
        assert not replay_mismatches(lambda x: np.spacing(x), calls, f"spacing {dtype.__name__} {kernels}")


FEW_KNOWN = np.array([1e16, 0.1, -3.7, 1e-3, 7.7, 2.0**60])
MORE_KNOWN = FEW_KNOWN[::-1] * 1.1


@pytest.mark.parametrize("kernels", [True, False])
def test_small_arrays_that_a_program_holds_are_not_added_up_first(kernels: bool) -> None:
    """XLA computed `(x + a) - b` as `x + (a - b)` where it knew both, and `(x + 1e16) - 1e16` as `x`."""

    def known(x: Any) -> Any:
        return (x + FEW_KNOWN) - FEW_KNOWN, (x * 2.0 + FEW_KNOWN) - MORE_KNOWN, (x * FEW_KNOWN) * MORE_KNOWN

    draw = np.random.default_rng(7)
    calls = [(draw.standard_normal(6),) for _ in range(20)]
    with config.override(kernels=kernels):
        assert not replay_mismatches(known, calls, f"known arrays {kernels}")


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8])
def test_squares_and_even_powers_of_integers_wrap(dtype: Any, kernels: bool) -> None:
    """XLA took a product of equal integers for positive, and left out their absolute value."""

    def wrapped(x: Any, y: Any) -> Any:
        square, same = x * x, (x + y) * (y + x)
        return abs(square), abs(np.square(x)), abs(x**4), abs(same), np.gcd(square, y), square < 0, same.clip(0)

    about, draw = np.iinfo(dtype), np.random.default_rng(7)
    calls = [tuple(draw.integers(about.min, about.max, (2, 50), dtype)) for _ in range(20)]
    with config.override(kernels=kernels):
        assert not replay_mismatches(wrapped, calls, f"squares {np.dtype(dtype)} {kernels}")


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_no_nan_is_as_large_as_zero(dtype: Any, kernels: bool) -> None:
    """XLA took squares, absolute values, exponentials and their extremes for positive, and `>= 0` for true."""

    def compared(x: Any, y: Any) -> Any:
        least, larger = np.minimum(abs(x), abs(y)), np.maximum(x, 1.0)
        chosen = np.where(y > 0, abs(x), y * y)
        truths = x * x >= 0, x**2 >= 0, abs(x) >= 0, np.exp(x) >= 0, larger >= 0, least >= -0.0, chosen >= 0
        return np.sort(y), *truths, (x.clip(0) >= 0).sum(), np.sum(np.zeros(40) <= abs(x[:, None]))

    draw = np.random.default_rng(7)
    calls = [tuple(draw.choice([np.nan, -2.0, 0.0, 0.5, 3.0], (2, 40)).astype(dtype)) for _ in range(20)]
    with config.override(kernels=kernels):
        assert not replay_mismatches(compared, calls, f"NaN and zero {np.dtype(dtype)} {kernels}")


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_scipys_norm_neither_overflows_nor_vanishes(dtype: Any, kernels: bool) -> None:
    """BLAS scales what it squares; the squares of 1e200 are infinite."""

    def norms(x: Any) -> Any:
        return linalg.norm(x), linalg.norm(x, 2), linalg.norm(x[:4], check_finite=False)

    def is_far(got: Any, wanted: Any) -> Any:
        return np.asarray(not np.allclose(got, wanted, rtol=1e-6, atol=0.0))

    far = 1e30 if dtype is np.float32 else 1e200
    usual = np.random.default_rng(3).normal(size=50).astype(dtype)
    calls = [(usual,)] * 30 + [((usual * scale).astype(dtype),) for scale in (far, 1.0 / far, 0.0) * 5]
    with config.override(kernels=kernels):
        assert not replay_mismatches(norms, calls, name := f"norms {dtype.__name__} {kernels}", is_far)
    assert "verify.mismatch" not in {each.reason for each in open_ledger(name).refusals}


@pytest.mark.parametrize("kernels", [True, False])
def test_cosine_distances_are_not_negative_at_any_scale(kernels: bool) -> None:
    """The root of a distance between parallel vectors was NaN; the lengths' squares, multiplied, were infinite or 0."""

    def distances(x: Any) -> Any:
        across, pairs = distance.cdist(x, x, "cosine"), distance.pdist(x, "cosine")
        return (across < 0.0).sum(), (pairs < 0.0).sum(), np.round(across, 9), np.round(pairs, 9)

    draw = np.random.default_rng(7)
    parallel = draw.choice([1.0, 3.0, -0.1], (20, 8, 1))
    calls = [(draw.normal(size=(1, 5)) * each * scale,) for each in parallel for scale in (1.0, 1e80, 1e-90)]
    calls += [(draw.normal(size=(8, 5)) * 1e85,)] * 3
    with config.override(kernels=kernels):
        assert not replay_mismatches(distances, calls, f"cosines {kernels}")


MASK = (np.arange(60) % 3 > 0) * 1.0
MASKED: dict[str, Callable[[Any, Any], Any]] = {
    "array of the program's": lambda x, y: (
        x * MASK,
        MASK @ x,
        (MASK * x).sum(),
        MASK / y[0],
        x * MASK.astype(np.float32),
    ),
    "identity": lambda x, y: (np.eye(60) * x, np.identity(60) @ x, np.tri(60) * y, np.tri(60) @ x),
    "places": lambda x, y: (
        (np.arange(60) >= 3) * x,
        (np.arange(60) >= 3) * 1.0 @ x,
        (np.arange(60) < 9).astype(float) * y,
    ),
    "compared": lambda x, y: ((y > 0) * x, (y > 0) * 1.0 @ x, (y > 0).astype(complex) * x, (y > 0) / x[0]),
}


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("name", MASKED)
def test_a_mask_of_numbers_leaves_nan(name: str, kernels: bool) -> None:
    """XLA takes the product with a converted truth for a choice, and 0 * NaN for 0."""

    def has_other_nan(found: Any, expected: Any) -> Any:
        return np.isnan(found) != np.isnan(expected)

    draw = np.random.default_rng(7)
    calls = [tuple(draw.choice([np.nan, np.inf, -2.0, 0.5], (2, 60), p=[0.05, 0.05, 0.4, 0.5])) for _ in range(20)]
    with config.override(kernels=kernels):
        assert not replay_mismatches(MASKED[name], calls, f"mask, {name} {kernels}", has_other_nan)


@pytest.mark.parametrize("kernels", [True, False])
def test_scattered_terms_are_added_before_the_rest(kernels: bool) -> None:
    """XLA added the terms to what a sum was then added to: `1 + (1e16 - 1e16)` was 0."""

    def added(x: Any, places: Any, terms: Any) -> Any:
        total, square = np.zeros(9), np.zeros((9, 9))
        np.add.at(total, places, terms)
        np.add.at(square, (places, places), terms)
        return x + np.bincount(places, terms, minlength=9), total + 1.0, x + square

    draw = np.random.default_rng(7)
    terms = np.array([1e16, -1e16, 0.3, 0.5])
    calls = [(draw.random(9), np.array([2, 2, 2, 5]) + draw.integers(3), terms + draw.random(4)) for _ in range(20)]
    with config.override(kernels=kernels):
        assert not replay_mismatches(added, calls, f"scattered terms {kernels}")


COMPLEX: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum and difference": lambda x, y, z: ((x + y) - y, (x - y) + y, x - (x - y)),
    "constants": lambda x, y, z: ((x + 1e16) - 1e16, x / 3.0, x * 0.1 * 0.3, x / 3.0 / 7.0),
}


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_arithmetic_is_not_rewritten(name: str, dtype: Any) -> None:
    draw = np.random.default_rng(7)
    calls = [tuple(draw.standard_normal((3, 40, 30, 2)).view(complex)[..., 0].astype(dtype)) for _ in range(12)]
    assert not replay_mismatches(COMPLEX[name], calls, f"complex {name} {np.dtype(dtype)}")


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_complex_products_with_a_known_one_are_computed(kernels: bool, dtype: Any) -> None:
    """XLA took `z * 1` for `z`; its parts are `a * 1 - b * 0` and `a * 0 + b * 1`, where an infinite a gives NaN."""

    def products(x: Any, y: Any) -> Any:
        z = np.zeros(16, dtype)
        z.real, z.imag = x, y
        known = z * 1, 1.0 * z, z * True, z * np.ones(16), -z * (1 + 0j), (z + z) * np.float32(1)
        return tuple(part for each in known for part in (each.real, each.imag))

    draw, edges = np.random.default_rng(7), [0.0, -0.0, 1.5, -1.0, np.inf, -np.inf, np.nan]
    calls = [tuple(draw.choice(edges, (2, 16))) for _ in range(20)]
    with accel.override(kernels=kernels):
        assert not replay_mismatches(products, calls, f"known ones {np.dtype(dtype)} {kernels}")


# -- sums of few elements ----------------------------------------------------------------------------------------------

FEW: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    **{f"{count} in a row": ((50, count), lambda x: (x * 1.1).sum(-1)) for count in (2, 3, 5, 7)},
    "rows": ((7, 50), lambda x: (x * 1.1).sum(0)),
    "all": ((2, 3), lambda x: 1.0 / (x * 1.1).sum()),
    "mean of all": ((3, 2), lambda x: (x * 1.1).mean()),
    "last two axes": ((40, 2, 3), lambda x: (x * 1.1).sum((1, 2))),
    "ufunc": ((2, 3), lambda x: np.add.reduce(x * 1.1, axis=None)),
    "without NaN": ((2, 3), lambda x: np.nansum(x * 1.1)),
}


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fewer_than_eight_elements_are_added_from_left_to_right(name: str, dtype: Any) -> None:
    shape, function = FEW[name]
    draw = np.random.default_rng(7)
    calls = [(draw.standard_normal(shape).astype(dtype),) for _ in range(60)]
    opposite = np.resize(np.array([0.1, -0.1, 0.3, -0.3], dtype), shape)
    assert not replay_mismatches(function, [*calls, (opposite,), (opposite * dtype(-0.0),)], f"few, {name}")


@pytest.mark.parametrize("text", ["i,i,i->i", "i,j,k->ijk", "i,j,k->kji", "ij,i,j->ji", "i,i,i,i->i"])
def test_einsum_multiplies_from_left_to_right(text: str) -> None:
    draw = np.random.default_rng(7)
    shapes = [tuple({"i": 9, "j": 8, "k": 7}[each] for each in part) for part in text.split("->")[0].split(",")]
    calls = [tuple(draw.standard_normal(shape) for shape in shapes) for _ in range(20)]
    assert not replay_mismatches(lambda *arrays: np.einsum(text, *arrays), calls, f"einsum {text}")


PRODUCTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{f"rows of {rows}": lambda x, y, v, rows=rows: x[:, :rows] @ y[:rows] for rows in (1, 2, 3, 6)},
    "matrix and vector": lambda x, y, v: (x[:, :1] @ v[:1], np.dot(x[:, :2], v[:2]), np.tensordot(x[:, :1], y[:1], 1)),
    "einsum": lambda x, y, v: (np.einsum("ij,ij->ij", x, y), np.einsum("i,j->ij", v, v), np.einsum("ij,j->i", x, v)),
    "convolution": lambda x, y, v: (np.convolve(v, v[:3]), np.correlate(v, v[:2]), np.convolve(v, v[:1])),
    "outer": lambda x, y, v: (np.outer(v, v), np.kron(x[:2, :2], y[:2, :2])),
}


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_of_products_have_numpys_zeros(name: str, kernels: bool) -> None:
    """The arc tangent of a rotated vector is pi for one zero, and -pi for the other."""
    draw = np.random.default_rng(7)
    shapes = (6, 6), (6, 6), (6,)
    calls = [tuple(draw.choice([0.0, -0.0, 1.0, -1.0], shape) for shape in shapes) for _ in range(20)]
    with config.override(kernels=kernels):
        assert not replay_mismatches(PRODUCTS[name], calls, f"products, {name} {kernels}")


KERNELS = {
    "even": [0.1, 0.2, 0.4, 0.2, 0.1],
    "odd": [-0.1, -0.3, 0.0, 0.3, 0.1],
    "neither": [0.1, 0.3, 0.4, 0.2, 0.1],
    "four": [0.1, 0.4, 0.4, 0.1],
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_filters_add_in_scipys_order_whatever_kernel_a_call_is_given(kernel: list[float], dtype: Any) -> None:
    draw = np.random.default_rng(7)
    calls = [(draw.integers(0, 255, (40, 50)).astype(dtype), np.array(kernel)) for _ in range(20)]
    assert not replay_mismatches(lambda x, w: ndimage.correlate1d(x, w), calls, "correlate1d")


@pytest.mark.parametrize("size", [12, 16, 30, 64])
@pytest.mark.parametrize(
    ("transform", "dtype"),
    [(fft.fft, np.float64), (fft.ifft, np.float64), (fft.fft, np.float32), (np.fft.fft, np.float32)],
)
def test_the_strongest_frequency_of_real_numbers_is_the_first_of_two(transform: Any, dtype: Any, size: int) -> None:
    """The frequencies k and -k are equally strong; XLA's transform of complex numbers rounded them differently."""

    def strongest(x: Any) -> Any:
        found = transform(x)
        return np.argmax(found.real**2 + found.imag**2)

    draw = np.random.default_rng(7)
    calls = [(draw.standard_normal(size).astype(dtype),) for _ in range(40)]
    assert not replay_mismatches(strongest, calls, f"strongest {transform.__name__} {dtype.__name__} {size}")


@pytest.mark.parametrize("arguments", [{}, {"s": (5, 6)}, {"axes": (1, 0)}, {"norm": "ortho"}, {"norm": "forward"}])
@pytest.mark.parametrize("transform", [fft.fft2, fft.ifft2, fft.fftn, fft.ifftn])
def test_transforms_of_real_numbers_are_mirror_images(transform: Any, arguments: dict[str, Any]) -> None:
    def differ(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
        return np.abs(found - expected) > 1e-14 * np.abs(expected).max()

    draw = np.random.default_rng(7)
    calls = [(draw.standard_normal((4, 9)),) for _ in range(8)]
    assert not replay_mismatches(lambda x: transform(x, **arguments), calls, f"mirrored {transform.__name__}", differ)
