"""Traffic on a ring road: intelligent drivers, lane changes, detectors and jams."""

import numpy as np


class Road:
    def __init__(self, cars=240, length=6000.0, lanes=2, seed=4):
        rng = np.random.default_rng(seed)
        self.length, self.lanes, self.rng = length, lanes, rng
        self.x = np.sort(rng.uniform(0, length, cars))
        self.lane = np.arange(cars) % lanes
        self.v = np.full(cars, 20.0)
        self.wish = rng.normal(30.0, 3.0, cars)
        self.counts = np.zeros((lanes, 30), dtype=int)
        self.time = 0.0

    def leaders(self, lane):
        """The gap to the car ahead in a lane for each car, and its speed."""
        gap = (self.x[None, :] - self.x[:, None]) % self.length
        np.fill_diagonal(gap, self.length)
        other = lane[None, :] != lane[:, None] if lane.ndim == 1 else lane
        gap = np.where(other, self.length, gap)
        ahead = np.argmin(gap, axis=1)
        return np.maximum(gap[np.arange(len(gap)), ahead] - 4.5, 0.5), self.v[ahead]

    def acceleration(self, gap, ahead):
        """The intelligent driver model."""
        a, b, headway, s0 = 1.2, 2.0, 1.4, 2.0
        closing = self.v - ahead
        wanted = s0 + np.maximum(0.0, self.v * headway + self.v * closing / (2 * np.sqrt(a * b)))
        return a * (1 - (self.v / self.wish) ** 4 - (wanted / gap) ** 2)

    def change_lanes(self):
        now_gap, now_ahead = self.leaders(self.lane)
        target = 1 - self.lane
        both = target[:, None] != self.lane[None, :]
        new_gap, new_ahead = self.leaders(both)
        behind = (self.x[:, None] - self.x[None, :]) % self.length
        behind = np.where(both, self.length, behind)
        np.fill_diagonal(behind, self.length)
        room = behind.min(axis=1)
        gain = self.acceleration(new_gap, new_ahead) - self.acceleration(now_gap, now_ahead)
        moves = (gain > 0.3) & (room > 15.0) & (new_gap > 10.0) & (self.rng.random(len(self.x)) < 0.1)
        self.lane[moves] = target[moves]
        return moves.sum()

    def drive(self, dt=0.5):
        gap, ahead = self.leaders(self.lane)
        acc = self.acceleration(gap, ahead)
        acc += 0.1 * self.rng.standard_normal(len(acc))
        new_v = np.clip(self.v + acc * dt, 0.0, None)
        moved = 0.5 * (self.v + new_v) * dt
        before = self.x
        self.x = (self.x + moved) % self.length
        self.v = new_v
        self.time += dt
        return before + moved >= self.length

    def detect(self):
        """Cars by lane and cell."""
        cell = np.minimum((self.x / self.length * 30).astype(int), 29)
        self.counts[:] = 0
        np.add.at(self.counts, (self.lane, cell), 1)
        density = self.counts.sum(axis=0)
        speed = np.bincount(cell, weights=self.v, minlength=30) / np.maximum(density, 1)
        return density, speed

    def jams(self, speed, limit=8.0):
        slow = speed < limit
        starts = slow & ~np.roll(slow, 1)
        return int(starts.sum()), slow.mean()


def run(steps):
    road = Road()
    table, laps = [], 0
    for _ in range(steps):
        changed = road.change_lanes()
        laps += road.drive().sum()
        density, speed = road.detect()
        number, share = road.jams(speed)
        table.append((changed, number, share, speed.mean(), density.max()))
    return {"table": np.array(table, dtype=float), "x": road.x, "lane": road.lane, "laps": laps}
