"""Compiling: turns a lowered program into an executable for the device that QD_JAX_PLATFORM names.

JAX's float64 is enabled only around accel's own work, so that a program's own use of JAX does not change.
"""

from __future__ import annotations

import inspect
import pickle
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from accel.backend import devices, divided, lapack, segmented
from accel.backend.devices import has_room, import_jax, start, threads
from accel.backend.disk import cache
from accel.backend.executable import Executable
from accel.backend.job import Job, Product, packed, unpacked
from accel.backend.machines import common, crew
from accel.backend.options import compile_with, need_plain_reductions, options_for
from accel.backend.shards import Shards, division
from accel.compiler.kernels import machine_code
from accel.compiler.kernels.segments import Segmented
from accel.compiler.lower import PACKS, Known, Lowerable, LoweredProgram, lower
from accel.compiler.lower.rounding import rounded_as_numpy
from accel.ir.fingerprint import digest
from accel.platform import config, interrupts, jax_internals, ledger, logs, pickling, tuning
from accel.platform.clocks import time
from accel.rules.rule import Unsupported

_UNKEPT_SHARDS = "programs for several devices are not kept"


@jax_internals.quiet_logs()
def compile_trace(trace: Lowerable, known: Known, samples: Sequence[Any]) -> Executable:
    """Lower and compile a trace, for several devices if the settings say so and it can be. Raises Unsupported.

    known: inputs to fold. samples: a value of each slot, for shapes and dtypes.
    """
    device, shards, undivided = _begin(samples)
    alone = _compile(trace, known, samples, device, None)
    if shards is not None:
        try:
            sharded = _compile(trace, known, samples, device, shards)
            undivided = divided.problem(sharded, alone, samples)
            if not undivided:
                sharded.seconds += alone.seconds
                return sharded
        except Exception as error:
            interrupts.pass_on(error)
            undivided = error.detail if isinstance(error, Unsupported) else _first_line(error)
    alone.undivided = undivided
    return alone


def _compile(trace: Lowerable, known: Known, samples: Sequence[Any], device: Any, shards: Shards | None) -> Executable:
    started = time.perf_counter()
    jax = import_jax()
    on_cpu = devices.shares_memory(device) and shards is None
    with jax.enable_x64(True), jax.default_device(device):
        precision = config.current().precision
        program = lower(trace, known, on_cpu=on_cpu, precision=precision)
        # the whole program: XLA has the option for a compile, not for one operation
        options = options_for(device.platform, plain_reductions=need_plain_reductions(trace.tape.nodes))
        constants, made = program.constants, _of_kernels(program, samples, device, options)
        if made is None:
            constants, made = _of_xla(program, samples, device, shards, options)
    seconds = time.perf_counter() - started
    return Executable(
        program, made.compiled, constants, seconds, on_cpu, made.key, made.unkept, precision, device, shards
    )


class _Made(NamedTuple):
    """A compiled program. key: of its entry in the disk cache, or None; unkept: why it has none, as of `Executable`."""

    compiled: Any
    key: str | None
    unkept: str = ""


def _of_xla(
    program: LoweredProgram, samples: Sequence[Any], device: Any, shards: Shards | None, options: dict[str, Any]
) -> tuple[list[Any], _Made]:
    """The program's constants on the device, and the program as XLA compiles it. Raises Unsupported."""
    import jax

    if config.current().exact:
        raise Unsupported("compile.exact", "")
    alone = jax.sharding.SingleDeviceSharding(device)

    def place_of(shape: tuple[int, ...]) -> Any:
        return alone if shards is None else shards.of(shape)

    def about(shape: tuple[int, ...], dtype: np.dtype[Any] | type[Any]) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=place_of(shape))

    given = [about(samples[slot].shape, samples[slot].dtype) for slot in program.slots]
    scalars = _scalar_forms(program, about)
    try:
        if shards is not None and shards.is_across:
            assert crew.current is not None, "others' devices are known to rank 0 alone"
            across = common.build(crew.current, entry(program), (given, scalars), program.constants, shards, options)
            return [], _Made(across, None, _UNKEPT_SHARDS)
        constants = [jax.device_put(value, place_of(np.shape(value))) for value in program.constants]
        arguments = given, constants, scalars
        if shards is not None:
            return constants, _Made(_built(program, arguments, options), None, _UNKEPT_SHARDS)
        key = _key(program, arguments, device)
        cached = _from_cache(key, device)
        if cached is not None:
            return constants, _Made(cached, key)
        return constants, _saved(program, key, _built(program, arguments, options))
    except Unsupported:
        raise
    except Exception as error:
        reason = "device.memory" if devices.is_out_of_memory(error) else "compile.failed"
        raise Unsupported(reason, _first_line(error)) from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _begin(samples: Sequence[Any]) -> tuple[Any, Shards | None, str]:
    """Start JAX for arrays like these. Raises Unsupported.

    Returns the device to use, or the first of several. Also returns the division of arrays among these, and the reason
    if they are not divided although the settings ask for it.
    """
    if not has_room():
        raise Unsupported("environment.memory", "")
    tuning.keep_freed()
    start(usual_size(samples))
    chosen = config.current()
    try:
        device = devices.device(chosen.platform)
        if chosen.devices == 1:
            return device, None, ""
        found = division(devices.all_devices(chosen), [each.shape for each in samples if isinstance(each, np.ndarray)])
        return (device, None, found) if isinstance(found, str) else (device, found, "")
    except config.SettingError as error:  # `install` checked it, but the device has gone since
        raise Unsupported("device.missing", str(error)) from error


def usual_size(samples: Sequence[Any]) -> int:
    """The number of elements that arrays usually have: their median.

    One large array among small ones says little about how a program's other operations, and other programs, fare.
    """
    sizes = [value.size for value in samples if isinstance(value, np.ndarray)]
    return statistics.median_high(sizes) if sizes else 0


def _scalar_forms(program: LoweredProgram, about: Callable[..., Any]) -> dict[str, Any]:
    """The forms of the packed scalars. about: gives that of an array of a shape and dtype."""
    return {pack: about((len(nodes),), PACKS[pack]) for pack, nodes in program.scalars.items() if nodes}


def _of_kernels(program: LoweredProgram, samples: Sequence[Any], device: Any, options: dict[str, Any]) -> _Made | None:
    """The program as kernels; None where XLA compiles it whole."""
    import jax

    if program.for_kernels is None or not config.current().kernels:
        return None
    if machine_code.problem():
        _say_once(f"no kernels: llvmlite cannot be used ({machine_code.problem()}); XLA compiles all programs")
        return None

    def about(array: Any) -> Any:
        return jax.ShapeDtypeStruct(np.shape(array), array.dtype)

    given = [about(samples[slot]) for slot in program.slots]
    arguments = given, [about(each) for each in program.constants], _scalar_forms(program, jax.ShapeDtypeStruct)
    key = _key(program, arguments, device, "kernels", *machine_code.target(), str(config.current().exact))
    cached = _from_cache(key, device)
    if cached is not None:
        return _Made(cached, key)
    if key is not None and cache.read(key, cache.WHOLE) is not None:
        return None
    try:
        compiled = segmented.built(program.for_kernels, arguments, options)
    except Exception as error:
        logs.LOGGER.info("a program is compiled by XLA as a whole: %s", _first_line(error))
        if key is not None and config.current().cache_dir is not None and not isinstance(error, MemoryError):
            cache.save(key, b"", cache.WHOLE)  # a later process does not try again
        return None
    return _saved(program, key, compiled)


def _saved(program: LoweredProgram, key: str | None, compiled: Any) -> _Made:
    """Keep a compiled program on disk."""
    unkept = "" if config.current().cache_dir is None else _keep(program, key, compiled)
    if unkept:
        report_not_kept(unkept)
    return _Made(compiled, None if unkept else key, unkept)


def _built(program: LoweredProgram, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    import jax

    # `jax.jit` sees the lowered tape, a pure function over jax.numpy, and never the program's own code
    return compile_with(jax.jit(entry(program)).lower(*arguments), options)


def report_not_kept(why: str) -> None:
    """Say in the log and in the report, once, that programs are not in the disk cache. why: `Executable.unkept`."""
    _say_once(f"a program cannot be kept on disk and is compiled again at every start: {why}")


def _say_once(sentence: str) -> None:
    """Say it in the log and in the report."""
    if sentence not in ledger.current_run().notes:
        logs.LOGGER.info("%s", sentence)
        ledger.current_run().note(sentence)


def entry(program: LoweredProgram) -> Callable[..., Any]:
    """The function to compile, with NumPy's rounding. It takes what `Executable.run` passes."""
    function = program.function
    assert function is not None, "a program that another process compiled has none"
    return rounded_as_numpy(function, lambda *given: given[-2][-1]) if program.is_rounded else function


def _key(program: LoweredProgram, arguments: tuple[Any, ...], device: Any, *more: str) -> str | None:
    """The key of the program's entry in the disk cache; None if it cannot have one. more: what else it depends on."""
    import jax

    if program.fingerprint is None or not cache.is_used():
        return None
    shapes = [(leaf.shape, str(leaf.dtype)) for leaf in jax.tree_util.tree_leaves(arguments)]
    precision = getattr(jax.config, "jax_default_matmul_precision", None)
    where = device.platform, devices.shares_memory(device), device.device_kind, device.id, threads()
    return digest(program.fingerprint, shapes, where, str(precision), config.current().precision, *more)


def _from_cache(key: str | None, device: object) -> Any:
    if key is None:
        return None
    return cache.parsed(key, cache.SUFFIX, lambda payload: deserialized(payload, device))


def _keep(program: LoweredProgram, key: str | None, compiled: object) -> str:
    """Keep a compiled program on disk. Returns "", or why it could not be kept."""
    if key is None:
        return f"it holds {program.indescribable}, which cannot be described to another process"
    try:
        return cache.save(key, payload_of(compiled))
    except Exception as error:  # not every JAX backend can serialize its programs
        return why(error)


# -- in one process for another ----------------------------------------------------------------------------------------


@tuning.rare_garbage_collection()
def compile_job(job: Job, limited: Callable[[float], AbstractContextManager[None]]) -> Product:
    """Lower and compile a job of another process, with the current settings, and try it. Raises Unsupported.

    limited: ends this process if what runs in it takes more than so many seconds.
    """
    trace = job.trace()
    made = compile_trace(trace, job.known, job.samples())
    problem = "" if job.trial is None else job.trial.problem(made, trace, limited)
    if problem:
        if made.key is not None:
            cache.discard(made.key)
        raise Unsupported("compile.trial", problem)
    return product_of(made, trace)


def product_of(made: Executable, trace: Lowerable) -> Product:
    """An executable of a trace, as data."""
    payload, unkept = None, made.unkept
    if made.key is None:
        try:
            payload = payload_of(made.compiled)
        except Exception as error:
            unkept = unkept or why(error)
    needs_jax = not isinstance(made.compiled, Segmented) or bool(segmented.of_xla(made.compiled))
    return Product(packed(made.program, trace), made.key, unkept, payload, made.seconds, needs_jax)


@jax_internals.quiet_logs()
def load(product: Product, trace: Lowerable, known: Known, samples: Sequence[Any]) -> Executable | None:
    """Load the executable of a product in this process; None if its entry on disk is gone or cannot be used.

    Products are made for the CPU alone (see `accel.backend.job.describe`): there is none for another device.
    """
    if product.needs_jax:
        device, _, _ = _begin(samples)
        if not devices.shares_memory(device):
            return None
    else:
        tuning.keep_freed()
        device = devices.HOST
    program = unpacked(product.program, trace, known)
    if product.key is not None:
        compiled = _from_cache(product.key, device)
    else:
        compiled = None if product.payload is None else deserialized(product.payload, device)
    if compiled is None:
        return None
    precision = config.current().precision  # its key says so
    made = Executable(program, compiled, [], product.seconds, True, product.key, precision=precision, device=device)
    made.constants = [made.placed(value) for value in program.constants]
    return made


# -- compiled programs as bytes, for the disk cache and for other processes -------------------------------------------


def deserialized(payload: bytes, device: Any) -> Any:
    """Deserialize what `payload_of` gave. Raises what JAX raises, and KernelUnavailable if a kernel is missing.

    device: JAX's, or `devices.HOST` for a program of kernels alone.
    """
    called, parts = pickle.loads(payload)
    if isinstance(called, Segmented):
        return segmented.loaded(called, [deserialized(part, device) for part in parts])
    import jax
    from jax.experimental import serialize_executable

    deserialize = serialize_executable.deserialize_and_load
    where = {"backend": device.client, "execution_devices": [device]}
    # versions of JAX differ in what they take
    where = {name: value for name, value in where.items() if name in inspect.signature(deserialize).parameters}
    # before the program is loaded: a kernel that is not initialised would crash the process, and raise nothing
    problem = lapack.unavailable(called)
    if problem:
        raise lapack.KernelUnavailable(problem)
    with jax.enable_x64(True), jax.default_device(device):
        return deserialize(*parts, **where)


def payload_of(compiled: Any) -> bytes:
    """Serialize a compiled program and the names of its kernels. Raises KernelUnavailable if a kernel is missing."""
    if isinstance(compiled, Segmented):
        return pickling.dumps(
            (segmented.without_xla(compiled), [payload_of(part) for part in segmented.of_xla(compiled)])
        )
    from jax.experimental import serialize_executable

    called = lapack.called(compiled)
    problem = lapack.unavailable(called)
    if problem:
        raise lapack.KernelUnavailable(problem)
    return pickling.dumps((called, serialize_executable.serialize(compiled)))


def why(error: Exception) -> str:
    """Why a program could not be serialized."""
    return str(error) if isinstance(error, lapack.KernelUnavailable) else f"{type(error).__name__}: {error}"
