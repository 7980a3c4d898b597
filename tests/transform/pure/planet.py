"""The example that fits the planet, in a process of its own: `python -m tests.transform.pure.planet`. One line of JSON.

It compares derivatives of 1, 10 and 48 steps with central differences of the planet's own NumPy code, and then fits.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import jax
import numpy as np

from examples import planet


def misfit_of(model: Any, warmth: Any, observed: dict[str, Any], steps: int) -> float:
    """`planet.Misfit` by NumPy."""
    seen = planet.observe(model, warmth, steps)
    misses = [(seen[name] - observed[name][:steps]) / error for name, error in planet.OBSERVED.items()]
    return float(sum(np.mean(miss**2) for miss in misses))


def moved(model: Any, weight: float, field: Any, by: float) -> Any:
    other = copy.deepcopy(model)
    other.energy_params.lw_eps0 += weight * by
    other.h = other.h + by * field
    return other


def main() -> dict[str, Any]:
    model, warmth = planet.build()
    observed = planet.observe(model, warmth)
    misfit = planet.Misfit(model, warmth, observed)
    off = copy.deepcopy(model)
    off.h, off.energy_params.lw_eps0 = planet.blurred(model), 0.9 * model.energy_params.lw_eps0
    start = {planet.FIELD: off.h, planet.PARAMETER: off.energy_params.lw_eps0}
    field = np.random.default_rng(0).normal(size=off.h.shape)
    found: dict[str, Any] = {"slopes": []}
    for steps in (1, 10, 48):
        value, slopes = misfit.with_slopes(start, steps)
        for weight, along, by in ((1.0, 0.0 * field, 1e-4), (0.0, field, 1e-2)):
            slope = float(weight * slopes[planet.PARAMETER] + (along * slopes[planet.FIELD]).sum())
            ends = [misfit_of(moved(off, weight, along, each), warmth, observed, steps) for each in (by, -by)]
            found["slopes"].append([steps, slope, (ends[0] - ends[1]) / (2 * by)])
        found.setdefault("values", []).append([value, misfit_of(off, warmth, observed, steps)])
    truth = model.energy_params.lw_eps0
    fitted, misfits = planet.descend(misfit, planet.PARAMETER, 0.9 * truth, 0.02, 25)
    found["fit"] = [float(fitted), truth, misfits[0], misfits[-1]]
    first = planet.blurred(model)
    field, misfits = planet.descend(misfit, planet.FIELD, first, 10.0, 20)
    errors = [float(np.sqrt(np.mean((each - model.h) ** 2))) for each in (first, field)]
    found["recovery"] = [*errors, misfits[0], misfits[-1]]
    return found


if __name__ == "__main__":
    with jax.enable_x64(True), np.errstate(all="ignore"):
        print(json.dumps(main()))
