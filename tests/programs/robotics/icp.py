"""Robot arm control and scan matching: damped least squares on a chain of joints, iterative closest points."""

import math

import numpy as np


def rotation(axis, angle):
    x, y, z = axis
    c, s = math.cos(angle), math.sin(angle)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + s * K + (1 - c) * K @ K


class Arm:
    def __init__(self, lengths):
        self.lengths = lengths
        self.axes = [
            np.array([0.0, 0.0, 1.0]) if i % 2 == 0 else np.array([0.0, 1.0, 0.0]) for i in range(len(lengths))
        ]
        self.q = np.linspace(0.1, 0.5, len(lengths))

    def forward(self, q):
        R, p = np.eye(3), np.zeros(3)
        points, zs = [p], []
        for angle, axis, length in zip(q, self.axes, self.lengths):
            zs.append(R @ axis)
            R = R @ rotation(axis, angle)
            p = p + R @ np.array([length, 0.0, 0.0])
            points.append(p)
        return np.array(points), np.array(zs)

    def solve(self, goal, damping=0.1, tol=1e-4, limit=30):
        for it in range(limit):
            points, zs = self.forward(self.q)
            error = goal - points[-1]
            if np.linalg.norm(error) < tol:
                break
            J = np.cross(zs, points[-1] - points[:-1]).T
            dq = J.T @ np.linalg.solve(J @ J.T + damping**2 * np.eye(3), error)
            self.q = np.clip(self.q + dq, -np.pi, np.pi)
        return it, float(np.linalg.norm(error))


def nearest(a, b):
    d2 = (a**2).sum(1)[:, None] - 2 * a @ b.T + (b**2).sum(1)
    idx = d2.argmin(axis=1)
    return idx, np.sqrt(np.maximum(d2[np.arange(len(a)), idx], 0))


def kabsch(p, q, w):
    w = w / w.sum()
    cp, cq = w @ p, w @ q
    U, S, Vt = np.linalg.svd(((p - cp) * w[:, None]).T @ (q - cq))
    D = np.diag([1.0, 1.0, np.sign(np.linalg.det(Vt.T @ U.T))])
    R = Vt.T @ D @ U.T
    return R, cq - R @ cp


def icp(source, target, limit=15, tol=1e-6):
    moved, previous = source.copy(), np.inf
    R, t = np.eye(3), np.zeros(3)
    for k in range(limit):
        idx, dist = nearest(moved, target)
        cut = np.median(dist) * 2.5
        w = np.where(dist < cut, 1 - (dist / cut) ** 2, 0.0)
        dR, dt = kabsch(moved, target[idx], w)
        moved = moved @ dR.T + dt
        R, t = dR @ R, dR @ t + dt
        error = np.average(dist, weights=w)
        if abs(previous - error) < tol:
            break
        previous = error
    return R, t, k, error


def run(steps):
    rng = np.random.default_rng(8)
    arm = Arm([0.5, 0.4, 0.4, 0.3, 0.2, 0.1])
    scene = np.vstack(
        [rng.uniform(-1, 1, (250, 2)) @ np.array([[1, 0, 0.1], [0, 1, 0.3]]), rng.normal(0, 0.3, (150, 3)) + 0.5]
    )
    iterations, errors, poses = [], [], []
    for k in range(steps):
        phase = 2 * np.pi * k / 40
        goal = np.array([0.8 * np.cos(phase), 0.8 * np.sin(phase), 0.3 + 0.2 * np.sin(3 * phase)])
        its, err = arm.solve(goal)
        R = rotation((0.0, 0.0, 1.0), 0.2 * np.sin(phase))
        seen = scene[rng.random(len(scene)) < 0.8][:300] @ R.T + 0.05 * np.cos(phase) + rng.normal(0, 0.005, (300, 3))
        Re, te, n, e = icp(seen, scene)
        iterations.append((its, n))
        errors.append((err, e))
        poses.append(np.append(Re, te))
    return {"q": arm.q, "its": np.array(iterations), "errors": np.array(errors), "poses": np.array(poses)}
