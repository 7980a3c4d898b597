"""NumPy as the judge: a program is run plainly, recorded, and replayed on fresh inputs, and must agree each time.

Programs are given as source text, inputs as a function of a seed. Many programs are compiled as one, since compiling
is what takes the time.
"""

from __future__ import annotations

import copy
import linecache
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from accel.backend.compile import entry
from accel.backend.executable import Executable
from accel.compiler.lower import Known, lower
from accel.dispatch.replay import GuardFailure, HostError, Matcher, StagedOutputs, Variant
from accel.dispatch.replay.commit import commit
from accel.record import Raised, Trace, Undone, record
from accel.rules.rule import Unsupported
from tests.xla_options import QUICKEST, known

Make = Callable[[int], tuple[Any, ...]]

FAULTS = frozenset({"lower.failed", "lower.mismatch", "recorder.gap", "compile.failed", "verify.mismatch"})
"""Reasons that no test may meet: each says that accel itself is at fault."""

SCIPY = {name: f"scipy.{name}" for name in ("fft", "integrate", "linalg", "ndimage", "signal", "special")} | {
    "distance": "scipy.spatial.distance"
}
"""SciPy's modules that sources may name: importing all takes longer than most programs."""

SAFE = 1e-300
"""Smaller numbers may be flushed to zero (a known difference)."""


def program(source: str) -> FunctionType:
    """The last function that `source` defines, with np and modules of SciPy's as its only globals."""
    name = f"<case {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    code = compile(source, name, "exec")
    scipy = {name: import_module(module) for name, module in SCIPY.items() if re.search(rf"(?<![.\w]){name}\.", source)}
    namespace: dict[str, Any] = {"np": np, "__name__": "cases", **scipy}
    exec(code, namespace)
    return [value for value in namespace.values() if isinstance(value, FunctionType)][-1]


def expression(text: str, names: Sequence[str]) -> FunctionType:
    """The function of `names` that gives `text`; statements before the last line may be given too."""
    *before, last = text.split("; ")
    body = "".join(f"    {line}\n" for line in before)
    return program(f"def case({', '.join(names)}):\n{body}    return {last}\n")


@dataclass
class Run:
    """What a call gave: its result or its exception, and its arguments afterwards."""

    result: Any
    error: BaseException | None
    args: tuple[Any, ...]


def run(function: Callable[..., Any], args: tuple[Any, ...]) -> Run:
    """The plain call."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Run(function(*args), None, args)
        except Exception as error:
            return Run(None, error, args)


@dataclass
class Job:
    """One program with its inputs. status: "compiled", "raises", or the reason of its refusal.

    problems: what disagreed. hits: how many replays went through.
    """

    name: str
    function: FunctionType
    make: Make
    loose: float = 1.0
    status: str = ""
    detail: str = ""
    problems: list[str] = field(default_factory=list)
    hits: int = 0
    trace: Trace | None = None
    executable: Any = None
    entry: Any = None
    variant: Any = None

    def complain(self, text: str) -> None:
        self.problems.append(f"{self.name}: {text}")


# -- recording --------------------------------------------------------------------------------------------------------


def record_job(job: Job) -> None:
    """Record the call on the inputs of seed 0 and compare it with the plain one, bit by bit."""
    expected = run(job.function, job.make(0))
    args = job.make(0)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recorded = record(job.function, args, {}, max_nodes=20_000)
        except Exception as error:
            if type(error) is not type(expected.error):
                job.complain(f"the recorded call raised {error!r}, the plain one {expected.error!r}")
            job.status = "raises"
            return
    if isinstance(recorded, Undone):
        note_undone(job, recorded, args, expected)
        return
    if isinstance(recorded, Raised):
        job.complain(f"the recorded call raised {recorded.error!r} after an effect that cannot be undone")
        job.status = "raises"
        return
    if expected.error is not None:
        job.complain(f"the recorded call did not raise {expected.error!r}")
    compare(job, "recorded", expected, Run(recorded.result, None, args), exact=True)
    if recorded.refusal is not None:
        refuse(job, recorded.refusal.reason, recorded.refusal.detail)
        return
    job.trace = recorded.trace


def note_undone(job: Job, undone: Undone, args: tuple[Any, ...], expected: Run) -> None:
    if not same_values(args, job.make(0), exact=True):
        job.complain("undoing left the arguments changed")
    if undone.refusal.reason != "path.exception":  # the tape broke, and the call was left there
        refuse(job, undone.refusal.reason, undone.refusal.detail)
        return
    job.status, job.detail = "raises", undone.refusal.detail
    if expected.error is None:
        job.complain(f"the recorded call was undone: {undone.refusal.detail}")


def refuse(job: Job, reason: str, detail: str) -> None:
    job.status, job.detail = reason, detail
    if reason in FAULTS:
        job.complain(f"[{reason}] {detail}")


def lower_job(job: Job) -> None:
    """Lower the trace with nothing taken for constant; a refusal ends the job."""
    import jax

    assert job.trace is not None
    try:
        lowered = lower(job.trace, Known())
        values, _ = job.trace.inputs.fetch(job.make(0), {})
        executable = Executable(lowered, None, lowered.constants, 0.0, on_cpu=True)
        job.entry = jax.jit(entry(lowered))  # traced here, and not again within its batch
        with jax.enable_x64(True):
            jax.eval_shape(job.entry, *_shapes(values, lowered))
    except Unsupported as gap:
        refuse(job, gap.reason, gap.detail)
        return
    job.status = "compiled"
    job.executable = executable
    job.variant = Variant(job.trace, executable)


def _shapes(values: Any, lowered: Any) -> Any:
    import jax

    from accel.compiler.lower import PACKS

    given = [jax.ShapeDtypeStruct(values[slot].shape, values[slot].dtype) for slot in lowered.slots]
    scalars = {
        pack: jax.ShapeDtypeStruct((len(nodes),), PACKS[pack]) for pack, nodes in lowered.scalars.items() if nodes
    }
    return given, lowered.constants, scalars


# -- replaying --------------------------------------------------------------------------------------------------------


class Captured(Exception):
    """Carries what a program was to be run on."""


@dataclass
class Pending:
    """One replay: the values of the slots, and what the program is run on."""

    job: Job
    seed: int
    args: tuple[Any, ...]
    values: list[Any]
    inputs: Any


def prepare(job: Job, seed: int) -> Pending | None:
    """Match fresh inputs; None where they are another path, which only a raising or branching call may be."""
    assert job.trace is not None
    args = job.make(seed)
    values = Matcher(job.trace).match(args, {})
    if isinstance(values, GuardFailure):
        return None
    caught: list[Any] = []

    def capture(given: Any, *others: Any) -> Any:
        caught.append(([np.array(array) for array in given], *others))
        raise Captured

    job.executable.compiled = capture
    try:
        job.variant.run(values)
    except Captured:
        pass
    except HostError:
        return None
    return Pending(job, seed, args, values, caught[0])


def settle(pending: Pending, outputs: Any) -> None:
    """Commit one replay's outputs and compare with the plain call."""
    job = pending.job
    job.executable.compiled = lambda *args: outputs
    expected = run(job.function, job.make(pending.seed))
    staged = job.variant.run(pending.values)
    if not isinstance(staged, StagedOutputs):
        return  # an outcome differs: the call would be recorded anew
    job.hits += 1
    if expected.error is not None:
        job.complain(f"seed {pending.seed}: the replay did not raise {expected.error!r}")
        return
    result = commit(staged)
    compare(job, f"replay of seed {pending.seed}", expected, Run(result, None, pending.args), exact=False)


def run_batch(jobs: Sequence[Job], seeds: Sequence[int], options: Mapping[str, Any]) -> None:
    """Replay many jobs on each seed, compiled as one program."""
    import jax

    prepared = [{seed: prepare(job, seed) for seed in seeds} for job in jobs]
    chosen = [(job, found) for job, found in zip(jobs, prepared, strict=True) if any(found.values())]
    functions = [job.entry for job, _ in chosen]

    def together(inputs: Any) -> Any:
        return [function(*given) for function, given in zip(functions, inputs, strict=True)]

    compute = jax.jit(together, compiler_options=known(options))
    if len(chosen) > 1 and not _compiles(compute, chosen, seeds):
        for job, _ in chosen:
            run_batch([job], seeds, options)
        return
    for seed in seeds:
        pendings = [found[seed] or next(filter(None, found.values())) for _, found in chosen]
        with jax.enable_x64(True):
            try:
                outputs = jax.block_until_ready(compute(jax.device_put([pending.inputs for pending in pendings])))
            except Exception as error:
                chosen[0][0].complain(f"[compile.failed] {str(error)[:300]}")
                return
        for pending, output in zip(pendings, outputs, strict=True):
            if pending.seed == seed:
                settle(pending, output)


def _compiles(compute: Any, chosen: Any, seeds: Sequence[int]) -> bool:
    """Whether a batch compiles; otherwise its jobs are run one by one, to find the one at fault."""
    import jax

    with jax.enable_x64(True):
        try:
            compute(jax.device_put([next(filter(None, found.values())).inputs for _, found in chosen]))
        except Exception:
            return False
    return True


def judge(
    jobs: Iterable[Job], *, seeds: Sequence[int] = (0, 1, 2), batch: int = 64, options: Mapping[str, Any] = QUICKEST
) -> list[Job]:
    """Record, compile and replay every job; gives them with what was found.

    options: the compiler's.
    """
    done, waiting = [], []
    for job in jobs:
        done.append(job)
        record_job(job)
        if job.trace is not None:
            lower_job(job)
        if job.status == "compiled":
            waiting.append(job)
        if len(waiting) >= batch:
            run_batch(waiting, seeds, options)
            waiting.clear()
    if waiting:
        run_batch(waiting, seeds, options)
    for job in done:
        if job.status == "compiled" and not job.hits:
            job.complain("no replay went through, not even with the recorded inputs")
    return done


# -- comparing --------------------------------------------------------------------------------------------------------


def compare(job: Job, what: str, expected: Run, got: Run, *, exact: bool) -> None:
    """Complain about every difference in result and arguments, also after the results have been written to."""
    if expected.error is not None:
        return
    problem = difference(expected.result, got.result, exact=exact, loose=job.loose)
    if problem:
        job.complain(f"{what}: result {problem}")
    problem = difference(expected.args, got.args, exact=exact, loose=job.loose)
    if problem:
        job.complain(f"{what}: arguments {problem}")
    if problem or (not exact and job.problems):
        return
    for left, right in zip(_arrays(expected.result), _arrays(got.result), strict=False):
        if left.flags.writeable and right.flags.writeable:  # a replay may give a writable array where NumPy's is not
            left[...] = right[...] = 1
    problem = difference((expected.result, expected.args), (got.result, got.args), exact=exact, loose=job.loose)
    if problem:
        job.complain(f"{what}: after writing to the result, {problem}: view where NumPy copies, or the reverse")


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _arrays(part)


def same_values(left: Any, right: Any, *, exact: bool) -> bool:
    return not difference(left, right, exact=exact)


def difference(expected: Any, got: Any, *, exact: bool, loose: float = 1.0) -> str:
    """What tells two values apart, or the empty text."""
    if type(expected) is not type(got):
        return f"is a {type(got).__name__}, not a {type(expected).__name__}"
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(got):
            return f"has {len(got)} parts, not {len(expected)}"
        parts = (difference(a, b, exact=exact, loose=loose) for a, b in zip(expected, got, strict=True))
        return next((part for part in parts if part), "")
    if isinstance(expected, (np.ndarray, np.generic, float, complex)):
        return _array_difference(np.asarray(expected), np.asarray(got), exact=exact, loose=loose)
    if isinstance(expected, slice) or expected is None or isinstance(expected, (int, str, np.dtype, type, bool)):
        return "" if expected == got else f"is {got!r}, not {expected!r}"
    return ""


def _array_difference(expected: Any, got: Any, *, exact: bool, loose: float) -> str:
    if expected.shape != got.shape:
        return f"has shape {got.shape}, not {expected.shape}"
    if expected.dtype != got.dtype:
        return f"has dtype {got.dtype}, not {expected.dtype}"
    if exact and expected.flags.writeable != got.flags.writeable:
        return f"is writeable: {got.flags.writeable}, not {expected.flags.writeable}"
    if exact or expected.dtype.kind in "biu":
        agrees = np.array_equal(expected, got, equal_nan=expected.dtype.kind in "fc")
    else:
        agrees = close(expected, got, loose)
    return "" if agrees else f"is {_short(got)}, not {_short(expected)}"


def _short(array: Any) -> str:
    return " ".join(np.array2string(array, threshold=40, precision=17).split())


def close(expected: Any, got: Any, loose: float = 1.0) -> bool:
    """Equal within a few units of the dtype's precision, relative to each value and, less, to the largest one."""
    with np.errstate(all="ignore"):
        if expected.dtype.kind == "c":
            parts = ((getattr(expected, part), getattr(got, part)) for part in ("real", "imag"))
            return _near(expected, got, loose) or all(close(*pair, loose) for pair in parts)
        return _near(expected, got, loose)


def _near(expected: Any, got: Any, loose: float) -> bool:
    with np.errstate(all="ignore"):
        same = (expected == got) | ((expected != expected) & (got != got))
        finite = np.isfinite(expected) & np.isfinite(got)
        eps = np.finfo(expected.dtype).eps
        wide = expected.astype(np.result_type(expected.dtype, np.float64))
        scale = np.abs(np.where(finite, wide, 0)).max(initial=0.0)
        allowed = loose * eps * (32 * np.abs(wide) + 8 * scale) + SAFE
        return bool((same | (finite & (np.abs(wide - got) <= allowed))).all())


def deep(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return copy.deepcopy(args)
