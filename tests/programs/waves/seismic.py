"""Acoustic waves in layered rock: eighth-order stencil, receivers, and one pass of reverse-time imaging."""

import numpy as np

COEFF = np.array([-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])


def velocity(nz, nx):
    v = np.full((nz, nx), 1500.0)
    v[nz // 3 :] = 2200.0
    v[2 * nz // 3 :] = 3200.0
    dip = (np.arange(nx) * 0.15).astype(int)
    for i in range(nx):
        v[nz // 2 + dip[i] // 2 :, i] += 400.0
    return v


def ricker(n, dt, f=12.0):
    t = np.arange(n) * dt - 1.2 / f
    a = (np.pi * f * t) ** 2
    return (1 - 2 * a) * np.exp(-a)


def laplacian(p, h):
    out = 2 * COEFF[0] * p
    for k in range(1, 5):
        c = COEFF[k]
        out[k:] += c * p[:-k]
        out[:-k] += c * p[k:]
        out[:, k:] += c * p[:, :-k]
        out[:, :-k] += c * p[:, k:]
    return out / h**2


def sponge(nz, nx, width=20, strength=0.015):
    z = np.arange(nz)[:, None]
    x = np.arange(nx)[None, :]
    d = np.minimum(np.minimum(x, nx - 1 - x), nz - 1 - z)
    return np.exp(-((strength * np.maximum(width - d, 0)) ** 2))


class Survey:
    def __init__(self, nz=140, nx=200, h=10.0, dt=1e-3):
        self.v, self.h, self.dt = velocity(nz, nx), h, dt
        self.taper = sponge(nz, nx)
        self.p = np.zeros((nz, nx))
        self.before = np.zeros((nz, nx))

    def advance(self):
        new = 2 * self.p - self.before + (self.v * self.dt) ** 2 * laplacian(self.p, self.h)
        self.before = self.p * self.taper
        self.p = new * self.taper

    def shoot(self, wavelet, sz, sx, rz):
        seismogram = np.zeros((len(wavelet), self.p.shape[1]))
        frames = []
        for it, w in enumerate(wavelet):
            self.advance()
            self.p[sz, sx] += w
            seismogram[it] = self.p[rz]
            if it % 10 == 0:
                frames.append(self.p.copy())
        return seismogram, frames


def migrate(seismogram, frames, rz):
    survey = Survey()
    image = np.zeros_like(survey.p)
    for it in range(len(seismogram) - 1, -1, -1):
        survey.advance()
        survey.p[rz] += seismogram[it]
        if it % 10 == 0:
            image += survey.p * frames[it // 10]
    return image


def run(steps):
    survey = Survey()
    seismogram, frames = survey.shoot(ricker(steps, survey.dt), 4, 100, 6)
    return {"seismogram": seismogram, "image": migrate(seismogram, frames, 6)}
