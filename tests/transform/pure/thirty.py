"""Thirty functions as programs have them, each of one vector and one number, giving one float: loops, masks, state.

They are smooth at the points where they are tested, so that central differences tell their gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from scipy import ndimage


def early_return(x: Any, k: float) -> float:
    if x.min() > 0:
        return float((x * k).sum())
    if k > 1.0:
        return float(x[0] ** 3)
    return float(-(x**2).sum())


def loop_that_breaks(x: Any, k: float) -> float:
    total = 0.0
    for value in x:
        if value < 0:
            break
        total += value * value * k
    return float(total)


def loop_that_continues(x: Any, k: float) -> float:
    total = k
    for i, value in enumerate(x):
        if value < 0:
            continue
        total = total * (1.0 + 0.1 * i) + math.exp(-value)
    return float(total)


def else_of_a_loop(x: Any, k: float) -> float:
    for value in x:
        if value > 1.5:
            y = k * x
            break
    else:
        y = np.tanh(x) / k
    return float((y * x).sum())


def nested_loops(x: Any, k: float) -> float:
    y = np.outer(x, x)
    for i in range(1, 3):
        for j in range(1, 3):
            y[i, j] = 0.25 * (y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i, j + 1]) * k
    return float((y**2).sum())


def while_with_count(x: Any, k: float) -> float:
    y, n = x.copy(), 0
    while n < 3 and np.abs(y).sum() > 0.5:
        y *= 0.5 + 0.1 * k
        n += 1
    return float((y * (n + 1)).sum())


def halving_number(x: Any, k: float) -> float:
    size = float(np.sqrt((x**2).sum())) * k
    while size > 0.4:
        size *= 0.6
    return size


def mask_twice(x: Any, k: float) -> float:
    y = x * k
    warm = y > 0.11
    y[warm] -= 0.1 * y[warm] ** 2
    y[~warm] = np.exp(y[~warm])
    return float(y.sum())


def mask_of_mask(x: Any, k: float) -> float:
    part = x[x > -0.5]
    return float((part[part < 1.0] ** 2).sum() * k)


def masked_mean(x: Any, k: float) -> float:
    wet = x > 0
    return float(x[wet].mean() * k) if wet.any() else float(x.mean())


def where_indices(x: Any, k: float) -> float:
    y = np.sin(x)
    (found,) = np.where(x < 0.5)
    y[found] *= k
    return float(y.sum())


def largest(x: Any, k: float) -> float:
    i = int(np.argmax(x))
    return float(x[i] ** 2 * k + x[(i + 1) % len(x)])


def in_order(x: Any, k: float) -> float:
    order = np.argsort(x)
    weights = np.arange(1.0, len(x) + 1)
    return float((x[order] * weights).sum() * k)


def running(x: Any, k: float) -> float:
    return float((np.cumsum(x) * np.cumprod(1.0 + 0.1 * k * x)).sum())


def select_of_three(x: Any, k: float) -> float:
    cold, mild = x < -0.25, x < 0.65
    return float(np.select([cold, mild], [np.sqrt(-x), k * x**2], np.log(x)).sum())


def piecewise(x: Any, k: float) -> float:
    return float(np.piecewise(x, [x < 0, x >= 0], [lambda v: -v * k, lambda v: v**2]).sum())


def views_overlap(x: Any, k: float) -> float:
    y = x.copy()
    y[1:] += k * y[:-1]
    tail = y[2:]
    tail *= y[:2]
    return float((y**2).sum())


def reversed_view(x: Any, k: float) -> float:
    y = x * 1.0
    z = y[::-1]
    z[0] = k
    z[1:3] *= y[1:3]
    return float((y * np.arange(4.0)).sum())


def swapped(x: Any, k: float) -> float:
    old, new = x * 1.0, np.empty_like(x)
    for _ in range(3):
        new[:] = k * np.roll(old, 1) + (1.0 - k) * old * old
        old, new = new, old
    return float((old - 0.5 * new).sum())


def in_a_dict(x: Any, k: float) -> float:
    fields = {"u": x.copy(), "v": 2.0 * x, "n": 0}
    for name in ("u", "v"):
        fields[name] *= k
        fields["n"] += 1
    fields["w"] = fields["u"] * fields["v"]
    return float(fields["w"].sum() * fields["n"])


def listed(x: Any, k: float) -> float:
    kept = [value * k for value in x if value > 0]
    kept.append(k**2)
    return float(np.sum(kept))


def closure(x: Any, k: float) -> float:
    def flux(value: Any) -> Any:
        return value**2 if k < 1.0 else value**3

    return float(reduce(lambda total, value: 0.9 * total + flux(value), x, 0.0))


def with_einsum(x: Any, k: float) -> float:
    a = np.outer(x, np.cos(x)) + k * np.eye(len(x))
    return float(np.einsum("ij,jk,k->", a, a.T, x))


def solved(x: Any, k: float) -> float:
    a = np.diag(3.0 + x**2) + k * np.eye(len(x), k=1)
    return float(np.linalg.solve(a, x).sum())


def interpolated(x: Any, k: float) -> float:
    return float(np.interp(x, [-1.05, -0.33, 0.33, 1.05, 2.5], [0.0, 1.0, k, 3.0, -1.0]).sum())


def filtered(x: Any, k: float) -> float:
    smooth = ndimage.gaussian_filter(np.outer(x, x + k), 0.8, mode="nearest")
    return float((smooth**2).sum())


def spectral(x: Any, k: float) -> float:
    c = np.fft.rfft(x)
    c[1:] *= np.exp(-k * np.arange(1, len(c)))
    return float((np.fft.irfft(c, len(x)) ** 2).sum() + np.abs(c[1]))


def try_and_except(x: Any, k: float) -> float:
    table = {"a": k}
    try:
        scale = table["b"]
    except KeyError:
        scale = 2.0 * table["a"]
    return float((np.sqrt(np.abs(x)) * scale).sum())


def integers(x: Any, k: float) -> float:
    bins = np.floor((x + 2.05) / 0.7).astype(int)
    weights = np.linspace(0.5, 2.0, 8)[bins]
    total = np.zeros(8)
    np.add.at(total, bins, weights * x * k)
    return float((total**2).sum())


class _Tank:
    """State: an array changed in place, a number, a counter, a flag that the call does not change."""

    def __init__(self, level: Any) -> None:
        self.level, self.lost, self.n, self.open = level, 0.0, 0, True

    def step(self, k: float) -> None:
        flow = k * np.sqrt(np.maximum(self.level, 0.04))
        if self.open and self.n % 2 == 0:
            self.level -= 0.1 * flow
            self.lost += float(flow.sum())
        self.n += 1

    def settle(self, k: float) -> float:
        for _ in range(3):
            self.step(k)
        return self.lost


def tank(x: Any, k: float) -> float:
    one = _Tank(x * 1.0)
    return one.settle(k) + float((one.level**2).sum())


THIRTY: tuple[Callable[[Any, float], float], ...] = (
    early_return,
    loop_that_breaks,
    loop_that_continues,
    else_of_a_loop,
    nested_loops,
    while_with_count,
    halving_number,
    mask_twice,
    mask_of_mask,
    masked_mean,
    where_indices,
    largest,
    in_order,
    running,
    select_of_three,
    piecewise,
    views_overlap,
    reversed_view,
    swapped,
    in_a_dict,
    listed,
    closure,
    with_einsum,
    solved,
    interpolated,
    filtered,
    spectral,
    try_and_except,
    integers,
    tank,
)
