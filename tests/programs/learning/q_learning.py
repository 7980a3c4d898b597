"""Q-learning in a windy grid world with many walkers at once, and value iteration until it settles."""

from collections import deque

import numpy as np

MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])


class World:
    def __init__(self, n=60, seed=6):
        rng = np.random.default_rng(seed)
        self.n = n
        self.wall = rng.random((n, n)) < 0.2
        self.goal = (n - 2, n - 2)
        self.wall[self.goal] = False
        self.wind = rng.integers(-1, 2, n) * (rng.random(n) < 0.3)

    def move(self, state, action):
        new = state + MOVES[action]
        new[:, 0] += self.wind[state[:, 1]]
        new = np.clip(new, 0, self.n - 1)
        blocked = self.wall[new[:, 0], new[:, 1]]
        new[blocked] = state[blocked]
        done = (new[:, 0] == self.goal[0]) & (new[:, 1] == self.goal[1])
        reward = np.where(done, 10.0, np.where(blocked, -1.0, -0.05))
        return new, reward, done


class Learner:
    def __init__(self, world, walkers=2000, seed=1):
        self.world, self.rng = world, np.random.default_rng(seed)
        self.Q = np.zeros((world.n, world.n, 4))
        self.state = self.rng.integers(0, world.n, (walkers, 2))
        self.recent = deque(maxlen=20)
        self.eps = 0.5

    def choose(self):
        greedy = self.Q[self.state[:, 0], self.state[:, 1]].argmax(axis=1)
        explore = self.rng.random(len(greedy)) < self.eps
        random = self.rng.integers(0, 4, len(greedy))
        return np.where(explore, random, greedy)

    def step(self, rate=0.2, discount=0.97):
        s, a = self.state, self.choose()
        new, reward, done = self.world.move(s, a)
        best = self.Q[new[:, 0], new[:, 1]].max(axis=1)
        target = reward + discount * np.where(done, 0.0, best)
        error = target - self.Q[s[:, 0], s[:, 1], a]
        np.add.at(self.Q, (s[:, 0], s[:, 1], a), rate * error / 4)
        new[done] = 0
        self.state = new
        self.eps = max(0.05, self.eps * 0.999)
        self.recent.append(reward.mean())


def value_iteration(world, discount=0.95, tol=1e-6):
    V = np.zeros((world.n, world.n))
    cost = np.where(world.wall, -1.0, -0.05)
    change = np.inf
    while change > tol:
        options = np.stack([np.roll(V, (-dy, -dx), (0, 1)) for dy, dx in MOVES])
        new = cost + discount * options.max(axis=0)
        new[world.goal] = 10.0
        change = np.abs(new - V).max()
        V = new
    return V


def run(steps):
    world = World()
    learner = Learner(world)
    for _ in range(steps):
        learner.step()
    return {"Q": learner.Q, "state": learner.state, "recent": np.array(learner.recent), "V": value_iteration(world)}
