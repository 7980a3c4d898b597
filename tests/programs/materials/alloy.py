"""Materials: dendritic solidification (Kobayashi) and spinodal decomposition (Cahn-Hilliard, semi-implicit in Fourier space)."""

import numpy as np


def laplacian(u, h):
    return (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u) / h**2


class Dendrite:
    eps0, delta, fold, tau, alpha, gamma, latent = 0.01, 0.04, 6, 3e-4, 0.9, 10.0, 1.6

    def __init__(self, n, h=0.03, dt=1e-4, seed=4):
        self.h, self.dt = h, dt
        self.phi = np.zeros((n, n))
        self.T = np.zeros((n, n))
        c = n // 2
        self.phi[c - 3 : c + 4, c - 3 : c + 4] = 1.0
        self.rng = np.random.default_rng(seed)

    def gradients(self, f):
        gy, gx = np.gradient(f, self.h)
        return gx, gy

    def anisotropy(self, gx, gy):
        theta = np.arctan2(gy, gx)
        eps = self.eps0 * (1 + self.delta * np.cos(self.fold * theta))
        deps = -self.eps0 * self.delta * self.fold * np.sin(self.fold * theta)
        return eps, deps

    def step(self):
        gx, gy = self.gradients(self.phi)
        eps, deps = self.anisotropy(gx, gy)
        _, a = self.gradients(eps * deps * gx)
        b, _ = self.gradients(eps * deps * gy)
        m = self.alpha / np.pi * np.arctan(self.gamma * (1.0 - self.T))
        noise = 0.01 * self.rng.uniform(-0.5, 0.5, self.phi.shape) * self.phi * (1 - self.phi)
        rate = (
            a - b + eps**2 * laplacian(self.phi, self.h) + self.phi * (1 - self.phi) * (self.phi - 0.5 + m) + noise
        ) / self.tau
        self.phi += self.dt * rate
        self.T += self.dt * (laplacian(self.T, self.h) + self.latent * rate)


class Spinodal:
    def __init__(self, n, kappa=0.5, dt=0.1, seed=9):
        rng = np.random.default_rng(seed)
        self.c = 0.5 + 0.02 * (rng.random((n, n)) - 0.5)
        k = 2 * np.pi * np.fft.fftfreq(n)
        kr = 2 * np.pi * np.fft.rfftfreq(n)
        self.k2 = k[:, None] ** 2 + kr[None, :] ** 2
        self.kappa, self.dt = kappa, dt
        self.dealias = np.sqrt(self.k2) < np.pi * 2 / 3 * np.sqrt(2)

    def step(self, n=1):
        ch = np.fft.rfft2(self.c)
        for _ in range(n):
            mu = 2 * self.c * (1 - self.c) * (1 - 2 * self.c)
            mh = np.fft.rfft2(mu) * self.dealias
            ch = (ch - self.dt * self.k2 * mh) / (1 + self.dt * self.kappa * self.k2**2)
            self.c = np.fft.irfft2(ch, s=self.c.shape)

    def structure(self, nbins=20):
        """The radial average of the power spectrum, and its first moment."""
        p = np.abs(np.fft.rfft2(self.c - self.c.mean())) ** 2
        k = np.sqrt(self.k2)
        which = np.digitize(k.ravel(), np.linspace(0, np.pi, nbins + 1)) - 1
        ok = which < nbins
        num = np.bincount(which[ok], weights=p.ravel()[ok], minlength=nbins)
        cnt = np.bincount(which[ok], minlength=nbins)
        s = num / np.maximum(cnt, 1)
        mid = (np.arange(nbins) + 0.5) * np.pi / nbins
        return s, (s * mid).sum() / s.sum()


def interface_length(phi, level=0.5):
    above = phi > level
    return np.sum(above[1:] != above[:-1]) + np.sum(above[:, 1:] != above[:, :-1])


def run(steps):
    crystal, alloy = Dendrite(96), Spinodal(64)
    tips, k1 = [], []
    for i in range(steps):
        crystal.step()
        alloy.step(2)
        s, first = alloy.structure()
        k1.append(first)
        solid = np.argwhere(crystal.phi > 0.5)
        tips.append(solid[:, 0].max() - solid[:, 0].min())
    return {
        "phi": crystal.phi,
        "T": crystal.T,
        "c": alloy.c,
        "tips": np.array(tips),
        "k1": np.array(k1),
        "length": interface_length(crystal.phi),
    }
