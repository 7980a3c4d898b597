"""Shallow water on a rotating channel: Arakawa C grid, leapfrog with a Robert-Asselin filter, a line every so often."""

import numpy as np

G, DEPTH, F0, BETA = 9.81, 100.0, 1e-4, 2e-11  # m/s2, m, 1/s, 1/m/s


class Channel:
    def __init__(self, nx=128, ny=96, dx=1e4):
        self.nx, self.ny, self.dx = nx, ny, dx
        self.dt = 0.2 * dx / np.sqrt(G * DEPTH)
        y = (np.arange(ny) + 0.5) * dx
        x = (np.arange(nx) + 0.5) * dx
        self.x, self.y = np.meshgrid(x, y)
        self.f = F0 + BETA * (self.y - y.mean())
        bump = np.exp(-((self.x - x.mean()) ** 2 + (self.y - y.mean()) ** 2) / (8 * dx) ** 2)
        self.h = DEPTH + 2.0 * bump
        self.u = np.zeros((ny, nx))
        self.v = np.zeros((ny, nx))
        self.old = None
        self.steps = 0
        self.energies = []

    def at_u(self, a):
        return 0.5 * (a + np.roll(a, 1, axis=1))

    def at_v(self, a):
        b = 0.5 * (a + np.roll(a, 1, axis=0))
        b[0] = 0.0
        return b

    def tendencies(self, u, v, h):
        dx = self.dx
        v_at_u = 0.25 * (v + np.roll(v, 1, axis=1) + np.roll(v, -1, axis=0) + np.roll(np.roll(v, 1, 1), -1, 0))
        u_at_v = 0.25 * (u + np.roll(u, -1, axis=1) + np.roll(u, 1, axis=0) + np.roll(np.roll(u, -1, 1), 1, 0))
        du = self.f * v_at_u - G * (h - np.roll(h, 1, axis=1)) / dx
        dv = -self.f * u_at_v
        dv[1:] -= G * (h[1:] - h[:-1]) / dx
        dv[0] = 0.0
        flux_x = self.at_u(h) * u
        flux_y = self.at_v(h) * v
        dh = -(np.roll(flux_x, -1, axis=1) - flux_x) / dx
        dh[:-1] -= (flux_y[1:] - flux_y[:-1]) / dx
        dh[-1] += flux_y[-1] / dx
        return du, dv, dh

    def step(self):
        state = (self.u, self.v, self.h)
        rates = self.tendencies(*state)
        if self.old is None:
            new = tuple(a + self.dt * r for a, r in zip(state, rates))
        else:
            new = tuple(a + 2 * self.dt * r for a, r in zip(self.old, rates))
            state = tuple(b + 0.05 * (a - 2 * b + c) for a, b, c in zip(self.old, state, new))
        self.old = state
        self.u, self.v, self.h = new
        self.v[0] = 0.0
        self.steps += 1
        if self.steps % 10 == 0:
            self.energies.append(self.energy())
        if self.steps % 25 == 0:
            print(f"step {self.steps:5d}  max speed {np.abs(self.u).max():.4f} m/s  mean depth {self.h.mean():.3f} m")

    def energy(self):
        return 0.5 * float(np.sum(self.h * (self.u**2 + self.v**2) + G * (self.h - DEPTH) ** 2))


def run(steps):
    model = Channel()
    for _ in range(steps):
        model.step()
    return {"u": model.u, "v": model.v, "h": model.h, "energies": np.array(model.energies)}
