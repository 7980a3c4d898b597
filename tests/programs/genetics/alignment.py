"""Local alignment of reads against a genome, by anti-diagonals; k-mer spectra; a distance tree."""

import numpy as np

MATCH, MISMATCH, GAP = 2, -1, -2


def genome(n, rng):
    return rng.integers(0, 4, n)


def read_from(g, rng, length=120, errors=0.06):
    start = rng.integers(0, len(g) - length)
    read = g[start : start + length].copy()
    wrong = rng.random(length) < errors
    read[wrong] = rng.integers(0, 4, wrong.sum())
    return start, read


def smith_waterman(a, b):
    """The best score and where it ends, one anti-diagonal after the other."""
    n, m = len(a), len(b)
    before = np.zeros(n + 1, dtype=np.int64)
    last = np.zeros(n + 1, dtype=np.int64)
    best, where = 0, 0
    reverse = b[::-1]
    padded = np.full(n + m + n, -1)
    padded[n : n + m] = reverse
    for d in range(n + m - 1):
        part = padded[n + m - 1 - d : n + m - 1 - d + n]
        score = np.where(a == part, MATCH, MISMATCH)
        score = np.where(part < 0, -1000, score)
        now = np.zeros(n + 1, dtype=np.int64)
        now[1:] = np.maximum(0, np.maximum(before[:-1] + score, np.maximum(last[1:], last[:-1]) + GAP))
        top = now.max()
        if top > best:
            best, where = int(top), d
        before, last = last, now
    return best, where


def kmers(sequence, k=4):
    """Counts of all words of length k."""
    weights = 4 ** np.arange(k)[::-1]
    windows = np.lib.stride_tricks.sliding_window_view(sequence, k)
    return np.bincount(windows @ weights, minlength=4**k)


def spectrum_distance(counts):
    freq = counts / counts.sum(axis=1, keepdims=True)
    norm = np.sqrt((freq**2).sum(axis=1))
    return 1.0 - (freq @ freq.T) / np.outer(norm, norm)


def join_nearest(d):
    """UPGMA: the heights at which clusters are joined."""
    d = d.copy()
    n = len(d)
    np.fill_diagonal(d, np.inf)
    size = np.ones(n)
    heights = []
    for _ in range(n - 1):
        i, j = np.unravel_index(np.argmin(d), d.shape)
        heights.append(d[i, j] / 2)
        merged = (size[i] * d[i] + size[j] * d[j]) / (size[i] + size[j])
        d[i] = merged
        d[:, i] = merged
        d[i, i] = np.inf
        d[j] = np.inf
        d[:, j] = np.inf
        size[i] += size[j]
    return np.array(heights)


def gc_content(sequence, window=50):
    is_gc = (sequence == 1) | (sequence == 2)
    sums = np.cumsum(np.concatenate([[0], is_gc]))
    return (sums[window:] - sums[:-window]) / window


def run(steps):
    rng = np.random.default_rng(8)
    g = genome(600, rng)
    scores, ends, counts, heights, gc = [], [], [], [], []
    for _ in range(steps):
        start, read = read_from(g, rng)
        best, where = smith_waterman(read, g)
        scores.append(best)
        ends.append(where - start)
        counts.append(kmers(read))
        gc.append(gc_content(g).max())
        if len(counts) >= 10:
            heights.append(join_nearest(spectrum_distance(np.array(counts[-10:])))[-1])
    return {
        "scores": np.array(scores),
        "ends": np.array(ends),
        "counts": np.array(counts),
        "heights": np.array(heights),
    }
