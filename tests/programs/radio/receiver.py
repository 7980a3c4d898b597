"""A digital receiver: pulse shaping, a fading channel, equalisation, and Viterbi's decoder."""

import numpy as np
from scipy import signal

G = ((1, 1, 1), (1, 0, 1))


def encode(bits):
    """A convolutional code of rate 1/2 with four states."""
    padded = np.concatenate([[0, 0], bits])
    outs = [sum(g * padded[2 - i : len(padded) - i] for i, g in enumerate(taps)) % 2 for taps in G]
    return np.stack(outs, axis=1).ravel()


def tables():
    """Of each state: the two states before it, and what is sent on the way."""
    before, sent = np.zeros((4, 2), int), np.zeros((4, 2, 2))
    for state in range(4):
        for k in range(2):
            old = ((state << 1) & 3) | k
            bit = state >> 1
            window = (bit, old >> 1, old & 1)
            before[state, k] = old
            sent[state, k] = [sum(g * w for g, w in zip(taps, window)) % 2 for taps in G]
    return before, 1 - 2 * sent


BEFORE, SENT = tables()


def viterbi(soft):
    """The most likely bits for pairs of soft values."""
    pairs = soft.reshape(-1, 2)
    n = len(pairs)
    metric = np.array([0.0, -1e9, -1e9, -1e9])
    choice = np.zeros((n, 4), dtype=int)
    for t in range(n):
        candidates = metric[BEFORE] + SENT @ pairs[t]
        choice[t] = np.argmax(candidates, axis=1)
        metric = candidates[np.arange(4), choice[t]]
    state = int(np.argmax(metric))
    bits = np.zeros(n, dtype=int)
    for t in range(n - 1, -1, -1):
        bits[t] = state >> 1
        state = BEFORE[state, choice[t, state]]
    return bits


def root_raised_cosine(span=6, sps=4, beta=0.35):
    t = np.arange(-span * sps, span * sps + 1) / sps + 1e-9
    top = np.sin(np.pi * t * (1 - beta)) + 4 * beta * t * np.cos(np.pi * t * (1 + beta))
    h = top / (np.pi * t * (1 - (4 * beta * t) ** 2))
    return h / np.sqrt(np.sum(h**2))


class Link:
    def __init__(self, n=400, sps=4, seed=7):
        self.rng = np.random.default_rng(seed)
        self.n, self.sps = n, sps
        self.pulse = root_raised_cosine(sps=sps)
        self.taps = np.zeros(11, complex)
        self.taps[5] = 1.0

    def transmit(self, coded):
        symbols = (1 - 2.0 * coded).astype(complex)
        up = np.zeros(len(symbols) * self.sps, complex)
        up[:: self.sps] = symbols
        return signal.fftconvolve(up, self.pulse, mode="same"), symbols

    def channel(self, sent, noise=0.35):
        phase = self.rng.uniform(-0.2, 0.2)
        path = np.array([1.0, 0, 0, 0, 0.3 * np.exp(0.7j), 0, 0, -0.15])
        heard = np.convolve(sent, path, mode="full")[: len(sent)] * np.exp(1j * phase)
        shape = (2, len(sent))
        hiss = self.rng.normal(0, noise / np.sqrt(2), shape)
        return heard + hiss[0] + 1j * hiss[1]

    def matched(self, heard):
        return signal.fftconvolve(heard, self.pulse, mode="same")[:: self.sps]

    def equalise(self, received, known, step=0.004):
        """Least mean squares, symbol by symbol."""
        half = len(self.taps) // 2
        padded = np.pad(received, half)
        out = np.empty(len(received), complex)
        taps = self.taps.copy()
        for i in range(len(received)):
            window = padded[i : i + len(taps)][::-1]
            out[i] = taps @ window
            error = known[i] - out[i]
            taps = taps + step * error * window.conj()
        self.taps = taps
        return out

    def frame(self):
        bits = self.rng.integers(0, 2, self.n)
        sent, symbols = self.transmit(encode(bits))
        soft = self.equalise(self.matched(self.channel(sent)), symbols)
        decoded = viterbi(soft.real)
        return np.mean(decoded != bits), np.mean(np.abs(soft - symbols) ** 2)


def run(steps):
    link = Link()
    table = [link.frame() for _ in range(steps)]
    return {"table": np.array(table), "taps": link.taps}
