"""Stiff kinetics in many cells at once: implicit Euler with Newton's method, diffusion by Crank and Nicolson."""

import numpy as np
from scipy.linalg import solve_banded

SPECIES = ["A", "B", "C", "D"]
PRE = np.array([4.0e3, 2.0e2, 8.0e2])
ACT = np.array([9.0, 6.0, 8.0])
STOICH = np.array([[-1, 0, 0], [1, -2, 0], [0, 1, -1], [0, 0, 1]], dtype=float)
ORDERS = np.array([[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0]], dtype=float)
HEAT = np.array([2.0, 1.0, 0.5])


def rate_constants(T):
    return PRE * np.exp(-ACT[None, :] / T[:, None])


def rates(c, T):
    """Rates of all reactions in all cells."""
    k = rate_constants(T)
    powers = np.prod(np.maximum(c[:, None, :], 0.0) ** ORDERS[None], axis=2)
    return k * powers


def jacobian(c, T):
    """d(dc/dt)/dc, cell by cell."""
    k = rate_constants(T)
    n = c.shape[0]
    drdc = np.zeros((n, 3, 4))
    drdc[:, 0, 0] = k[:, 0]
    drdc[:, 1, 1] = 2 * k[:, 1] * c[:, 1]
    drdc[:, 2, 2] = k[:, 2]
    return np.einsum("sr,nrc->nsc", STOICH, drdc)


def react(c, T, dt, tol=1e-10, most=20):
    """One implicit step by Newton's method."""
    new = c.copy()
    for it in range(most):
        residual = new - c - dt * rates(new, T) @ STOICH.T
        matrix = np.eye(4)[None] - dt * jacobian(new, T)
        change = np.linalg.solve(matrix, residual[..., None])[..., 0]
        new = new - change
        if np.abs(change).max() < tol:
            break
    heat = rates(new, T) @ HEAT
    return np.maximum(new, 0.0), T + dt * heat, it + 1


def diffuse(field, d, dx, dt):
    n = len(field)
    r = d * dt / (2 * dx**2)
    ab = np.zeros((3, n))
    ab[0, 1:] = -r
    ab[1] = 1 + 2 * r
    ab[2, :-1] = -r
    ab[1, 0] = ab[1, -1] = 1 + r
    rhs = field.copy()
    rhs[1:-1] += r * (field[2:] - 2 * field[1:-1] + field[:-2])
    rhs[0] += r * (field[1] - field[0])
    rhs[-1] += r * (field[-2] - field[-1])
    return solve_banded((1, 1), ab, rhs)


class Flame:
    def __init__(self, n=200):
        x = np.linspace(0, 1, n)
        self.dx = x[1] - x[0]
        self.c = np.zeros((n, 4))
        self.c[:, 0] = 1.0
        self.T = 0.9 + 1.1 * np.exp(-((x / 0.1) ** 2))
        self.dt = 2e-3
        self.iterations = []

    def step(self):
        self.c, self.T, its = react(self.c, self.T, self.dt)
        self.iterations.append(its)
        for s in range(4):
            self.c[:, s] = diffuse(self.c[:, s], 1e-3, self.dx, self.dt)
        self.T = diffuse(self.T, 2e-3, self.dx, self.dt)
        return self.front()

    def front(self):
        """Where half of the fuel is gone."""
        half = np.argmax(self.c[:, 0] > 0.5 * self.c[:, 0].max())
        return half * self.dx


def run(steps):
    flame = Flame()
    fronts = [flame.step() for _ in range(steps)]
    mass = flame.c.sum(axis=0)
    print(f"mass {mass.sum():.6f}, hottest {flame.T.max():.4f}")
    return {"fronts": np.array(fronts), "c": flame.c, "T": flame.T, "iterations": np.array(flame.iterations)}
