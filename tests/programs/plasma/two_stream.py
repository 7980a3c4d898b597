"""Two-stream instability: a particle-in-cell code with cloud-in-cell weights, Fourier Poisson solver, diagnostics."""

import numpy as np


class Grid:
    __slots__ = ("cells", "length", "dx", "k", "rho", "phi", "E")

    def __init__(self, cells, length):
        self.cells, self.length = cells, length
        self.dx = length / cells
        self.k = 2 * np.pi * np.fft.rfftfreq(cells, self.dx)
        self.rho = np.zeros(cells)
        self.phi = np.zeros(cells)
        self.E = np.zeros(cells)

    def solve(self):
        hat = np.fft.rfft(self.rho)
        out = np.zeros_like(hat)
        out[1:] = hat[1:] / self.k[1:] ** 2
        self.phi[:] = np.fft.irfft(out, self.cells)
        self.E[:] = -(np.roll(self.phi, -1) - np.roll(self.phi, 1)) / (2 * self.dx)

    def energy(self):
        return 0.5 * np.sum(self.E**2) * self.dx


class Species:
    def __init__(self, grid, n, speed, thermal, charge, mass, rng):
        self.x = (np.arange(n) + 0.5) * grid.length / n
        self.v = np.full(n, speed) + thermal * rng.standard_normal(n)
        self.x += 0.05 * np.cos(2 * np.pi * self.x / grid.length)
        self.x %= grid.length
        self.q, self.m = charge, mass

    def weights(self, grid):
        s = self.x / grid.dx
        left = np.floor(s).astype(int)
        frac = s - left
        return left % grid.cells, (left + 1) % grid.cells, frac

    def deposit(self, grid):
        i, j, f = self.weights(grid)
        grid.rho += self.q / grid.dx * np.bincount(i, 1 - f, grid.cells)
        grid.rho += self.q / grid.dx * np.bincount(j, f, grid.cells)

    def push(self, grid, dt):
        i, j, f = self.weights(grid)
        field = (1 - f) * grid.E[i] + f * grid.E[j]
        self.v += self.q / self.m * field * dt
        self.x += self.v * dt
        self.x %= grid.length

    @property
    def kinetic(self):
        return 0.5 * abs(self.m) * np.sum(self.v**2)

    def __len__(self):
        return len(self.x)


class Simulation:
    def __init__(self, cells=128, n=20000, dt=0.1, seed=4):
        rng = np.random.default_rng(seed)
        self.grid = Grid(cells, 4 * np.pi)
        q = -self.grid.length / (2 * n)
        self.species = [Species(self.grid, n, s * 1.0, 0.05, q, -q, rng) for s in (-1, 1)]
        self.background = 1.0
        self.dt = dt
        self.t = 0.0
        self.log = np.zeros((1000, 4))
        self.n = 0
        self.trapped = {}

    def field(self):
        self.grid.rho.fill(self.background)
        for s in self.species:
            s.deposit(self.grid)
        self.grid.solve()

    def diagnose(self):
        kinetic = sum(s.kinetic for s in self.species)
        momentum = sum(s.m * s.v.sum() for s in self.species)
        self.log[self.n] = self.t, kinetic, self.grid.energy(), momentum
        self.n += 1

    def distribution(self, bins=40):
        v = np.concatenate([s.v for s in self.species])
        counts, edges = np.histogram(v, bins=bins, range=(-3, 3))
        centre = 0.5 * (edges[1:] + edges[:-1])
        return centre, counts / counts.sum()

    def count_trapped(self):
        deep = self.grid.phi.max() - self.grid.phi.min()
        for name, s in zip(("left", "right"), self.species):
            slow = np.abs(s.v) < np.sqrt(2 * max(deep, 0.0))
            self.trapped[name] = int(np.count_nonzero(slow))
            if self.trapped[name]:
                self.trapped[name + " mean"] = float(s.v[slow].mean())

    def step(self):
        for s in self.species:
            s.push(self.grid, self.dt)
        self.field()
        self.diagnose()
        self.t += self.dt


def phase_space(species, grid, bins=(64, 40)):
    H, _, _ = np.histogram2d(species.x, species.v, bins=bins, range=[[0, grid.length], [-3, 3]])
    return H / H.max()


def run(steps):
    sim = Simulation()
    sim.field()
    maps = np.zeros((64, 40))
    for k in range(steps):
        sim.step()
        if k % 10 == 0:
            sim.count_trapped()
            maps += phase_space(sim.species[0], sim.grid)
    centre, f = sim.distribution()
    return {
        "log": sim.log[: sim.n],
        "E": sim.grid.E,
        "v": sim.species[0].v,
        "f": f,
        "maps": maps,
        **{k: np.asarray(v) for k, v in sim.trapped.items()},
    }
