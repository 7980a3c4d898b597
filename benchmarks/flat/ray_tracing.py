"""A few spheres above a checkered plane, with shadows and mirrors: each ray a row of an array."""

import os

import numpy as np

steps = int(os.environ.get("STEPS", "60"))

FAR = 1e20


def dot(a, b):
    return (a * b).sum(axis=-1)


def unit(a):
    return a / np.sqrt(dot(a, a))[..., None]


class Sphere:
    def __init__(self, centre, radius, colour, mirror):
        self.centre, self.radius = np.array(centre, float), radius
        self.colour, self.mirror = np.array(colour, float), mirror

    def distance(self, origin, direction):
        b = 2 * dot(direction, origin - self.centre)
        k = (
            dot(self.centre, self.centre)
            + dot(origin, origin)
            - 2 * dot(np.broadcast_to(self.centre, origin.shape), origin)
        )
        disc = b**2 - 4 * (k - self.radius**2)
        root = np.sqrt(np.maximum(0, disc))
        near, far = (-b - root) / 2, (-b + root) / 2
        h = np.where((near > 1e-4) & (near < far), near, far)
        return np.where((disc > 0) & (h > 1e-4), h, FAR)

    def shade(self, point):
        return np.broadcast_to(self.colour, point.shape)


class Checkered(Sphere):
    def shade(self, point):
        dark = ((point[:, 0] * 2).astype(int) % 2) == ((point[:, 2] * 2).astype(int) % 2)
        return dark[:, None] * self.colour


def trace(origin, direction, scene, light, eye, depth=0):
    distances = np.stack([each.distance(origin, direction) for each in scene])
    nearest = distances.min(axis=0)
    colour = np.zeros_like(origin)
    for sphere, d in zip(scene, distances):
        hit = (nearest != FAR) & (d == nearest)
        if not hit.any():
            continue
        o, v = origin[hit], direction[hit]
        point = o + v * d[hit][:, None]
        normal = (point - sphere.centre) / sphere.radius
        to_light, to_eye = unit(light - point), unit(eye - point)
        nudged = point + normal * 1e-3
        shadow = np.stack([each.distance(nudged, to_light) for each in scene]).min(axis=0)
        seen = shadow >= 1e19
        part = 0.05 + sphere.shade(point) * np.maximum(dot(normal, to_light), 0)[:, None] * seen[:, None]
        if depth < 2:
            mirrored = unit(v - normal * 2 * dot(v, normal)[:, None])
            part = part + sphere.mirror * trace(nudged, mirrored, scene, light, eye, depth + 1)
        phong = np.clip(dot(normal, unit(to_light + to_eye)), 0, 1)
        part = part + (phong**50)[:, None] * seen[:, None]
        colour[hit] += part
    return colour


w, h = 160, 120
eye, light = np.array([0.0, 0.35, -1.0]), np.array([5.0, 5.0, -10.0])
x, y = np.meshgrid(np.linspace(-1, 1, w), np.linspace(1 / 1.33 + 0.25, -1 / 1.33 + 0.25, h))
screen = np.stack([x.ravel(), y.ravel(), np.zeros(w * h)], axis=1)
frames = []
for n in range(steps):
    angle = 2 * np.pi * n / 60
    scene = [
        Sphere((0.75 * np.cos(angle), 0.1, 1.0 + 0.5 * np.sin(angle)), 0.6, (0, 0, 1), 0.5),
        Sphere((-0.75, 0.1, 2.25), 0.6, (0.5, 0.223, 0.5), 0.5),
        Sphere((-2.75, 0.1, 3.5), 0.6, (1, 0.572, 0.184), 0.5),
        Checkered((0, -99999.5, 0), 99999.0, (0.75, 0.75, 0.75), 0.25),
    ]
    image = trace(np.broadcast_to(eye, screen.shape), unit(screen - eye), scene, light, eye)
    frames.append(image.reshape(h, w, 3))
    print(f"frame {n}: brightness {image.mean():.9f}")
