"""Extended Kalman filter and RTS smoother for many radar tracks, one after the other."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "36"))

rng = np.random.default_rng(3)
dt = 0.5
F = np.kron(np.array([[1, dt], [0, 1]]), np.eye(2))
Q = 0.05 * np.kron(np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]]), np.eye(2))
R = np.diag([0.5**2, np.deg2rad(0.6) ** 2])


def measure(x):
    r = np.hypot(x[0], x[1])
    return np.array([r, np.arctan2(x[1], x[0])])


def jacobian(x):
    r2 = x[0] ** 2 + x[1] ** 2
    r = np.sqrt(r2)
    return np.array([[x[0] / r, x[1] / r, 0, 0], [-x[1] / r2, x[0] / r2, 0, 0]])


def simulate(steps):
    x = np.array([20.0, 10.0, 0.4, 0.7])
    chol = np.linalg.cholesky(Q + 1e-12 * np.eye(4))
    truth, seen = [], []
    for _ in range(steps):
        x = F @ x + chol @ rng.normal(size=4)
        truth.append(x)
        seen.append(measure(x) + np.sqrt(np.diag(R)) * rng.normal(size=2))
    return np.array(truth), np.array(seen)


def filter_track(seen):
    x = np.array([seen[0, 0] * np.cos(seen[0, 1]), seen[0, 0] * np.sin(seen[0, 1]), 0.0, 0.0])
    P = np.diag([1.0, 1.0, 4.0, 4.0])
    xs, Ps, xp, Pp, likelihood = [], [], [], [], 0.0
    for z in seen:
        x = F @ x
        P = F @ P @ F.T + Q
        xp.append(x), Pp.append(P)
        H = jacobian(x)
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        nu = z - measure(x)
        nu[1] = (nu[1] + np.pi) % (2 * np.pi) - np.pi
        x = x + K @ nu
        P = (np.eye(4) - K @ H) @ P
        P = 0.5 * (P + P.T)
        likelihood -= 0.5 * (nu @ np.linalg.solve(S, nu) + np.log(np.linalg.det(S)))
        xs.append(x), Ps.append(P)
    return np.array(xs), np.array(Ps), np.array(xp), np.array(Pp), likelihood


def smooth(xs, Ps, xp, Pp):
    out = xs.copy()
    for k in range(len(xs) - 2, -1, -1):
        C = Ps[k] @ F.T @ np.linalg.inv(Pp[k + 1])
        out[k] = xs[k] + C @ (out[k + 1] - xp[k + 1])
    return out


total = 0.0
for track in range(steps):
    truth, seen = simulate(400)
    xs, Ps, xp, Pp, ll = filter_track(seen)
    sm = smooth(xs, Ps, xp, Pp)
    ef = np.sqrt(np.mean((xs[:, :2] - truth[:, :2]) ** 2))
    es = np.sqrt(np.mean((sm[:, :2] - truth[:, :2]) ** 2))
    total += es
    if track % 6 == 0:
        print(f"track {track:3d} filter {ef:.8f} smoother {es:.8f} log-likelihood {ll:.6f}")
print(f"{total:.9f}")
