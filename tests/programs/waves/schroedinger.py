"""A wave packet through a double slit: split-step Fourier in complex numbers, expectation values on the way."""

import numpy as np


class Packet:
    def __init__(self, n=192, size=40.0):
        self.x = np.linspace(-size / 2, size / 2, n, endpoint=False)
        self.dx = self.x[1] - self.x[0]
        self.X, self.Y = np.meshgrid(self.x, self.x, indexing="ij")
        k = 2 * np.pi * np.fft.fftfreq(n, self.dx)
        self.K2 = k[:, None] ** 2 + k[None, :] ** 2
        self.psi = np.exp(-((self.X + 8) ** 2 + self.Y**2) / 8 + 3j * self.X)
        self.normalise()
        self.V = self.slits()
        self.absorber = np.exp(-0.02 * np.maximum(np.hypot(self.X, self.Y) - 0.4 * size, 0) ** 2)
        self.log = []

    def slits(self, height=80.0):
        wall = np.abs(self.X) < 0.4
        gap = (np.abs(np.abs(self.Y) - 2.0) < 0.6) & wall
        return np.where(wall & ~gap, height, 0.0)

    def normalise(self):
        self.psi /= np.sqrt(np.sum(np.abs(self.psi) ** 2)) * self.dx

    def step(self, dt=0.005):
        half = np.exp(-0.5j * dt * self.V)
        psi = half * self.psi
        psi = np.fft.ifft2(np.exp(-0.5j * dt * self.K2) * np.fft.fft2(psi))
        self.psi = half * psi * self.absorber

    def expectation(self):
        rho = np.abs(self.psi) ** 2
        norm = rho.sum()
        mean = (rho * self.X).sum() / norm
        spread = np.sqrt((rho * self.Y**2).sum() / norm)
        return float(norm * self.dx**2), float(mean), float(spread)


def current(psi, dx):
    gx, gy = np.gradient(psi, dx)
    return np.imag(np.conj(psi) * gx), np.imag(np.conj(psi) * gy)


def run(steps):
    p = Packet()
    for k in range(steps):
        p.step()
        if k % 4 == 0:
            p.log.append(p.expectation())
    jx, jy = current(p.psi, p.dx)
    return {"psi": p.psi, "log": np.array(p.log), "jx": jx, "jy": jy}
