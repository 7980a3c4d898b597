"""An OFDM modem over a fading channel: QAM, pilots, equaliser, adaptive noise canceller, bit errors by SNR."""

from typing import NamedTuple

import numpy as np
from scipy import signal


class Frame(NamedTuple):
    bits: np.ndarray
    symbols: np.ndarray
    samples: np.ndarray


class Modem:
    def __init__(self, carriers=256, prefix=32, pilots=8, symbols=14):
        self.n, self.cp, self.m = carriers, prefix, symbols
        self.pilot = np.arange(0, carriers, pilots)
        self.data = np.setdiff1d(np.arange(carriers), self.pilot)
        self.levels = np.array([-3, -1, 3, 1]) / np.sqrt(10)
        self.value = (1 + 1j) / np.sqrt(2)

    def modulate(self, rng):
        bits = rng.integers(0, 2, (self.m, self.data.size, 4))
        i = self.levels[2 * bits[..., 0] + bits[..., 1]]
        q = self.levels[2 * bits[..., 2] + bits[..., 3]]
        grid = np.zeros((self.m, self.n), complex)
        grid[:, self.data] = i + 1j * q
        grid[:, self.pilot] = self.value
        t = np.fft.ifft(grid, axis=1) * np.sqrt(self.n)
        t = np.hstack([t[:, -self.cp :], t])
        return Frame(bits, grid, t.ravel())

    def demodulate(self, samples):
        t = samples.reshape(self.m, self.n + self.cp)[:, self.cp :]
        grid = np.fft.fft(t, axis=1) / np.sqrt(self.n)
        h = grid[:, self.pilot] / self.value
        k = np.arange(self.n)
        channel = np.array([np.interp(k, self.pilot, row.real) + 1j * np.interp(k, self.pilot, row.imag) for row in h])
        eq = grid / channel
        d = eq[:, self.data]
        bits = np.empty(d.shape + (4,), int)
        bits[..., 0] = d.real > 0
        bits[..., 1] = np.abs(d.real) < 2 / np.sqrt(10)
        bits[..., 2] = d.imag > 0
        bits[..., 3] = np.abs(d.imag) < 2 / np.sqrt(10)
        return bits, channel


def jakes(t, doppler, paths, rng):
    angle = rng.uniform(0, 2 * np.pi, paths)
    phase = rng.uniform(0, 2 * np.pi, paths)
    return np.exp(1j * (2 * np.pi * doppler * np.outer(t, np.cos(angle)) + phase)).sum(axis=1) / np.sqrt(paths)


def channel(x, snr_db, rng, taps=5, doppler=1e-5):
    t = np.arange(x.size)
    y = np.zeros(x.size, complex)
    for k in range(taps):
        gain = jakes(t, doppler, 8, rng) * np.exp(-0.6 * k)
        y[k:] += gain[k:] * x[: x.size - k]
    power = np.mean(np.abs(y) ** 2)
    sigma = np.sqrt(power * 10 ** (-snr_db / 10) / 2)
    return y + sigma * (rng.standard_normal(x.size) + 1j * rng.standard_normal(x.size))


def spectrum(x):
    f, p = signal.welch(x, nperseg=256, return_onesided=False)
    return 10 * np.log10(np.fft.fftshift(p) + 1e-12)


def papr(x, block):
    p = np.abs(x.reshape(-1, block)) ** 2
    return p.max(axis=1) / p.mean(axis=1)


def run(steps):
    rng = np.random.default_rng(21)
    modem = Modem()
    errors = {snr: 0 for snr in (5, 10, 15, 20)}
    sent, mask, peaks = 0, np.full(256, -200.0), []
    for k in range(steps):
        frame = modem.modulate(rng)
        for snr in errors:
            bits, h = modem.demodulate(channel(frame.samples, snr, rng))
            errors[snr] += int((bits != frame.bits).sum())
        sent += frame.bits.size
        mask = np.maximum(mask, spectrum(frame.samples))
        peaks.append(np.percentile(papr(frame.samples, modem.n + modem.cp), 90))
    return {"ber": np.array([e / sent for e in errors.values()]), "mask": mask, "peaks": peaks, "h": h}
