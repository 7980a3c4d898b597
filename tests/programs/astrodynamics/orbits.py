"""Astrodynamics: Kepler's equation, elements, J2 and drag by an embedded Runge-Kutta pair, eclipses, Lambert's problem."""

import numpy as np

MU, RE, J2 = 398600.4418, 6378.137, 1.08263e-3
C = np.array([0, 1 / 4, 3 / 8, 12 / 13, 1, 1 / 2])
A = [
    [],
    [1 / 4],
    [3 / 32, 9 / 32],
    [1932 / 2197, -7200 / 2197, 7296 / 2197],
    [439 / 216, -8, 3680 / 513, -845 / 4104],
    [-8 / 27, 2, -3544 / 2565, 1859 / 4104, -11 / 40],
]
B5 = np.array([16 / 135, 0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55])
B4 = np.array([25 / 216, 0, 1408 / 2565, 2197 / 4104, -1 / 5, 0])


def kepler(M, e, tol=1e-12):
    E = np.where(e < 0.8, M, np.pi)
    for _ in range(50):
        f = E - e * np.sin(E) - M
        d = f / (1 - e * np.cos(E))
        E = E - d
        if np.abs(d).max() < tol:
            break
    return E


def to_state(a, e, i, O, w, M):
    E = kepler(np.mod(M, 2 * np.pi), e)
    x, y = a * (np.cos(E) - e), a * np.sqrt(1 - e**2) * np.sin(E)
    n = np.sqrt(MU / a**3)
    k = n * a / (1 - e * np.cos(E))
    vx, vy = -k * np.sin(E), k * np.sqrt(1 - e**2) * np.cos(E)
    cO, sO, cw, sw, ci, si = np.cos(O), np.sin(O), np.cos(w), np.sin(w), np.cos(i), np.sin(i)
    P = np.array([cO * cw - sO * sw * ci, sO * cw + cO * sw * ci, sw * si])
    Q = np.array([-cO * sw - sO * cw * ci, -sO * sw + cO * cw * ci, cw * si])
    return (P * x + Q * y).T, (P * vx + Q * vy).T


def elements(r, v):
    h = np.cross(r, v)
    R = np.linalg.norm(r, axis=-1)
    evec = np.cross(v, h) / MU - r / R[:, None]
    e = np.linalg.norm(evec, axis=-1)
    a = 1 / (2 / R - (v**2).sum(-1) / MU)
    inc = np.arccos(h[:, 2] / np.linalg.norm(h, axis=-1))
    node = np.arctan2(h[:, 0], -h[:, 1])
    return np.stack([a, e, inc, node % (2 * np.pi)], axis=-1)


def density(alt):
    table = np.array([0, 200, 300, 400, 500, 700, 1000.0])
    logrho = np.log(np.array([1.2, 2.5e-10, 1.9e-11, 2.8e-12, 5.2e-13, 3.1e-14, 3.0e-15]))
    return np.exp(np.interp(alt, table, logrho))


def acceleration(r, v, bc=0.02):
    R = np.linalg.norm(r, axis=1, keepdims=True)
    z2 = (r[:, 2:] / R) ** 2
    a = -MU * r / R**3
    k = 1.5 * J2 * MU * RE**2 / R**5
    a += k * r * (np.array([5, 5, 5]) * z2 - np.array([1, 1, 3]))
    rel = v - np.cross([0, 0, 7.2921e-5], r)
    a -= 0.5 * bc * 1e3 * density(R - RE) * np.linalg.norm(rel, axis=1)[:, None] * rel
    return a


def rates(t, y):
    return np.hstack([y[:, 3:], acceleration(y[:, :3], y[:, 3:])])


class Integrator:
    def __init__(self, y, tol=1e-6, h=30.0):
        self.y, self.t, self.h, self.tol = y, 0.0, h, tol
        self.rejected = 0

    def attempt(self):
        k = []
        for c, row in zip(C, A):
            yi = self.y + self.h * sum((b * kk for b, kk in zip(row, k)), np.zeros_like(self.y))
            k.append(rates(self.t + c * self.h, yi))
        K = np.array(k)
        y5 = self.y + self.h * np.tensordot(B5, K, 1)
        err = np.abs(self.h * np.tensordot(B5 - B4, K, 1)[:, :3]).max()
        return y5, err

    def advance(self, until):
        while self.t < until:
            self.h = min(self.h, until - self.t)
            y, err = self.attempt()
            if err <= self.tol or self.h < 1e-3:
                self.y, self.t = y, self.t + self.h
            else:
                self.rejected += 1
            self.h *= min(4.0, max(0.1, 0.9 * (self.tol / max(err, 1e-16)) ** 0.2))


def eclipsed(r, sun):
    along = r @ sun
    across = np.linalg.norm(r - along[:, None] * sun, axis=1)
    return (along < 0) & (across < RE)


def conjunctions(r, limit=200.0):
    d = np.linalg.norm(r[:, None] - r[None], axis=-1)
    i, j = np.triu_indices(len(r), 1)
    close = d[i, j] < limit
    return list(zip(i[close].tolist(), j[close].tolist()))


def run(steps):
    rng = np.random.default_rng(17)
    n = 300
    a, e = RE + rng.uniform(400, 900, n), rng.uniform(0, 0.01, n)
    ang = rng.uniform(0, 2 * np.pi, (4, n))
    r, v = to_state(a, e, ang[0] / 2, *ang[1:])
    sat = Integrator(np.hstack([r, v]))
    dark, meets, el = [], set(), None
    for k in range(steps):
        sat.advance(60.0 * (k + 1))
        sun = np.array([np.cos(1e-3 * k), np.sin(1e-3 * k), 0.0])
        dark.append(eclipsed(sat.y[:, :3], sun).sum())
        meets.update(conjunctions(sat.y[:, :3]))
        el = elements(sat.y[:, :3], sat.y[:, 3:])
    return {"y": sat.y, "dark": np.array(dark), "meets": np.array(sorted(meets)), "el": el, "rejected": sat.rejected}
