"""The decorator `accelerate`, for functions as a whole and for their loops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeVar, overload

from accel import dispatch
from accel.entry.lift.iterations import Splits, lift_refused, start
from accel.entry.lift.lifting import lift_function
from accel.entry.lift.source import NotLiftable
from accel.entry.lift.switch import Switch
from accel.platform.ledger import State, open_ledger
from accel.platform.reasons import Refusal
from accel.platform.spelling import function_name
from accel.reports import last

Function = TypeVar("Function", bound="Callable[..., Any] | staticmethod[..., Any] | classmethod[Any, ..., Any]")

Lift = Callable[[FunctionType, str], Refusal | None]
"""Gives the loops of a function targets, which the report names after the text. Returns why not, where it cannot."""


@overload
def accelerate(
    fn: Function,
    *,
    name: str | None = None,
    rtol: float | None = None,
    mode: str | None = None,
    effects: bool = True,
    loops: bool = False,
) -> Function: ...


@overload
def accelerate(
    fn: None = None,
    *,
    name: str | None = None,
    rtol: float | None = None,
    mode: str | None = None,
    effects: bool = True,
    loops: bool = False,
) -> Callable[[Function], Function]: ...


def accelerate(
    fn: Function | None = None,
    *,
    name: str | None = None,
    rtol: float | None = None,
    mode: str | None = None,
    effects: bool = True,
    loops: bool = False,
) -> Function | Callable[[Function], Function]:
    """Accelerate one function: a decorator, with or without arguments.

    fn: a function, method, static method or class method written in Python. name: its name in the report; by default
    module and qualified name. rtol: the relative error that comparisons with NumPy allow; default `Settings.rtol`.
    mode: "off", "auto", "verify" or "strict" for this function alone; by default `Settings.mode`, read at every call.
    effects: whether calls that print or log may be compiled; their text then appears at the end of the call. loops: the
    function runs as it is, and each iteration of its loops is compiled: for a function that is called once, such as a
    program's `main`.

    Raises TypeError if `fn` is not a Python function. Raises SettingError if `mode`, `rtol` (a number more than 0) or a
    setting in the environment is invalid. Calls of the accelerated function never raise SettingError.

    >>> import accel
    >>> @accel.accelerate
    ... def double(x):
    ...     return 2.0 * x
    """
    dispatch.get_ready(mode, rtol)
    last.keep_at_exit()

    lift = functools.partial(_lift, rtol=rtol, mode=mode, effects=effects)

    def made(function: Function) -> Function:
        if loops:
            return _with_loops(function, name, lift)
        accelerated: Function = dispatch.accelerated(function, name=name, rtol=rtol, mode=mode, effects=effects)
        _outline_once_refused(accelerated, functools.partial(start, rtol=rtol, mode=mode, effects=effects))
        return accelerated

    return made if fn is None else made(fn)


def _outline_once_refused(made: Any, start: Callable[..., None]) -> None:
    """Outline parts of an accelerated function once it is refused as a whole."""
    target = getattr(getattr(made, "__func__", made), "_self_target", None)
    if target is not None:
        target.recordings.on_refused = functools.partial(_outline, target.function, target.name, start)


def _outline(
    function: FunctionType, name: str, start: Callable[..., None], refusals: Sequence[Refusal], call_s: float
) -> bool:
    """See `OnRefused` in accel.dispatch.recordings."""

    def begin(switch: Switch, title: str, splits: Splits) -> None:
        start(switch, function.__globals__, title, splits=splits)

    try:
        lift_refused(function, name, refusals, call_s, begin)
    except NotLiftable:
        return False
    return True


def _with_loops(fn: Function, name: str | None, lift: Lift) -> Function:
    """`fn`, with targets for its loops. If they cannot be lifted, the report says why."""
    function = getattr(fn, "__func__", fn)
    if not isinstance(function, FunctionType):
        raise TypeError(f"accelerate takes a function written in Python, not {type(fn).__name__}")
    title = name or function_name(function.__module__, function.__qualname__)
    refusal = lift(function, title)
    if refusal is not None:
        book = open_ledger(title)
        book.state = State.NUMPY
        book.refuse(refusal)
    return fn


def _lift(function: FunctionType, title: str, *, rtol: float | None, mode: str | None, effects: bool) -> Refusal | None:
    """Give the loops of a function targets, which the report names after `title`. Returns why not, where it cannot."""
    try:
        lifted = lift_function(function).lifted
    except NotLiftable as error:
        return error.refusal
    for switch in lifted.switches:
        start(switch, function.__globals__, f"{title}:{switch.place}", rtol=rtol, mode=mode, effects=effects)
    return None
