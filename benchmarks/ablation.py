"""What each mechanism of accel brings: programs compiled and timed with it and without it.

`python -m benchmarks.ablation [--without NAME ...] [--groups GROUP ...] [--npbench DIR] [--pygcm DIR]` runs each group
of programs with everything, then without one mechanism at a time. A mechanism is switched off by replacing names of
modules as they are imported, in the process and in those that it starts: accel itself has no switch for it. Each cell
tells the geometric means of compile time and run time relative to those with everything (above 1: slower without it)
and the share of calls compiled. Compile times are processor time; run times are minima of wall time.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import importlib.abc
import importlib.machinery
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import harness
from benchmarks.harness import REPOSITORY, BadInput

VARIABLE = "ABLATION"
"""Environment variable with the name of the mechanism that is switched off."""

CHILD = "import sys; from benchmarks import ablation; ablation.child(*sys.argv[1:])"
"""What the process of one group runs."""

TIMED_CALLS = 30
"""Calls of each program that are timed. Guess."""

COMPILING_CALLS = 12
"""Calls in which a program has to be compiled: two ways through a function, each seen a few times. Guess."""

LONGEST_CALL_S = 0.3
"""Programs of the collection whose call takes NumPy longer are left out: the short form takes minutes."""

MODEL_STEPS = 40
"""Steps of the models. Guess."""

LOOPS = """cholesky lu durbin gramschmidt trisolv trmm symm seidel_2d jacobi_2d heat_3d hdiff nbody softmax vadv
azimint_naive floyd_warshall mandelbrot1 spmv covariance correlation deriche ludcmp nussinov crc16""".split()
"""Kernels of the collection that are run by default: the others take a minute each, or call matrix products alone."""

Rows = dict[str, dict[str, float]]
"""By program: compile_s, run_s and share."""


def _giving(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _given(value: Any, *_: Any, **__: Any) -> Any:
    return value


_nothing, _never, _empty = _giving(None), _giving(False), _giving({})

MECHANISMS: Mapping[str, Mapping[str, Any]] = {
    "kernels": {"accel.backend.compile:_of_kernels": _nothing},
    "calls on the host": {"accel.rules.filling:are_allowed": _never},
    "rolled loops": {"accel.compiler.lower.passes.loops.reroll:roll": _given},
    "batches": {"accel.compiler.lower.passes.loops.batch:plan": _nothing},
    "branches": {"accel.compiler.lower.passes.branches:branched": _given},
    "views of views": {"accel.compiler.lower.passes.nesting:flattened": _given},
    "copies before writes": {"accel.rules.tracing:stored": _given},
    "written views": {"accel.compiler.lower.written:_contents": _empty},
    "joins": {"accel.record.state.joins:Joins.branch": _nothing},
    "merged paths": {"accel.dispatch.paths.joining:may_join": _never},
    "text flow": {"accel.record.values.text.flow:readers": _nothing},
}
"""By mechanism: what stands in the place of each `module:name`."""


# --- switching off ----------------------------------------------------------------------------------------------------


class Replacing(importlib.abc.MetaPathFinder):
    """Replaces names in modules once these are imported."""

    def __init__(self, replaced: Mapping[str, Any]) -> None:
        self._by_module: dict[str, dict[str, Any]] = {}
        for place, value in replaced.items():
            module, name = place.split(":")
            self._by_module.setdefault(module, {})[name] = value

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The module's own spec, with a loader that replaces names after it."""
        replaced = self._by_module.get(name)
        spec = None if replaced is None else importlib.machinery.PathFinder.find_spec(name, path, target)
        if replaced is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            for attribute, value in replaced.items():
                *owners, last = attribute.split(".")
                owner = module
                for each in owners:
                    owner = getattr(owner, each)
                getattr(owner, last)  # a name that is gone has to be noticed
                setattr(owner, last, value)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def switch_off() -> None:
    """Switch off what the environment names, in this process."""
    if name := os.environ.get(VARIABLE):
        sys.meta_path.insert(0, Replacing(MECHANISMS[name]))


# --- programs ---------------------------------------------------------------------------------------------------------


class Program(NamedTuple):
    """A function of NumPy's and what makes its arguments."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]


def corpus_programs() -> Iterator[Program]:
    """The small kernels."""
    import numpy as np

    from benchmarks import corpus

    for kernel in corpus.KERNELS:
        rng = np.random.default_rng(1)
        yield Program(kernel.name, inspect.unwrap(kernel.function), lambda k=kernel, r=rng: k.arguments(r, 128))  # type: ignore[misc]


def collection_programs(folder: Path, names: Sequence[str]) -> Iterator[Program]:
    """The public collection, at its smallest size."""
    import numpy as np

    from benchmarks import collection

    folder = Path(folder).resolve()
    sys.path.insert(0, str(folder))
    for entry in collection.chosen(folder, names):
        function, arguments, rng = entry.function(), entry.arguments("S"), np.random.default_rng(1)
        yield Program(entry.name, function, lambda a=arguments, r=rng: collection.scaled(a, r))  # type: ignore[misc]


def rows_of(programs: Iterator[Program]) -> Rows:
    """Compile and time programs in this process."""
    import accel
    from benchmarks import races
    from benchmarks.agreement import outcome
    from benchmarks.functions import compiling_at_once

    found: Rows = {}
    for program in programs:
        began = time.perf_counter()
        outcome(program.function, copy.deepcopy(program.arguments()))
        if time.perf_counter() - began > LONGEST_CALL_S:
            continue
        fast = accel.accelerate(program.function)
        with compiling_at_once():
            began = time.process_time()
            for _ in range(COMPILING_CALLS):
                outcome(fast, program.arguments())
            compile_s, before = time.process_time() - began, races.reported(fast)
            seconds = []
            for _ in range(TIMED_CALLS):
                arguments = program.arguments()
                began = time.perf_counter()
                outcome(fast, arguments)
                seconds.append(time.perf_counter() - began)
            compiled = races.reported(fast).get("compiled_calls", 0) - before.get("compiled_calls", 0)
        row = {"compile_s": compile_s, "run_s": min(seconds), "share": compiled / TIMED_CALLS}
        print(program.name, row, file=sys.stderr, flush=True)
        found[program.name] = row
    return found


def script_rows(_: argparse.Namespace) -> Rows:
    """The flat scripts, each a process."""
    folder = Path(__file__).parent / "flat"
    paths = [path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]
    return {path.stem: of_process("--auto", str(path)) for path in paths}


def model_rows(options: argparse.Namespace) -> Rows:
    """The miniature, and a checkout of PyGCM if one is named."""
    rows = {"miniature": of_process("--demo")}
    return rows | (
        {"PyGCM": of_process("--pygcm", str(options.pygcm), "scripts.run_simulation")} if options.pygcm else {}
    )


def of_process(*arguments: str) -> dict[str, float]:
    """The row of one process under `accel run`, by its report: a mean of compiled calls in the place of a minimum."""
    with tempfile.TemporaryDirectory(prefix="accel-ablation-") as scratch:
        report = Path(scratch) / "report.json"
        command = [sys.executable, "-m", "accel.run", "--report", str(report), *arguments]
        env = {**os.environ, "QD_JAX_AOT": "0", "QD_JAX_CACHE_DIR": "off", "MPLBACKEND": "Agg"}
        env |= {"STEPS": "400", "QD_SIM_DAYS": f"{MODEL_STEPS * 300 / 72_000:g}", "QD_PLOT_EVERY_DAYS": "100000"}
        subprocess.run(command, env=env, check=True, capture_output=True, cwd=scratch)
        told = json.loads(report.read_text())["functions"]
    compiled, calls, compile_s, run_s = (
        sum(each[key] for each in told) for key in ("compiled_calls", "calls", "compile_s", "compiled_s")
    )
    row = {"compile_s": compile_s, "run_s": run_s / max(compiled, 1), "share": compiled / max(calls, 1)}
    print(arguments[-1], row, file=sys.stderr, flush=True)
    return row


GROUPS: Mapping[str, Callable[[argparse.Namespace], Rows]] = {
    "kernels": lambda options: rows_of(corpus_programs()),
    "collection": lambda options: rows_of(collection_programs(options.npbench, options.only)),
    "scripts": script_rows,
    "models": model_rows,
}


# --- the command ------------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The command line."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__.split("\n\n")[0])
    arguments.add_argument("--without", metavar="NAME", nargs="+", default=list(MECHANISMS), help="mechanisms")
    arguments.add_argument(
        "--groups", metavar="GROUP", nargs="+", default=["kernels", "scripts", "models"], help=", ".join(GROUPS)
    )
    arguments.add_argument("--npbench", metavar="DIR", type=Path, help="a checkout of spcl/npbench")
    arguments.add_argument("--only", metavar="KERNEL", nargs="+", default=LOOPS, help="kernels of the collection")
    arguments.add_argument("--pygcm", metavar="DIR", type=Path, help="a checkout of PyGCM")
    arguments.add_argument("--out", metavar="FILE.json", help="write all rows as JSON, after each run")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = parser().parse_args(argv)
    for names, known in ((options.without, MECHANISMS), (options.groups, GROUPS)):
        for name in names:
            if name not in known:
                raise BadInput(f"{name}: not one of {', '.join(known)}")
    harness.check_writable(options.out)
    found: dict[str, dict[str, Rows]] = {}
    for name in ["", *options.without]:
        found[name] = {group: measured(name, group, options) for group in options.groups}
        if options.out:
            harness.write_json(options.out, found)
    print(described(found))
    return 0


def measured(name: str, group: str, options: argparse.Namespace) -> Rows:
    """The rows of one group without one mechanism, from a process of its own."""
    with tempfile.TemporaryDirectory(prefix="accel-ablation-") as scratch:
        # Python imports it at its start: here, in the worker, and in all other processes that come of this one
        Path(scratch, "sitecustomize.py").write_text("from benchmarks import ablation\n\nablation.switch_off()\n")
        environment = {**os.environ, VARIABLE: name, "PYTHONPATH": os.pathsep.join([scratch, str(REPOSITORY)])}
        given = json.dumps({name: getattr(options, name) for name in ("npbench", "only", "pygcm")}, default=str)
        out = Path(scratch) / "rows.json"
        subprocess.run([sys.executable, "-c", CHILD, group, given, str(out)], env=environment, check=True)
        rows: Rows = json.loads(out.read_text())
        return rows


def child(group: str, given: str, out: str) -> None:
    """In the process of one group: measure it."""
    options = argparse.Namespace(**json.loads(given))
    Path(out).write_text(json.dumps(GROUPS[group](options)))


def described(found: Mapping[str, Mapping[str, Rows]]) -> str:
    """A table: a line for each mechanism, a column for each group."""
    whole, lines = found[""], []
    for name, groups in found.items():
        lines.append([name or "(nothing)", *(cell(rows, whole[group]) for group, rows in groups.items())])
    return harness.markdown_table(["without", *(f"{group}: compile, run, share" for group in whole)], lines)


def cell(rows: Rows, whole: Rows) -> str:
    """Relative times of the programs that are compiled with and without, and the share of calls compiled."""
    both = [name for name in whole.keys() & rows.keys() if min(whole[name]["share"], rows[name]["share"]) > 0]
    times = [
        harness.geometric_mean(rows[name][key] / whole[name][key] for name in both) for key in ("compile_s", "run_s")
    ]
    share = sum(row["share"] for row in rows.values()) / max(len(rows), 1)
    return f"{times[0]:.2f}, {times[1]:.2f}, {share:.0%}"


if __name__ == "__main__":
    harness.run_command(main)
