"""Random programs of stencils and moves: rolls, slices, borders, views that are written to, and arithmetic on them.

A template's field is a kind of value, as in tests.rounding.expressions: `d` float64, `f` float32, `i` whole numbers,
`s`, `u`, `w` those of 16, 8 and 32 bits, `m` truths; `x` and `y` have the template's own kind. A is an axis, K a shift. `+ 0`
after an extreme makes a zero positive: see docs/differences.md.
"""

# ruff: noqa: E501  (tables read best by the line)
from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SHAPES = ((41,), (9, 37), (19, 16), (3, 6, 20), (2, 3, 4, 9), (5, 3), (1, 40), (30, 1))

HELPERS = """
def rows(x, y):
    z = x.copy()
    z[0] = y[-1]
    z[-1] = x[0]
    return z
def inner(x, y):
    z = x * 1
    z[..., 1:-1] = z[..., 1:-1] * x.dtype.type(3) + y[..., 2:]
    return z
def steps(x, y):
    z = x + x
    z[..., ::2] = y[..., ::2]
    z[1:] -= y[:-1]
    return z
def masked(x, m, y):
    z, m = x.copy(), np.broadcast_to(m, x.shape)
    z[m] = y[m]
    return z
def turned(x):
    return np.swapaxes(np.swapaxes(x, 0, -1) * x.dtype.type(3), 0, -1)
def edges(x, mode):
    z = np.pad(x, 2, mode=mode)
    return z[tuple(slice(1, 1 + n) for n in x.shape)] - z[tuple(slice(4, 4 + n) for n in x.shape)]
def flat(x, y):
    z = x.reshape(-1)
    return (z[::-1] + y.reshape(-1)).reshape(x.shape)
def lifted(x, y):
    z = np.stack([x, y, x + y])
    return z[0] * z[2] - z[1]
def taken(x, i):
    return x[np.abs(i.ravel()[: len(x)]) % len(x)]
def strided(x, y):
    z = x.copy()
    z[..., 1::2] = y[..., : z[..., 1::2].shape[-1]]
    z[::-2] += x[::-2]
    return z
def viewed(x, y):
    z = x.copy()
    view = z[..., 1:]
    view += y[..., :-1]
    z.T[0] = z.T[-1]
    view[..., ::2] = x[..., :-1:2]
    return z
def scattered(x, y, i):
    z, at = x.copy(), np.abs(i.ravel()[: len(x)]) % len(x)
    z[at] = y[: len(at)]
    np.add.at(z, at, x[: len(at)])
    return z
def placed(x, y, i):
    z, k = x.copy(), int(np.abs(i.ravel()[0]) % len(x))
    z[k] = y[k - 1]
    return z + x[k]
def smoothed(x, y):
    for _ in range(3):
        x = np.roll(x, 1, axis=-1) + y - np.roll(x, -1, axis=0)
    return x
def swept(x, y):
    z = x.copy()
    for row in range(1, min(len(z), 6)):
        z[row] = z[row - 1] * x.dtype.type(2) - y[row]
    return z
def tiled(x):
    return np.concatenate([x, x, x], axis=-1)[..., 2 : 2 + x.shape[-1]] + np.repeat(x, 2, axis=0)[: len(x)]
"""

MOVES = """
np.roll({x}, K, axis=A) | np.roll({x}, K, axis=-1) | np.roll({x}, K, axis=-1) - np.roll({x}, -1, axis=-1) | np.roll({x}, 1, axis=A) + {x} + np.roll({x}, -1, axis=A)
np.flip({x}, A) | np.concatenate(({x}[1:], {x}[:1])) | np.concatenate(({x}[..., -3:], {y}[..., :-3]), axis=-1) | rows({x}, {y}) | inner({x}, {y})
steps({x}, {y}) | masked({x}, {m}, {y}) | turned({x}) | edges({x}, 'wrap') | edges({x}, 'edge') | edges({x}, 'reflect') | edges({x}, 'constant')
flat({x}, {y}) | lifted({x}, {y}) | np.where({m}, {x}, {y}) | taken({x}, {i}) | {x}[..., :1] + {y} | {x}[:1] * {y} | {x} - {y}[..., -1:] | {x} + {y} | {x} * {y} | {x} - {y}
strided({x}, {y}) | viewed({x}, {y}) | scattered({x}, {y}, {i}) | placed({x}, {y}, {i}) | smoothed({x}, {y}) | swept({x}, {y}) | tiled({x})
np.take_along_axis({x}, np.argmax({y}, axis=A, keepdims=True), axis=A) + {x} | np.cumsum({x}, axis=A).astype({x}.dtype) | np.select([{m}, {m}], [{x}, {y}], 1)
{x} - ({x}.max(axis=A, keepdims=True) + 0) | ({x}.min(axis=A, keepdims=True) + 0) + {y} | np.maximum({x}, {y}) | np.abs({x}) | -{x}
"""

FLOATS = """
np.gradient({x}, axis=A) if x_long(A) else {x} | {x} / {y} | np.sqrt(np.abs({x})) | {x} * 0.1 + {y} * 0.3 | {x} ** 2 | np.floor({x}) | np.nan_to_num({x})
np.exp(-np.abs({x})) * 0 + {y} | np.clip({x}, -1.0, 3.0) | {x}.astype(np.float32).astype({x}.dtype) | {x} + {x}.mean(axis=-1, keepdims=True)
np.rint({x}) | np.trunc({x}) | np.fmod({x}, {y}) | {x} // {y} | {x} % {y} | np.copysign({x}, np.nan_to_num({y})) | np.square({x}) | np.sign({x}) | np.cbrt({x}) * 0 + {y}
"""

WHOLES = """
{x} // {y} | {x} % {y} | {x} & {y} | np.bitwise_or({x}, {y}) | {x} ^ {y} | ~{x} | {x} << ({y} & {y}.dtype.type(3)) | {x} >> ({y} & {y}.dtype.type(3)) | np.bitwise_count({x}).astype({x}.dtype)
np.sign({x}) | np.clip({x}, 1, 5) | {i}.astype({x}.dtype) | {m}.astype({x}.dtype) + {x} | {x} ** 2 | np.fmod({x}, {y})
"""

TRUTHS = "{d} > {d} | {f} <= {f} | {i} == {i} | {m} & {m} | ~{m} | np.roll({m}, K, axis=A) | {m} ^ np.flip({m}, A) | np.isnan({d}) | {d}.any(axis=A, keepdims=True) | {m}"

TOPS = "{s} + {i} | {u} + {s} | {w} + {u} | {s} / {u} | {f} + {s} | {d} + {f} | {s} < {u} | {i} > {d} | {d}.sum() | {d}.sum(axis=0) | {d}.sum(axis=-1) | {f}.sum(axis=-1) | {s}.sum(axis=A) | {u}.max(axis=A) | {s}.astype(np.uint8) | {w}.astype(np.int64) | {i}.argmin(axis=A) | {d}.argmax() | {u}.prod(axis=-1) | {d}.mean(axis=0) | {d}.var(axis=-1) | np.diff({d}, axis=A) | {d}[::-1, ...][1:] | {m}.argmax(axis=A) | np.count_nonzero({m}, axis=A) | {d}.any() | {m}.sum() | {i}.sum(axis=A) | {d}.max() + 0 | {d}.min(axis=A) + 0 | {i}.max() | {m}.all(axis=A) | {d}[..., 0] * 2 | {i}.astype(np.int32) | {d}.astype(np.float32) | {f}.astype(np.float64)"

NAMES = {
    "d": "a b c".split(),
    "f": "f g".split(),
    "i": "i j".split(),
    "s": "p q".split(),
    "u": "t u".split(),
    "w": "v w".split(),
    "m": "m n".split(),
}
PARAMETERS = [name for names in NAMES.values() for name in names]
KINDS = ("d",) * 6 + ("f", "f", "i", "s", "u", "w", "m", "top", "top", "top")


def rows_of(text: str) -> list[str]:
    """The templates of a table."""
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


TABLES = {
    "d": rows_of(MOVES) * 2 + rows_of(FLOATS),
    "f": rows_of(MOVES) * 2 + [each for each in rows_of(FLOATS) if "0.1" not in each],
    **dict.fromkeys("isuw", rows_of(MOVES) * 2 + rows_of(WHOLES)),
    "m": rows_of(TRUTHS),
    "top": rows_of(TOPS),
}


@dataclass
class Expressions:
    """Writes expressions. draw: the source of all choices. names: of operands, by kind. tables: templates, by kind."""

    draw: random.Random
    shape: tuple[int, ...]
    names: Mapping[str, Sequence[str]] = field(default_factory=lambda: NAMES)
    tables: Mapping[str, Sequence[str]] = field(default_factory=lambda: TABLES)

    def text(self, kind: str, depth: int = 4) -> str:
        """An expression of a kind, with templates in templates down to a depth."""
        if depth <= 0 or (kind in self.names and depth < 4 and self.draw.random() < 0.2):
            return self.draw.choice(self.names[kind])
        return self.filled(self.draw.choice(self.tables[kind]), kind, depth)

    def filled(self, template: str, kind: str, depth: int) -> str:
        """The expression that a template of this kind becomes."""
        shared: dict[str, str] = {}

        def operand(place: re.Match[str]) -> str:
            name = place[1]
            if name in shared:
                return shared[name]
            text = self.text(kind if name in "xy" else name, depth - self.draw.choice((1, 1, 2, 3)))
            text = text if text.isidentifier() else f"({text})"
            return shared.setdefault(name, text) if name in "xy" else text

        axis = self.draw.randrange(len(self.shape))
        text = template.replace("x_long(A)", str(self.shape[axis] > 1)).replace("A", str(axis))
        text = text.replace("K", str(self.draw.choice([1, -1, 2, -3, 5, self.shape[-1] // 2])))
        return re.sub(r"\{(\w)\}", operand, text)


def random_program(draw: random.Random, shape: tuple[int, ...], count: int) -> str:
    """The source of a function `case` with this many results."""
    expressions = Expressions(draw, shape)
    lines = [f"    r{at} = {expressions.text(draw.choice(KINDS))}" for at in range(count)]
    results = ", ".join(f"r{at}" for at in range(count))
    return "\n".join([HELPERS, f"def case({', '.join(PARAMETERS)}):", *lines, f"    return {results},", ""])


def operands(shape: tuple[int, ...], seed: int) -> tuple[Any, ...]:
    """Fresh operands, in the order of PARAMETERS: ordinary numbers, equal ones, and special ones."""
    rng = np.random.default_rng(seed)
    size = math.prod(shape)

    def floats(dtype: Any) -> np.ndarray:
        values = np.where(rng.random(size) < 0.4, rng.integers(-4, 5, size) / 4, rng.normal(size=size))
        special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e300], size)
        with np.errstate(all="ignore"):
            return np.where(rng.random(size) < 0.05, special, values).astype(dtype).reshape(shape)

    def wholes(dtype: Any) -> np.ndarray:
        limits = np.iinfo(dtype)
        values = rng.integers(max(-9, limits.min), 10, size)
        return np.where(rng.random(size) < 0.05, rng.choice([limits.min, limits.max], size), values).astype(dtype)

    kinds = (np.int64, np.int16, np.uint8, np.uint32)
    whole = [wholes(dtype).reshape(shape) for dtype in kinds for _ in range(2)]
    truths = [(rng.random(size) < 0.5).reshape(shape) for _ in range(2)]
    return (*(floats(np.float64) for _ in range(3)), *(floats(np.float32) for _ in range(2)), *whole, *truths)
