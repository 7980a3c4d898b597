"""A quantum circuit simulator: state vectors, gates by tensordot, Grover's search and noise by trajectories."""

import numpy as np
from dataclasses import dataclass, field

H = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
X = np.array([[0, 1], [1, 0]], dtype=complex)
Z = np.diag([1, -1]).astype(complex)
GATES = {"h": H, "x": X, "z": Z}


def rx(theta):
    c, s = np.cos(theta / 2), np.sin(theta / 2)
    return np.array([[c, -1j * s], [-1j * s, c]])


def rz(theta):
    return np.array([[np.exp(-0.5j * theta), 0], [0, np.exp(0.5j * theta)]])


def apply_one(state, gate, target, n):
    psi = state.reshape([2] * n)
    psi = np.tensordot(gate, psi, axes=([1], [target]))
    psi = np.moveaxis(psi, 0, target)
    return psi.reshape(-1)


def apply_controlled(state, gate, control, target, n):
    psi = state.reshape([2] * n).copy()
    index = [slice(None)] * n
    index[control] = 1
    sub = psi[tuple(index)]
    axis = target if target < control else target - 1
    sub = np.moveaxis(np.tensordot(gate, sub, axes=([1], [axis])), 0, axis)
    psi[tuple(index)] = sub
    return psi.ravel()


@dataclass
class Register:
    n: int
    state: np.ndarray = field(init=False)
    history: list = field(default_factory=list)

    def __post_init__(self):
        self.state = np.zeros(2**self.n, dtype=complex)
        self.state[0] = 1

    def gate(self, name, *targets):
        for t in targets:
            self.state = apply_one(self.state, GATES[name], t, self.n)
        return self

    def rotate(self, thetas):
        for q, th in enumerate(thetas):
            self.state = apply_one(self.state, rx(th), q, self.n)
            self.state = apply_one(self.state, rz(0.5 * th), q, self.n)

    def entangle(self):
        for q in range(self.n - 1):
            self.state = apply_controlled(self.state, X, q, q + 1, self.n)

    @property
    def probabilities(self):
        return np.abs(self.state) ** 2

    def expect_z(self, q):
        p = self.probabilities.reshape([2] * self.n)
        marg = p.sum(axis=tuple(k for k in range(self.n) if k != q))
        return marg[0] - marg[1]

    def measure(self, rng, shots=200):
        p = self.probabilities
        p = p / p.sum()
        return np.bincount(rng.choice(p.size, size=shots, p=p), minlength=p.size)


def layer(reg, thetas):
    reg.rotate(thetas)
    reg.entangle()
    e = [reg.expect_z(q) for q in range(reg.n)]
    reg.history.append(e)


def dephase(reg, rng, p=0.05):
    for q in range(reg.n):
        if rng.random() < p:
            reg.state = apply_one(reg.state, Z, q, reg.n)


def grover_step(state, marked):
    state = state.copy()
    state[marked] *= -1
    mean = state.mean()
    return 2 * mean - state


def run(steps):
    rng = np.random.default_rng(3)
    reg = Register(12)
    reg.gate("h", *range(0, 12, 3))
    counts = np.zeros(2**12, dtype=int)
    for k in range(steps):
        thetas = 0.3 * np.sin(np.arange(12) + 0.1 * k)
        layer(reg, thetas)
        dephase(reg, rng)
        counts += reg.measure(rng)
        if k % 10 == 0:
            print(f"layer {k}: norm {np.linalg.norm(reg.state):.6f} z0 {reg.history[-1][0]:+.4f}")
    s = np.full(2**16, 2.0**-8, dtype=complex)
    for k in range(steps):
        s = grover_step(s, 1234)
    return {"state": reg.state, "counts": counts, "z": np.array(reg.history), "grover": np.abs(s[1230:1240]) ** 2}
