"""Generate machine code from LLVM IR, and load it into this process."""

from __future__ import annotations

import functools
import hashlib
import pickle
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from accel.platform import forks

_lock = threading.Lock()
"""LLVM's parser and code generator share a context, which one thread may use at a time."""

_LEVEL = 1
"""LLVM's optimisation level for code generation.

Level 2 takes a quarter longer, and its code is no faster (an iteration of PyGCM's loop).
"""


@functools.cache
def binding() -> Any:
    """Return llvmlite's binding, initialised for this processor. Raises ImportError."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@contextmanager
def _at_work() -> Iterator[Any]:
    """LLVM's binding, for one thread. Forks wait: a child would destroy what is half built, which aborts it."""
    with forks.delayed(), _lock:
        yield binding()


@functools.cache
def target() -> tuple[str, str]:
    """Return the processor's name and features in LLVM's terms."""
    features = binding().get_host_cpu_features()
    return binding().get_host_cpu_name(), features.flatten()


@functools.cache
def lanes(itemsize: int) -> int:
    """Return the number of vector lanes for elements of this size: two registers of AVX2, one of AVX-512."""
    return max(64 // itemsize, 1)


@functools.cache
def holds_vectors() -> bool:
    """Return whether one register holds a vector of all lanes."""
    return "+avx512f" in target()[1].split(",")


_MOST_KEPT = 2000
"""Maximum number of texts whose machine code is kept: that of PyGCM's loop has 150, of 2 kB each."""

_kept: dict[bytes, bytes] = {}
"""Machine code by the hash of its text."""


def object_of(*units: str) -> bytes:
    """Compile texts for this processor, for `Loaded`. Raises RuntimeError if LLVM refuses one.

    What this process has compiled before is not compiled again.
    """
    texts = {hashlib.blake2b(text.encode()).digest(): text for text in units}
    found = {key: code for key in texts if (code := _kept.get(key)) is not None}
    new = _compiled({key: text for key, text in texts.items() if key not in found})
    if len(_kept) + len(new) > _MOST_KEPT:
        _kept.clear()
    _kept.update(new)
    found |= new
    code = pickle.dumps([found[key] for key in texts])
    return _seal(code) + code


def _compiled(units: Mapping[bytes, str]) -> dict[bytes, bytes]:
    name, features = target()
    found: dict[bytes, bytes] = {}
    with _at_work() as llvm:
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=name, features=features, opt=_LEVEL, jit=True
        )
        layout = str(machine.target_data)
        for key, text in units.items():
            module = llvm.parse_assembly(text)
            module.data_layout, module.triple = layout, machine.triple
            found[key] = machine.emit_object(module)
            del module
        del machine
    return found


def _seal(code: bytes) -> bytes:
    """Return a hash of object files and of their processor."""
    return hashlib.sha256("\0".join((*target(), "")).encode() + code).digest()


_SEAL_SIZE = hashlib.sha256().digest_size


class Loaded:
    """Machine code in this process's memory. It is freed with this object."""

    def __init__(self, code: bytes) -> None:
        """Load the result of `object_of`. Raises RuntimeError for other bytes, or for code of another processor."""
        seal, code = code[:_SEAL_SIZE], code[_SEAL_SIZE:]
        # LLVM ends the process where it cannot load an object
        if seal != _seal(code):
            raise RuntimeError("the machine code is damaged, or for another processor")
        with _at_work() as llvm:
            machine = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            for each in pickle.loads(code):
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(each))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of a function."""
        found: int = self._engine.get_function_address(name)
        return found


@functools.cache
def problem() -> str:
    """Return why no code can be generated for this processor; "" if it can."""
    try:
        target()
    except Exception as error:  # whatever is wrong with llvmlite, XLA compiles the program
        return f"{type(error).__name__}: {error}"
    return ""
