"""Plankton in a patchy sea: species compete for a nutrient, disperse, and go extinct where they are rare."""

import csv
import io
import os
from collections import namedtuple

import numpy as np

steps = int(os.environ.get("STEPS", "4000"))

Species = namedtuple("Species", "name growth half mortality diffusion")
SPECIES = [
    Species("diatoms", 1.4, 0.6, 0.10, 0.08),
    Species("dinoflagellates", 0.9, 0.25, 0.06, 0.10),
    Species("cyanobacteria", 0.7, 0.10, 0.05, 0.05),
]


def laplace(a):
    padded = np.pad(a, 1, mode="edge")
    return padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] - 4 * a


class Sea:
    def __init__(self, shape, seed):
        self.rng = np.random.default_rng(seed)
        self.nutrient = np.full(shape, 1.0)
        self.density = {each.name: 0.05 * self.rng.random(shape) for each in SPECIES}
        self.grazers = np.full(shape, 0.02)
        self.day = 0.0

    def season(self):
        return 1 + 0.5 * np.sin(2 * np.pi * self.day / 365)

    def step(self, dt):
        uptake = np.zeros_like(self.nutrient)
        light = self.season()
        for each in SPECIES:
            p = self.density[each.name]
            growth = each.growth * light * self.nutrient / (self.nutrient + each.half) * p
            grazed = 0.6 * self.grazers * p**2 / (0.1 + p**2)
            p = p + dt * (growth - each.mortality * p - grazed + each.diffusion * laplace(p))
            p[p < 1e-6] = 0.0
            self.density[each.name] = p
            self.grazers = self.grazers + dt * 0.3 * grazed
            uptake += growth
        self.grazers = self.grazers * (1 - 0.08 * dt)
        inflow = 0.05 * (1.2 - self.nutrient)
        self.nutrient = np.maximum(self.nutrient + dt * (inflow - uptake + 0.2 * laplace(self.nutrient)), 0)
        if self.day % 100 < dt:  # a storm mixes
            mixed = 0.5 * (self.nutrient + self.rng.permutation(self.nutrient.ravel()).reshape(self.nutrient.shape))
            self.nutrient = mixed
        self.day += dt

    def diversity(self):
        total = sum(self.density.values())
        shares = [p / np.maximum(total, 1e-12) for p in self.density.values()]
        return -sum((s * np.log(np.maximum(s, 1e-12))).mean() for s in shares)


sea = Sea((110, 110), 11)
table = io.StringIO()
writer = csv.writer(table)
writer.writerow(["day", "diversity", *(each.name for each in SPECIES)])
while sea.day < 0.25 * steps:
    sea.step(0.25)
    if int(sea.day * 4) % 100 == 0:
        writer.writerow(
            [f"{sea.day:.2f}", f"{sea.diversity():.8f}", *(f"{p.mean():.8f}" for p in sea.density.values())]
        )
print(table.getvalue())
