"""Functions that never take the same path twice: dynamic programming and chance, decided value by value in Python.

Every index and branch follows from the data, and the data are new at each step. A recording of one call fits no other;
the best that can be done is to notice that soon.
"""

from __future__ import annotations

import numpy as np

from benchmarks.programs.decorating import accelerate

STATES, SYMBOLS, LENGTH = 6, 5, 24
STEPS = 10**7
"""More than anyone runs: who starts the program ends it."""


@accelerate
def viterbi(seen, log_start, log_move, log_emit):
    """The likeliest sequence of states. seen: symbols. log_start (S,), log_move (S, S), log_emit (S, symbols)."""
    best = log_start + log_emit[:, seen[0]]
    came_from = np.zeros((len(seen), len(best)), dtype=int)
    for t in range(1, len(seen)):
        following = np.empty_like(best)
        for state in range(len(best)):
            scores = best + log_move[:, state]
            origin = int(np.argmax(scores))
            came_from[t, state] = origin
            following[state] = scores[origin] + log_emit[state, seen[t]]
        best = following
    path = [int(np.argmax(best))]
    for t in range(len(seen) - 1, 0, -1):
        path.append(int(came_from[t, path[-1]]))
    return path[::-1], float(best.max())


@accelerate
def forward(seen, start, move, emit):
    """The log likelihood of `seen`, following only states that are likely enough."""
    share = start * emit[:, seen[0]]
    log_likelihood = 0.0
    for symbol in seen[1:]:
        total = float(share.sum())
        log_likelihood += np.log(total)
        share = share / total
        following = np.zeros_like(share)
        for state in range(len(share)):
            if share[state] > 0.08:
                following += share[state] * move[state]
        share = following * emit[:, symbol]
    return log_likelihood + np.log(float(share.sum()))


@accelerate
def align(first, second):
    """The best score of an alignment of two sequences of symbols, cell by cell."""
    score = np.zeros((len(first) + 1, len(second) + 1))
    score[0, :] = -np.arange(len(second) + 1)
    score[:, 0] = -np.arange(len(first) + 1)
    for i in range(1, len(first) + 1):
        for j in range(1, len(second) + 1):
            same = score[i - 1, j - 1] + (1.0 if first[i - 1] == second[j - 1] else -1.0)
            if same >= score[i - 1, j] - 1.0 and same >= score[i, j - 1] - 1.0:
                score[i, j] = same
            else:
                score[i, j] = max(score[i - 1, j], score[i, j - 1]) - 1.0
    return float(score[-1, -1])


@accelerate
def metropolis(position, jumps, chances):
    """A random walk among wells that takes a jump (K, 2) or, by its chance (K,), stays. position: (2,)."""
    visited = [position]
    energy = float(np.sum(np.cos(3.0 * position) + 0.1 * position**2))
    for jump, chance in zip(jumps, chances, strict=True):
        there = position + jump
        energy_there = float(np.sum(np.cos(3.0 * there) + 0.1 * there**2))
        if energy_there < energy or chance < np.exp(energy - energy_there):
            position, energy = there, energy_there
            visited.append(position)
    return np.mean(visited, axis=0), len(visited)


def step(rng: np.random.Generator) -> float:
    """One of each on new data, and a number that depends on all results."""
    start, move = rng.random(STATES) + 0.1, rng.random((STATES, STATES)) + 0.1
    emit = rng.random((STATES, SYMBOLS)) + 0.1
    start, move, emit = start / start.sum(), move / move.sum(1)[:, None], emit / emit.sum(1)[:, None]
    seen = [int(symbol) for symbol in rng.integers(SYMBOLS, size=LENGTH)]
    path, score = viterbi(seen, np.log(start), np.log(move), np.log(emit))
    likelihood = forward(seen, start, move, emit)
    aligned = align(seen[:12], seen[12:])
    centre, stays = metropolis(rng.random(2), rng.normal(size=(40, 2)), rng.random(40))
    return float(sum(path) + score + likelihood + aligned + centre.sum() + stays)


def main() -> float:
    """Step after step until the bar ends; their sum."""
    from tqdm import tqdm

    rng = np.random.default_rng(1)
    return sum(step(rng) for _ in tqdm(range(STEPS)))


if __name__ == "__main__":
    total = main()
