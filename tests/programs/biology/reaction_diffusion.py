"""Gray-Scott patterns with growth: a five-point Laplacian, feed and kill rates that vary in space, spots counted."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage


@dataclass(frozen=True)
class Dish:
    u: np.ndarray
    v: np.ndarray
    age: int = 0


@dataclass(frozen=True)
class Rates:
    du: float = 0.16
    dv: float = 0.08
    feed: float = 0.035
    kill: float = 0.060


def start(n=160, seed=0):
    rng = np.random.default_rng(seed)
    u, v = np.ones((n, n)), np.zeros((n, n))
    for _ in range(12):
        r, c = rng.integers(10, n - 20, 2)
        u[r : r + 10, c : c + 10] = 0.5
        v[r : r + 10, c : c + 10] = 0.25
    return Dish(u + 0.02 * rng.standard_normal((n, n)), v)


def laplacian(a):
    return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a


def grow(dish, rates, dt=1.0):
    uvv = dish.u * dish.v * dish.v
    feed = rates.feed * (1 + 0.2 * np.linspace(-1, 1, dish.u.shape[0])[:, None])
    u = dish.u + dt * (rates.du * laplacian(dish.u) - uvv + feed * (1 - dish.u))
    v = dish.v + dt * (rates.dv * laplacian(dish.v) + uvv - (feed + rates.kill) * dish.v)
    return replace(dish, u=u, v=v, age=dish.age + 1)


def spots(dish):
    labels, count = ndimage.label(dish.v > 0.2)
    return count


def treat(dish, mask):
    v = dish.v.copy()
    v[mask] *= 0.5
    return replace(dish, v=v)


def run(steps):
    dish, rates = start(), Rates()
    y, x = np.mgrid[:160, :160]
    mask = (x - 80) ** 2 + (y - 80) ** 2 < 400
    counts = []
    for k in range(steps):
        dish = grow(dish, rates)
        if k % 20 == 19:
            dish = treat(dish, mask)
            counts.append(spots(dish))
    return {"u": dish.u, "v": dish.v, "counts": np.array(counts), "age": np.int64(dish.age)}
