"""Random programs of stencils and moves: rolls, slices, borders, views that are written to, and arithmetic on them.

A template's field is a kind of value, as in tests.rounding.expressions: `d` float64, `f` float32, `i` whole numbers,
`m` truths; `x` and `y` have the template's own kind. A is an axis, K a shift.
"""

# ruff: noqa: E501  (tables read best by the line)
from __future__ import annotations

import math
import random
import re
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
    z = x.copy()
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
"""

MOVES = """
np.roll({x}, K, axis=A) | np.roll({x}, K, axis=-1) | np.roll({x}, K, axis=-1) - np.roll({x}, -1, axis=-1) | np.roll({x}, 1, axis=A) + {x} + np.roll({x}, -1, axis=A)
np.flip({x}, A) | np.concatenate(({x}[1:], {x}[:1])) | np.concatenate(({x}[..., -3:], {y}[..., :-3]), axis=-1) | rows({x}, {y}) | inner({x}, {y})
steps({x}, {y}) | masked({x}, {m}, {y}) | turned({x}) | edges({x}, 'wrap') | edges({x}, 'edge') | edges({x}, 'reflect') | edges({x}, 'constant')
flat({x}, {y}) | lifted({x}, {y}) | np.where({m}, {x}, {y}) | taken({x}, {i}) | {x}[..., :1] + {y} | {x}[:1] * {y} | {x} - {y}[..., -1:] | {x} + {y} | {x} * {y} | {x} - {y}
{x} - {x}.max(axis=A, keepdims=True) | {x}.min(axis=A, keepdims=True) + {y} | np.maximum({x}, {y}) | np.abs({x}) | -{x}
"""

FLOATS = """
np.gradient({x}, axis=A) if x_long(A) else {x} | {x} / {y} | np.sqrt(np.abs({x})) | {x} * 0.1 + {y} * 0.3 | {x} ** 2 | np.floor({x}) | np.nan_to_num({x})
np.exp(-np.abs({x})) * 0 + {y} | np.clip({x}, -1.0, 3.0)
"""

TRUTHS = "{d} > {d} | {f} <= {f} | {i} == {i} | {m} & {m} | ~{m} | np.roll({m}, K, axis=A) | {m} ^ np.flip({m}, A) | np.isnan({d}) | {d}.any(axis=A, keepdims=True) | {m}"

TOPS = "{d}.any() | {m}.sum() | {i}.sum(axis=A) | {d}.max() | {d}.min(axis=A) | {i}.max() | {m}.all(axis=A) | {d}[..., 0] * 2 | {i}.astype(np.int32) | {d}.astype(np.float32) | {f}.astype(np.float64)"

NAMES = {"d": "a b c".split(), "f": "f g".split(), "i": "i j".split(), "m": "m n".split()}
PARAMETERS = [name for names in NAMES.values() for name in names]
KINDS = ("d",) * 5 + ("f", "f", "i", "m", "top", "top")


def _rows(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


_TABLES = {
    "d": _rows(MOVES) * 2 + _rows(FLOATS),
    "f": _rows(MOVES) * 2 + [each for each in _rows(FLOATS) if "0.1" not in each],
    "i": _rows(MOVES),
    "m": _rows(TRUTHS),
    "top": _rows(TOPS),
}


def random_program(draw: random.Random, shape: tuple[int, ...], count: int) -> str:
    """The source of a function `case` with this many results."""
    texts = [_expression(draw, shape, draw.choice(KINDS), 4) for _ in range(count)]
    lines = [f"    r{at} = {each}" for at, each in enumerate(texts)]
    results = ", ".join(f"r{at}" for at in range(count))
    return "\n".join([HELPERS, f"def case({', '.join(PARAMETERS)}):", *lines, f"    return {results},", ""])


def _expression(draw: random.Random, shape: tuple[int, ...], kind: str, depth: int) -> str:
    if depth <= 0 or (kind in NAMES and depth < 4 and draw.random() < 0.2):
        return draw.choice(NAMES[kind])
    shared: dict[str, str] = {}

    def filled(field: re.Match[str]) -> str:
        name = field[1]
        if name in shared:
            return shared[name]
        text = _expression(draw, shape, kind if name in "xy" else name, depth - draw.choice((1, 1, 2, 3)))
        text = text if len(text) == 1 else f"({text})"
        return shared.setdefault(name, text) if name in "xy" else text

    axis = draw.randrange(len(shape))
    text = draw.choice(_TABLES[kind])
    text = text.replace("x_long(A)", str(shape[axis] > 1)).replace("A", str(axis)) if "A" in text else text
    text = text.replace("K", str(draw.choice([1, -1, 2, -3, 5, shape[-1] // 2])))
    return re.sub(r"\{(\w)\}", filled, text)


def operands(shape: tuple[int, ...], seed: int) -> tuple[Any, ...]:
    """Fresh operands, in the order of PARAMETERS: ordinary numbers, equal ones, and special ones."""
    rng = np.random.default_rng(seed)
    size = math.prod(shape)

    def floats(dtype: Any) -> np.ndarray:
        values = np.where(rng.random(size) < 0.4, rng.integers(-4, 5, size) / 4, rng.normal(size=size))
        special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e300], size)
        with np.errstate(all="ignore"):
            return np.where(rng.random(size) < 0.05, special, values).astype(dtype).reshape(shape)

    whole = [rng.integers(-9, 10, size).reshape(shape) for _ in range(2)]
    truths = [(rng.random(size) < 0.5).reshape(shape) for _ in range(2)]
    return (*(floats(np.float64) for _ in range(3)), *(floats(np.float32) for _ in range(2)), *whole, *truths)
