"""Climate statistics: daily grids of stations, anomalies, quantile mapping, heat waves, trends, return levels."""

from dataclasses import dataclass, field
from math import lgamma, log

import numpy as np

MONTH_LENGTHS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@dataclass
class Record:
    years: list = field(default_factory=list)
    maxima: list = field(default_factory=list)
    means: list = field(default_factory=list)

    def add(self, year, maximum, mean):
        self.years.append(year)
        self.maxima.append(maximum)
        self.means.append(mean)


class Calendar:
    def __init__(self):
        self.month = np.repeat(np.arange(12), MONTH_LENGTHS)
        self.day = np.arange(365)
        self.summer = (self.month >= 5) & (self.month <= 7)

    def monthly(self, x):
        starts = np.r_[0, np.cumsum(MONTH_LENGTHS)[:-1]]
        return np.add.reduceat(x, starts, axis=-1) / MONTH_LENGTHS


def weather(stations, calendar, rng):
    """Years of temperature, one at a time; the last day of a year is the memory of the next."""
    base = rng.uniform(5, 20, stations)[:, None]
    swing = rng.uniform(5, 15, stations)[:, None]
    last = np.zeros(stations)
    year = 0
    while True:
        noise = 2.5 * rng.standard_normal((stations, 365))
        red = np.empty_like(noise)
        for d in range(365):
            last = 0.75 * last + noise[:, d]
            red[:, d] = last
        t = base + swing * -np.cos(2 * np.pi * (calendar.day - 20) / 365) + red + 0.03 * year
        t[rng.random(t.shape) < 0.01] = np.nan
        yield year, t
        year += 1


def fill(t):
    bad = np.isnan(t)
    clim = np.nanmean(t, axis=1, keepdims=True)
    return np.where(bad, clim, t), bad.sum()


def heat_days(t, calendar):
    summer = t[:, calendar.summer]
    return (summer > 28).sum(axis=1), summer.mean(axis=1)


def longest_wave(t, threshold):
    """Longest run of days above each station's threshold."""
    hot = t > threshold[:, None]
    run = np.zeros(len(t), int)
    longest = np.zeros(len(t), int)
    for d in range(hot.shape[1]):
        run = np.where(hot[:, d], run + 1, 0)
        longest = np.maximum(longest, run)
    return longest


def quantile_map(x, reference, q=np.linspace(0.01, 0.99, 33)):
    a, b = np.quantile(x, q), np.quantile(reference, q)
    return np.interp(x, a, b)


def l_moments(x):
    x = np.sort(x, axis=0)
    n = len(x)
    i = np.arange(n)[:, None]
    b0 = x.mean(axis=0)
    b1 = (i * x).sum(axis=0) / (n * (n - 1))
    b2 = (i * (i - 1) * x).sum(axis=0) / (n * (n - 1) * (n - 2))
    return b0, 2 * b1 - b0, 6 * b2 - 6 * b1 + b0


def return_level(x, period=50):
    """Gumbel's distribution by L-moments, each column."""
    l1, l2, _ = l_moments(np.asarray(x))
    scale = l2 / log(2)
    return l1 - 0.5772156649 * scale - scale * np.log(-np.log(1 - 1 / period))


def shape(x):
    l1, l2, l3 = l_moments(np.asarray(x))
    c = 2 / (3 + l3 / l2) - log(2) / log(3)
    k = 7.859 * c + 2.9554 * c**2
    return np.clip(k, -0.5, 0.5)


def mann_kendall(x):
    n = len(x)
    s = np.zeros(x.shape[1])
    for i in range(n - 1):
        s += np.sign(x[i + 1 :] - x[i]).sum(axis=0)
    var = n * (n - 1) * (2 * n + 5) / 18
    return np.where(s > 0, (s - 1) / np.sqrt(var), np.where(s < 0, (s + 1) / np.sqrt(var), 0.0))


class Analysis:
    def __init__(self, stations=300, seed=21):
        self.calendar = Calendar()
        self.source = weather(stations, self.calendar, np.random.default_rng(seed))
        self.record = Record()
        self.heat = np.zeros(stations)
        self.waves = []
        self.months = []
        self.gaps = 0
        self.reference = None

    def year(self):
        y, t = next(self.source)
        t, gaps = fill(t)
        self.gaps += int(gaps)
        if self.reference is None:
            self.reference = t.copy()
            self.threshold = np.percentile(t, 90, axis=1)
        days, mean = heat_days(t, self.calendar)
        self.heat += days
        self.waves.append(longest_wave(t, self.threshold))
        self.months.append(self.calendar.monthly(t).mean(axis=0))
        mapped = quantile_map(t[0], self.reference[0])
        self.record.add(y, t.max(axis=1), mapped.mean())
        return mean


def run(steps):
    analysis = Analysis()
    for _ in range(steps):
        summer = analysis.year()
    x = np.array(analysis.record.maxima)
    return {
        "summer": summer,
        "heat": analysis.heat,
        "waves": np.array(analysis.waves),
        "months": np.array(analysis.months),
        "gaps": np.int64(analysis.gaps),
        "means": np.array(analysis.record.means),
        "level": return_level(x),
        "shape": shape(x),
        "trend": mann_kendall(x),
    }
