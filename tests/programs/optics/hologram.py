"""Optics: phase retrieval by Gerchberg and Saxton, propagation by the angular spectrum, Zernike aberrations."""

from functools import cached_property, lru_cache
from math import factorial

import numpy as np


class Field:
    def __init__(self, values, pitch, wavelength):
        self.values, self.pitch, self.wavelength = values, pitch, wavelength

    @property
    def intensity(self):
        return np.abs(self.values) ** 2

    @property
    def phase(self):
        return np.angle(self.values)

    @cached_property
    def frequencies(self):
        f = np.fft.fftfreq(self.values.shape[0], self.pitch)
        return np.meshgrid(f, f, indexing="xy")

    def propagate(self, z):
        fx, fy = self.frequencies
        arg = 1 - (self.wavelength * fx) ** 2 - (self.wavelength * fy) ** 2
        kz = 2 * np.pi / self.wavelength * np.sqrt(arg.astype(complex))
        H = np.exp(1j * z * kz)
        H[arg < 0] = 0
        return Field(np.fft.ifft2(np.fft.fft2(self.values) * H), self.pitch, self.wavelength)

    def through(self, mask):
        return Field(self.values * mask, self.pitch, self.wavelength)


@lru_cache(maxsize=None)
def zernike(n, m, size):
    c = np.linspace(-1, 1, size)
    x, y = np.meshgrid(c, c)
    r, t = np.hypot(x, y), np.arctan2(y, x)
    R = sum(
        (-1) ** k
        * factorial(n - k)
        / (factorial(k) * factorial((n + abs(m)) // 2 - k) * factorial((n - abs(m)) // 2 - k))
        * r ** (n - 2 * k)
        for k in range((n - abs(m)) // 2 + 1)
    )
    Z = R * (np.cos(m * t) if m >= 0 else np.sin(-m * t))
    return np.where(r <= 1, Z, 0.0)


def aberration(coefs, size):
    out = np.zeros((size, size))
    for (n, m), c in coefs.items():
        out += c * zernike(n, m, size)
    return out


def aperture(size, radius):
    y, x = np.ogrid[:size, :size]
    c = (size - 1) / 2
    return ((x - c) ** 2 + (y - c) ** 2 <= (radius * size) ** 2).astype(float)


def gerchberg_saxton_round(source, target, phase):
    near = source * np.exp(1j * phase)
    far = np.fft.fftshift(np.fft.fft2(near, norm="ortho"))
    error = np.linalg.norm(np.abs(far) - target) / np.linalg.norm(target)
    far = target * np.exp(1j * np.angle(far))
    back = np.fft.ifft2(np.fft.ifftshift(far), norm="ortho")
    return np.angle(back), error


def letter(size):
    t = np.zeros((size, size))
    a, b = size // 4, 3 * size // 4
    t[a:b, a : a + 8] = 1
    t[a : a + 8, a:b] = 1
    t[size // 2 - 4 : size // 2 + 4, a : b - 10] = 1
    return t


def strehl(field, pupil):
    ideal = np.abs(np.fft.fft2(pupil)).max() ** 2
    return (np.abs(np.fft.fft2(pupil * np.exp(1j * field))) ** 2).max() / ideal


def encircled(intensity, fraction=0.84):
    n = intensity.shape[0]
    y, x = np.indices(intensity.shape)
    cy, cx = np.unravel_index(np.argmax(intensity), intensity.shape)
    r = np.hypot(x - cx, y - cy).astype(int)
    radial = np.bincount(r.ravel(), intensity.ravel())
    c = np.cumsum(radial) / radial.sum()
    return np.searchsorted(c, fraction) / n


def unwrap_rows(phase):
    return np.unwrap(np.unwrap(phase, axis=0), axis=1)


def run(steps, size=192):
    rng = np.random.default_rng(2)
    pupil = aperture(size, 0.45)
    target = letter(size)
    source = pupil * np.linalg.norm(target) / np.linalg.norm(pupil)
    phase = rng.uniform(-np.pi, np.pi, (size, size))
    errors, ratios, radii = [], [], []
    for k in range(steps):
        phase, e = gerchberg_saxton_round(source, target, phase)
        errors.append(e)
        coefs = {(2, 0): 0.3 * np.sin(0.2 * k), (3, 1): 0.2, (4, 0): 0.1 * np.cos(0.1 * k)}
        W = aberration(coefs, size)
        ratios.append(strehl(W, pupil))
        beam = Field(pupil * np.exp(1j * W), 10e-6, 633e-9).propagate(0.02 + 0.001 * k).through(pupil)
        radii.append(encircled(beam.intensity))
    return {
        "phase": np.cos(phase) * pupil,
        "errors": np.array(errors),
        "strehl": np.array(ratios),
        "radii": np.array(radii),
        "un": unwrap_rows(W),
    }
