"""Find the Python function behind a callable or a name, and the arguments that a bound callable adds."""

from __future__ import annotations

import functools
import importlib
import inspect
from difflib import get_close_matches
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import wrapt

from accel.entry.hook.imports import locate, split_name
from accel.platform.config import SettingError
from accel.platform.spelling import function_name, owner_of

TARGETS = "module:function or module:Class.method, such as package.module:Model.step; a dot may replace the colon"


class PlainCall(NamedTuple):
    """One call of a plain Python function. function: of type FunctionType (as a type, mypy would bind it)."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def name(self) -> str:
        return function_name(self.function.__module__, self.function.__qualname__)


def call_of(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PlainCall:
    """Return the call of a plain function that `fn(*args, **kwargs)` makes, without wrappers. Raises TypeError if
    none."""
    if isinstance(fn, str):
        fn = named(fn)
    while True:
        if type(fn) is FunctionType:
            return PlainCall(fn, args, kwargs)
        if isinstance(fn, (wrapt.CallableObjectProxy, wrapt.FunctionWrapper, wrapt.BoundFunctionWrapper)):
            fn = fn.__wrapped__
        elif isinstance(fn, (staticmethod, classmethod)):
            fn = fn.__func__
        elif type(fn) is MethodType:
            fn, args = fn.__func__, (fn.__self__, *args)
        elif type(fn) is functools.partial:
            fn, args, kwargs = fn.func, (*fn.args, *args), {**fn.keywords, **kwargs}
        elif not isinstance(fn, type) and isinstance(inspect.getattr_static(type(fn), "__call__", None), FunctionType):
            fn, args = type(fn).__call__, (fn, *args)
        else:
            raise TypeError(f"explain takes a function or method written in Python, not {_what(fn)}")


def _what(fn: object) -> str:
    if isinstance(fn, type):
        return f"the class {fn.__qualname__}"
    name = getattr(fn, "__qualname__", None)
    return f"the {type(fn).__name__} {name}" if name else f"a {type(fn).__name__}"


def split_target(text: str) -> tuple[str, str]:
    """Return module and qualified name of "module:function" or "module.function". Raises SettingError for another
    form."""
    module, qualname = split_name(text)
    parts = [*module.split("."), *qualname.split(".")]
    if not (module.endswith(".py") and qualname) and not all(part.isidentifier() for part in parts):
        raise SettingError("FUNCTION", text, TARGETS)
    return module, qualname


def split_loop(text: str) -> tuple[str, int | None]:
    """Split a report's name of a loop, "module:function:line", into the enclosing code's name and the line.

    The line is None for a name of another form.
    """
    owner, line = owner_of(text)
    return (owner, int(line)) if owner and line.isdecimal() else (text, None)


def named(text: str) -> Any:
    """Import and return the object named "module:function". Raises SettingError if it does not exist."""
    owner, line = split_loop(text)
    if line is not None:
        possible = "a function; `accel explain` takes an iteration of a loop from a running program"
        raise SettingError("FUNCTION", text, possible, f"is the loop at line {line} of {owner}, which has no arguments")
    module, qualname = split_target(text)
    try:
        spec = locate(module)
    except ImportError:
        spec = None
    if spec is None:
        raise SettingError("FUNCTION", text, f"{TARGETS}; modules are found as by python -m", "does not exist")
    value: Any = importlib.import_module(module)
    for part in qualname.split("."):
        owner, value = value, getattr(value, part, None)
        if value is None:
            names = sorted(name for name in dir(owner) if callable(getattr(owner, name, None)) and name[:2] != "__")
            near = get_close_matches(part, names, 3, 0.5) or names[:5]
            raise SettingError("FUNCTION", text, ", ".join(near) or TARGETS, f"has no {part}")
    return value


def check_arguments(call: PlainCall) -> None:
    """Raise the TypeError that the call itself would raise for its arguments."""
    try:
        inspect.signature(call.function, follow_wrapped=False).bind(*call.args, **call.kwargs)
    except TypeError as error:
        raise TypeError(f"{call.function.__qualname__}: {error}") from None
