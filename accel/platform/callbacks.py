"""Callbacks: functions of Python's that a compiled program on the CPU calls in the middle of its run.

XLA calls them through its foreign function interface, a C structure that `jax.ffi.include_dir()` documents. One handler
serves all: which function to call is text in the program, a pickle. So a program can be compiled by one process and run
by another, which JAX's own callbacks cannot. The handler never raises: what a function raises makes its last result, a
truth, false, and the program discards the run.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import functools
import math
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel.platform import interrupts, underflow

NAME = "accel_callback"
"""Name by which programs call the handler."""

Form = tuple[tuple[int, ...], str]
"""Shape and dtype of an operand or result."""

KNOWN = frozenset({(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)})
"""Versions of XLA's interface in which the structures are those below, as far as they are read. JAX 0.8 has (0, 1), and
0.12 has (0, 5)."""

_METADATA, _EXECUTE = 1, 3
_SIZE, _POINTER, _INT, _LONG = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_HEAD: list[Any] = [("struct_size", _SIZE), ("extension", _POINTER)]


class _Version(ctypes.Structure):
    _fields_ = [*_HEAD, ("major", _INT), ("minor", _INT)]


class _Buffer(ctypes.Structure):
    _fields_ = [*_HEAD, ("dtype", _INT), ("data", _POINTER), ("rank", _LONG), ("dims", ctypes.POINTER(_LONG))]


class _Buffers(ctypes.Structure):
    _fields_ = [*_HEAD, ("size", _LONG), ("types", _POINTER), ("each", ctypes.POINTER(ctypes.POINTER(_Buffer)))]


class _Text(ctypes.Structure):
    _fields_ = [("start", _POINTER), ("length", _SIZE)]


class _Attributes(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("size", _LONG),
        ("types", _POINTER),
        ("names", _POINTER),
        ("each", ctypes.POINTER(ctypes.POINTER(_Text))),
    ]


class _Frame(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("interface", _POINTER),
        ("context", _POINTER),
        ("stage", _INT),
        ("operands", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    ]


class _Metadata(ctypes.Structure):
    _fields_ = [*_HEAD[:1], ("version", _Version)]


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", _SIZE), ("type", _INT), ("next", _POINTER), ("metadata", ctypes.POINTER(_Metadata))]


class Failed(RuntimeError):
    """A function that was to fill its result raised: what the program has computed is worth nothing."""

    def __str__(self) -> str:
        return "a function of NumPy's raised in a program's run"


_unfilled = 0
"""Number of errors from functions that were to fill a result, in any thread: in which run is not known."""


@contextlib.contextmanager
def allowed() -> Iterator[None]:
    """A run, to its end, of a program that may call back. Raises Failed where results have not been filled.

    The program's signal handlers run after it. In a callback they would compute without subnormal numbers, and what one
    raises before `_handle`'s first line would be lost: XLA then took numbers of an earlier run, or crashed.
    """
    if not are_used():
        yield
        return
    before = _unfilled
    with interrupts.Deferral():
        yield
    if _unfilled != before:
        raise Failed


@functools.cache
def version() -> tuple[int, ...]:
    """The version of XLA's interface that JAX has, as its header says; (0, 0) where there is none."""
    import jax

    try:
        header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text(encoding="utf-8")
    except OSError:
        return 0, 0
    found = dict(re.findall(r"^#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header, re.MULTILINE))
    return int(found.get("MAJOR", 0)), int(found.get("MINOR", 0))


def are_possible() -> bool:
    """Whether programs of this JAX can call Python: another interface would be misread, and crash."""
    return version() in KNOWN


def call(function: Callable[..., Sequence[Any]], operands: Sequence[Any], forms: Sequence[Form]) -> tuple[Any, ...]:
    """In a traced program: `function(*operands)`, which runs in Python whenever the program does.

    function: can be pickled; takes ndarrays, which are its own, and gives one result for each of `forms`.
    Returns the results, and a truth: False where the function raised or gave other forms. The results are zeros then.
    """
    return tuple(_called(function, operands, forms, fills=False))


def filled(function: Callable[..., object], operands: Sequence[Any], form: Form) -> Any:
    """In a traced program: what `function(*operands, result)` writes to its last argument. Nothing is copied.

    function: can be pickled; keeps none of the arrays, and does not write to the operands. Its failure makes the run
    raise Failed.
    """
    return _called(function, operands, (form,), fills=True)[0]


def _called(function: Callable[..., Any], operands: Sequence[Any], forms: Sequence[Form], *, fills: bool) -> Any:
    import jax

    register()
    given = tuple((tuple(operand.shape), np.dtype(operand.dtype).str) for operand in operands)
    text = base64.b64encode(pickle.dumps((function, given, tuple(forms), fills), protocol=4)).decode()
    made = [jax.ShapeDtypeStruct(shape, np.dtype(dtype)) for shape, dtype in forms]
    called = jax.ffi.ffi_call(NAME, (*made, jax.ShapeDtypeStruct((), np.bool_)), vmap_method="sequential")
    return called(*operands, function=text)


def called_by(params: Mapping[str, Any]) -> tuple[Any, list[Form], list[Form], bool] | None:
    """Return what a traced `ffi_call` calls, in the form of `_called`; None if its target is not the handler.

    params: the operation's.
    """
    if params.get("target_name") != NAME:
        return None
    found: tuple[Any, list[Form], list[Form], bool] = _unpickled(dict(params["attributes"])["function"].encode())
    return found


@functools.cache
def register() -> None:
    """Let programs of this process call the handler. Once: XLA keeps it."""
    import jax

    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [_POINTER, ctypes.c_char_p, _POINTER]
    jax.ffi.register_ffi_target(NAME, new(ctypes.cast(_handler, _POINTER), None, None), platform="cpu")


def are_used() -> bool:
    """Whether a program of this process may call the handler."""
    return register.cache_info().currsize > 0


def _handle(address: int) -> None:
    """Handle a call from XLA, in whatever thread runs the program. Returns a null pointer: there is no error."""
    # whatever goes wrong: the truth among the results was set to False at first, and stays so
    with contextlib.suppress(BaseException):
        frame = _Frame.from_address(address)
        if frame.extension:
            _describe(frame)
        elif frame.stage == _EXECUTE:
            with underflow.not_flushed():
                _execute(frame)


_handler = ctypes.CFUNCTYPE(_POINTER, _POINTER)(_handle)


def _describe(frame: _Frame) -> None:
    """Say, as XLA asks at first, which version of its interface the handler is for: JAX's own, as it is a known one."""
    extension = _Extension.from_address(frame.extension)
    if extension.type == _METADATA:
        described = extension.metadata.contents.version
        described.major, described.minor = version()


def _execute(frame: _Frame) -> None:
    results = frame.results
    answer = _array(results.each[results.size - 1].contents.data, ((), "|b1"))
    answer[...] = False
    text = frame.attributes.each[0].contents
    function, given, forms, fills = _unpickled(ctypes.string_at(text.start, text.length))
    places = [_array(results.each[at].contents.data, form) for at, form in enumerate(forms)]
    if fills:
        fill(function, [_array(frame.operands.each[at].contents.data, form) for at, form in enumerate(given)], places)
        answer[...] = True
        return
    for place in places:
        place[...] = 0
    operands = [_array(frame.operands.each[at].contents.data, form) for at, form in enumerate(given)]
    found = results_of(function, operands, forms)
    if found is not None:
        for place, each in zip(places, found, strict=True):
            place[...] = each
        answer[...] = True


def results_of(function: Callable[..., Any], operands: Sequence[Any], forms: Sequence[Form]) -> list[Any] | None:
    """A function's results as arrays; None if they have other forms. Raises what it raises."""
    # copies: the function may keep them, or refuse memory that it must not write to
    found = [np.asarray(each) for each in function(*(each.copy() for each in operands))]
    return found if [(each.shape, each.dtype.str) for each in found] == list(forms) else None


def fill(function: Callable[..., object], operands: Sequence[Any], places: Sequence[Any]) -> None:
    """Call a function to fill these arrays. Counts and raises its errors."""
    global _unfilled
    try:
        function(*operands, *places)
    except BaseException:
        _unfilled += 1
        raise


@functools.lru_cache(maxsize=1024)
def _unpickled(text: bytes) -> Any:
    return pickle.loads(base64.b64decode(text))


def _array(address: int | None, form: Form) -> Any:
    """The memory of an operand or result as an array."""
    shape, dtype = form
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not size or not address:
        return np.zeros(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)
