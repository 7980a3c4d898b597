"""The decorator: wraps a function so that its target answers each call.

The wrapper binds, copies and pickles as the function itself does.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import CodeType, FunctionType, MethodType
from typing import Any

import wrapt

from accel.backend import devices
from accel.dispatch.streak import MISSED
from accel.dispatch.target import Target
from accel.platform import config, interrupts, logs, timeline, variables, versions, warned
from accel.platform.ledger import open_ledger
from accel.platform.spelling import function_name
from accel.platform.tracebacks import without_ours
from accel.reports import children


class Accelerated(wrapt.CallableObjectProxy):  # type: ignore[type-arg]  # generic in its stubs alone
    """An accelerated function: the function itself in everything but how a call is answered.

    wrapt's FunctionWrapper would take twice as long per call, which is felt where small functions stay on NumPy.
    """

    def __init__(self, function: FunctionType, target: Target) -> None:
        super().__init__(function)
        self._self_target = target

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        target = self._self_target
        rest = target.rest
        try:
            if rest.untimed > 0 and rest.settings is config.in_force and timeline.calls is None:
                rest.untimed -= 1  # spelled out here: a call of a method would take longer than all of this
                return target.function(*args, **kwargs) if kwargs else target.function(*args)
            if target.streak.left > 0:
                result = target.streak.replay(args, kwargs)
                if result is not MISSED:
                    return result
            # a timed call of a rest, or one to be examined
            try:
                resting, recursive = rest.takes_next_call(), target.is_calling_itself
            except Exception as error:  # an error in accel must not reach the program: take the usual way
                interrupts.pass_on(error)
                resting = recursive = False
            # part of the call that is under way: f(n) that calls f(n - 1) is one call of the target
            if recursive:
                return target.function(*args, **kwargs)
            if resting:
                return rest.call(target.function, args, kwargs)
            return target.answer(args, kwargs)
        except BaseException as error:
            # as if the program had called the function itself; this `raise` adds no entry for this frame again
            try:
                error.__traceback__ = without_ours(error.__traceback__)
            except Exception as fault:
                interrupts.pass_on(fault)
            raise

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind as functions do."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<accelerated function {self.__wrapped__.__qualname__} at {id(self):#x}>"

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce_ex__(self, protocol: object) -> Any:
        """Pickle by module and qualified name, as functions are.

        An inherited method that is accelerated in the subclass alone is found in the base class, where it is defined.
        """
        function = self.__wrapped__
        holder, _, name = function.__qualname__.rpartition(".")
        owner: Any = sys.modules.get(function.__module__)
        for part in filter(None, holder.split(".")):
            owner = getattr(owner, part, None)
        found = getattr(owner, name, self) if isinstance(owner, type) else self
        if (
            found is not self
            and getattr(found, "__code__", None) is function.__code__
            and type(found) is not MethodType
        ):
            return getattr, (owner, name)
        return function.__qualname__


def get_ready(mode: str | None, rtol: float | None = None) -> None:
    """Check the settings and the platform, and let accel's messages be seen, before functions are accelerated.

    Raises SettingError.
    """
    if mode is not None:
        config.check("mode", mode)
    config.check("rtol", rtol)
    settings = config.current()
    logs.set_level(settings.log)
    logs.to_stderr_unless_configured()
    variables.warn()
    devices.check(replace(settings, mode=mode or settings.mode))


def accelerated(
    fn: object,
    *,
    name: str | None = None,
    rtol: float | None = None,
    mode: str | None = None,
    effects: bool = True,
    in_parts: CodeType | None = None,
) -> Any:
    """`accel.accelerate` without checking the settings (`get_ready`), and for whole functions alone.

    in_parts: see `Target`. Raises TypeError.
    """
    if isinstance(fn, (staticmethod, classmethod)):
        inner = accelerated(fn.__func__, name=name, rtol=rtol, mode=mode, effects=effects, in_parts=in_parts)
        return type(fn)(inner)
    # decorated twice, or named by two catalogues: the function gets a new target, and not one around the other
    function = getattr(fn, "__wrapped__", fn) if isinstance(fn, Accelerated) else fn
    if not isinstance(function, FunctionType):
        raise TypeError(f"accelerate takes a function written in Python, not {type(fn).__name__}")
    versions.warn()
    target = Target(function, name or _own_name(function), rtol, mode, effects, in_parts)
    open_ledger(target.name)
    children.begin()
    warned.begin()
    return Accelerated(function, target)


_codes: dict[str, list[CodeType]] = {}
"""Code objects of functions, by the target's name that they have had."""


def _own_name(function: FunctionType) -> str:
    """A function's name in the report. What is defined again, as in a cell of a notebook, has a row of its own."""
    name = function_name(function.__module__, function.__qualname__)
    known = _codes.setdefault(name, [])
    if function.__code__ not in known:
        known.append(function.__code__)
    place = known.index(function.__code__)
    return f"{name}#{place + 1}" if place else name
