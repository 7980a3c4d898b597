"""The stand-in of functions that rules may cover."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accel.record.state.recording import current
from accel.record.state.wrapper import StandIn, unwrap
from accel.record.values.calls.call import call
from accel.record.values.numbers import TYPE_STAND_INS, TypeStandIn, scalar_call


class RuleFunction(StandIn):
    """A function that rules may cover: numpy.sum, numpy.add, scipy.ndimage.convolve, math.sqrt."""

    __slots__ = ()

    def __init__(self, function: object) -> None:
        self._plain_ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._plain_
        if function in SCALAR_FUNCTIONS:
            recording = current()
            if recording is not None and recording.active:
                return scalar_call(recording, function, args, kwargs)
            return function(*unwrap(args), **unwrap(kwargs))
        return call(function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        # `np.add.reduce`, `np.maximum.accumulate`: bound methods of a ufunc have rules of their own.
        attribute = getattr(self._plain_, name)
        return RuleFunction(attribute) if callable(attribute) and isinstance(self._plain_, np.ufunc) else attribute


SCALAR_FUNCTIONS = frozenset(
    value for value in vars(math).values() if callable(value) and getattr(value, "__module__", "") == "math"
)


class ArrayType(TypeStandIn):
    """numpy.ndarray: called with a shape it is numpy.empty; with memory to look at, nothing that is recorded."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = current()
        names = ("shape", "dtype", "buffer", "offset", "strides", "order")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if recording is not None and recording.active and given.keys() <= {"shape", "dtype", "order"}:
            return call(np.empty, (), given)
        if recording is not None:
            recording.break_("array.unknown", "an array made of memory that the recording does not see")
        return self._plain_(*unwrap(args), **unwrap(kwargs))


TYPE_STAND_INS[np.ndarray] = ArrayType(np.ndarray)
