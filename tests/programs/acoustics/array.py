"""A microphone array finds moving speakers: covariances, conventional beams, MUSIC, and a tracker."""

import numpy as np
from scipy import signal

C, FS, MICS, BLOCK = 343.0, 8000.0, 8, 1024


def positions():
    angle = 2 * np.pi * np.arange(MICS) / MICS
    return 0.08 * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def delays(theta, mics):
    direction = np.stack([np.cos(theta), np.sin(theta)])
    return -(mics @ direction) / C


class Room:
    def __init__(self, seed=2):
        self.rng = np.random.default_rng(seed)
        self.mics = positions()
        self.f = np.fft.rfftfreq(BLOCK, 1 / FS)
        self.b, self.a = signal.butter(2, [300, 3000], btype="band", fs=FS)

    def source(self):
        return signal.lfilter(self.b, self.a, self.rng.standard_normal(BLOCK))

    def record(self, angles):
        """What the microphones hear of sources at these angles."""
        heard = np.zeros((MICS, BLOCK))
        for theta in angles:
            spectrum = np.fft.rfft(self.source())
            shift = np.exp(-2j * np.pi * self.f[None, :] * delays(theta, self.mics)[:, None])
            heard += np.fft.irfft(spectrum[None, :] * shift, BLOCK, axis=1)
        return heard + 0.05 * self.rng.standard_normal((MICS, BLOCK))


class Finder:
    def __init__(self, mics, sources=2, grid=180):
        self.mics, self.sources = mics, sources
        self.grid = np.deg2rad(np.arange(0, 360, 360 / grid))
        self.f = np.fft.rfftfreq(256, 1 / FS)
        self.use = np.where((self.f > 500) & (self.f < 2800))[0]
        tau = np.stack([delays(t, mics) for t in self.grid])
        self.steer = np.exp(-2j * np.pi * self.f[self.use][:, None, None] * tau[None])
        self.covariance = np.tile(np.eye(MICS, dtype=complex)[None] * 1e-3, (len(self.use), 1, 1))

    def frames(self, heard):
        window = np.hanning(256)
        starts = np.arange(0, heard.shape[1] - 255, 128)
        pieces = heard[:, starts[:, None] + np.arange(256)] * window
        return np.fft.rfft(pieces, axis=2)[:, :, self.use]

    def update(self, spectra, forget=0.6):
        new = np.einsum("mtf,ntf->fmn", spectra, spectra.conj()) / spectra.shape[1]
        self.covariance = forget * self.covariance + (1 - forget) * new

    def beam(self):
        """The power of a beam in each direction."""
        power = np.einsum("fgm,fmn,fgn->fg", self.steer.conj(), self.covariance, self.steer).real
        return power.sum(axis=0)

    def music(self):
        values, vectors = np.linalg.eigh(self.covariance)
        noise = vectors[:, :, : MICS - self.sources]
        projected = np.matmul(self.steer.conj(), noise)
        return (1.0 / (np.abs(projected) ** 2).sum(axis=2)).mean(axis=0)

    def peaks(self, spectrum):
        left, right = np.roll(spectrum, 1), np.roll(spectrum, -1)
        is_peak = (spectrum > left) & (spectrum >= right)
        order = np.argsort(np.where(is_peak, spectrum, -1.0))[::-1]
        return np.sort(self.grid[order[: self.sources]])


def track(state, found, gain=0.4):
    """Move each track towards the nearest found angle, around the circle."""
    difference = np.angle(np.exp(1j * (found[None, :] - state[:, None])))
    nearest = np.argmin(np.abs(difference), axis=1)
    return (state + gain * difference[np.arange(len(state)), nearest]) % (2 * np.pi)


def run(steps):
    room = Room()
    finder = Finder(room.mics)
    state, history, beams = np.array([1.0, 4.0]), [], []
    for k in range(steps):
        heard = room.record([1.0 + 0.02 * k, 4.0 - 0.01 * k])
        finder.update(finder.frames(heard))
        beams.append(finder.beam())
        state = track(state, finder.peaks(finder.music()))
        history.append(state.copy())
    return {"history": np.array(history), "beams": np.array(beams)}
