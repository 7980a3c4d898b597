"""Scalars: types, what Python raises, and counters that do not multiply variants."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import some


def test_types_stay(check: Any) -> None:
    def work(x: Any, s: Any) -> Any:
        return s, s * 2, s + 1.5, x.sum(), float(x[0]), x[0], int(x[1] * 10), x.mean() > 0, s > 2, s // 2, -s, abs(s)

    for kind in (float, int, np.float64, np.float32, np.int64, np.int32):
        check(work, lambda i, kind=kind: (some(i) + 3, kind(3 + i)), calls=14, replays=4)


def test_booleans(check: Any) -> None:
    def work(x: Any, flag: Any) -> Any:
        return x * 2 if flag else x, flag, not flag, x.any(), bool(x[0] > 0), flag & True

    check(work, lambda i: (some(i), i % 2 == 0), calls=20, replays=4)
    check(work, lambda i: (some(i), np.bool_(i % 2 == 0)), calls=20, replays=4)


@pytest.mark.parametrize("kind", [float, np.float64])
def test_max_and_min_as_python_compares(check: Any, kind: Any) -> None:
    def work(x: Any, s: Any) -> Any:
        a = float(x[0])
        return max(1e-6, a), max(a, 1e-6), min(a, s), max(a, -0.0), max(-0.0, a), max(s, 2, a), max([a, s]), min(a, 0)

    def make(i: int) -> Any:
        x = some(i)
        x[0] = [1.0, math.nan, 0.0, -0.0, -2.0, 3.0, math.inf][i % 7]
        return x, kind(i)

    check(work, make, calls=30, replays=3, exact=True)


def test_nan_and_minus_zero_through_host_arithmetic(check: Any) -> None:
    values = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5]

    def work(s: float, x: Any) -> Any:
        return s * 1, s + 0.0, -s, abs(s), max(0.0, s), x * s, np.maximum(s, 0.0)

    check(work, lambda i: (values[i % 6], some(i)), calls=18, replays=6, exact=True)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_int_of_what_is_no_number(check: Any, bad: float) -> None:
    def work(x: Any) -> Any:
        return x * int(x[0])

    def make(i: int) -> Any:
        x = some(i)
        x[0] = bad if i == 7 else 3.7
        return x

    check(work, make, replays=2)


def test_zero_division(check: Any) -> None:
    def work(x: Any) -> Any:
        return x * (1.0 / float(x[0])), 7 // int(x[1]), 7 % int(x[1])

    def make(i: int) -> Any:
        x = np.array([1.5 + i, 2.0, 3.0])
        if i in (7, 8):
            x[i - 7] = 0.0
        return x

    check(work, make, replays=2)


def test_zero_division_on_the_host(check: Any) -> None:
    check(lambda x, a, b: x * (a / b), lambda i: (some(i), 1.0 + i, 0.0 if i == 7 else i + 0.5), replays=2)


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "exp", "sin", "log10", "acos"])
def test_math_domain_errors(check: Any, name: str) -> None:
    bad = {"sqrt": -1.0, "log": 0.0, "asin": 1.5, "exp": 1e4, "sin": math.inf, "log10": -3.0, "acos": -2.0}[name]

    def work(x: Any, s: float) -> Any:
        f = getattr(math, name)
        return x * f(float(x[0])), x + f(s)

    def make(i: int) -> Any:
        return np.array([bad if i == 8 else 0.1 + i / 20, 1.0]), bad if i == 7 else 0.2 + i / 20

    check(work, make, replays=2)


def test_half_powers_of_numbers_and_of_arrays(check: Any) -> None:
    """NumPy's are C's `pow` for a number, and square roots for an array: -inf and -0.0 tell them apart."""

    def work(x: Any) -> Any:
        return x[0] ** 0.5, np.copysign(1.0, x[0] ** 0.5), x**0.5, int(x[1] ** 0.5)

    check(work, lambda i: np.array([(-np.inf, -0.0, 2.0, -1.0, 0.0)[i % 5], (i + 1.0) ** 2]), replays=2)


def test_math_of_numpy_scalars(check: Any) -> None:
    def work(x: Any) -> Any:
        m = np.mean(x * x)
        return math.sqrt(m), math.exp(-m), math.floor(m * 10), math.isnan(m), x * math.cos(m), math.atan2(m, x[0])

    check(work, some, replays=3)


def test_signs_of_zero_in_division(check: Any) -> None:
    def work(x: Any) -> Any:
        a = float(x[0])
        return divmod(a, 3.0), divmod(a, -3.0), divmod(x[0], -3.0), x // -2.0, x % -2.0, np.sign(x)

    check(work, lambda i: np.array([[0.0, -0.0, 3.0, -3.0, 1.5, -7.0][i % 6], 0.0, -0.0]), exact=True)


def test_remainders_of_whole_numbers_by_floats_keep_the_divisors_sign(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        n, d = int(x.sum()), float(y[0])
        found = np.array([n % d, n // d, n % -2.5, *divmod(n, d)])
        return found, np.signbit(found)

    divisors = [2.0, -2.0, np.inf, -np.inf, 0.1, -0.3]
    check(work, lambda i: (np.array([i % 3 * 3 - 3, 0]), np.array([divisors[i // 3 % 6]])), calls=24, exact=True)


def test_quotients_of_truths(check: Any) -> None:
    def work(x: Any) -> Any:
        one, n = bool(int(x[0])), int(x[1])
        return one % n, n % (one or 2), divmod(one, n), one % 2.5, x[0] * 2

    check(work, lambda i: np.array([i % 3, i % 4 - 5.0]), calls=12, replays=5)


def test_divmod_round_pow(check: Any) -> None:
    def work(x: Any, s: float, n: int) -> Any:
        q, r = divmod(s, 0.75)
        return q, r, round(s), round(s, 1), pow(s, 2), s**n, x * 2**n, divmod(n, 3), pow(n, 2, 5)

    check(work, lambda i: (some(i), 1.25 * i + 0.3, i), replays=0)


def test_a_power_whose_type_depends_on_the_value(check: Any) -> None:
    def work(x: Any, n: int) -> Any:
        return x * 2**n, 2**n

    check(work, lambda i: (some(i), 3 - i if i > 5 else i), calls=14, replays=3)


def test_a_root_that_becomes_complex(check: Any) -> None:
    check(lambda x, s: (x * s**0.5, s**0.5), lambda i: (some(i), -2.0 if i == 8 else 1.0 + i), replays=2)


def test_a_power_of_a_number_from_an_array(check: Any) -> None:
    def work(x: Any) -> Any:
        a = float(x[0])
        return a**2, a**0.5, 2.0**a

    check(work, lambda i: np.array([-2.0 if i in (0, 7) else 1.0 + i]), replays=1, calls=12)


def test_rounding_with_digits(check: Any) -> None:
    check(lambda x: (round(float(x[0]), 2), round(float(x[0]))), some, replays=0)


def test_sum_of_python_numbers(check: Any) -> None:
    def work(x: Any, s: float) -> Any:
        parts = [s, 1e16, -1e16, 0.1, s / 3]
        return sum(parts), sum([float(v) for v in x]), sum(x), sum([x, x]), sum((v * s for v in parts), 0.5), sum([])

    check(work, lambda i: (some(i), 0.1 + i), exact=False)


def test_fsum_prod_hypot(check: Any) -> None:
    def work(x: Any, s: float) -> Any:
        return math.fsum([s, 1e16, -1e16]), math.prod([s, 2.0]), math.hypot(s, 2.0), math.pow(s, 2), math.fmod(s, 0.3)

    check(work, lambda i: (some(i), 0.1 + i))


def test_sorted_any_all(check: Any) -> None:
    def work(x: Any, s: float) -> Any:
        low, high = sorted([s, 2.5])
        return low, high, any([s > 3, s < 0]), all(v > -100 for v in x), x * high

    check(work, lambda i: (some(i), float(i)), calls=12, replays=3)


def test_ceil_and_floor_as_trip_counts(check: Any) -> None:
    def work(x: Any, dt: float) -> Any:
        n = int(np.ceil(np.max(np.abs(x)) * dt))
        for _ in range(n):
            x = x + dt / n
        m = math.ceil(dt * 1.5)
        for _ in range(m):
            x = x * 0.5
        return x, n, m

    check(work, lambda i: (np.array([1.0, 2.4]) + i * 0.01, 1.0 + 0.01 * i))


def test_while_loop_over_values(check: Any) -> None:
    def work(x: Any) -> Any:
        n = 0
        while np.max(x) > 1.0:
            x = x * 0.5
            n += 1
        return x, n

    check(work, lambda i: np.array([0.5, 3.0 + 0.05 * i]))


class Stepper:
    def __init__(self) -> None:
        self.n = 0
        self.t = 0.0
        self.x = np.ones(3)
        self.heavy = 0

    def step(self, dt: float) -> Any:
        self.n += 1
        self.t += dt
        self.x = self.x * 0.9 + 0.01 * dt
        if self.n % 6 == 0:
            self.x = self.x + 1.0
            self.heavy += 1
        return self.n, self.x.sum()


def test_a_counter_does_not_multiply_variants(check: Any) -> None:
    def worlds() -> Any:
        one = Stepper()
        return lambda i: (one, 0.5)

    checked = check(Stepper.step, worlds=worlds, calls=40, replays=22)
    assert checked.ledger.variants == 1  # of two paths


def test_a_counter_that_prints(check: Any, capsys: Any) -> None:
    class Noisy(Stepper):
        pass

    def step(self: Any) -> Any:
        self.n += 1
        self.x = self.x + 1
        if self.n % 5 == 1:
            print("step", self.n)
        return self.x

    def worlds() -> Any:
        one = Noisy()
        return lambda i: one

    check(step, worlds=worlds, calls=30, replays=22)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"step {n}" for n in range(1, 30, 5) for _ in range(2)]


def test_a_parameter_that_changes_now_and_then(check: Any) -> None:
    def worlds() -> Any:
        one = SimpleNamespace(g=9.8, k=2)
        return lambda i: (setattr(one, "g", 9.8 + i // 6), one, some(i))[1:]

    checked = check(lambda p, x: x * p.g + p.k, worlds=worlds, calls=26, replays=12)
    assert checked.ledger.variants == 1


def test_an_int_that_changes_its_type(check: Any) -> None:
    check(lambda x, s: (x * s, s + 1), lambda i: (some(i), [1, 1.0, np.float32(1), True][i % 4]), calls=36, replays=10)


def test_huge_integers(check: Any) -> None:
    check(lambda x, n: (x * 1.0, n + 1), lambda i: (some(i), 2**70), replays=0)
    check(lambda x, n: (x * 1.0, n * n), lambda i: (some(i), 2**40 + i), replays=0)


def test_integers_that_numpy_takes_as_uint64(check: Any) -> None:
    def work(x: Any, n: int) -> Any:
        return x * 2.0, np.abs(n), np.square(n), np.sum(n), np.max(n), np.round(n), np.clip(n, 3, None)

    check(work, lambda i: (some(i), 3 + i if i < 5 else 2**64 - i), replays=1)


def test_long_integers_as_python_numbers(check: Any) -> None:
    def work(x: Any, n: Any) -> Any:
        return x.item(1), x.tolist(), n.item()

    for dtype in (np.uint64, np.int64):
        last = np.iinfo(dtype).max
        check(
            work,
            lambda i, dtype=dtype, last=last: (
                np.array([i, last - i if i > 4 else 5], dtype),
                np.array(last if i > 6 else i, dtype),
            ),
            replays=1,
        )


@pytest.mark.parametrize("is_whole_first", [True, False])
def test_large_integers_are_compared_exactly(check: Any, is_whole_first: bool) -> None:
    """2**53 + 1 is no float: Python tells it from 2.0**53, a device does not."""

    def work(x: Any, y: Any) -> Any:
        n, v = int(x[0]), float(y[0])
        a, b = (n, v) if is_whole_first else (v, n)
        return a == b, a != b, a > b, a < b, a >= b, a <= b, max(a, b), min(a, b)

    def make(near: int) -> Any:
        def pair(i: int) -> Any:
            return np.array([near + i % 5 - 2]), np.array([float(near + i % 3)])

        return pair

    check(work, make(2**53), calls=30, replays=0)
    check(work, make(5), calls=30, replays=10)


def test_large_integers_are_divided_exactly(check: Any) -> None:
    def work(x: Any) -> Any:
        return int(x[0]) / 3, math.floor(int(x[0]) / 3), x * 2

    check(work, lambda i: np.array([2**53 + 1 + 6 * i if i % 3 == 2 else 9 * i]), calls=24, replays=4, exact=True)


def test_a_large_constant_is_compared_exactly(check: Any) -> None:
    check(lambda x: (float(x[0]) == 2**53 + 1, x * 2), lambda i: np.array([2.0**53]), reason="rule.parameter")


def test_is_integer_and_other_methods_of_floats(check: Any) -> None:
    check(lambda x, s: x * 2 if s.is_integer() else x, lambda i: (some(i), i / 2), calls=14, replays=2)


def test_formatting_a_host_number_is_an_outcome(check: Any) -> None:
    check(lambda x, n: {f"k{n}": x * n}, lambda i: (some(i), i % 2), calls=16, replays=6)


def test_formatting_a_number_from_an_array(check: Any) -> None:
    check(lambda x: f"{x.sum():.3f}", some, reason="value.forced")


def test_a_number_in_the_text_of_an_exception(check: Any) -> None:
    def formatted(x: Any) -> Any:
        if x.sum() < 1e9:
            raise ValueError(f"too small: {x.sum():.3f}")
        return x

    def handled(x: Any) -> Any:
        try:
            if x.sum() < 1e9:
                raise ValueError("too small: %g" % x.sum())  # noqa: UP031
        except ValueError:
            return x * 2.0
        return x

    def asserted(x: Any) -> Any:
        if not x.sum() > 1e9:
            raise AssertionError("too small", f"{x.sum()}")
        return x

    for function in (formatted, handled, asserted):
        check(function, some, reason="path.exception")


def test_chained_and_conditional_expressions(check: Any) -> None:
    def work(x: Any, s: float) -> Any:
        t = s if 0 < s < 4 else 4.0
        u = s or 7.0
        v = (s > 2 and x) if s else None
        return x * t, u, v

    check(work, lambda i: (some(i), float(i % 6)), calls=30, replays=8)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_rounding_of_computed_numbers(check: Any, kind: Any) -> None:
    def work(x: Any) -> Any:
        value = kind(x.sum())
        return round(value, 2), round(value), round(value, 0), round(value, None), round(int(value)), round(value, 3)

    check(work, lambda i: some(i) * 10)


def test_ties_are_left_to_python(check: Any) -> None:
    """2.675 is a little less than that, and so 2.67; a device's product with 100 is 267.5."""

    def work(x: Any) -> Any:
        return round(float(x.max()), 2), round(float(x.min()))

    ties = [2.675, 1.005, 0.125, 2.5, 1.25, -0.5, 3.14159]
    check(work, lambda i: np.full(3, ties[i % 7]), calls=28, replays=0, exact=True)


def test_rounding_what_has_no_whole_number(check: Any) -> None:
    def work(x: Any) -> Any:
        return round(float(x[0]))

    check(work, lambda i: np.array([[1.6, math.nan, math.inf, 2.4][i % 4 if i > 5 else 0]]), calls=14, replays=2)


@pytest.mark.parametrize("kind", [complex, np.complex128, np.complex64, float, np.float32])
def test_parts_of_numbers(check: Any, kind: Any) -> None:
    def work(x: Any, s: Any) -> Any:
        spectrum = np.fft.rfft(x)
        z, t = spectrum[1], kind(x.sum())
        return z.real, z.imag * 2, x * z.real, s.real, s.imag, x.sum().imag, t.real, t.imag, z.conjugate().imag

    check(work, lambda i: (some(i, 8), kind(i)), calls=14, replays=4)


def test_bits_of_whole_numbers(check: Any) -> None:
    """A shift register, as coders and random numbers have it: Python's integers, which come from an array."""

    def work(x: Any) -> Any:
        register, out = 0, []
        for element in x:
            register = ((int(element) << 6) | (register >> 1)) & 127
            out.append((register ^ 85) + (~register << 1) + (register << int(element)))
        flag = register > 40
        return np.array(out), register & flag, register & -8, flag ^ (out[0] > 1), flag | (out[1] > 1), flag << 2

    check(work, lambda i: np.random.default_rng(i).integers(0, 2, 8), calls=20, replays=6, exact=True)


def test_shifts_that_python_refuses_or_makes_large(check: Any) -> None:
    def work(x: Any, y: Any) -> Any:
        by = int(y[0])
        return x + ((3 << by) >> by), x - (int(x[0]) >> by), x + (int(x[0]) & 255)

    cases = [2, 0, 1, 3]
    check(work, lambda i: (np.array([-9, 5]), np.array([cases[i % 4]])), exact=True)
    check(
        work,
        lambda i: (np.array([-9, 5]), np.array([(2, 90, 62, 51)[i % 4] if i > 5 else 1])),
        calls=14,
        replays=3,
        exact=True,
    )

    def negative(x: Any) -> Any:
        try:
            return 1 << int(x[0])
        except ValueError as error:
            return str(error)

    check(negative, lambda i: np.array([-1 if i in (8, 11) else 3]), calls=14, replays=3, exact=True)


def test_bits_of_more_than_devices_have(check: Any) -> None:
    def work(x: Any) -> Any:
        return x + (int(x[0]) & (2**64 - 1))

    check(work, lambda i: np.arange(i, i + 3), replays=0, exact=True)
