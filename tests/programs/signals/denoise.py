"""Speech clean-up: a stream of audio blocks through pre-emphasis, STFT, tracking of the noise floor, Wiener gains and overlap-add."""

import numpy as np
from scipy import signal

RATE = 16000


def synth(seconds, seed=3):
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    f0 = 120 + 20 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(f0) / RATE
    voice = sum(np.sin(k * phase) / k for k in range(1, 12))
    envelope = (signal.square(2 * np.pi * 1.3 * t, 0.6) + 1) / 2
    return 0.3 * envelope * voice + 0.1 * rng.standard_normal(t.size)


class OverlapAdd:
    def __init__(self, nfft, hop):
        self.nfft, self.hop = nfft, hop
        self.window = np.sqrt(signal.get_window("hann", nfft))
        self.inbuf = np.zeros(nfft)
        self.outbuf = np.zeros(nfft)

    def analyse(self, chunk):
        self.inbuf = np.concatenate([self.inbuf[self.hop :], chunk])
        return np.fft.rfft(self.inbuf * self.window)

    def synthesise(self, spectrum):
        self.outbuf += np.fft.irfft(spectrum, self.nfft) * self.window
        out = self.outbuf[: self.hop].copy()
        self.outbuf = np.roll(self.outbuf, -self.hop)
        self.outbuf[-self.hop :] = 0.0
        return out


class NoiseTracker:
    """Minimum statistics over a window of frames, kept in a ring."""

    def __init__(self, bins, frames=30, smooth=0.85):
        self.ring = np.full((frames, bins), np.inf)
        self.psd = None
        self.k = 0
        self.smooth = smooth

    def update(self, power):
        if self.psd is None:
            self.psd = power.copy()
        else:
            self.psd = self.smooth * self.psd + (1 - self.smooth) * power
        self.ring[self.k % len(self.ring)] = self.psd
        self.k += 1
        return 1.5 * self.ring.min(axis=0)


class Wiener:
    def __init__(self, bins, beta=0.96, floor=0.08):
        self.beta, self.floor = beta, floor
        self.last_gain = np.ones(bins)
        self.last_post = np.ones(bins)

    def gain(self, power, noise):
        post = np.minimum(power / np.maximum(noise, 1e-12), 1e3)
        prior = self.beta * self.last_gain**2 * self.last_post + (1 - self.beta) * np.clip(post - 1, 0, None)
        g = np.maximum(prior / (1 + prior), self.floor)
        self.last_gain, self.last_post = g, post
        return g


class Denoiser:
    def __init__(self, nfft=2048, hop=1024):
        self.ola = OverlapAdd(nfft, hop)
        bins = nfft // 2 + 1
        self.tracker = NoiseTracker(bins)
        self.wiener = Wiener(bins)
        self.b = np.array([1.0, -0.97])
        self.zi = np.zeros(1)
        self.zo = np.zeros(1)
        self.sos = signal.butter(4, [80, 7000], btype="band", fs=RATE, output="sos")
        self.zs = np.zeros((self.sos.shape[0], 2))
        self.speech = []

    def is_speech(self, power, noise):
        snr = 10 * np.log10(power.sum() / noise.sum())
        return snr > 3.0

    def process(self, chunk):
        x, self.zs = signal.sosfilt(self.sos, chunk, zi=self.zs)
        x, self.zi = signal.lfilter(self.b, [1.0], x, zi=self.zi)
        spec = self.ola.analyse(x)
        power = np.abs(spec) ** 2
        noise = self.tracker.update(power)
        g = self.wiener.gain(power, noise)
        g = np.convolve(g, np.ones(5) / 5, mode="same")
        out = self.ola.synthesise(spec * g)
        out, self.zo = signal.lfilter([1.0], self.b, out, zi=self.zo)
        self.speech.append(self.is_speech(power, noise))
        return out


def run(steps):
    d = Denoiser()
    x = synth((steps + 1) * 1024 / RATE)
    y = np.zeros_like(x)
    for i in range(steps):
        sl = slice(i * 1024, (i + 1) * 1024)
        y[sl] = d.process(x[sl])
    return {"y": y, "speech": np.array(d.speech), "gain": d.wiener.last_gain}
