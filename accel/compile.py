"""Compiling: a lowered program becomes an executable for the device that QD_JAX_PLATFORM names.

Float64 is switched on around accel's own work alone.
"""

from __future__ import annotations

import heapq
import inspect
import itertools
import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accel import cache, config, interpreter, kernels, ledger, logs, memory
from accel.devices import device, start, threads
from accel.fingerprint import digest
from accel.lower import PACKS, Known, Program, lower
from accel.record import Trace
from accel.rules.rule import Unsupported
from accel.spans import Span, arrays_from, handed_over, is_aligned, span_of


@dataclass(slots=True)
class Executable:
    """A compiled program. seconds: what lowering and compiling took. constants: on the device already.

    on_cpu: whether that is the host itself, which then shares its memory with NumPy. spans: of the arrays that it takes
    as such, by place; copied: how often others were copied that would gain by one (see accel.spans). unkept: why it is
    not in the disk cache, so that every start of the program compiles it anew; "" where it is, or where there is none.
    """

    program: Program
    compiled: Any
    constants: list[Any]
    seconds: float
    on_cpu: bool
    spans: dict[int, Span]
    copied: Counter[int] = field(default_factory=Counter)
    unkept: str = ""

    def __call__(self, arrays: Sequence[Any], scalars: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Run it: new and changed arrays, and the packed outcomes and numbers, as device values."""
        return self.run(*self.hand_over(arrays), scalars)

    def hand_over(self, arrays: Sequence[Any]) -> tuple[list[Any], Any]:
        """Arrays as the program takes them, and where in their spans they are."""
        return handed_over(arrays, self.spans, self.copied) if self.on_cpu else (list(arrays), None)

    def run(self, given: list[Any], places: Any, scalars: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Run it on what was handed over."""
        import jax

        with jax.enable_x64(True):
            made, packs = self.compiled(given, places, self.constants, scalars)
        return made, packs

    def time_copies(self, given: Sequence[Any], made: Sequence[Any], changed: Sequence[Any]) -> float:
        """Seconds that the copies around one run take: inputs to the device, results and changed arrays back.

        On CPU those are inputs that cannot be used where they lie, and arrays changed in place; new arrays stay.
        """
        import jax

        if self.on_cpu:
            copied = [each for place, each in enumerate(given) if place not in self.spans and not is_aligned(each)]
            started = time.perf_counter()
        else:
            place = device(config.current().platform)
            with jax.enable_x64(True):
                copied = jax.block_until_ready(jax.device_put(list(made), place))
                started = time.perf_counter()
                jax.block_until_ready(jax.device_put(list(given), place))
        for each in (*copied, *changed):
            np.array(each)
        return time.perf_counter() - started


def compile_trace(
    trace: Trace, known: Known, samples: Sequence[Any], spanned: Collection[int] = frozenset()
) -> Executable:
    """Lower and compile. Raises Unsupported.

    samples: a value of each slot, for shapes and dtypes. spanned: slots of arrays that a CPU takes from spans.
    """
    import jax

    started = time.perf_counter()
    settings = config.current()
    memory.keep_freed()
    start(max((value.size for value in samples if isinstance(value, np.ndarray)), default=0))
    place = device(settings.platform)
    on_cpu = place.platform == "cpu"
    chosen = frozenset(spanned) if on_cpu else frozenset()
    with jax.enable_x64(True), jax.default_device(place):
        program = lower(trace, known, on_cpu=on_cpu, spanned=chosen)
        spans = {at: span_of(samples[slot]) for at, slot in enumerate(program.slots) if slot in chosen}
        sharding = jax.sharding.SingleDeviceSharding(place)

        def about(shape: tuple[int, ...], dtype: Any) -> Any:
            return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

        given = [about(samples[slot].shape, samples[slot].dtype) for slot in program.slots]
        for at, span in spans.items():
            given[at] = about((span.length,), span.dtype)
        places = about((len(spans),), np.int32) if spans else None
        scalars = {pack: about((len(nodes),), PACKS[pack]) for pack, nodes in program.scalars.items() if nodes}
        constants = [jax.device_put(value, place) for value in program.constants]
        try:
            compiled, unkept = _compiled(program, spans, (given, places, constants, scalars), place)
        except Unsupported:
            raise
        except Exception as error:
            raise Unsupported("compile.failed", f"{type(error).__name__}: {str(error).splitlines()[0]}") from error
    seconds = time.perf_counter() - started
    return Executable(program, compiled, constants, seconds, on_cpu, spans, unkept=unkept)


def _compiled(program: Program, spans: dict[int, Span], arguments: tuple[Any, ...], place: Any) -> tuple[Any, str]:
    """The executable for arguments like these: from the disk cache, or compiled and kept there.

    Also why it is not there afterwards (see `Executable.unkept`).
    """
    import jax

    key = _key(program, spans, arguments, place)
    found = _load(key, place)
    if found is not None:
        return found, ""
    found = jax.jit(entry(program, spans)).lower(*arguments).compile()
    unkept = "" if config.current().cache_dir is None else _keep(program, key, found)
    if unkept:
        tell_unkept(unkept)
    return found, unkept


def tell_unkept(why: str) -> None:
    """Say in the log and in the report, once, that programs are not in the disk cache (see `Executable.unkept`)."""
    sentence = f"a program is not kept on disk, and compiled anew at every start: {why}"
    if sentence not in ledger.current_run().notes:
        logs.LOGGER.info("%s", sentence)
        ledger.current_run().note(sentence)


def entry(program: Program, spans: dict[int, Span]) -> Callable[..., Any]:
    """The program's function, of what `Executable` hands over."""

    def function(given: Any, places: Any, constants: Any, scalars: Any) -> Any:
        return program.function(arrays_from(given, places, spans), constants, scalars)

    return function


def _key(program: Program, spans: dict[int, Span], arguments: tuple[Any, ...], place: Any) -> str | None:
    """The name of the program's entry in the disk cache; None where it has none."""
    import jax

    if program.fingerprint is None or not cache.is_used():
        return None
    shapes = [(leaf.shape, str(leaf.dtype)) for leaf in jax.tree_util.tree_leaves(arguments)], sorted(spans)
    precision = getattr(jax.config, "jax_default_matmul_precision", None)
    return digest(program.fingerprint, shapes, place.platform, place.device_kind, place.id, str(precision), threads())


def _load(key: str | None, place: Any) -> Any:
    payload = cache.load(key) if key is not None else None
    if key is None or payload is None:
        return None
    from jax.experimental import serialize_executable

    load = serialize_executable.deserialize_and_load
    where = {"backend": place.client, "execution_devices": [place]}
    where = {name: value for name, value in where.items() if name in inspect.signature(load).parameters}
    try:
        called, parts = pickle.loads(payload)
        problem = kernels.unready(called)
        if not problem:
            return load(*parts, **where)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    logs.LOGGER.info("a program on disk could not be used and is compiled anew: %s", problem)
    cache.discard(key)
    return None


def _keep(program: Program, key: str | None, compiled: Any) -> str:
    """Keep a compiled program on disk, with the names of the kernels that it calls. Returns "", or why it is not."""
    if key is None:
        return f"it holds {program.indescribable}, of which another process cannot be told"
    from jax.experimental import serialize_executable

    try:
        called = kernels.called(compiled)
        unready = kernels.unready(called)
        return unready or cache.save(key, pickle.dumps((called, serialize_executable.serialize(compiled))))
    except Exception as error:  # not every backend can write its programs down
        return f"{type(error).__name__}: {error}"


def stand_ins(values: Sequence[Any]) -> list[Any]:
    """Arrays like those among the values, without their memory: what waits to be compiled holds nothing of a call."""
    return [
        np.broadcast_to(np.zeros((), value.dtype), value.shape) if isinstance(value, np.ndarray) else None
        for value in values
    ]


class Compile(Future[Executable]):
    """A program that is being compiled, or waits for that. order: the smallest is next. arguments: of compile_trace."""

    def __init__(self, order: tuple[float, int], arguments: tuple[Any, ...]) -> None:
        super().__init__()
        self.order = order
        self._arguments = arguments
        self._began: float | None = None

    def __lt__(self, other: Compile) -> bool:
        return self.order < other.order

    def seconds(self) -> float:
        """How long it has been compiled, not counting how long it waited."""
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def run(self) -> None:
        """Compile it, in this thread."""
        self._began = time.perf_counter()
        try:
            if not threading.main_thread().is_alive():  # when the program ends, what waits is not worth it any more
                raise Unsupported("compile.failed", "the program ended first")
            executable = compile_trace(*self._arguments)
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(executable)

    def abandon(self) -> None:
        """Leave the worker to it, for good; what waits gets a new one."""
        global _worker
        with _worker_lock:
            _under_way.discard(self)
            if _worker is not None:
                _worker.shutdown(wait=False, cancel_futures=True)
                _worker = None
            _work(len(_waiting))


_worker: ThreadPoolExecutor | None = None
_worker_lock = threading.Lock()
_waiting: list[Compile] = []
_under_way: set[Future[Executable]] = set()
_numbers = itertools.count()


def at_once(*arguments: Any) -> Compile:
    """`compile_trace`, done."""
    job = Compile((0.0, 0), arguments)
    job.run()
    return job


def in_background(
    trace: Trace,
    known: Known,
    samples: Sequence[Any],
    spanned: Collection[int] = frozenset(),
    *,
    worth: float,
    before: int,
) -> Compile:
    """`compile_trace` in a worker thread, the program going on in NumPy meanwhile.

    worth: seconds that a call takes without it. before: programs that its target has already, each of which is taken
    to halve the calls that this one will get. The functions of a step are ready at the same time: what saves most goes
    first, a large function's second program before a small one's first, and its tenth after.
    """
    job = Compile((-worth * 0.5**before, next(_numbers)), (trace, known, samples, spanned))
    _under_way.add(job)
    job.add_done_callback(_under_way.discard)
    with _worker_lock:
        heapq.heappush(_waiting, job)
        _work(1)
    return job


def _work(tasks: int) -> None:
    """Have so many of those that wait compiled; within the lock."""
    global _worker
    if tasks and _worker is None:
        _worker = ThreadPoolExecutor(1, thread_name_prefix="accel-compile")
    for _ in range(tasks):
        _worker.submit(_compile_next)  # type: ignore[union-attr]


def _compile_next() -> None:
    with _worker_lock:
        if not _waiting:  # an abandoned worker was given it already
            return
        job = heapq.heappop(_waiting)
    with interpreter.taking_turns(), interpreter.keeping():
        job.run()


def busy() -> bool:
    """Whether the worker is compiling: times measured meanwhile are not worth comparing."""
    return bool(_under_way)


def shared(array: Any, shape: tuple[int, ...], typestr: str) -> np.ndarray[Any, Any]:
    """A finished result of an executable `on_cpu` as a plain, writable ndarray that keeps its memory alive.

    Nobody else has that memory, and XLA's buffers start on 64-byte boundaries, so that state comes back to the next
    call without a copy. shape, typestr: the array's.
    """
    if 0 in shape:
        return np.array(array)
    return memory.array_at(array.unsafe_buffer_pointer(), shape, typestr, owner=array, writeable=True)
