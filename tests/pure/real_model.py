"""Derivatives of a real model's time step, in a process of its own: `python -m tests.pure.real_model CHECKOUT`.

It prints one line of JSON: for 1, 10 and 48 steps the directional derivative and central differences with four
distances; or why the step has no pure form.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

import accel
from benchmarks import worlds

STATE = ("u", "v", "h", "T_s", "q")
N_LAT, N_LON = 13, 24
DISTANCES = (1e-4, 1e-5, 1e-6, 1e-7)


def step(model: Any, warmth: Any, albedo: Any) -> None:
    model.time_step(warmth, worlds.STEP_S, albedo=albedo)


def main() -> dict[str, Any]:
    world = worlds.build(Path(sys.argv[1]), N_LAT, N_LON)
    model, albedo = world.atmosphere, np.asarray(world.albedo, float)
    model.isr = world.forcing.calculate_insolation(0.0)
    warmth = np.asarray(world.forcing.calculate_equilibrium_temp(0.0, albedo), float)
    rng = np.random.default_rng(0)
    for _ in range(2):
        step(model, warmth, albedo)
    names = [name for name in STATE if isinstance(getattr(model, name, None), np.ndarray)]
    along = {name: 1e-2 * np.abs(getattr(model, name)).max() * worlds.smooth(rng, (N_LAT, N_LON)) for name in names}
    for each in along.values():
        each[[0, -1]] = 0.0  # the models jump there: what flows back over a pole is another meridian's
    weights = {name: rng.normal(size=(N_LAT, N_LON)) / np.abs(getattr(model, name)).max() for name in names}
    try:
        return {"found": [derivatives(model, warmth, albedo, along, weights, steps) for steps in (1, 10, 48)]}
    except accel.Refused as why:
        return {"refused": str(why)}


def derivatives(model: Any, warmth: Any, albedo: Any, along: Any, weights: Any, steps: int) -> dict[str, Any]:
    def total(by: float) -> float:
        other = moved(model, along, by)
        for _ in range(steps):
            step(other, warmth, albedo)
        return float(sum((getattr(other, name) * each).sum() for name, each in weights.items()))

    examples, other = [], copy.deepcopy(model)
    for _ in range(steps):
        examples.append((copy.deepcopy(other), warmth, albedo))
        step(other, warmth, albedo)
    pure = accel.to_jax(step, *examples[0], examples=examples[1:])

    def of(by: Any) -> Any:
        leaves = {**pure.inputs, **{f"model.{name}": getattr(model, name) + by * each for name, each in along.items()}}

        @jax.checkpoint
        def turn(leaves: Any, _: Any) -> Any:
            output = pure(leaves)
            return pure.next(leaves, output), output["ok"]

        leaves, ok = jax.lax.scan(turn, leaves, None, length=steps)
        return sum((leaves[f"model.{name}"] * each).sum() for name, each in weights.items()), ok.all()

    slope, ok = jax.jit(jax.grad(of, has_aux=True))(0.0)
    differences = [(total(by) - total(-by)) / (2 * by) for by in DISTANCES]
    return {"steps": steps, "slope": float(slope), "differences": differences, "ok": bool(ok)}


def moved(model: Any, along: Any, by: float) -> Any:
    other = copy.deepcopy(model)
    for name, each in along.items():
        setattr(other, name, getattr(other, name) + by * each)
    return other


if __name__ == "__main__":
    with jax.enable_x64(True), np.errstate(all="ignore"):
        print(json.dumps(main()))
