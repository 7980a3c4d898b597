"""Machine code from LLVM IR, and its place in this process."""

from __future__ import annotations

import functools
import hashlib
import threading
from typing import Any

_lock = threading.Lock()
"""LLVM's parser and code generator share a context, which one thread may use at a time."""

_LEVEL = 1
"""LLVM's level of optimising while it generates code: 2 takes a quarter longer, and its code is no faster (an iteration
of PyGCM's loop)."""


@functools.cache
def binding() -> Any:
    """llvmlite's binding, ready to generate code for this processor. Raises ImportError."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@functools.cache
def target() -> tuple[str, str]:
    """The processor's name and features, as LLVM calls them."""
    features = binding().get_host_cpu_features()
    return binding().get_host_cpu_name(), features.flatten()


@functools.cache
def lanes(itemsize: int) -> int:
    """Lanes of the vectors that loops over elements of this size use: two registers of AVX2, one of AVX-512."""
    return max(64 // itemsize, 1)


def object_of(text: str) -> bytes:
    """Compile a module for this processor, for `Loaded`. Raises RuntimeError if LLVM refuses it."""
    llvm = binding()
    name, features = target()
    with _lock:
        module = llvm.parse_assembly(text)
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=name, features=features, opt=_LEVEL, jit=True
        )
        module.data_layout, module.triple = str(machine.target_data), machine.triple
        found: bytes = machine.emit_object(module)
    return _seal(found) + found


def _seal(code: bytes) -> bytes:
    """A hash of an object and of the processor that it is for."""
    return hashlib.sha256("\0".join((*target(), "")).encode() + code).digest()


_SEAL_SIZE = hashlib.sha256().digest_size


class Loaded:
    """Machine code in this process's memory. It stays as long as this lives."""

    def __init__(self, code: bytes) -> None:
        """Load what `object_of` gave. Raises RuntimeError where it is not that, or is for another processor."""
        seal, code = code[:_SEAL_SIZE], code[_SEAL_SIZE:]
        # LLVM ends the process where it cannot load an object
        if seal != _seal(code):
            raise RuntimeError("the machine code is damaged, or for another processor")
        llvm = binding()
        with _lock:
            machine = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function."""
        found: int = self._engine.get_function_address(name)
        return found


@functools.cache
def problem() -> str:
    """Why no code can be generated for this processor; "" if it can."""
    try:
        target()
    except Exception as error:  # whatever is wrong with llvmlite, XLA compiles the program
        return f"{type(error).__name__}: {error}"
    return ""
