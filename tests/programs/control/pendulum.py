"""Swing-up of many pendulums on carts: LQR by iterating Riccati's equation, RK4, energy shaping, saturation."""

import numpy as np

M, m, l, g = 1.0, 0.2, 0.5, 9.81


def dynamics(s, force):
    x, v, th, om = s
    sin, cos = np.sin(th), np.cos(th)
    den = M + m * sin**2
    acc = (force + m * sin * (l * om**2 + g * cos)) / den
    ang = (-force * cos - m * l * om**2 * cos * sin - (M + m) * g * sin) / (l * den)
    return np.stack([v, acc, om, ang])


def linearised(dt):
    A = np.eye(4)
    A[0, 1] = A[2, 3] = dt
    A[1, 2] = dt * m * g / M
    A[3, 2] = dt * (M + m) * g / (M * l)
    B = np.array([[0.0], [dt / M], [0.0], [dt / (M * l)]])
    return A, B


def riccati(A, B, Q, R, tol=1e-9):
    P = Q.copy()
    while True:
        K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        new = Q + A.T @ P @ (A - B @ K)
        if np.max(np.abs(new - P)) < tol * np.max(np.abs(P)):
            return K
        P = new


class Fleet:
    def __init__(self, n=20000, seed=8):
        rng = np.random.default_rng(seed)
        self.s = np.zeros((4, n))
        self.s[2] = rng.uniform(-0.3, 0.3, n)
        self.K = riccati(*linearised(0.01), np.diag([1.0, 0.1, 10.0, 0.1]), np.array([[0.1]]))
        self.swings = 0

    def upright(self):
        th = (self.s[2] + np.pi) % (2 * np.pi) - np.pi
        return np.abs(np.abs(th) - np.pi) < 0.4

    def control(self):
        energy = 0.5 * m * (l * self.s[3]) ** 2 - m * g * l * np.cos(self.s[2])
        swing = 8.0 * (m * g * l - energy) * np.sign(self.s[3] * np.cos(self.s[2]) + 1e-9)
        error = self.s.copy()
        error[2] = (self.s[2] % (2 * np.pi)) - np.pi
        hold = -(self.K @ error)[0]
        up = self.upright()
        if up.any():
            self.swings += 1
        return np.clip(np.where(up, hold, swing), -15.0, 15.0)

    def step(self, dt=0.01):
        f = self.control()
        k1 = dynamics(self.s, f)
        k2 = dynamics(self.s + dt / 2 * k1, f)
        k3 = dynamics(self.s + dt / 2 * k2, f)
        k4 = dynamics(self.s + dt * k3, f)
        self.s += dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def run(steps):
    fleet = Fleet()
    for _ in range(steps):
        fleet.step()
    return {"s": fleet.s, "K": fleet.K, "swings": np.int64(fleet.swings)}
