"""Decaying turbulence in two dimensions: pseudo-spectral vorticity, Runge-Kutta, spectra on the way."""

import os

import numpy as np
from numpy.fft import irfft2, rfft2

steps = int(os.environ.get("STEPS", "1000"))

n, nu, dt = 128, 2e-4, 4e-3
k = np.fft.fftfreq(n, 1 / n)
kx, ky = k[None, : n // 2 + 1].copy(), k[:, None]
kx[0, -1] = n // 2
k2 = kx**2 + ky**2
inverse = np.zeros_like(k2)
inverse[k2 > 0] = 1 / k2[k2 > 0]
dealias = (np.abs(kx) < n / 3) & (np.abs(ky) < n / 3)


def advection(wh):
    psi = wh * inverse
    u, v = irfft2(1j * ky * psi), irfft2(-1j * kx * psi)
    wx, wy = irfft2(1j * kx * wh), irfft2(1j * ky * wh)
    return -rfft2(u * wx + v * wy) * dealias


def rk3(wh):
    e = np.exp(-nu * k2 * dt)
    half = np.exp(-nu * k2 * dt / 2)
    a = advection(wh)
    b = advection(half * (wh + 0.5 * dt * a))
    c = advection(e * (wh - dt * a) + 2 * dt * half * b)
    return e * wh + dt / 6 * (e * a + 4 * half * b + c)


def spectrum(wh):
    energy = 0.5 * np.abs(wh) ** 2 * inverse / n**4
    shells = np.rint(np.sqrt(k2)).astype(int)
    return np.bincount(shells.ravel(), weights=energy.ravel())[: n // 3]


rng = np.random.default_rng(7)
wh = rfft2(rng.normal(size=(n, n))) * np.exp(-((np.sqrt(k2) - 8) ** 2) / 8) * dealias
wh *= 40 / np.abs(irfft2(wh)).max()
spectra = []
for step in range(steps):
    wh = rk3(wh)
    if step % 50 == 0:
        w = irfft2(wh)
        spectra.append(spectrum(wh))
        print(f"{step:4d} enstrophy {0.5 * np.mean(w**2):.9f} peak {np.abs(w).max():.7f} k {np.argmax(spectra[-1])}")
