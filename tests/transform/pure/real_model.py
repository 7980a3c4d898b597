"""Derivatives of a planet's steps, in their own process: `python -m tests.transform.pure.real_model CHECKOUT
[NAME...]`.

CHECKOUT may be `miniature`. It prints one line of JSON: for each step of `STEPS`, for each of `COUNTS` steps, the
directional derivative and central differences with some distances; or why the step has no pure form.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import accel
from benchmarks import worlds
from benchmarks.harness import MINIATURE

N_LAT, N_LON = 13, 24
DISTANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
COUNTS = (1, 10, 48)
PLACES = np.array(COUNTS) - 1
SHARE = 1e-2
"""How far a field is moved at a distance of 1, as a share of its largest value."""


class Step(NamedTuple):
    """One step of a model's.

    model: which of a world's objects makes it. call: makes it. given: what it is given besides the model. state: the
    fields that it is differentiated by, and whose sum with random weights is differentiated.
    """

    model: str
    call: Callable[..., object]
    given: Callable[[Any], tuple[Any, ...]]
    state: tuple[str, ...]


def _time_step(model: Any, warmth: Any, albedo: Any) -> None:
    model.time_step(warmth, worlds.STEP_S, albedo=albedo)


def _forced(world: Any) -> tuple[Any, ...]:
    albedo = np.asarray(world.albedo, float)
    world.atmosphere.isr = world.forcing.calculate_insolation(0.0)
    return np.asarray(world.forcing.calculate_equilibrium_temp(0.0, albedo), float), albedo


def _ocean_step(model: Any, u: Any, v: Any, heat: Any, ice: Any) -> None:
    model.step(worlds.STEP_S, u, v, Q_net=heat, ice_mask=ice)


def _driven(world: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    u, v, heat = (scale * worlds.smooth(rng, (N_LAT, N_LON)) for scale in (8.0, 8.0, 100.0))
    return u, v, heat, np.asarray(world.atmosphere.h_ice > 0.0)


STEPS = {
    "time_step": Step("atmosphere", _time_step, _forced, ("u", "v", "h", "T_s", "q")),
    "ocean.step": Step("ocean", _ocean_step, _driven, ("uo", "vo", "eta", "Ts")),
}


def main(program: Path, names: list[str]) -> dict[str, Any]:
    world = worlds.build(program, N_LAT, N_LON)
    return {name: _found(STEPS[name], world) for name in names or STEPS}


def _found(step: Step, world: Any) -> Any:
    model, given = getattr(world, step.model), step.given(world)
    rng = np.random.default_rng(0)
    for _ in range(2):
        step.call(model, *given)
    names = [name for name in step.state if isinstance(getattr(model, name, None), np.ndarray)]
    along = {name: SHARE * _size(model, name) * worlds.smooth(rng, (N_LAT, N_LON)) for name in names}
    for each in along.values():
        each[[0, -1]] = 0.0  # the models jump there: what flows back over a pole is another meridian's
    weights = {name: rng.normal(size=(N_LAT, N_LON)) / _size(model, name) for name in names}
    try:
        return derivatives(step, model, given, along, weights)
    except accel.Refused as why:
        return str(why)


def _size(model: Any, name: str) -> float:
    return float(np.abs(getattr(model, name)).max()) or 1.0


def derivatives(step: Step, model: Any, given: Any, along: Any, weights: Any) -> list[dict[str, Any]]:
    """By one program that makes all steps: compiling takes most of the time."""

    def totals(by: float) -> Any:
        other, found = moved(model, along, by), []
        for _ in range(COUNTS[-1]):
            step.call(other, *given)
            found.append(sum((getattr(other, name) * each).sum() for name, each in weights.items()))
        return np.array(found)[PLACES]

    examples, other = [], copy.deepcopy(model)
    for _ in range(COUNTS[-1]):
        examples.append((copy.deepcopy(other), *given))
        step.call(other, *given)
    pure = accel.to_jax(step.call, *examples[0], examples=examples[1:])

    def of(by: Any) -> Any:
        leaves = {**pure.inputs, **{f"model.{name}": getattr(model, name) + by * each for name, each in along.items()}}

        @jax.checkpoint
        def turn(leaves: Any, _: Any) -> Any:
            output = pure(leaves)
            leaves = pure.next(leaves, output)
            return leaves, (sum((leaves[f"model.{name}"] * each).sum() for name, each in weights.items()), output["ok"])

        _, (found, ok) = jax.lax.scan(turn, leaves, None, length=COUNTS[-1])
        return found[PLACES], ok

    slopes, ok = jax.jit(jax.jacrev(of, has_aux=True))(0.0)
    differences = np.array([(totals(by) - totals(-by)) / (2 * by) for by in DISTANCES])
    return [
        {"steps": count, "slope": float(slope), "differences": each.tolist(), "ok": bool(ok[:count].all())}
        for count, slope, each in zip(COUNTS, slopes, differences.T, strict=True)
    ]


def moved(model: Any, along: Any, by: float) -> Any:
    other = copy.deepcopy(model)
    for name, each in along.items():
        setattr(other, name, getattr(other, name) + by * each)
    return other


if __name__ == "__main__":
    with jax.enable_x64(True), np.errstate(all="ignore"):
        of, *chosen = sys.argv[1:]
        print(json.dumps(main(MINIATURE if of == "miniature" else Path(of), chosen)))
