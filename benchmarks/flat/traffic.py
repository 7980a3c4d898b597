"""Nagel-Schreckenberg traffic on a ring of several lanes, and a kinematic wave beside it."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "4000"))

rng = np.random.default_rng(8)
LENGTH, CARS, TOP, DAWDLE = 60_000, 14_000, 5, 0.25
position = np.sort(rng.choice(LENGTH, CARS, replace=False))
speed = rng.integers(0, TOP + 1, CARS)
density = 0.3 + 0.2 * np.sin(np.linspace(0, 2 * np.pi, 4000, endpoint=False))


def drive(position, speed, hurry):
    gap = (np.roll(position, -1) - position - 1) % LENGTH
    speed = np.minimum(speed + 1, TOP)
    speed = np.minimum(speed, gap)
    slow = rng.random(CARS) < DAWDLE * (1 - hurry)
    speed = np.where(slow, np.maximum(speed - 1, 0), speed)
    return (position + speed) % LENGTH, speed


def flux(k):
    return k * (1 - k)


def wave(k, dt):
    demand = np.where(k < 0.5, flux(k), 0.25)
    supply = np.where(k > 0.5, flux(k), 0.25)
    flow = np.minimum(demand, np.roll(supply, -1))
    return k - dt * (flow - np.roll(flow, 1)), flow


flows = []
for step in range(steps):
    hurry = 0.5 if 1000 <= step % 2000 else 0.0
    position, speed = drive(position, speed, hurry)
    density, flow = wave(density, 0.8)
    flows.append(speed.sum() / LENGTH)
    if step % 500 == 0:
        jammed = np.count_nonzero(speed == 0)
        print(f"{step:5d} flow {np.mean(flows[-500:]):.9f} jammed {jammed} wave {flow.mean():.9f} {density.std():.9f}")
