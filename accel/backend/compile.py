"""Compiling: a lowered program becomes an executable for the device that QD_JAX_PLATFORM names.

Float64 is switched on around accel's own work alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import itertools
import pickle
import time
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accel import config, logs
from accel.backend import cache, lapack
from accel.backend.devices import device, has_room, import_jax, start, threads
from accel.backend.job import Job, Product, packed, unpacked
from accel.backend.spans import Span, arrays_from, is_aligned, prepared_arrays, span_of
from accel.ir.fingerprint import digest
from accel.ir.tape import Node
from accel.lower import PACKS, Known, Lowerable, Program, lower
from accel.process import jax_internals, memory
from accel.record import Trace
from accel.reports import ledger
from accel.rules.rule import Unsupported

_executables: weakref.WeakValueDictionary[int, Executable] = weakref.WeakValueDictionary()
"""All there are, in this process."""

_numbers = itertools.count()


@dataclass(slots=True, weakref_slot=True, eq=False)
class Executable:
    """A compiled program. seconds: what lowering and compiling took. constants: on the device already.

    on_cpu: whether that is the host itself, which then shares its memory with NumPy. spans: of the arrays that it takes
    as such, by place; copied: how often others were copied that would gain by one (see accel.backend.spans). key: what
    it is kept under on disk, None where it is not; unkept: why it is not, so that every start of the program compiles
    it anew, "" where it is, or where there is no disk cache.
    """

    program: Program
    compiled: Any
    constants: list[Any]
    seconds: float
    on_cpu: bool
    spans: dict[int, Span]
    key: str | None = None
    copied: Counter[int] = field(default_factory=Counter)
    unkept: str = ""

    def __post_init__(self) -> None:
        _executables[next(_numbers)] = self

    def __call__(self, arrays: Sequence[Any], scalars: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Run it: new and changed arrays, and the packed outcomes and numbers, as device values."""
        return self.run(*self.prepare_arrays(arrays), scalars)

    def prepare_arrays(self, arrays: Sequence[Any]) -> tuple[list[Any], Any]:
        """Arrays as the program takes them, and where in their spans they are."""
        return prepared_arrays(arrays, self.spans, self.copied) if self.on_cpu else (list(arrays), None)

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


def leak_executables() -> None:
    """At the end of the process: do not take programs apart one by one, which takes longer than all else that it does.

    They hold nothing but memory, which the system takes back at once.
    """
    with contextlib.suppress(Exception):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(list(_executables.values())))


def compile_trace(
    trace: Lowerable, known: Known, samples: Sequence[Any], spanned: Collection[int] = frozenset()
) -> Executable:
    """Lower and compile. Raises Unsupported.

    samples: a value of each slot, for shapes and dtypes. spanned: slots of arrays that a CPU takes from spans.
    """
    started = time.perf_counter()
    place = _begin(samples)
    jax = import_jax()
    on_cpu = place.platform == "cpu"
    chosen = frozenset(spanned) if on_cpu else frozenset()
    with jax.enable_x64(True), jax.default_device(place):
        program = lower(trace, known, on_cpu=on_cpu, spanned=chosen)
        spans = _spans(program, samples, chosen)
        sharding = jax.sharding.SingleDeviceSharding(place)

        def about(shape: tuple[int, ...], dtype: Any) -> Any:
            return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

        given = [about(samples[slot].shape, samples[slot].dtype) for slot in program.slots]
        for at, span in spans.items():
            given[at] = about((span.length,), span.dtype)
        places = about((len(spans),), np.int32) if spans else None
        scalars = {pack: about((len(nodes),), PACKS[pack]) for pack, nodes in program.scalars.items() if nodes}
        constants = [jax.device_put(value, place) for value in program.constants]
        careful = on_cpu and any(map(_is_mistaken, trace.tape.nodes))
        try:
            compiled, key, unkept = _compiled(program, spans, (given, places, constants, scalars), place, careful)
        except Unsupported:
            raise
        except Exception as error:
            raise Unsupported("compile.failed", f"{type(error).__name__}: {str(error).splitlines()[0]}") from error
    seconds = time.perf_counter() - started
    return Executable(program, compiled, constants, seconds, on_cpu, spans, key, unkept=unkept)


def _begin(samples: Sequence[Any]) -> Any:
    """The device, JAX being started for arrays like these. Raises Unsupported."""
    if not has_room():
        raise Unsupported("environment.memory", "")
    memory.keep_freed()
    start(largest(samples))
    try:
        return device(config.current().platform)
    except config.SettingError as error:  # it was there when functions were chosen
        raise Unsupported("device.missing", str(error)) from error


def largest(samples: Sequence[Any]) -> int:
    """Elements of the largest array."""
    return max((value.size for value in samples if isinstance(value, np.ndarray)), default=0)


def _spans(program: Program, samples: Sequence[Any], spanned: frozenset[int]) -> dict[int, Span]:
    return {at: span_of(samples[slot]) for at, slot in enumerate(program.slots) if slot in spanned}


def _is_mistaken(node: Node) -> bool:
    """Whether XLA's own reductions on the CPU may be wrong where they read this (see
    `jax_internals.compiled_with_care`)."""
    return node.rule.name == "numpy.pad" or (node.dtype is not None and node.dtype in (np.int8, np.uint8))


def _compiled(
    program: Program, spans: dict[int, Span], arguments: tuple[Any, ...], place: Any, careful: bool
) -> tuple[Any, str | None, str]:
    """The executable for arguments like these, from the disk cache or compiled and kept there.

    Also what it is kept under, None where it is not, and why not (see `Executable.unkept`).
    """
    import jax

    key = _key(program, spans, arguments, place)
    found = _load(key, place)
    if found is not None:
        return found, key, ""
    lowered = jax.jit(entry(program, spans)).lower(*arguments)
    found = jax_internals.compiled_with_care(lowered) if careful else lowered.compile()
    unkept = "" if config.current().cache_dir is None else _keep(program, key, found)
    if unkept:
        report_not_kept(unkept)
    return found, None if unkept else key, unkept


def report_not_kept(why: str) -> None:
    """Say in the log and in the report, once, that programs are not in the disk cache (see `Executable.unkept`)."""
    sentence = f"a program is not kept on disk, and compiled anew at every start: {why}"
    if sentence not in ledger.current_run().notes:
        logs.LOGGER.info("%s", sentence)
        ledger.current_run().note(sentence)


def entry(program: Program, spans: dict[int, Span]) -> Callable[..., Any]:
    """The program's function, of what `Executable` hands over."""
    body = program.function
    assert body is not None, "a program that another process compiled has none"

    def function(given: Any, places: Any, constants: Any, scalars: Any) -> Any:
        return body(arrays_from(given, places, spans), constants, scalars)

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
    try:
        return _executable(payload, place)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    logs.LOGGER.info("a program on disk could not be used and is compiled anew: %s", problem)
    cache.discard(key)
    return None


def _executable(payload: bytes, place: Any) -> Any:
    """What `_payload` wrote down. Raises whatever JAX raises, and KernelUnavailable where its kernels are not there."""
    from jax.experimental import serialize_executable

    load = serialize_executable.deserialize_and_load
    where = {"backend": place.client, "execution_devices": [place]}
    where = {name: value for name, value in where.items() if name in inspect.signature(load).parameters}
    called, parts = pickle.loads(payload)
    problem = lapack.unavailable(called)
    if problem:
        raise lapack.KernelUnavailable(problem)
    return load(*parts, **where)


def _payload(compiled: Any) -> bytes:
    """A compiled program, with the names of the kernels that it calls. Raises KernelUnavailable where these are not there."""
    from jax.experimental import serialize_executable

    called = lapack.called(compiled)
    problem = lapack.unavailable(called)
    if problem:
        raise lapack.KernelUnavailable(problem)
    return pickle.dumps((called, serialize_executable.serialize(compiled)))


def _keep(program: Program, key: str | None, compiled: Any) -> str:
    """Keep a compiled program on disk. Returns "", or why it is not there."""
    if key is None:
        return f"it holds {program.indescribable}, of which another process cannot be told"
    try:
        return cache.save(key, _payload(compiled))
    except Exception as error:  # not every backend can write its programs down
        return _why(error)


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, lapack.KernelUnavailable) else f"{type(error).__name__}: {error}"


# -- in one process for another ----------------------------------------------------------------------------------------


def compile_job(job: Job) -> Product:
    """Lower and compile for another process, with the settings in force. Raises Unsupported."""
    trace = job.trace()
    return product_of(compile_trace(trace, job.known, job.samples(), job.spanned), trace)


def product_of(made: Executable, trace: Lowerable) -> Product:
    """An executable of a trace as data."""
    payload, unkept = None, made.unkept
    if made.key is None:
        try:
            payload = _payload(made.compiled)
        except Exception as error:
            unkept = unkept or _why(error)
    return Product(packed(made.program, trace), made.key, unkept, payload, made.seconds)


def loaded(
    product: Product, trace: Trace, known: Known, samples: Sequence[Any], spanned: Collection[int]
) -> Executable | None:
    """The executable of a product, in this process; None where its entry on disk is gone or of no use."""
    place = _begin(samples)
    jax = import_jax()
    program = unpacked(product.program, trace, known)
    with jax.enable_x64(True), jax.default_device(place):
        if product.key is not None:
            compiled = _load(product.key, place)
        else:
            compiled = None if product.payload is None else _executable(product.payload, place)
        if compiled is None:
            return None
        constants = [jax.device_put(value, place) for value in program.constants]
    spans = _spans(program, samples, frozenset(spanned))
    return Executable(program, compiled, constants, product.seconds, True, spans, product.key)


def without_contents(values: Sequence[Any]) -> list[Any]:
    """Arrays like those among the values, without their memory: what waits to be compiled holds nothing of a call."""
    return [
        np.broadcast_to(np.zeros((), value.dtype), value.shape) if isinstance(value, np.ndarray) else None
        for value in values
    ]


def shared(array: Any, shape: tuple[int, ...], typestr: str) -> np.ndarray[Any, Any]:
    """A finished result of an executable `on_cpu` as a plain, writable ndarray that keeps its memory alive.

    Nobody else has that memory, and XLA's buffers start on 64-byte boundaries, so that state comes back to the next
    call without a copy. shape, typestr: the array's.
    """
    if 0 in shape:
        return np.array(array)
    return memory.array_at(array.unsafe_buffer_pointer(), shape, typestr, owner=array, writeable=True)
