"""The bundled planet, fitted to observations: `python -m examples.planet`. No line of the planet is changed.

`accel.to_jax` makes a pure function of its time step. 48 of them in a row, with a checkpoint at each, have a gradient,
by a parameter and by an initial field alike. optax descends along it.
"""

from __future__ import annotations

import copy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from jax import lax
from jax import numpy as jnp

import accel

STEPS = 48
STEP_S = 300.0
OBSERVED = {"u": 1.0, "v": 1.0, "h": 10.0, "T_s": 0.1}
"""What is observed after each step, with its error."""

PARAMETER = "model.energy_params.lw_eps0"
FIELD = "model.h"


def build(n_lat: int = 15, n_lon: int = 30) -> tuple[Any, np.ndarray]:
    """A planet that has run for some hours, and the temperature that its air relaxes to, K."""
    import pygcm_patch

    sys.path.insert(0, str(Path(pygcm_patch.__file__).parent / "miniature"))
    from scripts.settings import read_settings
    from scripts.world import build_world

    world = build_world(replace(read_settings(), n_lat=n_lat, n_lon=n_lon))
    world.gcm.isr = world.forcing.calculate_insolation(0.0)
    warmth = world.forcing.calculate_equilibrium_temp(0.0, world.base_albedo)
    for _ in range(STEPS):
        step(world.gcm, warmth)
    return world.gcm, warmth


def step(model: Any, warmth: np.ndarray) -> None:
    """One step of the planet, by its own NumPy code."""
    model.time_step(warmth, STEP_S, albedo=0.3 + 0.0 * warmth)


def pure_step(model: Any, warmth: np.ndarray) -> Any:
    """The step as a function of JAX's. Its examples: filters after 6, 12, 24 steps, or none; all with rain."""

    def at(count: int) -> Any:
        other = copy.copy(model)
        other._step_counter = count
        return other

    first, *others = [(at(count), warmth) for count in (STEPS, 5, 11, 23)]
    return accel.to_jax(step, *first, examples=others)


class Misfit:
    """How far forecasts are from observations, in errors squared, as a function of what they start from.

    observed: by field, the observations after each step, along the first axis.
    """

    def __init__(self, model: Any, warmth: np.ndarray, observed: dict[str, np.ndarray]) -> None:
        self._step = pure_step(model, warmth)
        self._observed = {name: jnp.asarray(values) for name, values in observed.items()}
        self.start = {name: self._step.inputs[name] for name in (PARAMETER, FIELD)}
        self._with_slopes = jax.jit(jax.value_and_grad(self._misfit, has_aux=True))

    def with_slopes(self, start: dict[str, Any], steps: int = STEPS) -> tuple[float, dict[str, np.ndarray]]:
        """The misfit of so many steps, at most 48, and its gradient by the parameter and by the initial field."""
        (value, ok), slopes = self._with_slopes(start, steps)
        if not bool(ok):
            raise RuntimeError("a step takes a branch that no example has taken")
        return float(value), {name: np.asarray(slope) for name, slope in slopes.items()}

    def _misfit(self, start: dict[str, Any], steps: Any) -> tuple[Any, Any]:
        @jax.checkpoint
        def turn(leaves: Any, observed: Any) -> Any:
            output = self._step(leaves)
            leaves = self._step.next(leaves, output)
            misses = [(leaves[f"model.{name}"] - observed[name]) / error for name, error in OBSERVED.items()]
            return leaves, sum(jnp.mean(miss**2) for miss in misses), output["ok"]

        def one(carry: Any, given: Any) -> Any:
            leaves, total, ok = carry
            number, observed = given

            def done() -> Any:
                after, miss, is_known = turn(leaves, observed)
                return after, total + miss / steps, ok & is_known

            return lax.cond(number < steps, done, lambda: (leaves, total, ok)), None

        first = {**self._step.inputs, **start}, 0.0, True
        (_, total, ok), _ = lax.scan(one, first, (jnp.arange(STEPS), self._observed))
        return total, ok


def observe(model: Any, warmth: np.ndarray, steps: int = STEPS) -> dict[str, np.ndarray]:
    """What a planet would show after each step. It is a copy that runs."""
    model = copy.deepcopy(model)
    seen: dict[str, list[np.ndarray]] = {name: [] for name in OBSERVED}
    for _ in range(steps):
        step(model, warmth)
        for name, values in seen.items():
            values.append(getattr(model, name).copy())
    return {name: np.array(values) for name, values in seen.items()}


def descend(misfit: Misfit, name: str, first: Any, rate: float, rounds: int) -> tuple[np.ndarray, list[float]]:
    """Descend from a first guess of the parameter or field; gives the last one, and the misfit of each round."""
    guess = jnp.asarray(first)
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, rounds))
    state = optimiser.init(guess)
    misfits = []
    for _ in range(rounds):
        value, slopes = misfit.with_slopes({**misfit.start, name: guess})
        change, state = optimiser.update(jnp.asarray(slopes[name]), state)
        guess = optax.apply_updates(guess, change)
        misfits.append(value)
    return np.asarray(guess), misfits


def blurred(model: Any, size: float = 60.0) -> np.ndarray:
    """A first guess of the initial thickness, m: some waves off."""
    lat, lon = np.deg2rad(model.grid.lat_mesh), np.deg2rad(model.grid.lon_mesh)
    return model.h + size * np.cos(lat) ** 2 * np.sin(2.0 * lon) * np.cos(3.0 * lat)


def fit(misfit: Misfit, model: Any, rounds: int = 40) -> str:
    """Fit the parameter, from a guess that is 10 % off."""
    truth = model.energy_params.lw_eps0
    found, misfits = descend(misfit, PARAMETER, 0.9 * truth, 0.02, rounds)
    return (
        f"parameter {0.9 * truth:.4f} -> {found:.4f}, truth {truth:.4f}; misfit {misfits[0]:.2g} -> {misfits[-1]:.2g}"
    )


def recover(misfit: Misfit, model: Any, rounds: int = 40) -> str:
    """Recover the initial field from what was observed after it, as 4D-Var does."""
    first = blurred(model)
    found, misfits = descend(misfit, FIELD, first, 10.0, rounds)
    before, after = (np.sqrt(np.mean((field - model.h) ** 2)) for field in (first, found))
    return f"field off by {before:.1f} m -> {after:.1f} m; misfit {misfits[0]:.2g} -> {misfits[-1]:.2g}"


def main() -> None:
    with jax.enable_x64(True):
        model, warmth = build()
        misfit = Misfit(model, warmth, observe(model, warmth))
        print(fit(misfit, model))
        print(recover(misfit, model))


if __name__ == "__main__":
    main()
