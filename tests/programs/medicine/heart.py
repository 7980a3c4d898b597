"""Heart rate and its variability from a noisy electrocardiogram, in windows."""

import numpy as np
from scipy import signal

FS = 250.0


def synthesize(n, rng, rate=70.0):
    """An ECG of so many samples: waves at each beat, baseline wander, mains hum, noise."""
    t = np.arange(n) / FS
    intervals = 60.0 / rate * (1.0 + 0.04 * rng.standard_normal(int(n / FS * rate / 60) + 5))
    beats = np.cumsum(intervals)
    ecg = np.zeros(n)
    for offset, width, height in (
        (-0.2, 0.025, 0.15),
        (-0.03, 0.01, -0.1),
        (0, 0.012, 1.0),
        (0.03, 0.01, -0.2),
        (0.25, 0.05, 0.3),
    ):
        for b in beats:
            ecg += height * np.exp(-((t - b - offset) ** 2) / (2 * width**2))
    ecg += 0.3 * np.sin(2 * np.pi * 0.3 * t) + 0.1 * np.sin(2 * np.pi * 50 * t)
    return ecg + 0.05 * rng.standard_normal(n)


class Monitor:
    def __init__(self):
        self.band = signal.butter(3, [5.0, 20.0], btype="bandpass", fs=FS)
        self.notch = signal.iirnotch(50.0, 30.0, fs=FS)
        self.history = []

    def clean(self, ecg):
        """Without hum and wander."""
        b, a = self.notch
        flat = signal.filtfilt(b, a, ecg)
        flat = flat - signal.savgol_filter(flat, 251, 2)
        return flat / np.max(np.abs(flat))

    def energy(self, clean):
        """Pan and Tompkins: band, derivative, square, moving window."""
        b, a = self.band
        narrow = signal.filtfilt(b, a, clean)
        slope = np.gradient(narrow) * FS
        window = np.ones(int(0.12 * FS)) / int(0.12 * FS)
        return np.convolve(slope**2, window, mode="same")

    def beats(self, energy):
        threshold = 0.3 * np.percentile(energy, 98)
        peaks, _ = signal.find_peaks(energy, height=threshold, distance=int(0.3 * FS))
        return peaks

    def refine(self, clean, peaks, half=15):
        """The largest sample near each peak."""
        index = np.clip(peaks[:, None] + np.arange(-half, half + 1), 0, len(clean) - 1)
        return peaks - half + np.argmax(clean[index], axis=1)

    def spectrum(self, clean):
        f, p = signal.welch(clean, fs=FS, nperseg=512)
        low = p[(f >= 1) & (f < 8)].sum()
        high = p[(f >= 8) & (f < 30)].sum()
        return low / high, f[np.argmax(p)]

    def process(self, ecg):
        clean = self.clean(ecg)
        energy = self.energy(clean)
        peaks = self.refine(clean, self.beats(energy))
        rr = np.diff(peaks) / FS
        ratio, dominant = self.spectrum(clean)
        self.history.append((60.0 / rr.mean(), rr.std(), np.sqrt(np.mean(np.diff(rr) ** 2)), ratio, dominant))


def run(steps):
    rng = np.random.default_rng(11)
    monitor = Monitor()
    for k in range(steps):
        monitor.process(synthesize(5000, rng, 60.0 + 20.0 * np.sin(k / 5)))
    return {"history": np.array(monitor.history)}
