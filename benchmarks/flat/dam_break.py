"""A dam break by smoothed particle hydrodynamics: neighbours from a cKDTree, a stiff equation of state."""

import os

import numpy as np
from scipy.spatial import cKDTree

steps = int(os.environ.get("STEPS", "260"))

H, RHO, DT, SOUND = 0.05, 1000.0, 4e-4, 30.0
x, y = np.meshgrid(np.arange(0.02, 1.0, 0.025), np.arange(0.02, 1.0, 0.025))
position = np.column_stack([x.ravel(), y.ravel()])
velocity = np.zeros_like(position)
mass = RHO * 0.025**2


def kernel(r):
    q = r / H
    sigma = 10 / (7 * np.pi * H**2)
    return sigma * np.where(q < 1, 1 - 1.5 * q**2 + 0.75 * q**3, np.where(q < 2, 0.25 * (2 - q) ** 3, 0))


def slope(r):
    q = r / H
    sigma = 10 / (7 * np.pi * H**3)
    return sigma * np.where(q < 1, -3 * q + 2.25 * q**2, np.where(q < 2, -0.75 * (2 - q) ** 2, 0))


def accelerations(position, velocity):
    pairs = cKDTree(position).query_pairs(2 * H, output_type="ndarray")
    i, j = pairs[:, 0], pairs[:, 1]
    d = position[i] - position[j]
    r = np.sqrt((d**2).sum(axis=1)) + 1e-12
    count = len(position)
    w = kernel(r)
    density = mass * (kernel(0.0) + np.bincount(i, w, count) + np.bincount(j, w, count))
    pressure = np.maximum(SOUND**2 * RHO / 7 * ((density / RHO) ** 7 - 1), 0)
    share = pressure / density**2
    approach = ((velocity[i] - velocity[j]) * d).sum(axis=1)
    viscosity = np.where(approach < 0, -0.1 * SOUND * H * approach / (r**2 + 0.01 * H**2) / density[i], 0)
    strength = -mass * (share[i] + share[j] + viscosity) * slope(r) / r
    out = np.zeros_like(position)
    for axis in range(2):
        push = strength * d[:, axis]
        out[:, axis] = np.bincount(i, push, count) - np.bincount(j, push, count)
    out[:, 1] -= 9.81
    return out, density


for step in range(steps):
    acceleration, density = accelerations(position, velocity)
    velocity = velocity + DT * acceleration
    position = position + DT * velocity
    for axis, high in ((0, 2.5), (1, 3.0)):
        outside = (position[:, axis] < 0) | (position[:, axis] > high)
        velocity[outside, axis] *= -0.4
        position[:, axis] = np.clip(position[:, axis], 0, high)
    if step % 40 == 0:
        print(f"{step * DT:.4f} front {position[:, 0].max():.7f} density {density.mean():.5f}")
