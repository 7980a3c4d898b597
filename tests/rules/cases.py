"""What the conformance tests call: rows of NumPy expressions, and the data that their names stand for.

a, b: arrays of the shape and dtype under test. c: one row of it. v, u: vectors of six. x: a sorted vector of five.
s, t: well-conditioned squares. p: a symmetric positive one. m: a mask shaped like a. i, j: indices into an axis of at
least three. n: small natural numbers. k: a whole number. z: a number of the dtype. out: an array like a.
"""

# ruff: noqa: E501  (tables read best by the line)
from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

# -- data -------------------------------------------------------------------------------------------------------------

DTYPES = tuple("? b B h i I q Q e f d F D".split())
WIDE = ("d", "q", "D", "?", "f")
"""Dtypes that every shape is tried with; the others take the plain matrix alone."""

SHAPES: dict[str, Callable[[Callable[[tuple[int, ...]], Any]], Any]] = {
    "matrix": lambda draw: draw((4, 5)),
    "transposed": lambda draw: draw((5, 4)).T,
    "reversed": lambda draw: draw((8, 5))[::-2, ::-1],
    "vector": lambda draw: draw((6,)),
    "cube": lambda draw: draw((3, 4, 3)),
    "0-d": lambda draw: draw(()),
    "one": lambda draw: draw((1, 1)),
    "empty": lambda draw: draw((0, 5)),
}


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], special: bool) -> Any:
    """Random numbers with ties; special: extremes, NaN, infinities and both zeros among them."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(0 if kind == "u" else -6, 7, shape).astype(dtype)
        return _mixed(rng, values, [info.min, info.max, 0, 1], special)
    if kind == "c":
        real = numbers(rng, "f" if dtype == "F" else "d", shape, special)
        real = np.where(np.isinf(real), 0.5, real)  # complex infinities: a known difference
        return (real + 1j * rng.normal(size=shape).round(2)).astype(dtype)
    values = np.where(rng.random(shape) < 0.4, rng.integers(-3, 4, shape), rng.normal(size=shape) * 2).astype(dtype)
    return _mixed(rng, values, [np.nan, np.inf, -np.inf, 0.0, -0.0], special)


def _mixed(rng: np.random.Generator, values: Any, extremes: list[Any], special: bool) -> Any:
    if not special:
        return values
    chosen = np.array(extremes, dtype=values.dtype)[rng.integers(0, len(extremes), values.shape)]
    return np.where(rng.random(values.shape) < 0.3, chosen, values).astype(values.dtype)


def square(rng: np.random.Generator, dtype: str, size: int = 3) -> Any:
    kind = np.dtype(dtype).kind
    made = rng.normal(size=(size, size)) + 3 * np.eye(size)
    if kind == "c":
        made = made + 1j * rng.normal(size=(size, size))
    return made.astype(dtype) if kind in "fc" else rng.integers(0, 4, (size, size)).astype(dtype)


def positive(rng: np.random.Generator, dtype: str) -> Any:
    made = square(rng, dtype)
    return (made @ made.conj().T + np.eye(3)).astype(dtype)


class Names:
    """The values of a case's names for one dtype, shape and seed."""

    def __init__(self, dtype: str, shape: str, seed: int, tame: bool) -> None:
        self.rng = np.random.default_rng(seed + 7)
        self.dtype, self.special = dtype, seed % 3 == 2 and not tame
        self.make = SHAPES[shape]

    def draw(self, shape: tuple[int, ...]) -> Any:
        return np.asarray(numbers(self.rng, self.dtype, shape, self.special), dtype=self.dtype)

    def value(self, name: str) -> Any:
        return _VALUES[name](self)


_VALUES: dict[str, Callable[[Names], Any]] = {
    "a": lambda n: n.make(n.draw),
    "b": lambda n: n.make(n.draw),
    "out": lambda n: n.make(n.draw),
    "c": lambda n: n.draw(n.make(n.draw).shape[-1:]),
    "v": lambda n: n.draw((6,)),
    "u": lambda n: n.draw((6,)),
    "x": lambda n: np.sort(numbers(n.rng, n.dtype, (5,), False)),
    "s": lambda n: square(n.rng, n.dtype),
    "t": lambda n: square(n.rng, n.dtype),
    "p": lambda n: positive(n.rng, n.dtype),
    "m": lambda n: n.make(lambda shape: n.rng.integers(0, 2, shape).astype(bool)),
    "i": lambda n: n.rng.integers(-3, 3, 4),
    "j": lambda n: n.rng.permutation(3),
    "n": lambda n: n.rng.integers(0, 5, 6),
    "k": lambda n: int(n.rng.integers(1, 3)),
    "z": lambda n: n.draw((1,))[0],
}

NAMES = tuple(_VALUES)


def names_in(text: str) -> tuple[str, ...]:
    found = set(re.findall(r"(?<![\w.])([a-z]+)\b(?!\s*=[^=])", text))
    return tuple(name for name in NAMES if name in found)


def stable_hash(text: str) -> int:
    return zlib.crc32(text.encode())


# -- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Expressions of one function. dtypes, shapes: what they are tried with. loose: how many times the ordinary
    tolerance. tame: without NaN, infinities and extremes. refused: expected not to compile, by reason."""

    function: str
    expressions: tuple[str, ...]
    dtypes: tuple[str, ...] = DTYPES
    shapes: tuple[str, ...] = tuple(SHAPES)
    loose: float = 1.0
    tame: bool = False

    def cases(self) -> Iterator[tuple[str, str, str]]:
        """Expression, dtype and shape of each case."""
        for text in self.expressions:
            shaped = bool({"a", "b", "c", "m", "out"} & set(names_in(text)))
            for dtype in self.dtypes:
                for shape in self.shapes if shaped else ("matrix",):
                    if shape == "matrix" or dtype in WIDE:
                        yield text, dtype, shape


def rows(text: str, **about: Any) -> list[Row]:
    """Rows from lines of "function: expression | expression"."""
    made = []
    for line in text.strip().splitlines():
        function, _, expressions = line.strip().partition(": ")
        if function and not function.startswith("#"):
            made.append(Row(function, tuple(part.strip() for part in expressions.split(" | ")), **about))
    return made


REAL = tuple("? b B h i I q Q e f d".split())
FLOATS = tuple("e f d F D".split())

UNARY = [name for name, value in vars(np).items() if isinstance(value, np.ufunc) and value.nin == 1]
BINARY = [
    name for name, value in vars(np).items() if isinstance(value, np.ufunc) and value.nin == 2 and not value.signature
]

ROWS: list[Row] = [
    *(Row(f"np.{name}", (f"np.{name}(a)",)) for name in UNARY),
    *(
        Row(f"np.{name}", (f"np.{name}(a, b)", f"np.{name}(a, 2)", f"np.{name}(3, b)", f"np.{name}(a, c)"))
        for name in BINARY
    ),
    *rows(
        """
        np.add: np.add(a, b, out=out) | np.add(a, b, out=out, where=m) | np.add(a, b, dtype=float) | np.add(a, z) | np.add(a, 1.5) | np.add(a, 1j)
        np.multiply: np.multiply(a, b, out=out); out | a *= b; a | a *= 2; a | np.multiply(a, 3, out=a, where=m) | m * a | m.astype(float) * a | np.multiply(a, m, dtype=complex)
        np.subtract: a -= c; a | a[...] -= z; a
        np.divide: a / b | a / 3 | 1 / a | np.divide(a, b, out=out, where=m)
        np.power: a ** 2 | a ** 0.5 | a ** -1 | a ** 3.0 | 2 ** a | 2.0 ** a | a ** z | a ** b
        np.floor_divide: a // b | a // 2 | a // -1 | a //= b; a
        np.remainder: a % b | a % 3 | a % -3 | a % 2.5
        np.divmod: divmod(a, b) | np.divmod(a, 3) | np.divmod(a, b, out=(out, np.zeros(a.shape))) | np.modf(a, out=(np.zeros(a.shape), np.zeros(a.shape)))
        np.left_shift: a << b | a << 3 | a << 70
        np.right_shift: a >> b | a >> 3 | a >> 70
        np.maximum: np.maximum(a, 0) | np.maximum(a, 0.5, out=a)
        np.less: a == -1 | a != 300 | -1 < a | a >= -10**30 | np.equal(a, -1, out=out == out) | a[m] != -1 | a < b | a < 2 | a <= z | a > 1.5 | a == b | a != 3 | a == n[:5] | n[:5] < a | a >= np.int64(-1) | (a > 0) & (b < 1) | ~(a > 0)
        np.add.reduce: np.add.reduce(a) | np.add.reduce(a, axis=-1, keepdims=True) | np.add.reduce(a, axis=None) | np.multiply.reduce(a, axis=0) | np.maximum.reduce(a, axis=-1) | np.minimum.reduce(a) | np.logical_and.reduce(a) | np.logical_or.reduce(a, axis=-1) | np.bitwise_xor.reduce(a) | np.add.reduce(a, initial=3) | np.add.reduce(a, where=m) | np.add.reduce(a, out=c) | np.maximum.reduce(a, out=np.zeros(a.shape[1:])) | np.maximum.reduce(a, initial=1) | np.subtract.reduce(a) | np.logical_xor.reduce(a)
        np.add.accumulate: np.add.accumulate(a) | np.add.accumulate(a, axis=-1) | np.add.accumulate(a, axis=-1, out=out) | np.add.accumulate(a, out=np.zeros(a.shape)) | np.maximum.accumulate(a, axis=-1) | np.multiply.accumulate(a) | np.minimum.accumulate(a)
        np.add.outer: np.add.outer(v, k) | np.add.outer(a, v) | np.multiply.outer(v, u) | np.subtract.outer(v, a) | np.less.outer(v, u)
        np.add.at: np.add.at(a, j, 1); a | np.add.at(v, i, 2); v | np.subtract.at(v, i, 1); v | np.maximum.at(v, i, 1); v | np.multiply.at(v, i, z); v | np.add.at(a, (j, j), 2); a | np.add.at(s, (j, i[:3]), v[:3]); s | np.add.at(s, ([0, 0], [1, -1]), z); s | np.add.at(v, n.astype(np.int8), 1); v | np.maximum.at(v, i, 100); v | np.multiply.at(v, i, 1.5); v | np.subtract.at(v, i, n[:4]); v | np.minimum.at(v, 2, z); v | np.add.at(s, (slice(None), [1, 1]), 2); s | q = np.array(z); np.add.at(q, (), 1); q
        np.add.reduceat: np.add.reduceat(v, [0, 2, 4]) | np.add.reduceat(a, [0, 1], axis=-1)
        # reductions
        np.sum: np.sum(a) | np.sum(a, axis=0) | np.sum(a, axis=-1, keepdims=True) | a.sum() | np.sum(a, dtype=float) | np.sum(a, axis=(0, 1)) | np.sum(a, initial=5) | np.sum(a, where=m) | np.sum(a, axis=0, out=c) | np.sum(a, axis=0, out=np.zeros(a.shape[1:])) | np.sum(a, axis=0, dtype=np.int16)
        np.prod: np.prod(a) | np.prod(a, axis=0) | a.prod(axis=-1) | np.prod(a, where=m, initial=2)
        np.max: np.max(a) | np.max(a, axis=0) | a.max(axis=-1, keepdims=True) | np.max(a, initial=2) | np.max(a, initial=0, where=m) | np.max(a, axis=0, out=c) | np.max(a, axis=0, out=np.zeros(a.shape[1:], complex)) | np.amax(a, axis=0) | np.amin(a)
        np.min: np.min(a) | np.min(a, axis=0) | a.min(axis=-1, keepdims=True) | np.min(a, initial=2) | np.min(a, initial=0, where=m)
        np.any: np.any(a) | np.any(a, axis=0) | a.any(axis=-1, keepdims=True) | np.any(a, where=m) | np.any(a > 1)
        np.all: np.all(a) | np.all(a, axis=0) | a.all(axis=-1, keepdims=True) | np.all(a, where=m)
        np.count_nonzero: np.count_nonzero(a) | np.count_nonzero(a, axis=0) | np.count_nonzero(a, axis=-1, keepdims=True)
        np.argmax: np.argmax(a) | np.argmax(a, axis=0) | a.argmax(axis=-1) | np.argmax(a, axis=-1, keepdims=True)
        np.argmin: np.argmin(a) | np.argmin(a, axis=0) | a.argmin(axis=-1) | np.argmin(a, axis=-1, keepdims=True)
        np.ptp: np.ptp(a) | np.ptp(a, axis=0) | np.ptp(a, axis=-1, keepdims=True)
        np.cumsum: np.cumsum(a) | np.cumsum(a, axis=0) | a.cumsum(axis=-1) | np.cumsum(a, dtype=float)
        np.cumprod: np.cumprod(a) | np.cumprod(a, axis=0) | a.cumprod(axis=-1)
        np.cumulative_sum: np.cumulative_sum(v) | np.cumulative_sum(a, axis=0) | np.cumulative_sum(v, include_initial=True)
        np.cumulative_prod: np.cumulative_prod(v) | np.cumulative_prod(a, axis=-1) | np.cumulative_prod(v, include_initial=True)
        np.nansum: np.nansum(a) | np.nansum(a, axis=0) | np.nansum(a, axis=-1, keepdims=True)
        np.nanprod: np.nanprod(a) | np.nanprod(a, axis=0)
        np.nanmax: np.nanmax(a) | np.nanmax(a, axis=0) | np.nanmax(a, axis=-1, keepdims=True)
        np.nanmin: np.nanmin(a) | np.nanmin(a, axis=0) | np.nanmin(a, axis=-1, keepdims=True)
        np.nancumsum: np.nancumsum(a) | np.nancumsum(a, axis=0)
        np.nancumprod: np.nancumprod(a) | np.nancumprod(a, axis=-1)
        np.nanargmax: np.nanargmax(a) | np.nanargmax(a, axis=0)
        np.nanargmin: np.nanargmin(a) | np.nanargmin(a, axis=-1)
        # elementwise
        np.isclose: np.isclose(a, b) | np.isclose(a, b, rtol=0.1, atol=0.5) | np.isclose(a, b, equal_nan=True) | np.isclose(a, a)
        np.allclose: np.allclose(a, b) | np.allclose(a, a) | np.allclose(a, a, equal_nan=True)
        np.array_equal: np.array_equal(a, b) | np.array_equal(a, a) | np.array_equal(a, a, equal_nan=True) | np.array_equal(a, v)
        np.array_equiv: np.array_equiv(a, b) | np.array_equiv(a, a) | np.array_equiv(a, c)
        np.real: np.real(a) | a.real | np.real(z)
        np.imag: np.imag(a) | a.imag | np.imag(z)
        np.angle: np.angle(a) | np.angle(a, deg=True)
        np.isreal: np.isreal(a)
        np.iscomplex: np.iscomplex(a)
        np.sinc: np.sinc(a)
        np.i0: np.i0(a)
        np.round: np.round(a) | np.round(a, 1) | a.round(2) | np.round(a, -1) | np.round(a, 40) | np.around(a, 3)
        np.fix: np.fix(a)
        np.isneginf: np.isneginf(a)
        np.isposinf: np.isposinf(a)
        np.unwrap: np.unwrap(v) | np.unwrap(a, axis=0) | np.unwrap(a, period=4) | np.unwrap(a, discont=3)
        np.where: np.where(m, a, b) | np.where(a > 0, a, 0) | np.where(m, 1.5, a) | np.where(a, a, z) | np.where(m, 1, 2)
        np.clip: np.clip(a, 0, 2) | np.clip(a, -1, None) | np.clip(a, None, 1) | a.clip(0, 1) | np.clip(a, b, 3) | np.clip(a, 0, 1, out=a) | np.clip(a, min=1) | np.clip(a, 3, 1) | np.clip(a, 0.5, 1.5) | np.clip(a, 0, 2**64 - 1) | np.clip(a, -1, 2**63)
        np.nan_to_num: np.nan_to_num(a) | np.nan_to_num(a, nan=1.0, posinf=2.0, neginf=-2.0) | np.nan_to_num(a, copy=False); a | np.nan_to_num(z)
        np.select: np.select([a > 1, a < 0], [a, b], 3) | np.select([m, ~m], [a, b]) | np.select([m], [1.5]) | np.select([v > 0, True], [v, 2])
        np.choose: np.choose(j, [s[0], s[1], t[0]]) | np.choose(n % 2, [v, u]) | np.choose(m, [a, b]) | np.choose(n, [v, u], mode="clip") | np.choose(n, [v, u], mode="wrap") | np.choose(n % 2, [v, 1]) | np.choose(n % 3, [v, 1, u.astype(np.int8)]) | np.choose(n % 3, s) | np.choose([0, 1], [[z, 1], [2, z]])
        np.piecewise: np.piecewise(a, [a < 0, a > 1], [0, 1, 2]) | np.piecewise(a, [m], [2, 3]) | np.piecewise(a, [m], [z, 3]) | np.piecewise(a, [m], [k, 1.5]) | np.piecewise(a, [b, m], [2, z]) | np.piecewise(v, v > 0, [z, 3]) | np.piecewise(v, np.stack([v > 0, v < 0]), [1, 2, 3]) | np.piecewise(v, [[True] * 3 + [False] * 3, [False] * 6], [z, 2]) | np.piecewise(a, [a < 0], [lambda y: y - 1, 5]) | np.piecewise(a, [a < -1, a > 1], [lambda y: y + y, 3, lambda y: y * y]) | np.piecewise(v, v > 0, [1]) | np.piecewise(a, [m, ~m], [lambda y, w: y + w, 2], z) | np.piecewise(a, [a < 0, a >= 0, a > 1], [1]) | np.piecewise(v, [v > 0, v > 1], [lambda y: y.sum(), lambda y: y])
        np.copyto: np.copyto(a, b); a | np.copyto(a, b, where=m); a | np.copyto(a, 2); a | np.copyto(a, c, where=m); a
        np.putmask: np.putmask(a, m, 3); a | np.putmask(a, m, v); a | np.putmask(a, a > 0, b); a
        np.place: np.place(a, m, [1, 2]); a | np.place(v, v > 0, u); v
        np.put: np.put(a, [0, 1], [3, 4]); a | np.put(v, j, s[0]); v | np.put(v, [0, 9], 3, mode="clip"); v | np.put(v, [0, 9], 3, mode="wrap"); v | v.put([1, 2], 0); v | np.put(v, 2, 5); v
        np.put_along_axis: np.put_along_axis(s, np.argmax(s, axis=0)[None], 9, axis=0); s | np.put_along_axis(v, i, 7, 0); v | np.put_along_axis(a, np.array([[0, 0]]), [[1, 2]], 1); a
        np.fill_diagonal: np.fill_diagonal(a, 3); a | np.fill_diagonal(s, z); s | np.fill_diagonal(s, v[:3]); s | np.fill_diagonal(a, 1, wrap=True); a
        np.take: np.take(a, i % 3, axis=0) | np.take(v, i) | np.take(a, 2) | np.take(a, j, axis=-1) | v.take(j) | np.take(v, n, mode="clip") | np.take(v, n + 9, mode="wrap") | np.take(v, -n - 9, mode="clip") | np.take(a, [[0, 1], [2, 0]], axis=-1)
        np.take_along_axis: np.take_along_axis(a, np.argsort(a, axis=-1), axis=-1) | np.take_along_axis(a, np.argmax(a, axis=0, keepdims=True), axis=0) | np.take_along_axis(v, j, axis=0) | np.take_along_axis(v, i, 0) | np.take_along_axis(a, i[:, None], -1) | np.take_along_axis(a, i.astype(np.int8), None)
        np.compress: np.compress([True, False, True], a, axis=0) | np.compress(m[0], a, axis=1) | a.compress([0, 1], axis=-1) | np.sum(np.compress(v > 0, v))
        np.extract: np.extract(m, a) | np.extract(m[0], a) | np.sum(np.extract(a > 0, a))
        np.isin: np.isin(a, v) | np.isin(a, [1, 2]) | np.isin(a, v, invert=True)
        # searching and sorting
        np.sort: np.sort(a) | np.sort(a, axis=0) | np.sort(a, axis=None) | a.sort(); a | a.sort(axis=0); a | np.sort(a, kind="stable")
        np.argsort: np.argsort(a, kind="stable") | np.argsort(a, axis=0, kind="stable") | a.argsort(kind="stable") | np.argsort(a, axis=None, kind="stable")
        np.partition: np.partition(v, 2)[2] | np.partition(a, 1, axis=0)[1] | np.argpartition(v, 2)[:2]
        np.lexsort: np.lexsort((v, n)) | np.lexsort((a,)) | np.lexsort((b, a))
        np.sort_complex: np.sort_complex(v) | np.sort_complex(a)
        np.searchsorted: np.searchsorted(x, v) | np.searchsorted(x, v, side="right") | np.searchsorted(x, z) | np.searchsorted(x, 2) | x.searchsorted(a)
        np.digitize: np.digitize(v, x) | np.digitize(a, x, right=True) | np.digitize(a, [0, 1, 2]) | np.digitize(a, [2, 1, 0]) | np.digitize(2, x)
        np.median: np.median(a) | np.median(a, axis=0) | np.median(a, axis=-1, keepdims=True) | np.median(a, axis=(0, 1))
        np.nanmedian: np.nanmedian(a) | np.nanmedian(a, axis=0) | np.nanmedian(a, axis=-1, keepdims=True)
        np.bincount: np.bincount(n, minlength=6) | np.bincount(n[:0], v[:0], 3) | np.bincount(n, weights=v, minlength=8) | np.bincount(n) | np.bincount(n.astype(np.int8), minlength=300) | np.bincount(n > 2, minlength=2) | np.bincount(n.astype(np.uint8), weights=v, minlength=300)
        np.unique: np.unique(a) | np.unique(n) | np.unique(n, return_counts=True) | np.unique(a, return_index=True, return_inverse=True, return_counts=True) | np.unique(a, equal_nan=False) | np.unique(a, axis=0)
        np.unique_all: np.unique_all(n) | np.unique_counts(n) | np.unique_inverse(n) | np.unique_values(n)
        np.union1d: np.union1d(v, u) | np.union1d(n, a)
        np.intersect1d: np.intersect1d(n, n + 1) | np.intersect1d(v, u)
        np.setdiff1d: np.setdiff1d(n, n + 1) | np.setdiff1d(v, u)
        np.setxor1d: np.setxor1d(n, n + 1) | np.setxor1d(v, u)
        np.argwhere: np.argwhere(a) | np.argwhere(a > 0)
        np.histogram: np.histogram(a, bins=4, range=(-3, 3)) | np.histogram(v, bins=[-2, 0, 1, 4]) | np.histogram(v, bins=[-2.0, 0.0, np.nan]) | np.histogram(a, bins=x) | np.histogram(v, bins=np.array([0, 1, 3])) | np.histogram([z, 1, 2], bins=[0, 1, 2]) | np.histogram(v, bins=x, weights=u.astype(float)) | np.histogram(v, bins=[-2, 0, 1, 4], weights=u) | np.histogram(v, bins=5) | np.histogram(a) | np.histogram(a, bins='sturges') | np.histogram(v, 4, (v.min(), 9)) | np.histogram(v, 3, (0, v.max() + 1)) | np.histogram(v, 3, weights=u) | np.histogram(v, bins=4, range=(-3, 3), density=True)
        np.histogram_bin_edges: np.histogram_bin_edges(v, bins=4, range=(-3, 3)) | np.histogram_bin_edges(v, bins=[0, 1, 3]) | np.histogram_bin_edges(a, 6)
        np.histogram2d: np.histogram2d(v, u, bins=3, range=[[-3, 3], [-3, 3]]) | np.histogram2d(v, u) | np.histogram2d(v, u, bins=(2, 3)) | np.histogram2d(v, u, [[-2, 0, 1], x]) | np.histogram2d(v, u, bins=x) | np.histogram2d(v, u, 4, weights=v) | np.histogram2d(v, v * 0, 2) | np.histogram2d(v, u, 3, density=True)
        np.histogramdd: np.histogramdd(s, bins=3, range=[[-3, 3]] * 3)
        np.unravel_index: np.unravel_index(n, (4, 5)) | np.unravel_index(7, (3, 4)) | np.unravel_index([1, k], (3, 4)) | np.unravel_index(np.argmax(a), (4, 5))
        np.ravel_multi_index: np.ravel_multi_index((n, n), (5, 5)) | np.ravel_multi_index((n, n + 2), (5, 5), mode="clip") | np.ravel_multi_index((n, n + 2), (5, 5), mode="wrap") | np.ravel_multi_index((n, n + 2), (5, 5), mode=("raise", "clip")) | np.ravel_multi_index((n.astype(np.uint8), n), (300, 400)) | np.ravel_multi_index((k, 1), (4, 4))
        np.nonzero: a[np.nonzero(a)].sum() | np.count_nonzero(np.nonzero(a)[0])
        np.flatnonzero: v[np.flatnonzero(v > 0)].sum() | np.flatnonzero(a > 0).size
        np.argwhere: len(np.argwhere(a))
        # along axes
        np.diff: np.diff(a) | np.diff(a, axis=0) | np.diff(a, n=2) | np.diff(a, prepend=0) | np.diff(v, append=u) | np.diff(a, n=0)
        np.ediff1d: np.ediff1d(a) | np.ediff1d(v, to_begin=v[:2]) | np.ediff1d(v, to_end=v[:1]) | np.ediff1d(a, to_end=0, to_begin=[1, 0]) | np.ediff1d(v, to_begin=z) | np.ediff1d(v, [[1]])
        np.convolve: np.convolve(v, s[0]) | np.convolve(v, s[0], mode="same") | np.convolve(s[0], v, "valid") | np.convolve(v, v) | np.convolve(v, 3) | np.convolve(v, u, 0)
        np.correlate: np.correlate(v, s[0]) | np.correlate(v, s[0], mode="same") | np.correlate(s[0], v, "full")
        np.cross: np.cross(s, t) | np.cross(s[0], t) | np.cross(s, t, axis=0) | np.cross(a[:, :3], b[:, 1:4]) | np.cross(a[:, :2], b[:, :3]) | np.cross(a[:, :3], b[:, :2]) | np.cross(a[:, :2], b[:, :2]) | np.linalg.cross(a[:, :3], b[:, 1:4])
        np.append: np.append(a, b) | np.append(a, b, axis=0) | np.append(v, 3)
        np.delete: np.delete(a, 1, axis=0) | np.delete(v, [0, 2]) | np.delete(a, slice(0, 2), axis=-1)
        np.insert: np.insert(v, 2, 7) | np.insert(a, 1, 3, axis=0) | np.insert(v, [1, 3], s[0][:2]) | np.insert(a, 1, c, axis=0) | np.insert(v, [1], s[0]) | np.insert(v, slice(1, 3), 0) | np.insert(v, np.int64(2), 1)
        np.trim_zeros: np.trim_zeros(v)
        # shape
        np.reshape: np.reshape(a, -1) | np.reshape(a, (5, 4)) | a.reshape(2, -1) | np.reshape(a, (5, 4), order="F") | a.reshape(-1, order="F") | a.reshape((a.shape[0], -1, 1)) | y = a.reshape(-1, order="F"); y[:1] = 3; (a, y) | y = a.T.reshape((2, -1), order="A"); y[0] = 0; (a, y) | y = (a + a).reshape((5, -1), order="F"); y[0] = 1; (y, y.T.ravel()) | v.reshape(2, 3, order="A") | np.reshape([1, k], (2, 1), "F")
        np.ravel: np.ravel(a) | a.ravel() | a.flatten() | np.ravel(a, order="F") | a.flatten("F") | a.ravel("K") | y = a.T.ravel("F"); y[::2] = 1; (y, a) | np.ravel([a, b], "F") | np.ravel(a.T, "A") | y = a[a != 0]; w_ = y.flatten(); w_ += w_; (y, w_)
        np.squeeze: np.squeeze(a) | np.squeeze(a[None], axis=0) | a[None].squeeze()
        np.expand_dims: np.expand_dims(a, 0) | np.expand_dims(a, (0, -1))
        np.transpose: np.transpose(a) | a.T | a.transpose() | np.transpose(a, (1, 0)) | a.transpose(1, 0) | a.mT | np.permute_dims(a, (1, 0))
        np.matrix_transpose: np.matrix_transpose(a)
        np.swapaxes: np.swapaxes(a, 0, 1) | a.swapaxes(0, -1)
        np.moveaxis: np.moveaxis(a, 0, -1) | np.moveaxis(a, [0, 1], [1, 0])
        np.rollaxis: np.rollaxis(a, 1) | np.rollaxis(a, 0, 2)
        np.atleast_1d: np.atleast_1d(a) | np.atleast_1d(z) | np.atleast_1d(a, z)
        np.atleast_2d: np.atleast_2d(a) | np.atleast_2d(v) | np.atleast_2d(z)
        np.atleast_3d: np.atleast_3d(a) | np.atleast_3d(v)
        np.broadcast_to: np.broadcast_to(a, (2, 4, 5)) | np.broadcast_to(z, (2, 3)) | np.broadcast_to(v, (3, 6))
        np.broadcast_arrays: np.broadcast_arrays(a, c)[1] + 1 | np.broadcast_arrays(a, c) | np.broadcast_arrays(v, z)[1] * 2
        np.diagonal: np.diagonal(a) | np.diagonal(a, 1) | a.diagonal(-1) | np.diagonal(a, 0, 1, 0)
        np.diag: np.diag(v) | np.diag(a) | np.diag(v, 1) | np.diag(a, -1)
        np.diagflat: np.diagflat(v) | np.diagflat(a, 1)
        np.split: np.split(v, 3) | np.split(a, [1, 3]) | np.split(a, [2], axis=-1) | np.split(v, [1, 1, 3]) | np.split(v, [2, 1]) | np.split(v, [-2, 3]) | np.split(a, [10, 2], axis=-1)
        np.array_split: np.array_split(v, 4) | np.array_split(a, [2, 1]) | np.array_split(a, 3, axis=-1)
        np.hsplit: np.hsplit(a, [2]) | np.hsplit(v, 2) | np.hsplit(a, [3, 1])
        np.vsplit: np.vsplit(a, 2)
        np.dsplit: np.dsplit(a, [1])
        np.unstack: np.unstack(a) | np.unstack(a, axis=-1)
        np.flip: np.flip(a) | np.flip(a, 0) | np.flip(a, (0, 1)) | np.fliplr(a) | np.flipud(a) | a[::-1]
        np.roll: np.roll(a, 1) | np.roll(a, -2, axis=0) | np.roll(a, (1, 2), axis=(0, 1)) | np.roll(a, 7, axis=-1) | np.roll(a, k, axis=0)
        np.rot90: np.rot90(a) | np.rot90(a, 2) | np.rot90(a, -1) | np.rot90(a, k=3, axes=(1, 0))
        np.concatenate: np.concatenate([a, b]) | np.concatenate([a, b], axis=-1) | np.concatenate([a, b], axis=None) | np.concatenate([a, b], dtype=float) | np.concatenate([v, n]) | np.concatenate((v, [1, z])) | np.concatenate([a, b, a], out=np.zeros((12, 5)))
        np.stack: np.stack([a, b]) | np.stack([a, b], axis=-1) | np.stack([v, n]) | np.stack([[z, 1], [k, 2]]) | np.stack([a, b], dtype=complex)
        np.vstack: np.vstack([a, b]) | np.vstack([v, u]) | np.vstack([a, c])
        np.hstack: np.hstack([a, b]) | np.hstack([v, z])
        np.dstack: np.dstack([a, b]) | np.dstack([v, u])
        np.column_stack: np.column_stack([a, b]) | np.column_stack([v, u])
        np.block: np.block([[a, b], [b, a]]) | np.block([v, u]) | np.block([[v], [u]])
        np.tile: np.tile(a, 2) | np.tile(v, (2, 2)) | np.tile(a, (1, 2))
        np.repeat: np.repeat(a, 2) | np.repeat(a, 2, axis=0) | np.repeat(v, [1, 0, 2, 1, 1, 3]) | a.repeat(3, axis=-1)
        np.pad: np.pad(a, 1) | np.pad(a, ((1, 2), (0, 1))) | np.pad(a, 1, mode="edge") | np.pad(a, 2, mode="wrap") | np.pad(a, 1, mode="reflect") | np.pad(a, 1, mode="symmetric") | np.pad(a, 1, constant_values=3) | np.pad(v, (1, 0), mode="constant", constant_values=(1, 2)) | np.pad(a, 1, mode="maximum") | np.pad(a, 2, mode="linear_ramp") | np.pad(v, 2, mode="linear_ramp", end_values=(5, -2)) | np.pad(v, 2, mode="reflect", reflect_type="odd") | np.pad(v, 7, mode="symmetric", reflect_type="odd") | np.pad(v, {0: (1, 2)}) | np.pad(v, 3, mode="mean", stat_length=2)
        np.tril: np.tril(a) | np.tril(a, 1)
        np.triu: np.triu(a) | np.triu(a, -1)
        np.resize: np.resize(a, (3, 7)) | np.resize(v, 10)
        np.lib.stride_tricks.sliding_window_view: np.lib.stride_tricks.sliding_window_view(v, 3) | np.lib.stride_tricks.sliding_window_view(a, (2, 2)) | np.lib.stride_tricks.sliding_window_view(a, 2, axis=0).sum(axis=-1)
        # creation
        np.array: np.array(a) | np.array([a, b]) | np.array([1, 2, z]) | np.array(a, dtype=complex) | np.array([[z, 1], [2, z]]) | np.array(a, copy=None) | np.array(v, ndmin=2)
        np.asarray: np.asarray(a) | np.asarray(a, dtype=float) | np.asarray(z) | np.asarray([z, z]) | np.asanyarray(a)
        np.asarray_chkfinite: np.asarray_chkfinite(a)
        np.ascontiguousarray: np.ascontiguousarray(a) | np.asfortranarray(a)
        np.require: np.require(a) | np.require(a, dtype=float)
        np.copy: np.copy(a) | a.copy() | np.copy(a, order="F")
        np.astype: np.astype(a, complex) | a.astype(complex) | a.astype(np.float32) | a.astype(np.uint8) | a.astype(np.int32) | a.astype(np.uint64) | a.astype(np.float16) | a.astype(bool) | a.astype(a.dtype, copy=False)
        np.zeros_like: np.zeros_like(a) | np.zeros_like(a, dtype=float) | np.zeros_like(a, shape=(2, 2))
        np.ones_like: np.ones_like(a) | np.ones_like(a, dtype=int)
        np.full_like: np.full_like(a, 3) | np.full_like(a, z) | np.full_like(a, 2.5, dtype=float)
        np.empty_like: np.empty_like(a).shape
        np.zeros: np.zeros(3) + z | np.zeros((2, 3), dtype=a.dtype) | np.zeros(a.shape) | np.zeros((2, 3), order="F") + z | np.full((2, 3), z, order="F") | np.ones((2, 3), int, "F") * z | np.ones(4, int) | np.ones((2, 2)) * z
        np.empty: o = np.empty(a.shape); o[...] = 1; o
        np.full: np.full((2, 3), z) | np.full(3, 2) | np.full(3, z, dtype=complex)
        np.eye: np.eye(3) * z | np.eye(3, 4, k=1) | np.eye(2, dtype=int) | np.identity(3)
        np.tri: np.tri(3) | np.tri(3, 4, -1, dtype=int) + z
        np.arange: np.arange(5) + z | np.arange(1, 7, 2) | np.arange(3.0) | np.arange(0, 1, 0.25) | np.arange(4, dtype=float) | np.arange(a.shape[0])
        np.indices: np.indices((2, 3)) | np.indices((2, 3), dtype=float) | np.indices((2, 3), sparse=True)
        np.meshgrid: np.meshgrid(v, u) | np.meshgrid(v, u, indexing="ij") | np.meshgrid(v, u, sparse=True) | np.meshgrid(v, u, x) | np.meshgrid(s, z) | np.meshgrid([z, 1], v)
        np.ix_: a[np.ix_([0, 2], [1, 3])] | a[np.ix_(j, j)] | np.ix_(j, j)
        np.diag_indices: a[np.diag_indices(3)] | np.diag_indices(3)
        np.diag_indices_from: s[np.diag_indices_from(s)]
        np.tril_indices: a[np.tril_indices(3)] | s[np.tril_indices_from(s)] | np.triu_indices(3, 1) | s[np.triu_indices_from(s)]
        np.mask_indices: s[np.mask_indices(3, np.triu)]
        np.fromfunction: np.fromfunction(lambda p, q: p + q, (3, 3))
        np.vander: np.vander(v) | np.vander(v, 3) | np.vander(v, 3, increasing=True) | np.vander(n, 70) | np.vander(v, 0) | np.vander(v, 1)
        np.mgrid: np.mgrid[0:3, 0:4] | np.ogrid[0:3, 0:2][0] | np.mgrid[0:1:5j]
        np.r_: np.r_[v, 0, u] | np.c_[v, u] | np.r_[1:4, v]
        np.packbits: np.packbits(m) | np.unpackbits(np.packbits(v > 0)) | np.packbits(m, axis=-1)
        np.hanning: np.hanning(5) * z | np.hamming(6) | np.blackman(5) | np.bartlett(5) | np.kaiser(5, 3.0)
        np.apply_along_axis: np.apply_along_axis(np.sum, 0, a) | np.apply_along_axis(lambda r: r * 2, -1, a)
        np.apply_over_axes: np.apply_over_axes(np.sum, a, [0, 1])
        np.vectorize: np.vectorize(lambda q: q + 1)(v)
        np.lib.index: a[0] | a[-1] | a[1:3] | a[::2, ::-1] | a[..., 0] | a[None] | a[:, None] | a[i % 3] | a[j] | a[j, j] | a[j, 1:] | a[:, j] | a[[0, 1]] | a[j[:, None], j] | a[..., j] | a[j, None] | a[0, j] | a[j, :, None]
        np.lib.setitem: a[0] = 1; a | a[1:3] = b[1:3]; a | a[::2] = 7; a | a[m] = 2; a | a[j] = 4; a | a[a > 0] = 0; a | a[m] = b[m]; a | a[m] += 1; a | a[j, 0] = 3; a | a[:, j] = 2; a | a[-1, ::-1] = b[0]; a | a[..., 0] += b[..., 1]; a | a.T[0] = 5; a | a[j] += 1; a
        np.lib.setitem with numbers: a[np.int8(1)] = z; a | a[1, np.int64(2)] = z; a | a[n[0] % 3] += a[0]; a | a[n[0] % 3, 1:] = 2; a | for r in range(3): a[j[r]] = a[r]; a
        np.lib.mask: a[np.nonzero(m)[0], 0].sum() | a[np.nonzero(m)[0], None].max(initial=0) | y = a[np.nonzero(m)[0], :2]; y[:, 0] = 1; (y.sum(axis=0), a) | y = a[m[..., 0]]; w_ = y.T; w_[:1] = 5; (y, a) | a[m].real.sum() | a[m].sum() | a[m].mean() | (a[m] * 2).sum() | a[m].size | a[a > 0].max() | np.where(a > 0)[0].size | np.flip(v[v > 0]) | v[v > 0].sum(where=[True] * 6) | y = v[v == v]; y *= [2] * len(y); y
        np.ndarray.flat: a.flat[1:4] | [y * 2 for y in a.flat] | y = a.flat[1:3]; y[:] = 0; (a, y) | a.flat[::2] = z; a | a.flat = z; a
        np.ndarray.shape: y = a + a; y.shape = (-1,); y[:2] = 7; y | y = a + a; w_ = y[...]; y.shape = (5, -1); y[0] = 3; (y, w_) | y = a + a; x_ = y; y.shape = -1; (x_, x_ is y) | y = a * 2; y.shape += (1,); y | a.shape = (-1,); a | y = a + a; y.shape = (7, 9); y | p_, q_ = np.mgrid[0:3, 0:4]; p_.shape = q_.shape = 12; p_ * k + q_ | y = a[a > 0]; y.shape = (-1, 1); y
        np.ndarray.methods: a.item(0) | v.tolist() | a.fill(3); a | a.view() | a.astype(a.dtype).T | v.item(2) + 1
        np.copysign: np.copysign(1.0, a) | 1.0 / a
        """
    ),
    *rows("np.float_power: np.float_power(a, 0.5) | np.float_power(a, 2) | np.float_power(a, 0.25)", dtypes=REAL),
    *rows("np.power: a ** 64 | a ** 129 | 7 ** (n * 60) | a ** (n[:5] * 30)", dtypes=REAL),
    *rows(
        """
        np.mean: np.mean(a) | np.mean(a, axis=0) | a.mean(axis=-1, keepdims=True) | np.mean(a, dtype=float) | np.mean(a, where=m) | np.mean(a, axis=0, out=np.zeros(a.shape[1:])) | np.mean(a, axis=0, out=np.zeros(a.shape[1:], np.float32)) | np.mean(a, dtype=int)
        np.var: np.var(a) | np.var(a, axis=0) | a.var(axis=-1, keepdims=True) | np.var(a, ddof=1) | np.var(a, where=m) | np.var(a, correction=1) | np.var(a, dtype=int) | np.var(a, dtype=float) | np.var(a, axis=0, mean=np.mean(a, axis=0, keepdims=True)) | np.var(a, mean=0) | np.var(a, axis=0, mean=c) | np.std(a, mean=b, dtype=float)
        np.std: np.std(a) | np.std(a, axis=0) | a.std(axis=-1, keepdims=True) | np.std(a, ddof=1)
        np.average: np.average(a) | np.average(a, axis=0) | np.average(a, weights=b) | np.average(a, axis=-1, weights=c) | np.average(a, axis=-1, weights=c, returned=True)
        np.nanmean: np.nanmean(a) | np.nanmean(a, axis=0) | np.nanmean(a, axis=-1, keepdims=True)
        np.nanvar: np.nanvar(a) | np.nanvar(a, axis=0) | np.nanvar(a, ddof=1) | np.nanvar(a, dtype=float) | np.nanvar(a, axis=0, out=np.zeros(a.shape[1:]))
        np.nanstd: np.nanstd(a) | np.nanstd(a, axis=0) | np.nanstd(a, ddof=1)
        np.percentile: np.percentile(a, 30) | np.percentile(a, [10, 50], axis=0) | np.percentile(a, 70, axis=-1, keepdims=True) | np.percentile(a, 25, method="lower") | np.percentile(a, 25, method="nearest") | np.percentile(a, 40, method="midpoint") | np.percentile(a, 40, method="higher") | np.percentile(a, 40, method="hazen") | np.percentile(a, 100) | np.percentile(a, [0, 100], axis=0, method="weibull")
        np.quantile: np.quantile(a, 0.3) | np.quantile(a, [0.1, 0.5], axis=0) | np.quantile(a, 1.0) | np.quantile(a, 1) | np.quantile(a, [0, 1]) | np.quantile(a, np.float32(0.5))
        np.nanpercentile: np.nanpercentile(a, 30) | np.nanpercentile(a, 30, axis=0) | np.nanpercentile(a, 100) | np.nanpercentile(a, [0, 100], axis=0)
        np.nanquantile: np.nanquantile(a, 0.3) | np.nanquantile(a, [0.3, 0.6], axis=-1)
        np.cov: np.cov(a) | np.cov(v, u) | np.cov(a, rowvar=False) | np.cov(a, bias=True) | np.cov(a, ddof=0)
        np.corrcoef: np.corrcoef(s) | np.corrcoef(v, u)
        np.gradient: np.gradient(a) | np.gradient(a, axis=0) | np.gradient(v, 2.0) | np.gradient(v, edge_order=2) | np.gradient(v, np.array([0.0, 1.0, 2.5, 3.0, 5.0, 7.0])) | np.gradient(a, 2.0, 0.5) | np.gradient(v, np.array([7, 6, 5, 4, 3, 1], np.uint8)) | np.gradient(v, np.sort(u)) | np.gradient(v, np.arange(6.0) * 2) | np.gradient(v, n + 1) | np.gradient(a, 3.0, [1.0, 2.0, 4.0, 5.0, 7.0])
        np.trapezoid: np.trapezoid(a) | np.trapezoid(a, axis=0) | np.trapezoid(v, u) | np.trapezoid(a, dx=0.5) | np.trapezoid(m, a) | np.trapezoid(a > 0, dx=z) | np.trapezoid(v, u > 0)
        np.interp: np.interp(v, x, u[:5]) | np.interp(a, x, x * 2, left=-1.0, right=9.0) | np.interp(0.5, x, u[:5]) | np.interp(v, x, u[:5], period=5.0) | np.interp(v, u, v, period=-2.5) | np.interp(v, u, v, left=5, right=3, period=k) | np.interp(v, [0.5], [k], period=2.0) | np.interp(v, [3.0, k + 0.5, 1.0], [1, 2, 5], period=4) | np.interp(v, u, v, period=0)
        np.linspace: np.linspace(0, 1, 5) * z | np.linspace(z, 3, 4) | np.linspace(0, 1, 5, endpoint=False) | np.linspace(0, 1, 1) | np.linspace(v, u, 3) | np.linspace(0, 9, 4, dtype=int) | np.linspace(z, 2, 3, retstep=True) | np.linspace(v, u, 3, axis=-1) | np.linspace(v, u, 3, dtype=np.int8) | np.linspace(k, 9, 4, dtype=int)
        np.logspace: np.logspace(0, 1, 5) * z | np.logspace(z, 2, 3) | np.logspace(v, u, 3) | np.logspace(z, 3, 4, base=2.0)
        np.geomspace: np.geomspace(1, 100, 5) * z | np.geomspace(k, 100, 5, dtype=int) | np.geomspace(k, 100.0, 5) | np.geomspace(-1.5, -k, 4) | np.geomspace(2.0, k, 3, endpoint=False) | np.geomspace(z, 8, 4) | np.geomspace(z, z, 1) | np.geomspace(v, u, 3)
        np.dot: np.dot(v, u) | np.dot(s, t) | np.dot(s, v[:3]) | s.dot(t) | np.dot(z, v)
        np.inner: np.inner(v, u) | np.inner(s, t)
        np.vdot: np.vdot(v, u) | np.vdot(k, z) | np.vdot(s, t)
        np.outer: np.outer(v, u) | np.outer(a, v)
        np.matmul: s @ t | np.matmul(s, v[:3]) | v @ u | np.matmul(s[None], t)
        np.vecdot: np.vecdot(v, u) | np.vecdot(s, t) | np.matvec(s, v[:3]) | np.vecmat(v[:3], s)
        np.tensordot: np.tensordot(s, t) | np.tensordot(s, t, axes=1) | np.tensordot(s, t, axes=([0], [1]))
        np.kron: np.kron(v, u) | np.kron(s, t)
        np.trace: np.trace(s) | np.trace(a) | np.trace(a, 1) | s.trace()
        np.einsum: np.einsum("ij,jk->ik", s, t) | np.einsum("ii", s) | np.einsum("ij->ji", s) | np.einsum("i,i", v, u) | np.einsum("ij,ij->i", s, t) | np.einsum("ii->i", s) | np.einsum("...ii->...i", s[None] * 1) | np.einsum("i,j", v, u) | np.einsum("ij->j", s, out=np.zeros(3, int)) | np.einsum("ij->j", s, out=np.zeros(3))
        np.polyval: np.polyval(v, 0.5) | np.polyval([1, 2, 3], a) | np.polyval(x, v)
        np.polyadd: np.polyadd(v, u) | np.polysub(v, x) | np.polymul(v, x) | np.polyadd(v, 3)
        np.polyder: np.polyder(v) | np.polyder(v, 2) | np.polyder([1, 2, z]) | np.polymul(v, 3) | np.polyint(v) | np.polyint(v, 2)
        np.polydiv: np.polydiv(v, x)
        np.polyfit: np.polyfit(v, u, 2)
        np.poly: np.poly(v) | np.roots(v)
        np.real_if_close: np.real_if_close(a)
        """,
        loose=16.0,
        tame=False,
    ),
    *rows(
        """
        np.fft: np.fft.fft(a) | np.fft.ifft(a) | np.fft.fft(a, axis=0) | np.fft.fft(v, 8) | np.fft.fft(v, 4, norm="ortho") | np.fft.rfft(a) | np.fft.irfft(a) | np.fft.irfft(v, 9) | np.fft.hfft(v) | np.fft.ihfft(v) | np.fft.fft2(a) | np.fft.ifft2(a) | np.fft.rfft2(a) | np.fft.irfft2(a) | np.fft.fftn(a) | np.fft.ifftn(a) | np.fft.rfftn(a) | np.fft.irfftn(a) | np.fft.fftshift(a) | np.fft.ifftshift(a, axes=0) | np.fft.fftfreq(8) * z | np.fft.rfftfreq(7, d=0.5) | np.fft.fft(a, norm="forward") | np.fft.fft2(a, s=(3, 3)) | np.fft.irfft(a, axis=0) | np.fft.fftn(a, axes=(0, 0)) | np.fft.fftn(a, s=(-1, 2), axes=(0, 1))
        np.linalg.norm: np.linalg.norm(a) | np.linalg.norm(v, 1) | np.linalg.norm(v, np.inf) | np.linalg.norm(v[:0], np.inf) | np.linalg.norm(a, axis=0) | np.linalg.norm(s, 2) | np.linalg.norm(s, "nuc") | np.linalg.norm(s, -1) | np.linalg.norm(v, 3) | np.linalg.norm(v, 0) | np.linalg.norm(s, "fro", keepdims=True) | np.linalg.norm(s, 1) | np.linalg.norm(a, axis=(0, 1)) | np.linalg.norm(a, ord=-np.inf, axis=-1)
        np.linalg.vector_norm: np.linalg.vector_norm(a) | np.linalg.vector_norm(a, axis=0, ord=1) | np.linalg.matrix_norm(s) | np.linalg.matrix_norm(s, ord=2)
        np.linalg.det: np.linalg.det(s) | np.linalg.slogdet(s) | np.linalg.det(s[None])
        np.linalg.inv: np.linalg.inv(s) | np.linalg.inv(np.stack([s, t])) | np.linalg.inv(s @ np.diag(np.array([1, 0.01, 100.0]).astype(s.dtype)))
        np.linalg.solve: np.linalg.solve(s, t) | np.linalg.solve(s, v[:3])
        np.linalg.cholesky: np.linalg.cholesky(p) | np.linalg.cholesky(p, upper=True) | np.linalg.cholesky(p + np.triu(s, 1)) | np.linalg.cholesky(p + np.tril(s, -1), upper=True)
        np.linalg.eigvalsh: np.linalg.eigvalsh(p) | np.linalg.eigvalsh(p, UPLO="U") | np.linalg.eigh(p)[0] | np.linalg.eigvalsh(s) | np.linalg.eigvalsh(s, "u") | np.linalg.eigh(s, "U")[0] | np.linalg.eigvalsh(np.stack([s, t]))
        np.linalg.svd: np.linalg.svd(s)[1] | np.linalg.svd(s, compute_uv=False) | np.linalg.svdvals(s) | np.linalg.svd(s, compute_uv=False, hermitian=True)
        np.linalg.qr: np.abs(np.linalg.qr(s)[1]) | np.abs(np.linalg.qr(s, mode="r")) | np.matmul(*np.linalg.qr(s))
        np.linalg.matrix_power: np.linalg.matrix_power(s, 3) | np.linalg.matrix_power(s, 0) | np.linalg.matrix_power(s, -2)
        np.linalg.multi_dot: np.linalg.multi_dot([s, t, s])
        np.linalg.pinv: np.linalg.pinv(s) | np.linalg.pinv(a) | np.linalg.pinv(np.outer(s[0].real, s[1].real)) | np.linalg.pinv(np.diag(s[0] * 0 + np.array([1.0, 2.0, 4e-15]))) | np.linalg.pinv(p, hermitian=True) | np.linalg.pinv(s + 9 * np.eye(3), hermitian=True)
        np.linalg.matrix_rank: np.linalg.matrix_rank(s) | np.linalg.matrix_rank(a) | np.linalg.matrix_rank(s, hermitian=True)
        np.linalg.cond: np.linalg.cond(s) | np.linalg.cond(s, 1) | np.linalg.cond(s * 0.0) | np.linalg.cond(s * 0.0, -2)
        np.linalg.lstsq: np.linalg.lstsq(s, t)[0]
        np.linalg.eig: np.sort(np.linalg.eigvals(p).real) | np.linalg.eig(p)[0]
        np.linalg.tensorinv: np.linalg.tensorsolve(s, v[:3]) | np.linalg.tensorinv(s, ind=1)
        np.linalg.outer: np.linalg.outer(v, u) | np.linalg.trace(s) | np.linalg.diagonal(s) | np.linalg.matrix_transpose(s) | np.linalg.matmul(s, t) | np.linalg.vecdot(s, t) | np.linalg.tensordot(s, t) | np.linalg.cross(s, t)
        """,
        dtypes=("f", "d", "F", "D", "q", "?"),
        loose=300.0,
        tame=True,
    ),
]
