"""The decorator: wraps a function so that its target answers each call.

The wrapper binds, copies and pickles as the function itself does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType
from typing import Any, TypeVar

import wrapt

from accel import config, versions
from accel.backend import devices
from accel.dispatch.target import Target
from accel.reports.ledger import open_ledger

Function = TypeVar("Function", bound=Callable[..., Any])


class _BoundAccelerated(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg]  # generic in its stubs alone
    """A target's wrapper bound to an object. It is copied and pickled as a bound method is."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return getattr(copy.deepcopy(self.__self__, memo), self.__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (self.__self__, self.__name__)


class Accelerated(wrapt.FunctionWrapper):  # type: ignore[type-arg]
    """A target's wrapper. It binds as the function does, and is pickled and copied by reference."""

    __bound_function_wrapper__ = _BoundAccelerated

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __init__(self, function: Any, target: Target) -> None:
        super().__init__(function, _answer_for(target))
        self._self_target = target

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle by module and qualified name, as functions are."""
        return self.__wrapped__.__qualname__


def _answer_for(target: Target) -> Callable[..., Any]:
    rest = target.account.rest

    def answer(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            resting, recursive = rest.takes_next_call(), target.is_calling_itself
        except Exception:  # an error in accel must not reach the program: take the usual way
            resting = recursive = False
        if recursive:
            return wrapped(*args, **kwargs)
        if resting:
            return rest.call(wrapped, args, kwargs)
        return target.answer(args if instance is None else (instance, *args), kwargs)

    return answer


def accelerate(
    fn: Function | None = None, *, name: str | None = None, rtol: float | None = None, mode: str | None = None
) -> Function | Callable[[Function], Function]:
    """Accelerate one function: a decorator, with or without arguments.

    fn: a function, method, static method or class method written in Python. name: its name in the report; by default
    module and qualified name. rtol: the relative error that comparisons with NumPy allow; default `Settings.rtol`.
    mode: "off", "auto", "verify" or "strict" for this function alone; by default `Settings.mode`, read at every call.

    Raises TypeError if `fn` is not a Python function, and SettingError if `mode` or a setting in the environment is
    invalid. Calls of the accelerated function never raise SettingError.

    >>> import accel
    >>> @accel.accelerate
    ... def double(x):
    ...     return 2.0 * x
    """
    if mode is not None:
        config.check("mode", mode)
    settings = config.current()
    devices.check(replace(settings, mode=mode or settings.mode))
    if fn is None:
        return lambda function: accelerated(function, name=name, rtol=rtol, mode=mode)
    made: Function = accelerated(fn, name=name, rtol=rtol, mode=mode)
    return made


def accelerated(fn: Any, *, name: str | None = None, rtol: float | None = None, mode: str | None = None) -> Any:
    """`accelerate` without checking the settings."""
    if isinstance(fn, (staticmethod, classmethod)):
        inner = accelerated(fn.__func__, name=name, rtol=rtol, mode=mode)
        return type(fn)(inner)
    function = getattr(fn, "__wrapped__", fn) if isinstance(fn, Accelerated) else fn
    if not isinstance(function, FunctionType):
        raise TypeError(f"accelerate takes a function written in Python, not {type(fn).__name__}")
    versions.warn()
    target = Target(function, name or f"{function.__module__}.{function.__qualname__}", rtol, mode)
    open_ledger(target.name)
    return Accelerated(function, target)
