"""Ensemble Kalman filter on Lorenz 96, with localisation and inflation."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "9000"))

n, members, every = 40, 60, 5
rng = np.random.default_rng(0)


def tendency(x):
    return (np.roll(x, -1, axis=-1) - np.roll(x, 2, axis=-1)) * np.roll(x, 1, axis=-1) - x + 8.0


def rk4(x, dt=0.01):
    k1 = tendency(x)
    k2 = tendency(x + 0.5 * dt * k1)
    k3 = tendency(x + 0.5 * dt * k2)
    k4 = tendency(x + dt * k3)
    return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def gaspari_cohn(d, c):
    r = np.abs(d) / c
    out = np.zeros_like(r)
    a = r <= 1
    b = (r > 1) & (r <= 2)
    out[a] = -(r[a] ** 5) / 4 + r[a] ** 4 / 2 + 5 * r[a] ** 3 / 8 - 5 * r[a] ** 2 / 3 + 1
    out[b] = r[b] ** 5 / 12 - r[b] ** 4 / 2 + 5 * r[b] ** 3 / 8 + 5 * r[b] ** 2 / 3 - 5 * r[b] + 4 - 2 / (3 * r[b])
    return out


i = np.arange(n)
separation = np.abs(i[:, None] - i[None, :])
localisation = gaspari_cohn(np.minimum(separation, n - separation), 4.0)
H = np.eye(n)[::2]
R = 0.5 * np.eye(len(H))


def analyse(ensemble, y):
    mean = ensemble.mean(axis=0)
    anomalies = (ensemble - mean) * 1.04
    B = localisation * (anomalies.T @ anomalies) / (members - 1)
    gain = B @ H.T @ np.linalg.inv(H @ B @ H.T + R)
    ensemble = mean + anomalies
    perturbed = y + rng.multivariate_normal(np.zeros(len(y)), R, size=members)
    return ensemble + (perturbed - ensemble @ H.T) @ gain.T


truth = 8.0 + rng.normal(size=n)
ensemble = 8.0 + rng.normal(size=(members, n))
errors, spreads = [], []
for t in range(steps):
    truth = rk4(truth)
    ensemble = rk4(ensemble)
    if t % every == 0:
        y = H @ truth + rng.normal(0, np.sqrt(0.5), len(H))
        ensemble = analyse(ensemble, y)
        errors.append(np.sqrt(np.mean((ensemble.mean(axis=0) - truth) ** 2)))
        spreads.append(np.sqrt(ensemble.var(axis=0).mean()))
    if t % 1500 == 0:
        print(f"{t:5d} error {errors[-1]:.4f} spread {spreads[-1]:.4f}")
print(f"{len(errors)} analyses")
