"""Ensembles of the bundled planet's air: all members as one program, against one member after the other.

`python -m benchmarks.ensembles [--grids 31x60 121x240] [--steps N] [--quick] [--out FILE]`. 64 members at 31x60 against
64 NumPy models, and 16 members at 121x240 against 16 accelerated models, all stepped in turn. Steps without filters are
timed, once everything is compiled. First all members are compared with NumPy's.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks import harness, worlds
from benchmarks.functions import compiling_at_once
from benchmarks.harness import MINIATURE, Goal

TARGET = "pygcm.dynamics:SpectralModel.time_step"
ATOL = 1e-12
FIELDS = ("u", "v", "h", "T_s", "q", "cloud_cover", "h_ice")
WARM_STEPS = 4
"""Each way makes so many steps before it is timed."""

COUNT = 24
"""The step counter at the beginning: the next five steps have no filters."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.ensembles", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--small", metavar="GRID", type=harness.parse_grid, default=(31, 60), help="31x60")
    arguments.add_argument("--large", metavar="GRID", type=harness.parse_grid, default=(121, 240), help="121x240")
    arguments.add_argument("--rounds", type=harness.positive_int, default=20, help="timed steps of each way")
    arguments.add_argument("--quick", action="store_true", help="few members and steps, to try it out")
    arguments.add_argument("--out", metavar="FILE", help="the result as JSON")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print; 1 when a limit is missed, or members are not what they are alone."""
    options = parser().parse_args(argv)
    harness.check_writable(options.out)
    rounds = 3 if options.quick else options.rounds
    many, few = (4, 2) if options.quick else (64, 16)
    goals = [*against_numpy(options.small, many, rounds), *against_accelerated(options.large, few, rounds)]
    if options.out:
        record = {"benchmark": "ensembles", "quick": options.quick, "goals": [goal.record() for goal in goals]}
        harness.write_json(options.out, record | {"machine": harness.machine(), "versions": harness.versions()})
    print(harness.goals_table(goals))
    if options.quick:
        print("\nQuick run: it shows that all of this works; the figures mean nothing.")
    print(f"\ncommit {harness.commit()}")
    return 0 if options.quick or all(goal.met for goal in goals) else 1


class Planets:
    """Members as models of their own, and as an ensemble."""

    def __init__(self, grid: tuple[int, int], members: int) -> None:
        import accel

        world = worlds.build(MINIATURE, *grid)
        model = world.atmosphere
        model.isr = world.forcing.calculate_insolation(0.0)
        warmth = world.forcing.calculate_equilibrium_temp(0.0, world.albedo)
        self._given = warmth, worlds.STEP_S, world.albedo
        model.time_step(*self._given)
        model._step_counter = COUNT
        self.models = [copy.deepcopy(model) for _ in range(members)]
        for member, each in enumerate(self.models):
            each.h = each.h + _noise(each.h, np.random.default_rng([0, member]))
        self.ensemble = accel.ensemble(model.time_step, *self._given, members=members, perturb=_perturb)

    def step_together(self) -> None:
        self.ensemble.state["self._step_counter"] = COUNT
        self.ensemble.step()

    def step_apart(self) -> None:
        for each in self.models:
            each._step_counter = COUNT
            each.time_step(*self._given)

    def error(self) -> float:
        """The largest difference between an ensemble's member and a model of its own, relative to its field."""
        pairs = [(f"self.{name}", [getattr(each, name) for each in self.models]) for name in FIELDS]
        return max(harness.relative_error(self.ensemble.state[name], np.array(alone)) for name, alone in pairs)


def _noise(field: Any, rng: np.random.Generator) -> Any:
    return rng.normal(size=field.shape)


def _perturb(state: Any, member: int, rng: np.random.Generator) -> None:
    state["self.h"] += _noise(state["self.h"], rng)


def against_numpy(grid: tuple[int, int], members: int, rounds: int) -> list[Goal]:
    """Members as one program against as many NumPy models, one after the other."""
    text = f"{members} members at {grid[0]}x{grid[1]}"
    print(f"{text} ...", file=sys.stderr, flush=True)
    planets = Planets(grid, members)
    for _ in range(WARM_STEPS):
        planets.step_together()
        planets.step_apart()
    error = planets.error()
    apart, together = _times(planets, rounds)
    return [
        Goal(f"{text}: difference from NumPy", error, ATOL),
        Goal(f"{text}: times faster than NumPy one by one", apart / together, 4.0, "x", at_least=True),
    ]


def against_accelerated(grid: tuple[int, int], members: int, rounds: int) -> list[Goal]:
    """Members as one program against as many accelerated models, one after the other."""
    import accel
    from accel.catalogue import Catalogue, Row

    text = f"{members} members at {grid[0]}x{grid[1]}"
    print(f"{text} ...", file=sys.stderr, flush=True)
    planets = Planets(grid, members)
    catalogue = Catalogue("planet", (Row("pygcm.dynamics", "SpectralModel.time_step", "the air"),))
    with compiling_at_once(), accel.installed(catalogue):
        _until_compiled(planets.step_apart)
        for _ in range(WARM_STEPS):
            planets.step_together()
        apart, together = _times(planets, rounds)
    return [Goal(f"{text}: throughput of single accelerated ones", apart / together, 1.3, "x", at_least=True)]


def _until_compiled(step: Callable[[], None], limit_s: float = 120.0) -> None:
    """Step until all calls of a round are compiled ones. Raises SystemExit if that never comes."""
    from accel.platform.ledger import open_ledger

    began = time.perf_counter()
    while time.perf_counter() - began < limit_s:
        ledger = open_ledger(TARGET)
        before = ledger.calls - ledger.compiled_calls
        step()
        if ledger.compiled_calls and ledger.calls - ledger.compiled_calls == before:
            return
    sys.exit(f"{TARGET} was not compiled within {limit_s:g} s")


def _times(planets: Planets, rounds: int) -> tuple[float, float]:
    """Median seconds of a step, apart and together, measured in turn."""
    rivals = {"apart": planets.step_apart, "together": planets.step_together}
    times = harness.interleaved(rivals, lambda: (), rounds, budget_s=60.0)
    return tuple(harness.median_ms(times[name]) for name in rivals)  # type: ignore[return-value]


if __name__ == "__main__":
    harness.run_command(main)
