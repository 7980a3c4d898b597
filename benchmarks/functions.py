"""Catalogue functions, one by one, over resolutions: NumPy, accel, hand-written JAX and numba; checked, then timed.

`python -m benchmarks.functions [--pygcm DIR] [--grids 121x240 ...] [--only NAME ...] [--quick]` gives every function
synthetic states of the miniature, or of a PyGCM checkout, and compares all rivals with NumPy before it times any. Two
times of accel's: the call, from NumPy arrays to NumPy arrays with all guards, and its compiled program alone on arrays
that JAX holds, which is what the hand-written JAX version is timed on too. All take turns in one process.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

import accel
from accel.platform import config
from benchmarks import goal_table, harness, peers, plots, worlds
from benchmarks.harness import BadInput, Goal
from benchmarks.worlds import STEP_S, World

GRIDS = ("31x60", "61x120", "121x240", "241x480", "361x720", "721x1440")
QUICK_GRIDS = ("31x60", "61x120")
TOLERANCE = 1e-9
"""Of the largest magnitude in an array; one step of a model may add up some roundings."""

CHECKED_CALLS = 8
SETTLING_CALLS = 40
"""Of a step, by accel alone, before it is timed: so many until its paths are known, compiled and compared."""

STATES = 4
RIVALS = ("numpy", "accel", "program", "jax", "numba")


def gaussian_filter(field: Any) -> Any:
    """SciPy's, as PyGCM calls it; a function of its own so that it can be accelerated by itself."""
    return ndimage.gaussian_filter(field, sigma=peers.GAUSSIAN_SIGMA)


@dataclass(frozen=True)
class Case:
    """One function to time.

    part: what of the world it is a method of; "" for a plain function. inputs: positional arguments from the world,
    made afresh before each call. rival_inputs: the arrays and numbers that hand-written versions take, from the world
    and those arguments. stateful: it changes its object, so every rival has one of its own.
    """

    name: str
    part: str
    inputs: Callable[[World, np.random.Generator], tuple[Any, ...]]
    rival_inputs: Callable[[World, tuple[Any, ...]], tuple[Any, ...]] | None = None
    stateful: bool = False


def _field(world: World, rng: np.random.Generator) -> Any:
    return 280.0 + 10.0 * worlds.smooth(rng, world.albedo.shape)


def _diffusivity(world: World, rng: np.random.Generator) -> Any:
    """m4/s: some percent of the shortest wave per step."""
    spacing = 1.0 / np.sqrt(world.sphere.zonal)[:, None]
    return 0.01 * np.broadcast_to(np.minimum(spacing, spacing.max()) ** 4 / STEP_S, world.albedo.shape).copy()


def _advected(world: World, rng: np.random.Generator) -> tuple[Any, ...]:
    worlds.stir(world, rng)
    return _field(world, rng), STEP_S


def _forced(world: World, rng: np.random.Generator) -> tuple[Any, ...]:
    air, time_s = world.atmosphere, float(rng.integers(100)) * STEP_S
    air.isr_A, air.isr_B = world.forcing.calculate_insolation_components(time_s)
    air.isr = air.isr_A + air.isr_B
    return world.forcing.calculate_equilibrium_temp(time_s, world.albedo), STEP_S, world.albedo


def _driven(world: World, rng: np.random.Generator) -> tuple[Any, ...]:
    shape = world.albedo.shape
    wind = [8.0 * worlds.smooth(rng, shape) for _ in range(2)]
    return STEP_S, *wind, 100.0 * worlds.smooth(rng, shape), world.atmosphere.h_ice > 0.0


CASES = (
    Case("_laplacian_sphere", "atmosphere", lambda w, r: (_field(w, r),), lambda w, a: a),
    Case("_hyperdiffuse", "atmosphere", lambda w, r: (_field(w, r), _diffusivity(w, r), STEP_S), lambda w, a: a),
    Case("_advect", "atmosphere", _advected, lambda w, a: (a[0], w.atmosphere.u, w.atmosphere.v, a[1])),
    Case("gaussian_filter", "", lambda w, r: (_field(w, r),), lambda w, a: a),
    Case("time_step", "atmosphere", _forced, stateful=True),
    Case("step", "ocean", _driven, stateful=True),
)
BY_NAME = {case.name: case for case in CASES}


# --- the command ------------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.functions", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--pygcm", metavar="DIR", help="a PyGCM checkout; default: the bundled miniature")
    arguments.add_argument("--grids", nargs="+", metavar="NLATxNLON", help=f"default: {' '.join(GRIDS)}")
    arguments.add_argument("--only", nargs="+", default=[], metavar="NAME", help=f"of {', '.join(BY_NAME)}")
    arguments.add_argument("--budget", type=harness.positive_float, help="s of timing each (default 2; quick 0.2)")
    arguments.add_argument("--quick", action="store_true", help="the two smallest grids, little time: to try it out")
    arguments.add_argument("--out", metavar="FILE.json", help="write the result as JSON, plots beside it")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write; 0 when measured, whatever the figures, and 1 when any result was wrong."""
    options = parser().parse_args(argv)
    program = harness.checkout(options.pygcm)
    grids = options.grids or (QUICK_GRIDS if options.quick else GRIDS)
    shapes = [harness.parse_grid(grid) for grid in grids]
    harness.check_writable(options.out)
    for name in options.only:
        if name not in BY_NAME:
            raise BadInput(f"--only {name}: no such function; there are {', '.join(BY_NAME)}")
    cases = [case for case in CASES if not options.only or case.name in options.only]
    budget_s = options.budget or (0.2 if options.quick else 2.0)
    rows = []
    with compiling_at_once():
        for shape in shapes:
            world = worlds.build(program, *shape)
            for case in cases:
                rows.append(measure(case, world, program, shape, budget_s))
    result = assemble(program, rows)
    print(describe(result))
    if options.out:
        harness.write_json(options.out, result)
        for path in plots.of_functions(result, Path(options.out)):
            print(f"plot: {path}")
    return 1 if any(row["wrong"] for row in rows) else 0


@contextlib.contextmanager
def compiling_at_once(**changes: Any) -> Iterator[None]:
    """Compile where first needed, so that nothing is measured meanwhile. changes: further settings."""
    before = config.current()
    settings = config.from_environment({**os.environ, "QD_USE_JAX": "1"})
    config.set_current(replace(settings, ahead_of_time=False, **changes))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    finally:
        config.set_current(before)


# --- one function on one grid -----------------------------------------------------------------------------------------


def measure(case: Case, world: World, program: Path, shape: tuple[int, int], budget_s: float) -> dict[str, Any]:
    """Validate every rival, then time those that were right. Times in ms."""
    name = f"{case.name}.{shape[0]}x{shape[1]}"
    with contextlib.redirect_stdout(io.StringIO()):
        bout = Stateful(case, world, name) if case.stateful else Stateless(case, world, name)
        wrong = bout.validate()
        times = harness.interleaved(
            {rival: call for rival, call in bout.rivals.items() if rival not in wrong},
            bout.prepare,
            rounds=200,
            budget_s=budget_s,
        )
    entry = _reported(name)
    medians = {rival: harness.median_ms(seconds) for rival, seconds in times.items()}
    forms = {form.partition(":")[2]: ms for form, ms in medians.items() if form.startswith("jax:")}
    return {
        "function": case.name,
        "grid": f"{shape[0]}x{shape[1]}",
        "points": shape[0] * shape[1],
        **{f"{rival}_ms": medians.get(rival) for rival in ("numpy", "accel", "program", "numba")},
        "jax_ms": min(forms.values(), default=None),
        "jax_forms_ms": forms,
        "speedup": medians["numpy"] / medians["accel"] if "accel" in medians else None,
        "against_jax": medians["program"] / min(forms.values()) if forms and "program" in medians else None,
        "state": entry["state"],
        "reasons": entry["reasons"],
        "wrong": wrong,
    }


class Stateless:
    """A function of its arguments: one world for all rivals."""

    def __init__(self, case: Case, world: World, name: str):
        self._case, self._world = case, world
        self._plain = _function(case, world)
        self._fast = accel.accelerate(self._plain, name=name)
        self._owner = (getattr(world, case.part),) if case.part else ()
        rng = np.random.default_rng(5)
        self._inputs = [self._state(rng) for _ in range(STATES)]
        self._turn = 0
        self.rivals: dict[str, Callable[..., Any]] = {"numpy": self._plain, "accel": self._fast}
        self._held: dict[str, Callable[[], Any]] = {}

    def _state(self, rng: np.random.Generator) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments, and the wind that belongs to them."""
        inputs = self._case.inputs(self._world, rng)
        return inputs, {name: getattr(self._world.atmosphere, name) for name in ("u", "v")}

    def prepare(self) -> tuple[Any, ...]:
        """The next call's arguments; the world's wind changes with them, lest accel take it for constant."""
        inputs, winds = self._inputs[self._turn % STATES]
        self._turn += 1
        for name, wind in winds.items():
            setattr(self._world.atmosphere, name, wind)
        return (*self._owner, *inputs)

    def validate(self) -> dict[str, str]:
        """What was wrong, by rival; makes the remaining rivals once accel has compiled."""
        wrong: dict[str, str] = {}
        for _ in range(CHECKED_CALLS):
            arguments = self.prepare()
            _note(wrong, "accel", self._fast(*arguments), self._plain(*arguments))
        arguments = self.prepare()
        expected = self._plain(*arguments)
        for rival, call in self._others(arguments).items():
            try:
                _note(wrong, rival, call(), expected)
            except Exception as error:
                wrong[rival] = f"{type(error).__name__}: {error}"
            self.rivals[rival] = lambda *_, call=call: call()
        return wrong

    def _others(self, arguments: tuple[Any, ...]) -> dict[str, Callable[[], Any]]:
        """accel's program, the JAX forms and numba, all on the same state, held as each of them holds arrays."""
        found: dict[str, Callable[[], Any]] = {}
        program = held_program(self._fast, arguments)
        if program is not None:
            found["program"] = program
        if self._case.rival_inputs is None:
            return found
        inputs = self._case.rival_inputs(self._world, arguments[len(self._owner) :])
        for form, kernel in peers.jax_forms(self._case.name, self._world.sphere).items():
            found[f"jax:{form}"] = _jitted(kernel, inputs)
        numba = peers.numba_kernel(self._case.name, self._world.sphere)
        if numba is not None:
            found["numba"] = lambda: numba(*inputs)
        return found


class Stateful:
    """A method that advances its object: NumPy's copy and accel's, from the same state, each going its own way."""

    def __init__(self, case: Case, world: World, name: str):
        self._case, self._world = case, world
        self._plain = _function(case, world)
        self._fast = accel.accelerate(self._plain, name=name)
        self._mine: Any = copy.deepcopy(getattr(world, case.part))
        self._theirs: Any = copy.deepcopy(self._mine)
        rng = np.random.default_rng(5)
        self._rng = rng
        self.rivals: dict[str, Callable[..., Any]] = {
            "numpy": lambda *inputs: self._plain(self._mine, *inputs),
            "accel": lambda *inputs: self._fast(self._theirs, *inputs),
        }

    def prepare(self) -> tuple[Any, ...]:
        """The next call's arguments, and what the method reads besides."""
        inputs = self._case.inputs(self._world, self._rng)
        if self._case.part == "atmosphere":
            for name in ("isr_A", "isr_B", "isr"):
                for air in (self._mine, self._theirs):
                    setattr(air, name, getattr(self._world.atmosphere, name))
        return inputs

    def validate(self) -> dict[str, str]:
        """Single steps from NumPy's state, compared field by field."""
        wrong: dict[str, str] = {}
        for _ in range(2 * CHECKED_CALLS):
            inputs = self.prepare()
            for call in self.rivals.values():
                call(*inputs)
            for name, value in vars(self._mine).items():
                if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
                    _note(wrong, "accel", getattr(self._theirs, name), value, f"{name}: ")
            self._hand_over()
        self._settle()
        return wrong

    def _settle(self) -> None:
        """Let accel's object go on by itself, and then begin where NumPy's is."""
        for _ in range(SETTLING_CALLS):
            self.rivals["accel"](*self.prepare())
        self._hand_over()

    def _hand_over(self) -> None:
        """Give accel's object NumPy's state, in place, so that who shares an array goes on sharing it."""
        for name, value in vars(self._mine).items():
            if isinstance(value, np.ndarray):
                own = getattr(self._theirs, name)
                if not np.array_equal(own, value, equal_nan=value.dtype.kind in "fc"):
                    own[...] = value


def _function(case: Case, world: World) -> Any:
    """The plain function of a case."""
    return getattr(type(getattr(world, case.part)), case.name) if case.part else gaussian_filter


def _note(wrong: dict[str, str], rival: str, found: Any, expected: Any, where: str = "") -> None:
    error = harness.relative_error(found, expected)
    if not error <= TOLERANCE:
        wrong.setdefault(rival, f"{where}off by {error:.3g} of the largest magnitude")


def _reported(name: str) -> dict[str, Any]:
    entries = {entry["target"]: entry for entry in json.loads(accel.report(format="json"))["functions"]}
    return entries.get(name, {"state": "uncalled", "reasons": []})


class Captured:
    """Stands in for an executable and keeps what it was last called with."""

    def __init__(self, executable: Any):
        self.executable = executable
        self.inputs: tuple[Any, Any] | None = None

    def run_checked(self, arrays: Any, scalars: Any) -> Any:
        self.inputs = list(arrays), dict(scalars)
        return self.executable.run_checked(arrays, scalars)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.executable, name)


def held_program(fast: Any, arguments: tuple[Any, ...]) -> Callable[[], Any] | None:
    """accel's compiled program for a call with these arguments, on arrays that JAX holds; None where there is none."""
    for program in fast._self_target.paths.with_program:
        values = program.whole.matcher.match(arguments, {})
        if not isinstance(values, list):
            continue
        captured = Captured(program.variant.executable)
        program.variant.executable = captured
        try:
            program.variant.run(values)
        finally:
            program.variant.executable = captured.executable
        if captured.inputs is None:
            continue
        return _holding(captured.executable, captured.inputs)
    return None


def _holding(executable: Any, inputs: tuple[Any, Any]) -> Callable[[], Any]:
    """A call of the executable on these inputs, handed to JAX once."""
    import jax

    arrays, scalars = inputs
    with jax.enable_x64(True):
        given = jax.device_put((executable.prepare_arrays(arrays), scalars))

    def call() -> Any:
        made, packs = executable.run(*given)
        jax.block_until_ready((made, packs))
        return made[0]

    return call


def _jitted(kernel: Callable[..., Any], inputs: tuple[Any, ...]) -> Callable[[], Any]:
    """A hand-written kernel, compiled in float64, on arrays that JAX holds."""
    import jax

    with jax.enable_x64(True):
        held = [jax.device_put(np.asarray(value)) for value in inputs]
        program = jax.jit(kernel).lower(*held).compile()

    def call() -> Any:
        with jax.enable_x64(True):
            return program(*held).block_until_ready()

    return call


# --- the result -------------------------------------------------------------------------------------------------------


def assemble(program: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything measured, as it goes into JSON."""
    return {
        "benchmark": "functions",
        "program": "miniature" if program == harness.MINIATURE else program.name,
        "rows": rows,
        "slopes": slopes(rows),
        "goals": [goal.record() for goal in goals(rows)],
        "machine": harness.machine(),
        "versions": harness.versions(),
    }


def slopes(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """How time grows with the number of grid points, by function and rival: the slope of its log-log line."""
    found: dict[str, dict[str, float]] = {}
    for function in dict.fromkeys(row["function"] for row in rows):
        mine = [row for row in rows if row["function"] == function]
        for rival in RIVALS:
            pairs = [(row["points"], row[f"{rival}_ms"]) for row in mine if row[f"{rival}_ms"]]
            if len({points for points, _ in pairs}) > 1:
                x, y = np.log(np.array(pairs)).T
                found.setdefault(function, {})[rival] = float(np.polyfit(x, y, 1)[0])
    return found


def goals(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """Against hand-written JAX, on the grid that the goal names, or the nearest that ran."""
    found = []
    for row in rows:
        if row["against_jax"] is not None and row["grid"] == goal_table.PEER_GRID:
            found += goal_table.goals("peer", row["against_jax"], row["function"])
    return found


def describe(result: Mapping[str, Any]) -> str:
    """The result as tables: times, slopes, goals, and what was wrong."""
    shown = result["machine"]
    parts = [
        f"functions of {result['program']}, float64, on {shown['cpu']}, {shown['cores']} cores, medians in ms",
        times_table(result["rows"]),
        slopes_table(result["slopes"]),
        harness.goals_table([Goal.from_record(goal) for goal in result["goals"]]) if result["goals"] else "",
        "\n".join(
            f"WRONG {row['function']} {row['grid']} {rival}: {text}"
            for row in result["rows"]
            for rival, text in row["wrong"].items()
        ),
        "" if "numba" in result["versions"] else "numba is not installed: its column is empty",
    ]
    return "\n\n".join(part for part in parts if part)


def times_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """One row per function and grid."""
    header = ["function", "grid", "NumPy", "accel", "faster", "state", "its program", "JAX by hand", "ratio", "numba"]
    keys = ("function", "grid", "numpy_ms", "accel_ms", "speedup", "state", "program_ms", "jax_ms", "against_jax")
    return harness.markdown_table(header, [[_shown(row[key]) for key in (*keys, "numba_ms")] for row in rows])


def slopes_table(found: Mapping[str, Mapping[str, float]]) -> str:
    """How time grows: 1 is in proportion to the number of points."""
    rows = [
        [function, *(f"{of[rival]:.2f}" if rival in of else "" for rival in RIVALS)] for function, of in found.items()
    ]
    header = ["log-log slope of time", "NumPy", "accel", "its program", "JAX by hand", "numba"]
    return harness.markdown_table(header, rows) if rows else ""


def _shown(value: Any) -> Any:
    return "" if value is None else value


if __name__ == "__main__":
    harness.run_command(main)
