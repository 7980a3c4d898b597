"""A drop falls into a basin: the shallow water equations, forward in time, on a periodic grid."""

import os

import jax
import numpy as np
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)

nx, ny = 256, 192
steps = int(os.environ.get("STEPS", "3000"))
g = 9.81  # m/s2
f = 1e-4  # 1/s
depth = 100.0  # m
dx = dy = 1000.0  # m
dt = 0.2 * dx / np.sqrt(g * depth)  # s

x = np.arange(nx) * dx
y = np.arange(ny) * dy
X, Y = np.meshgrid(x, y)
h = np.exp(-((X - x.mean()) ** 2 + (Y - y.mean()) ** 2) / (20 * dx) ** 2)  # m
u = np.zeros((ny, nx))  # m/s
v = np.zeros((ny, nx))


def ddx(a):
    return (jnp.roll(a, -1, axis=1) - jnp.roll(a, 1, axis=1)) / (2 * dx)


def ddy(a):
    return (jnp.roll(a, -1, axis=0) - jnp.roll(a, 1, axis=0)) / (2 * dy)


def smooth(a):
    return a + 0.01 * (jnp.roll(a, 1, 0) + jnp.roll(a, -1, 0) + jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1) - 4 * a)


@jax.jit
def step(u, v, h):
    u = u + dt * (f * v - g * ddx(h) - u * ddx(u) - v * ddy(u))
    v = v + dt * (-f * u - g * ddy(h) - u * ddx(v) - v * ddy(v))
    h = h - dt * (ddx((depth + h) * u) + ddy((depth + h) * v))
    return smooth(u), smooth(v), smooth(h)


for n in range(steps):
    u, v, h = step(u, v, h)
    if n % 500 == 0:
        print(f"step {n}: height {h.min():.4f} to {h.max():.4f} m, energy {0.5 * np.sum(u**2 + v**2 + g * h**2):.5e}")

print("end", f"{h.mean():.6e} {np.abs(u).max():.6e} {np.abs(v).max():.6e}")
