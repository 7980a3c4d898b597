"""The second start of a program: it compiles nothing, never crashes, and computes the same bits as the first.

Every conformance row, linear algebra and Fourier transforms in every dtype, the catalogue on the miniature planet; and
folders that are shared, read-only, or filled under other settings. A part of the rows by default; all of them with
ACCEL_LONG_TESTS=1.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from accel.backend.compile import compile_trace
from accel.backend.disk import cache
from accel.compiler.lower import Known
from accel.dispatch.replay import StagedOutputs, Variant
from accel.dispatch.replay.commit import commit
from accel.record import Completed, Trace, record
from accel.rules.rule import Unsupported
from pygcm_patch import CATALOGUE
from tests.helpers import LONG
from tests.processes import Start, assert_found_again, starter
from tests.rules.cases import ROWS, Names, names_in, stable_hash
from tests.rules.oracle import program
from tests.xla_options import quick_flags

POSIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no POSIX permissions here")


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts processes over one cache folder."""
    return starter(tmp_path / "cache")


# -- one small program -------------------------------------------------------------------------------------------------

LAPACK = """
import json

import numpy as np

import accel
from tests.helpers import LONG


@accel.accelerate
def factor(A):
    A[:] = np.linalg.cholesky(A) + np.triu(A, k=1)


def body():
    for _ in range(8):
        A = np.eye(5) * 4.0 + 0.1
        factor(A)
    (function,) = json.loads(accel.report(format="json"))["functions"]
    assert function["compiled_calls"] > 0
    return {"A": A}
"""


def test_a_program_that_calls_lapack_is_found_again(start: Start) -> None:
    """jaxlib initialises its LAPACK kernels when such an operation is lowered, which the second process never does."""
    assert_found_again(start(LAPACK), start(LAPACK))


NAMES = """
import json

import numpy as np

import accel

total, count, last = None, 0, 0.0


def make():
    field = np.zeros(5)

    @accel.accelerate
    def step(x):
        global total, count, last
        nonlocal field
        count += 1
        field = 0.5 * field + np.sin(x)
        total = field if total is None else total + field * count
        last = float(field.sum())
        return total

    return step


def body():
    step = make()
    results = [step(np.linspace(0.0, i, 5)) for i in range(9)]
    (function,) = json.loads(accel.report(format="json"))["functions"]
    assert function["compiled_calls"] > 0
    return {"results": np.array(results), "total": total, "numbers": np.array([count, last])}
"""


def test_a_program_that_assigns_globals_is_found_again(start: Start) -> None:
    assert_found_again(start(NAMES), start(NAMES))


POSITIONS = """
import json

import numpy as np

import accel


class Tape:
    def __init__(self):
        self.log, self.n = np.zeros(20), 0


@accel.accelerate
def note(tape, x, rows):
    tape.log[tape.n] = x[rows[1] - 1 : rows[1] + 1].mean()
    tape.n += 1
    x[rows[0]] += x[tape.n % 4 - 4]
    x[None, rows[0], 1:3] *= 0.5
    return x[rows[2]]


def body():
    tape, x = Tape(), np.arange(24.0).reshape(4, 6)
    kept = [note(tape, x, np.array([k % 4, 1 + k % 3, -1 - k % 4])).copy() for k in range(12)]
    (function,) = json.loads(accel.report(format="json"))["functions"]
    assert function["compiled_calls"] > 0
    return {"log": tape.log, "x": x, "kept": np.array(kept)}
"""


def test_positions_are_found_again(start: Start) -> None:
    assert_found_again(start(POSITIONS), start(POSITIONS))


GROWING = """
import json
from collections import Counter, defaultdict, deque

import numpy as np

import accel


class Frame:
    def __init__(self, u, n):
        self.u, self.n = u, n


class Model:
    def __init__(self):
        self.frames, self.recent, self.at = [Frame(np.linspace(0.0, 1.0, 6), 0)], deque(maxlen=3), {}
        self.groups, self.counts, self.seen, self.n = defaultdict(list), Counter(), set(), 0

    @accel.accelerate
    def step(self):
        last = self.frames[-1]
        self.n += 1
        frame = Frame(np.sin(last.u) + 0.1 * self.n, last.n + 1)
        self.frames.append(frame)
        self.recent.append(frame.u.sum())
        self.at[self.n] = frame
        self.seen.add(self.n)
        self.counts["steps"] += 1
        if frame.u[0] > 0.9:
            self.groups["high"].append(frame.u * 2.0)
        return frame


def body():
    model = Model()
    for _ in range(40):
        last = model.step()
    assert model.at[40] is last is model.frames[-1] and len(model.seen) == 40
    (function,) = json.loads(accel.report(format="json"))["functions"]
    assert function["compiled_calls"] > 10
    return {"u": last.u, "recent": np.array(model.recent), "high": np.array(model.groups["high"])}
"""


def test_containers_that_grow_are_found_again(start: Start) -> None:
    assert_found_again(start(GROWING), start(GROWING))


def small(weight: float = 0.25, x64: bool | None = None, precision: str | None = None) -> dict[str, Any]:
    """The body: one program, in a process that may have set JAX up for its own use."""
    import jax

    if x64 is not None:
        jax.config.update("jax_enable_x64", x64)
    if precision is not None:
        jax.config.update("jax_default_matmul_precision", precision)
    x = np.linspace(0.0, 1.0, 48).reshape(6, 8)
    return _all_computed([(f"np.roll(np.sin(a), 1, axis=0) * {weight} + (a @ a.T)[:, :1]", {"a": x})], 1)


def test_programs_for_other_numbers_of_threads_do_not_mix(start: Start) -> None:
    first, other, again = (start(small, QD_JAX_THREADS=count) for count in "121")
    assert other.compiled > 0
    assert_found_again(first, again)


def test_programs_for_other_precisions_do_not_mix(start: Start) -> None:
    first, other, again = (start(small, 0.25, None, precision) for precision in (None, "bfloat16", None))
    assert other.compiled > 0
    assert_found_again(first, again)


def test_the_programs_own_setting_of_jax_does_not_matter(start: Start) -> None:
    """accel computes in float64 either way, so the program is the same one."""
    assert_found_again(start(small, 0.25, False), start(small, 0.25, True))


# -- folders that are not one's own ------------------------------------------------------------------------------------

NOBODY = 65534


def unprivileged(weight: float) -> dict[str, Any]:
    """The body: the small program; what the cache does is done by a user who may write nothing."""
    if os.geteuid() == 0:
        cache.environment_hash()
        for name in ("read", "save", "discard"):
            setattr(cache, name, _by_nobody(getattr(cache, name)))
    return small(weight)


def _by_nobody(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        os.seteuid(NOBODY)
        try:
            return function(*args)
        finally:
            os.seteuid(0)

    return call


@pytest.fixture
def filled() -> Iterator[Path]:
    """A cache folder with the small program, which everybody may read and nobody write; not below pytest's own."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        folder = Path(home) / "cache"
        assert starter(folder)(small).compiled > 0
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield folder
        for path in (folder, *folder.iterdir()):
            path.chmod(0o755)


def _state(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*"))


@POSIX
def test_a_folder_that_cannot_be_written_to_is_used(filled: Path) -> None:
    before, start = _state(filled), starter(filled)
    found, new = start(unprivileged, 0.25), start(unprivileged, 0.75)
    assert (found.compiled, found.notes) == (0, [])
    assert new.compiled > 0
    why = f"cannot write to {filled} (Permission denied)"
    assert new.notes == [f"a program cannot be kept on disk and is compiled again at every start: {why}"]
    assert _state(filled) == before


@POSIX
def test_a_shared_folder_is_used_and_ones_own_takes_what_is_new(filled: Path) -> None:
    own = filled.parent / "own"
    own.mkdir()
    if os.geteuid() == 0:
        os.chown(own, NOBODY, -1)
        for path in (filled, *filled.rglob("*")):
            os.chown(path, 4_000_002, -1)
    before, start = _state(filled), starter(own)
    assert start(unprivileged, 0.25, QD_JAX_CACHE_SHARED=str(filled)).compiled == 0
    assert list(own.iterdir()) == []
    first, second = (start(unprivileged, 0.75, QD_JAX_CACHE_SHARED=str(filled)) for _ in range(2))
    assert_found_again(first, second)
    assert _state(filled) == before


# -- many expressions as one program -----------------------------------------------------------------------------------

Case = tuple[str, dict[str, Any]]
"""The text of an expression, and the values of its names."""


def _program(cases: Sequence[Case]) -> tuple[FunctionType, tuple[Any, ...]]:
    """One function that gives the values of all cases, and its arguments."""
    lines, calls, given = [], [], []
    for place, (text, values) in enumerate(cases):
        *before, last = text.split("; ")
        lines += [f"def case_{place}({', '.join(values)}):", *(f"    {line}" for line in before), f"    return {last}"]
        calls.append(f"case_{place}({', '.join(f'{name}_{place}' for name in values)})")
        given += [(f"{name}_{place}", value) for name, value in values.items()]
    lines += [f"def cases({', '.join(name for name, _ in given)}):", f"    return [{', '.join(calls)}]"]
    return program("\n".join(lines) + "\n"), tuple(value for _, value in given)


def _recorded(cases: Sequence[Case]) -> tuple[Trace | None, tuple[Any, ...]]:
    """The recording of these cases, if it went through, and arguments for it."""
    function, args = _program(cases)
    with np.errstate(all="ignore"):
        try:
            found = record(function, _program(cases)[1], {}, max_nodes=20_000)
        except Exception:
            return None, args
    return (found.trace if isinstance(found, Completed) and found.refusal is None else None), args


def _computed(cases: Sequence[Case]) -> Iterator[tuple[str, Any]]:
    """The cases' results by compiled programs: one of all but those that are refused, or fewer where a call differs."""
    trace, args = _recorded(cases)
    if trace is not None:
        values, failed = trace.inputs.fetch(args, {})
        assert failed is None
        try:
            variant = Variant(trace, compile_trace(trace, Known(), values))
        except Unsupported as error:
            refused = _case_at(error, cases)
            yield from _computed([*cases[:refused], *cases[refused + 1 :]]) if len(cases) > 1 else ()
            return
        staged = variant.run(values)
        if isinstance(staged, StagedOutputs):
            yield " | ".join(text for text, _ in cases), (commit(staged), args)
            return
    if len(cases) > 1:
        half = len(cases) // 2
        yield from _computed(cases[:half])
        yield from _computed(cases[half:])


def _case_at(error: Unsupported, cases: Sequence[Case]) -> int:
    """The place of the case whose line an error names."""
    found = re.search(r"<case \d+>:(\d+)", str(error))
    assert found is not None, error
    ends = np.cumsum([2 + text.count("; ") for text, _ in cases])
    return int(np.searchsorted(ends, int(found[1])))


def _all_computed(cases: Sequence[Case], size: int) -> dict[str, Any]:
    """The results of all cases that can be compiled, so many to a program."""
    fine = [case for case in cases if _recorded([case])[0] is not None]
    groups = [fine[first : first + size] for first in range(0, len(fine), size)]
    return {f"{place}: {text}": value for place, group in enumerate(groups) for text, value in _computed(group)}


# -- every row ---------------------------------------------------------------------------------------------------------

PARTS = 4
"""Processes that share the rows."""

ONE_IN = 1 if LONG else 60
"""One case in so many is run, always the plain matrix of float64 among them."""


def rows(part: int, one_in: int) -> dict[str, Any]:
    """The body: this part of the rows' cases."""
    cases = []
    for row in ROWS[part::PARTS]:
        for text, dtype, shape in row.cases():
            if (dtype, shape) == ("d", "matrix") or stable_hash(f"{text}{dtype}{shape}") % one_in == 0:
                drawn = Names(dtype, shape, 0, row.tame)
                cases.append((text, {name: drawn.value(name) for name in names_in(text)}))
    return _all_computed(cases, 64)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_row_is_found_again(start: Start, part: int) -> None:
    first, second = (start(rows, part, ONE_IN, XLA_FLAGS=quick_flags(), timeout=7200) for _ in range(2))
    assert_found_again(first, second)
    assert sum(1 + name.count(" | ") for name in first.bits) > 100


# -- linear algebra and Fourier transforms -----------------------------------------------------------------------------

FACTORS = """
cholesky(p) | cholesky(p, upper=True) | solve(s, t) | solve(s, t[:, 0]) | inv(s) | det(s) | slogdet(s) | eigh(p)
eigvalsh(p) | svd(s) | svd(s, full_matrices=False) | svd(s, compute_uv=False) | qr(s) | qr(s, mode="r") | pinv(s)
cond(s) | norm(s, 2) | matrix_rank(s) | matrix_power(s, 3) | matrix_power(s, -2) | tensorinv(p.reshape(1, 3, 3), ind=2)
"""

TRANSFORMS = """
fft(v) | ifft(v) | rfft(v.real) | irfft(v) | hfft(v) | ihfft(v.real) | fft2(s) | ifft2(s) | rfft2(s.real) | irfft2(s)
fftn(s) | ifftn(s) | rfftn(s.real) | irfftn(s) | fft(v, n=7) | fft(s, axis=0, norm="ortho") | fftshift(v)
"""


def _calls(table: str, module: str) -> list[str]:
    return [f"np.{module}.{call.strip()}" for line in table.strip().splitlines() for call in line.split(" | ")]


def matrices(dtype: str) -> dict[str, Any]:
    """The body: each call a program of its own, of one matrix and of a stack of them."""
    found = {}
    for text in (*_calls(FACTORS, "linalg"), *_calls(TRANSFORMS, "fft")):
        drawn = Names(dtype, "matrix", 0, True)
        values = {name: drawn.value(name) for name in names_in(text)}
        stacked = {name: np.stack([value, value * 2, value]) for name, value in values.items()}
        cases = [(text, values), *([(text, stacked)] if "[" not in text and "reshape" not in text else [])]
        found |= {f"{text} {place}": value for place, case in enumerate(cases) for _, value in _computed([case])}
    return found


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_linear_algebra_is_found_again(start: Start, dtype: str) -> None:
    first, second = (start(matrices, dtype, XLA_FLAGS=quick_flags()) for _ in range(2))
    assert_found_again(first, second)
    compiled = {name.rpartition(" ")[0] for name in first.bits}
    assert compiled >= {f"np.linalg.{each}" for each in ("cholesky(p)", "solve(s, t)", "inv(s)", "det(s)", "svd(s)")}
    assert compiled >= {"np.linalg.qr(s)", "np.linalg.eigh(p)", "np.fft.fft(v)", "np.fft.irfft2(s)"}


# -- the miniature planet ----------------------------------------------------------------------------------------------


PLANET = {"QD_N_LAT": "31", "QD_N_LON": "61", "QD_SIM_DAYS": "0.15", "QD_PLOT": "0"}
"""36 steps of a small planet."""


def planet() -> dict[str, Any]:
    """The body: the planet with the catalogue's functions accelerated, whether that pays at this size or not."""
    import accel

    assert CATALOGUE.demo_root is not None
    sys.path.insert(0, str(CATALOGUE.demo_root))
    accel.install()
    simulation = import_module(CATALOGUE.demo_target)
    worlds, build = [], simulation.build_world

    def building(*args: Any) -> Any:
        worlds.append(build(*args))
        return worlds[-1]

    simulation.build_world = building
    simulation.main()
    (world,) = worlds
    functions = json.loads(accel.report(format="json"))["functions"]
    return {
        "compiled": [(each["target"], each["compiled_calls"]) for each in functions],
        **{name: value for name, value in vars(world.gcm).items() if isinstance(value, np.ndarray)},
        **{f"ocean.{name}": value for name, value in vars(world.ocean).items() if isinstance(value, np.ndarray)},
    }


@pytest.mark.parametrize("energy", ["0", "1"])
def test_the_planet_is_found_again(start: Start, tmp_path: Path, energy: str) -> None:
    first, second = (start(planet, QD_OUTPUT_DIR=str(tmp_path), QD_ENERGY_W=energy, **PLANET) for _ in range(2))
    assert first.compiled > 20
    assert_found_again(first, second)
