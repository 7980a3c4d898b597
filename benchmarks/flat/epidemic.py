"""An epidemic among agents who move: cKDTree contacts, states in an IntEnum, vaccination."""

import enum
import os

import numpy as np
from scipy.spatial import cKDTree

steps = int(os.environ.get("STEPS", "260"))


class State(enum.IntEnum):
    SUSCEPTIBLE = 0
    INFECTED = 1
    RECOVERED = 2
    DEAD = 3


rng = np.random.default_rng(11)
N, L = 6000, 60.0
position = rng.uniform(0, L, (N, 2))
velocity = rng.normal(0, 0.3, (N, 2))
state = np.full(N, State.SUSCEPTIBLE)
state[:30] = State.INFECTED
days = np.zeros(N)


def move(position, velocity):
    velocity = 0.95 * velocity + rng.normal(0, 0.08, velocity.shape)
    position = position + velocity
    low, high = position < 0, position > L
    velocity = np.where(low | high, -velocity, velocity)
    return np.clip(position, 0, L), velocity


def infect(position, state, rate):
    tree = cKDTree(position)
    pairs = tree.query_pairs(1.0, output_type="ndarray")
    a, b = pairs[:, 0], pairs[:, 1]
    exposure = np.zeros(len(state))
    np.add.at(exposure, a, state[b] == State.INFECTED)
    np.add.at(exposure, b, state[a] == State.INFECTED)
    chance = 1 - (1 - rate) ** exposure
    new = (state == State.SUSCEPTIBLE) & (rng.random(len(state)) < chance)
    return np.where(new, State.INFECTED, state)


def recover(state, days):
    days = np.where(state == State.INFECTED, days + 1, days)
    done = (state == State.INFECTED) & (days > 20)
    fate = np.where(rng.random(len(state)) < 0.02, State.DEAD, State.RECOVERED)
    return np.where(done, fate, state), days


for day in range(steps):
    position, velocity = move(position, velocity)
    state = infect(position, state, 0.03)
    state, days = recover(state, days)
    if day % 40 == 0:
        counts = [np.count_nonzero(state == s) for s in State]
        print(day, *counts)
    if day == 60:
        lucky = rng.random(N) < 0.1
        state[lucky & (state == State.SUSCEPTIBLE)] = State.RECOVERED
print(f"{position.sum():.8f} {days.sum():.3f}")
