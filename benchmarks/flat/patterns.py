"""Gray-Scott patterns with a main function, snapshots and a parameter that drifts."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "6000"))


def laplacian(a):
    return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a


def main(n=150, seed=1):
    rng = np.random.default_rng(seed)
    u, v = np.ones((n, n)), np.zeros((n, n))
    u[60:90, 60:90], v[60:90, 60:90] = 0.5, 0.25
    u += 0.02 * rng.random((n, n))
    v += 0.02 * rng.random((n, n))
    feed, kill, snapshots = 0.035, 0.060, []
    for step in range(steps):
        reaction = u * v * v
        u = u + 0.16 * laplacian(u) - reaction + feed * (1 - u)
        v = v + 0.08 * laplacian(v) + reaction - (feed + kill) * v
        kill += 1e-7
        if step % 600 == 0:
            snapshots.append(v.copy())
            print(f"{step:6d} mean {v.mean():.10f} spread {v.std():.10f} cells {np.count_nonzero(v > 0.2)}")
    change = [np.abs(b - a).mean() for a, b in zip(snapshots, snapshots[1:])]
    print(" ".join(f"{c:.9f}" for c in change))


if __name__ == "__main__":
    main()
