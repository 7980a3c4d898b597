"""Ecology: species that compete on patches, disperse by distance, go extinct and adapt; diversity indices."""

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform


class Landscape:
    def __init__(self, patches, rng):
        self.xy = rng.uniform(0, 1, (patches, 2))
        self.env = np.sin(3 * self.xy[:, 0]) * np.cos(2 * self.xy[:, 1])
        self.distance = cdist(self.xy, self.xy)

    def kernel(self, scale):
        k = np.exp(-self.distance / scale)
        np.fill_diagonal(k, 0)
        return k / k.sum(axis=1, keepdims=True)

    def drift(self, t):
        return self.env + 0.2 * np.sin(0.05 * t + 6 * self.xy[:, 0])


class Community:
    disturbance = {10, 25, 33}

    def __init__(self, species=40, patches=150, seed=12):
        self.rng = np.random.default_rng(seed)
        self.land = Landscape(patches, self.rng)
        self.N = self.rng.uniform(0, 1, (patches, species))
        self.optimum = np.linspace(-1, 1, species)
        self.breadth = self.rng.uniform(0.2, 0.6, species)
        self.alpha = self.rng.uniform(0.0, 0.6, (species, species))
        np.fill_diagonal(self.alpha, 1.0)
        self.kernels = [self.land.kernel(s) for s in (0.03, 0.1, 0.3)]
        self.guild = self.rng.integers(0, 3, species)
        self.t = 0
        self.history = {"alpha": [], "gamma": [], "evenness": [], "extinct": [], "bray": []}

    def growth(self):
        env = self.land.drift(self.t)
        mismatch = (env[:, None] - self.optimum) / self.breadth
        return 3.0 * np.exp(-0.5 * mismatch**2)

    def compete(self):
        self.N = self.N * self.growth() / (1 + self.N @ self.alpha.T)

    def disperse(self, rate=0.05):
        out = rate * self.N
        arrivals = np.zeros_like(self.N)
        for g, K in enumerate(self.kernels):
            members = self.guild == g
            arrivals[:, members] = K.T @ out[:, members]
        self.N += arrivals - out

    def disturb(self):
        centre = self.rng.integers(len(self.N))
        hit = self.land.distance[centre] < 0.25
        rare = self.N.sum(axis=0) < np.median(self.N.sum(axis=0))
        self.N[np.ix_(hit, rare)] *= 0.1
        self.N[hit] *= 0.5

    def cull(self, threshold=1e-3):
        gone = self.N < threshold
        self.N[gone] = 0.0
        return int(gone.sum())

    def adapt(self, rate=0.01):
        w = self.N / np.maximum(self.N.sum(axis=0), 1e-12)
        experienced = (w * self.land.drift(self.t)[:, None]).sum(axis=0)
        present = self.N.any(axis=0)
        self.optimum[present] += rate * (experienced - self.optimum)[present]

    def diversity(self):
        total = self.N.sum(axis=1, keepdims=True)
        p = np.divide(self.N, total, out=np.zeros_like(self.N), where=total > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            H = -np.nansum(np.where(p > 0, p * np.log(p), 0.0), axis=1)
        richness = np.count_nonzero(self.N, axis=1)
        return H, richness

    def dissimilarity(self):
        return squareform(pdist(self.N[::5], "braycurtis"))

    def step(self):
        self.compete()
        self.disperse()
        if self.t in self.disturbance:
            self.disturb()
        lost = self.cull()
        self.adapt()
        H, richness = self.diversity()
        h = self.history
        h["alpha"].append(np.exp(H).mean())
        h["gamma"].append((self.N > 0).any(axis=0).sum())
        h["evenness"].append((H / np.log(np.maximum(richness, 2))).mean())
        h["extinct"].append(lost)
        if self.t % 4 == 0:
            h["bray"].append(self.dissimilarity().mean())
        self.t += 1


def run(steps):
    c = Community()
    for _ in range(steps):
        c.step()
        if c.t % 20 == 0:
            print("t", c.t, "gamma", c.history["gamma"][-1])
    return {"N": c.N, "optimum": c.optimum, **{k: np.array(v) for k, v in c.history.items()}}
