"""Cellular automata: Life with ages on a torus, a forest fire, and a sandpile that topples until it rests."""

import numpy as np
from scipy.signal import convolve2d

KERNEL = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])


def life(cells, age):
    n = sum(np.roll(np.roll(cells, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    alive = (n == 3) | (cells.astype(bool) & (n == 2))
    age = np.where(alive, age + 1, 0)
    return alive.astype(np.uint8), age


class Forest:
    EMPTY, TREE, FIRE = 0, 1, 2

    def __init__(self, n=200, seed=50):
        self.rng = np.random.default_rng(seed)
        self.cells = (self.rng.random((n, n)) < 0.6).astype(int)
        self.burnt = 0

    def step(self, grow=0.01, strike=2e-5):
        c = self.cells
        burning = c == self.FIRE
        near = convolve2d(burning, KERNEL, mode="same", boundary="wrap") > 0
        r = self.rng.random(c.shape)
        new = c.copy()
        new[burning] = self.EMPTY
        new[(c == self.TREE) & (near | (r < strike))] = self.FIRE
        new[(c == self.EMPTY) & (r < grow)] = self.TREE
        self.burnt += int(burning.sum())
        self.cells = new


def topple(pile):
    """Returns the pile at rest, and how many rounds that took."""
    rounds = 0
    while (pile >= 4).any():
        over = pile // 4
        pile = pile - 4 * over
        pile[1:] += over[:-1]
        pile[:-1] += over[1:]
        pile[:, 1:] += over[:, :-1]
        pile[:, :-1] += over[:, 1:]
        rounds += 1
    return pile, rounds


def run(steps):
    rng = np.random.default_rng(51)
    cells, age = (rng.random((256, 256)) < 0.3).astype(np.uint8), np.zeros((256, 256), int)
    forest = Forest()
    pile = rng.integers(0, 4, (100, 100))
    rounds = []
    for k in range(steps):
        cells, age = life(cells, age)
        forest.step()
        pile[50, 50] += 40
        pile, n = topple(pile)
        rounds.append(n)
    return {"cells": cells, "age": age, "forest": forest.cells, "pile": pile, "rounds": np.array(rounds)}
