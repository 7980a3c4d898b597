"""Traffic on a ring road: Nagel and Schreckenberg's cellular automaton with lanes, detectors and jams."""

import warnings
from collections import deque
from enum import Enum

import numpy as np


class Kind(Enum):
    CAR = 5
    TRUCK = 3


class Detector:
    """Counts what passes a cell, with a moving average."""

    def __init__(self, cell, window=20):
        self.cell = cell
        self.recent = deque(maxlen=window)
        self.flow = []

    def __call__(self, before, after, length):
        passed = (before < self.cell) & (after >= self.cell)
        n = int(passed.sum())
        self.recent.append(n)
        self.flow.append(sum(self.recent) / len(self.recent))
        return n


class Lane:
    def __init__(self, cells, density, trucks, rng):
        n = int(cells * density)
        self.cells = cells
        self.x = np.sort(rng.choice(cells, n, replace=False))
        self.v = np.zeros(n, dtype=int)
        self.vmax = np.where(rng.random(n) < trucks, Kind.TRUCK.value, Kind.CAR.value)
        self.rng = rng

    def gaps(self):
        return (np.roll(self.x, -1) - self.x - 1) % self.cells

    def update(self, p=0.25):
        v = np.minimum(self.v + 1, self.vmax)
        v = np.minimum(v, self.gaps())
        slow = self.rng.random(v.size) < p
        v[slow & (v > 0)] -= 1
        self.v = v
        moved = self.x + v
        return moved

    def settle(self, moved):
        self.x = moved % self.cells
        order = np.argsort(self.x, kind="stable")
        self.x, self.v, self.vmax = self.x[order], self.v[order], self.vmax[order]

    def jams(self):
        """Lengths of runs of standing cars."""
        still = (self.v == 0).astype(int)
        edges = np.diff(np.concatenate(([0], still, [0])))
        starts, ends = np.where(edges == 1)[0], np.where(edges == -1)[0]
        return ends - starts


class Road:
    def __init__(self, cells=6000, lanes=3, density=0.15, seed=2):
        rng = np.random.default_rng(seed)
        self.lanes = [Lane(cells, density * (1 + 0.2 * k), 0.1 * k, rng) for k in range(lanes)]
        self.detectors = {c: Detector(c) for c in range(0, cells, cells // 4) if c}
        self.mean_speed = []
        self.longest = 0
        self.warned = 0
        self.density_map = []

    def tick(self):
        for lane in self.lanes:
            before = lane.x
            moved = lane.update()
            for d in self.detectors.values():
                d(before, moved, lane.cells)
            lane.settle(moved)
        speeds = np.concatenate([lane.v for lane in self.lanes])
        self.mean_speed.append(speeds.mean())
        if self.mean_speed[-1] < 0.1:
            self.warned += 1
            warnings.warn("the road stands still", stacklevel=2)

    def survey(self, bins=60):
        cells = self.lanes[0].cells
        counts = np.zeros(bins)
        for lane in self.lanes:
            counts += np.histogram(lane.x, bins=bins, range=(0, cells))[0]
            j = lane.jams()
            if j.size and j.max() > self.longest:
                self.longest = int(j.max())
        self.density_map.append(counts * bins / cells)

    def speeds_by_kind(self):
        out = {}
        for kind in Kind:
            v = np.concatenate([lane.v[lane.vmax == kind.value] for lane in self.lanes])
            out[kind.name] = (v.mean(), np.percentile(v, 90)) if v.size else (0.0, 0.0)
        return out


def run(steps):
    road = Road()
    history = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(steps):
            road.tick()
            if k % 3 == 0:
                road.survey()
                history.append([*road.speeds_by_kind()["CAR"], *road.speeds_by_kind()["TRUCK"]])
    return {
        "x": road.lanes[0].x,
        "v": road.lanes[0].v,
        "speed": np.array(road.mean_speed),
        "flow": np.array([d.flow for d in road.detectors.values()]),
        "map": np.array(road.density_map),
        "longest": np.int64(road.longest),
        "history": np.array(history),
        "warned": np.int64(road.warned),
    }
