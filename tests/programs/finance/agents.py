"""A market of chartists and fundamentalists: order books as counters, herding, fat tails counted in a histogram."""

from collections import Counter

import numpy as np

population = 0


class Market:
    def __init__(self, agents=10000, seed=30):
        self.rng = np.random.default_rng(seed)
        self.kind = self.rng.random(agents) < 0.5  # chartists
        self.memory = self.rng.integers(2, 20, agents)
        self.wealth = np.ones(agents)
        self.position = np.zeros(agents)
        self.prices = [100.0] * 21
        self.value = 100.0
        self.tally = Counter()

    def trend(self):
        p = np.array(self.prices[-21:])
        average = np.cumsum(p[::-1]) / np.arange(1, 22)
        return np.log(p[-1] / average[self.memory])

    def demand(self):
        chart = np.tanh(20 * self.trend())
        fundamental = np.tanh(2 * np.log(self.value / self.prices[-1])) * np.ones_like(chart)
        noise = 0.3 * self.rng.standard_normal(chart.size)
        return np.where(self.kind, chart, fundamental) + noise

    def herd(self, gain):
        chart = gain[self.kind].mean() if self.kind.any() else 0.0
        fund = gain[~self.kind].mean() if not self.kind.all() else 0.0
        p = 0.02 / (1 + np.exp(-200 * (chart - fund)))
        switch = self.rng.random(self.kind.size) < np.where(self.kind, 0.02 - p, p)
        self.kind = self.kind ^ switch

    def step(self):
        global population
        d = self.demand()
        excess = d.mean()
        price = self.prices[-1] * np.exp(0.5 * excess)
        change = np.log(price / self.prices[-1])
        gain = self.position * change
        self.wealth = np.maximum(self.wealth * (1 + gain), 1e-6)
        self.position = np.clip(d, -1, 1)
        self.herd(gain)
        self.prices.append(float(price))
        self.value *= np.exp(0.002 * self.rng.standard_normal())
        self.tally["up" if change > 0 else "down"] += 1
        population = int(self.kind.sum())


def tails(prices, bins=30):
    r = np.diff(np.log(prices))
    z = (r - r.mean()) / r.std()
    counts, _ = np.histogram(np.abs(z), bins=bins, range=(0, 6))
    return counts, np.mean(z**4) - 3


def run(steps):
    market = Market()
    for _ in range(steps):
        market.step()
    counts, kurtosis = tails(np.array(market.prices[20:]))
    return {
        "prices": np.array(market.prices),
        "wealth": market.wealth,
        "counts": counts,
        "kurtosis": np.float64(kurtosis),
        "up": np.int64(market.tally["up"]),
        "population": np.int64(population),
    }
