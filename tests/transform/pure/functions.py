"""Functions with branches, loops, state and masks, each of one vector and one number, giving one float."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


def masked_log(x: Any, k: float) -> float:
    return float(np.where(x > 0, np.log(x), 0.0).sum() * k)


def masked_quotient(x: Any, k: float) -> float:
    y = np.zeros_like(x)
    wet = x != 0.0
    y[wet] = np.sqrt(np.abs(x[wet])) / x[wet]
    return float(k * y.sum() + (x * x).sum())


def overwritten(x: Any, k: float) -> float:
    y = np.log(np.abs(x))
    y[0] = k * x[1]
    return float(y[:2].sum())


def finite_only(x: Any, k: float) -> float:
    y = k / x
    return float(np.where(np.isfinite(y), y, 0.0).sum())


def two_branches(x: Any, k: float) -> float:
    y = np.sin(x) * k if x.sum() > 0 else x**2 * k
    if x[0] > 1.0:
        y = y + np.exp(-x)
    return float(y.sum())


def host_branch(x: Any, k: float) -> float:
    damping = k * k if k > 1.0 else 1.0 / k
    return float((damping * x).sum())


def counted(x: Any, k: float) -> float:
    y = x
    for i in range(4):
        y = y + k * (np.roll(y, 1) - 2.0 * y + np.roll(y, -1)) / (i + 1)
    return float((y**2).sum())


def by_data(x: Any, k: float) -> float:
    root = np.abs(x) + 1.0
    target = np.abs(x) + k
    while np.abs(root * root - target).max() > 1e-13:
        root = 0.5 * (root + target / root)
    return float(root.sum())


def clipped(x: Any, k: float) -> float:
    return float((np.clip(x, -0.5, 0.5) * k + np.maximum(x, np.sqrt(np.abs(x)))).sum())


def ordered(x: Any, k: float) -> float:
    return float(k * np.sort(x)[-2] + np.median(x) + np.percentile(x, 30.0) + x.max())


def python_numbers(x: Any, k: float) -> float:
    top = max(float(x[0]), float(x[1]), 0.1)
    return math.sqrt(top * top + k) * math.cos(k) + min(k, 5.0)


@dataclass
class Params:
    k: float
    tau: float = 3.0


class Ocean:
    """State in attributes, of which one is changed in place; a counter, and parameters on an object."""

    def __init__(self) -> None:
        self.u = np.linspace(0.5, 1.5, 4)
        self.h = np.ones(4)
        self.n = 0
        self.params = Params(0.3)

    def step(self, forcing: Any) -> float:
        self.n += 1
        self.h += 0.1 * self.u
        speed = np.sqrt(self.u**2 + 1.0)
        self.u = self.u + self.params.k * (forcing - self.u / self.params.tau) / speed
        if self.n % 2 == 0:
            self.u = 0.5 * (self.u + np.roll(self.u, 1))
        return float(self.u.sum())


def with_state(x: Any, k: float) -> float:
    ocean = Ocean()
    ocean.params.k = k
    for _ in range(3):
        ocean.step(x)
    return float((ocean.u * ocean.h).sum())


FIRST = np.array([0.7, 1.9, 0.25, 0.6])
"""Positive, and all different."""
SECOND = np.array([1.3, -0.8, 0.4, -0.2])
THIRD = np.array([-0.3, -0.7, 0.2, 0.1])

FUNCTIONS = (
    masked_log,
    masked_quotient,
    overwritten,
    finite_only,
    two_branches,
    host_branch,
    counted,
    by_data,
    clipped,
    ordered,
    python_numbers,
    with_state,
)
CALLS = ((FIRST, 0.5), (SECOND, 0.5), (THIRD, 0.5), (FIRST, 1.5))
