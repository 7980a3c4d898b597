"""Compiled programs as bytes, for the disk cache and for other processes."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

from accel.backend import lapack, segmented
from accel.compiler.kernels.segments import Segmented
from accel.platform import pickling


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
