"""The child that runs a PyGCM checkout's own `main`, unmodified, on plain NumPy or under accel.

Started by `end_to_end.py`. Everything is done from outside: a progress bar of ours stands in for tqdm's and is the
gate that counts and stamps steps; plotting functions become no-ops; constructors of the model's classes are wrapped to
find the objects whose fields are compared. Nothing that accel records is touched.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.bars import bar_class
from benchmarks.fields import FIELDS
from benchmarks.gate import Gate
from benchmarks.harness import parse_grid, peak_rss_mb

CLASSES = {"atmosphere": ("pygcm.dynamics", "SpectralModel"), "ocean": ("pygcm.ocean", "WindDrivenSlabOcean")}
SURFACE_TEMPERATURE = (("atmosphere", "T_s"), ("ocean", "Ts"))


def up(values: np.ndarray) -> np.ndarray:
    """Each element moved up by one unit in its last place."""
    return np.nextafter(values, np.inf)


def up_as_float32(values: np.ndarray) -> np.ndarray:
    """Each element moved up by what is one unit in the last place in float32."""
    return values + np.spacing(values.astype(np.float32))


MOVED = {"perturbed": up, "perturbed32": up_as_float32}
"""What is done to the initial surface temperature, by the way that a perturbed child is asked for."""


class Planet:
    """The running model's objects, noted as their constructors finish."""

    def __init__(self, way: str = "numpy"):
        self.parts: dict[str, Any] = {}
        self._moved = MOVED.get(way)

    def watch(self) -> None:
        """Wrap the constructors of the model's classes."""
        for part, (module, name) in CLASSES.items():
            after_init(getattr(importlib.import_module(module), name), functools.partial(self._note, part))

    def _note(self, part: str, instance: Any) -> None:
        self.parts[part] = instance

    def save_state(self, path: str) -> None:
        """Write every array attribute of the model's objects to `path`, as `PART.NAME`."""
        np.savez(path, **{f"{part}.{name}": array for part, name, array in self._arrays()})  # type: ignore[arg-type]

    def load_state(self, path: str) -> None:
        """Take the state that another child saved, in place, so that who shares an array goes on sharing it."""
        with np.load(path) as state:
            for part, name, array in list(self._arrays()):
                if (key := f"{part}.{name}") in state:
                    self._set(part, name, array, state[key])
        self.nudge()

    @staticmethod
    def _bring_up_to_date() -> None:
        """Give arrays their values that accel holds on a device: it takes no notice of what a bar does."""
        resident = sys.modules.get("accel.backend.resident")
        if resident is not None:
            resident.current.bring_up_to_date("the benchmark reads the fields")

    def _arrays(self) -> Iterator[tuple[str, str, np.ndarray]]:
        self._bring_up_to_date()
        for part, instance in self.parts.items():
            for name, value in vars(instance).items():
                if isinstance(value, np.ndarray):
                    yield part, name, value

    def _set(self, part: str, name: str, array: np.ndarray, value: np.ndarray) -> None:
        if array.shape != value.shape or array.dtype != value.dtype:
            setattr(self.parts[part], name, value)
        elif not np.array_equal(array, value, equal_nan=array.dtype.kind in "fc"):
            array[...] = value

    def nudge(self) -> None:
        """Move the surface temperature up by one unit, sea included, in the perturbed children only."""
        if self._moved:
            for part, name in SURFACE_TEMPERATURE:
                if part in self.parts:
                    setattr(self.parts[part], name, self._moved(getattr(self.parts[part], name)))

    def fields(self) -> dict[str, np.ndarray]:
        """Copies of all prognostic fields that exist, as the program holds them (float64 unless it says otherwise)."""
        self._bring_up_to_date()
        return {
            name: np.array(getattr(self.parts[part], name))
            for part, names in FIELDS.items()
            for name in names
            if getattr(self.parts.get(part), name, None) is not None
        }

    def save(self, step: int) -> None:
        """Write the fields after `step` steps to `fields_STEP.npz` in the working directory."""
        np.savez(f"fields_{step}.npz", **self.fields())  # type: ignore[arg-type]


def after_init(cls: type, then: Callable[[Any], None]) -> None:
    """Call `then(instance)` whenever a constructor of `cls` has finished."""
    original = cls.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        then(self)

    cls.__init__ = __init__  # type: ignore[misc]


def override_grid(n_lat: int, n_lon: int) -> None:
    """Make every `SphericalGrid` `n_lat` x `n_lon`, whatever size the program asks for."""
    cls = importlib.import_module("pygcm.grid").SphericalGrid
    original = cls.__init__

    @functools.wraps(original)
    def __init__(self: Any, *_: Any, **__: Any) -> None:
        original(self, n_lat=n_lat, n_lon=n_lon)

    cls.__init__ = __init__


def nothing(*_: Any, **__: Any) -> None:
    """Stand in for a plotting function."""


def silence_plots(program: ModuleType) -> None:
    """Replace the program's `plot...` functions, and matplotlib's `savefig`, by nothing."""
    for name in [name for name in vars(program) if name.startswith("plot") and callable(getattr(program, name))]:
        setattr(program, name, nothing)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].savefig = nothing  # type: ignore[attr-defined]
        sys.modules["matplotlib.figure"].Figure.savefig = nothing


def install_catalogue() -> None:
    """Install accel with what is registered; in a source tree that was not installed that is nothing: then PyGCM's."""
    import accel
    from accel import catalogue

    if catalogue.discover():
        accel.install()
    else:
        accel.install(importlib.import_module("pygcm_patch").CATALOGUE)


def install_accel(gate: Gate) -> Callable[[], str]:
    """Install accel before the program is imported; returns what gives its JSON report at the end.

    A setting that accel cannot use goes to the parent, and ends the child.
    """
    import accel

    try:
        install_catalogue()
    except accel.SettingError as error:
        gate.tell("refused", text=str(error))
        raise
    return lambda: accel.report(format="json")


def run(options: argparse.Namespace) -> None:
    """Run the program's `main` through the gate, then say how it went."""
    planet = Planet(options.way)
    actions = {"save": planet.save_state, "load": planet.load_state}
    gate = Gate(planet.save, options.checkpoints, options.steps, actions, compiling)
    sys.path.insert(0, str(options.program))
    report = install_accel(gate) if options.way == "accel" else lambda: "null"
    bar = bar_class(options.module, gate.through, options.steps, lambda _: planet.nudge())
    importlib.import_module("tqdm").tqdm = bar  # type: ignore[attr-defined]
    planet.watch()
    if options.grid:
        override_grid(*options.grid)
    program = importlib.import_module(options.module)
    silence_plots(program)
    program.main()
    about = {"report": report(), "settled": gate.settled, "accel": "accel" in sys.modules}
    gate.tell("done", steps=gate.steps, peak_rss_mb=peak_rss_mb(), **about)


def compiling() -> bool:
    """Whether accel, where it is there, compiles in the background. It may be another commit's."""
    modules = [sys.modules.get(f"accel.backend.{name}") for name in ("underway.queues", "background")]
    return any(module is not None and module.busy() for module in modules)


def parser() -> argparse.ArgumentParser:
    """The worker's command line; only `end_to_end.py` writes it."""
    arguments = argparse.ArgumentParser(prog="benchmarks.planet")
    arguments.add_argument("--program", type=Path, required=True, help="folder with pygcm/ and scripts/")
    arguments.add_argument("--module", default="scripts.run_simulation")
    arguments.add_argument("--way", choices=["numpy", "accel", *MOVED], required=True)
    arguments.add_argument("--grid", type=parse_grid)
    arguments.add_argument("--steps", type=int)
    arguments.add_argument("--checkpoints", type=int, nargs="*", default=[])
    return arguments


if __name__ == "__main__":
    run(parser().parse_args())
