"""A power grid through a day: Newton-Raphson load flow with complex voltages, tap changers, line limits and losses."""

import numpy as np

SLACK, PV, PQ = 3, 2, 1


def make_grid(n, rng):
    """A ring with chords. Returns admittances, line ends and line series admittances."""
    f = np.r_[np.arange(n), rng.integers(0, n, n // 2)]
    t = np.r_[(np.arange(n) + 1) % n, rng.integers(0, n, n // 2)]
    keep = f != t
    f, t = f[keep], t[keep]
    z = rng.uniform(0.005, 0.02, f.size) + 1j * rng.uniform(0.03, 0.09, f.size)
    return f, t, 1.0 / z


class Grid:
    def __init__(self, n=60, seed=5):
        rng = np.random.default_rng(seed)
        self.n = n
        self.f, self.t, self.y = make_grid(n, rng)
        self.tap = np.ones(self.f.size)
        self.kind = np.full(n, PQ)
        self.kind[0] = SLACK
        self.kind[5::12] = PV
        self.load = rng.uniform(0.02, 0.15, n) * (1 + 0.3j)
        self.gen = np.zeros(n, complex)
        self.gen[self.kind == PV] = 0.6
        self.V = np.ones(n, complex)
        self.limit = 0.9
        self.pq = np.flatnonzero(self.kind == PQ)
        self.pvpq = np.flatnonzero(self.kind != SLACK)
        self.log = []

    def ybus(self):
        Y = np.zeros((self.n, self.n), complex)
        yt = self.y / self.tap
        np.add.at(Y, (self.f, self.f), self.y / self.tap**2)
        np.add.at(Y, (self.t, self.t), self.y)
        np.add.at(Y, (self.f, self.t), -yt)
        np.add.at(Y, (self.t, self.f), -yt)
        Y[np.diag_indices(self.n)] += 0.01j
        return Y

    def mismatch(self, Y, S):
        d = self.V * np.conj(Y @ self.V) - S
        return np.concatenate([d[self.pvpq].real, d[self.pq].imag])

    def jacobian(self, Y):
        V = self.V
        I = Y @ V
        Vn = V / np.abs(V)
        dS_dth = 1j * np.diag(V) @ np.conj(np.diag(I) - Y @ np.diag(V))
        dS_dm = np.diag(V) @ np.conj(Y @ np.diag(Vn)) + np.conj(np.diag(I)) @ np.diag(Vn)
        pvpq, pq = self.pvpq, self.pq
        return np.block(
            [
                [dS_dth[np.ix_(pvpq, pvpq)].real, dS_dm[np.ix_(pvpq, pq)].real],
                [dS_dth[np.ix_(pq, pvpq)].imag, dS_dm[np.ix_(pq, pq)].imag],
            ]
        )

    def solve(self, S, tol=1e-8, max_iter=20):
        Y = self.ybus()
        mag, ang = np.abs(self.V), np.angle(self.V)
        npv = len(self.pvpq)
        F = self.mismatch(Y, S)
        for it in range(max_iter):
            if np.linalg.norm(F, np.inf) < tol:
                return it
            dx = np.linalg.solve(self.jacobian(Y), -F)
            ang[self.pvpq] += dx[:npv]
            mag[self.pq] += dx[npv:]
            self.V = mag * np.exp(1j * ang)
            F = self.mismatch(Y, S)
        raise RuntimeError("load flow did not converge")

    def line_flows(self):
        vf, vt = self.V[self.f], self.V[self.t]
        i = (vf / self.tap - vt) * self.y
        return vf * np.conj(i / self.tap), -vt * np.conj(i)

    def hour(self, hour):
        shape = 0.75 + 0.25 * np.sin(2 * np.pi * (hour - 8) / 24)
        S = self.gen * (0.9 + 0.1 * shape) - shape * self.load
        its = self.solve(S)
        sf, st = self.line_flows()
        losses = (sf + st).sum().real
        overloaded = np.abs(sf) > self.limit
        low = np.abs(self.V[self.f]) < 0.97
        self.tap = np.clip(np.where(low, self.tap - 0.00625, self.tap), 0.9, 1.1)
        self.log.append(
            dict(hour=hour, its=its, losses=losses, overloaded=int(overloaded.sum()), vmin=np.abs(self.V).min())
        )


def run(steps):
    grid = Grid()
    for i in range(steps):
        grid.hour(i * 0.5)
    return {"V": grid.V, "tap": grid.tap} | {k: np.array([e[k] for e in grid.log]) for k in grid.log[0]}
