"""A laser beam through turbulence, a lens and a slit, by the angular spectrum; moments and encircled energy."""

import numpy as np

WAVELENGTH = 633e-9
K = 2 * np.pi / WAVELENGTH


class Bench:
    def __init__(self, n=192, width=8e-3, seed=5):
        self.n, self.width = n, width
        self.dx = width / n
        axis = (np.arange(n) - n // 2) * self.dx
        self.x, self.y = np.meshgrid(axis, axis)
        f = np.fft.fftfreq(n, self.dx)
        fx, fy = np.meshgrid(f, f)
        self.kz = np.sqrt(np.maximum(0.0, K**2 - (2 * np.pi * fx) ** 2 - (2 * np.pi * fy) ** 2))
        self.f2 = fx**2 + fy**2
        self.rng = np.random.default_rng(seed)
        self.edge = self.absorber()

    def absorber(self):
        r = np.maximum(np.abs(self.x), np.abs(self.y)) / (0.5 * self.width)
        return np.where(r > 0.85, np.exp(-(((r - 0.85) / 0.08) ** 2)), 1.0)

    def gaussian(self, waist=1.2e-3):
        return np.exp(-(self.x**2 + self.y**2) / waist**2).astype(complex)

    def screen(self, r0=2e-3, outer=5e-2):
        """A phase screen after von Karman."""
        spectrum = 0.023 * r0 ** (-5 / 3) * (self.f2 + 1 / outer**2) ** (-11 / 6)
        spectrum[0, 0] = 0.0
        noise = self.rng.standard_normal((self.n, self.n)) + 1j * self.rng.standard_normal((self.n, self.n))
        scale = 1.0 / self.width
        return np.fft.ifft2(noise * np.sqrt(spectrum) * scale).real * self.n**2

    def propagate(self, field, z):
        transfer = np.exp(1j * self.kz * z)
        return np.fft.ifft2(np.fft.fft2(field) * transfer) * self.edge

    def lens(self, field, focal):
        return field * np.exp(-1j * K / (2 * focal) * (self.x**2 + self.y**2))

    def slit(self, field, half):
        out = field.copy()
        out[np.abs(self.y) > half] = 0
        return out

    def moments(self, field):
        intensity = np.abs(field) ** 2
        power = intensity.sum()
        cx = (intensity * self.x).sum() / power
        cy = (intensity * self.y).sum() / power
        wx = 2 * np.sqrt((intensity * (self.x - cx) ** 2).sum() / power)
        wy = 2 * np.sqrt((intensity * (self.y - cy) ** 2).sum() / power)
        return power * self.dx**2, cx, cy, wx, wy

    def encircled(self, field, fraction=0.8):
        """The radius that holds so much of the energy."""
        intensity = np.abs(field) ** 2
        r = np.hypot(self.x, self.y).ravel()
        order = np.argsort(r)
        energy = np.cumsum(intensity.ravel()[order])
        return r[order][np.searchsorted(energy, fraction * energy[-1])]


def shot(bench, screens=3, distance=6.0):
    field = bench.gaussian()
    for _ in range(screens):
        field = field * np.exp(1j * bench.screen())
        field = bench.propagate(field, distance / screens)
    field = bench.slit(bench.lens(field, 1.5), 2.5e-3)
    return bench.propagate(field, 1.0)


def run(steps):
    bench = Bench()
    table, radii, mean = [], [], np.zeros((bench.n, bench.n))
    for i in range(steps):
        field = shot(bench)
        table.append(bench.moments(field))
        radii.append(bench.encircled(field))
        mean += np.abs(field) ** 2
    return {"table": np.array(table), "radii": np.array(radii), "mean": mean / steps}
