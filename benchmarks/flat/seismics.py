"""A shot record: acoustic waves by finite differences of fourth order, with absorbing edges."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "1200"))


def ricker(t, f):
    a = (np.pi * f * (t - 1.2 / f)) ** 2
    return (1 - 2 * a) * np.exp(-a)


def sponge(nz, nx, width=25, strength=0.012):
    taper = np.ones((nz, nx))
    for k in range(width):
        factor = np.exp(-((strength * (width - k)) ** 2))
        taper[k, :] *= factor
        taper[-1 - k, :] *= factor
        taper[:, k] *= factor
        taper[:, -1 - k] *= factor
    return taper


def second(p, axis):
    c = (-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12)
    return sum(c[k] * np.roll(p, k - 2, axis) for k in range(5))


def shoot(velocity, dx, dt, steps, source, receivers):
    nz, nx = velocity.shape
    p, before = np.zeros((nz, nx)), np.zeros((nz, nx))
    taper = sponge(nz, nx)
    courant = (velocity * dt / dx) ** 2
    gather = np.zeros((steps, len(receivers)))
    rows, columns = np.array(receivers).T
    for n in range(steps):
        new = 2 * p - before + courant * (second(p, 0) + second(p, 1))
        new[source] += ricker(n * dt, 12.0) * dt**2 * 1e4
        before, p = p * taper, new * taper
        gather[n] = p[rows, columns]
        if not np.isfinite(p).all():
            raise FloatingPointError(f"unstable at step {n}")
    return gather, p


nz, nx = 180, 220
velocity = np.full((nz, nx), 1800.0)
velocity[60:] = 2300.0
velocity[110:, 80:] = 2900.0
receivers = [(5, x) for x in range(10, nx - 10, 4)]
gathers = []
for shot in (40, 110, 180):
    gather, p = shoot(velocity, 10.0, 1.5e-3, steps, (5, shot), receivers)
    gathers.append(gather)
    print(
        f"shot at {shot}: energy {np.sum(gather**2):.9e}, first arrival {np.argmax(np.abs(gather) > 1e-7, axis=0)[:5]}"
    )
stack = np.mean(gathers, axis=0)
print(f"{np.abs(stack).max():.9e}")
