"""Landau damping: electrons in one dimension, cloud-in-cell, the field from Poisson's equation by FFT."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "700"))

L, cells, count = 4 * np.pi, 128, 120_000
dx, dt = L / cells, 0.05
k = 2 * np.pi * np.fft.rfftfreq(cells, dx)


def deposit(x):
    g = x / dx
    i = np.floor(g).astype(int)
    f = g - i
    rho = np.bincount(i % cells, weights=1 - f, minlength=cells)
    rho += np.bincount((i + 1) % cells, weights=f, minlength=cells)
    return rho * cells / count


def field(rho):
    h = np.fft.rfft(1.0 - rho)
    h[0] = 0
    h[1:] /= 1j * k[1:]
    return np.fft.irfft(h, cells)


def gather(e, x):
    g = x / dx
    i = np.floor(g).astype(int)
    f = g - i
    return (1 - f) * e[i % cells] + f * e[(i + 1) % cells]


def push(x, v, e):
    v = v - dt * gather(e, x)
    x = (x + dt * v) % L
    return x, v


rng = np.random.default_rng(1)
x = np.sort(rng.uniform(0, L, count))
x = (x + 0.1 * np.sin(0.5 * x)) % L
v = rng.normal(size=count)
energies = []
for n in range(steps):
    e = field(deposit(x))
    x, v = push(x, v, e)
    energies.append(0.5 * np.sum(e**2) * dx)
    if n % 50 == 0:
        print(f"{n * dt:6.2f} field energy {energies[-1]:.9f} kinetic {0.5 * np.mean(v**2):.9f}")
