"""Population genetics: Wright-Fisher drift with selection and migration, spectra, linkage, FST through time."""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Scenario:
    size: int = 500
    demes: int = 6
    loci: int = 4000
    migration: float = 0.01
    mutation: float = 1e-4
    selection: float = 0.02

    def bottleneck(self, factor):
        return replace(self, size=max(20, int(self.size * factor)))


def initial(scenario, rng):
    return rng.beta(0.4, 0.4, (scenario.demes, scenario.loci))


def migrate(p, m):
    return (1 - m) * p + m * p.mean(axis=0)


def select(p, s):
    w = 1 + s * p
    return p * (1 + s) / np.where(w > 0, w, 1.0) if np.isscalar(s) else p * (1 + s) / (1 + s * p)


def mutate(p, mu):
    return p * (1 - mu) + (1 - p) * mu


def generation(p, scenario, effects, rng):
    p = migrate(p, scenario.migration)
    p = select(p, effects)
    p = mutate(p, scenario.mutation)
    return rng.binomial(2 * scenario.size, np.clip(p, 0, 1)) / (2 * scenario.size)


def heterozygosity(p):
    return 2 * p * (1 - p)


def fst(p):
    mean = p.mean(axis=0)
    seg = (mean > 0.02) & (mean < 0.98)
    ht = heterozygosity(mean[seg])
    hs = heterozygosity(p[:, seg]).mean(axis=0)
    return 1 - hs.sum() / ht.sum()


def spectrum(p, bins=20):
    seg = p[(p > 0) & (p < 1)]
    folded = np.minimum(seg, 1 - seg)
    counts, edges = np.histogram(folded, bins=bins, range=(0, 0.503))
    return counts, np.median(folded)


def linkage(p, window=8):
    """Squared correlation of neighbouring loci over demes."""
    z = p - p.mean(axis=0)
    sd = z.std(axis=0)
    ok = sd > 1e-12
    z[:, ok] /= sd[ok]
    r2 = [np.mean((z[:, :-k] * z[:, k:]).mean(axis=0) ** 2) for k in range(1, window)]
    return np.array(r2)


def outliers(p, effects):
    spread = p.var(axis=0)
    cut = np.quantile(spread[spread > 0], 0.99)
    top = spread >= cut
    return top.sum(), np.abs(effects[top]).mean()


class Study:
    def __init__(self, scenario, seed=11):
        self.rng = np.random.default_rng(seed)
        self.scenario = scenario
        self.p = initial(scenario, self.rng)
        self.effects = np.where(self.rng.random(scenario.loci) < 0.05, scenario.selection, 0.0)
        self.history = defaultdict(list)
        self.fixed = np.zeros(scenario.loci, int)

    def step(self, g):
        if g == 10:
            self.scenario = self.scenario.bottleneck(0.2)
        self.p = generation(self.p, self.scenario, self.effects, self.rng)
        gone = (self.p == 0).all(axis=0) | (self.p == 1).all(axis=0)
        self.fixed[gone & (self.fixed == 0)] = g + 1
        self.history["het"].append(heterozygosity(self.p).mean())
        self.history["fst"].append(fst(self.p))
        if g % 5 == 0:
            counts, middle = spectrum(self.p)
            self.history["spectrum"].append(counts)
            self.history["median"].append(middle)
            self.history["linkage"].append(linkage(self.p))
            self.history["outliers"].append(outliers(self.p, self.effects))


def run(steps):
    study = Study(Scenario())
    for g in range(steps):
        study.step(g)
    return {"p": study.p, "fixed": study.fixed, **{k: np.array(v) for k, v in study.history.items()}}
