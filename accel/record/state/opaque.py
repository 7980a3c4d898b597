"""Opaque calls: functions that are not followed, why, and which of them need not end the tape."""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import warnings
from types import ModuleType
from typing import Any

import numpy as np

from accel.record.state.on_behalf import on_behalf
from accel.record.state.recording import Recording
from accel.record.state.wrapper import StandIn, unwrap
from accel.rules.rule import lookup

_OPAQUE_REASONS = {
    "time": "effect.clock",
    "datetime": "effect.clock",
    "random": "effect.random",
    "numpy.random": "effect.random",
    "numpy.ma": "array.masked",
    "secrets": "effect.random",
    "uuid": "effect.random",
    "io": "effect.file",
    "pathlib": "effect.file",
    "shutil": "effect.file",
    "os": "effect.file",
    "posix": "effect.file",
    "logging": "effect.print",
    "warnings": "effect.print",
    "py_warnings": "effect.print",
    "sys": "effect.print",
}
"""Reasons by the module that a call outside the followed package goes to; others are call.opaque."""


EFFECTS_IN_NUMPY = {
    **dict.fromkeys(
        "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile fromregex tofile dump".split(),
        "effect.file",
    ),
    **dict.fromkeys("seterr seterrcall setbufsize set_printoptions printoptions".split(), "effect.global"),
    **dict.fromkeys("show_config show_runtime info".split(), "effect.print"),
}
"""Reasons of NumPy's own functions and methods that do more than compute, by name."""


WARNINGS = "warnings", "_py_warnings"
"""The module that defines the functions of `warnings`; the second one from Python 3.14 on."""

_HARMLESS_MODULES = frozenset({*WARNINGS, "numpy"})


_HARMLESS = frozenset({"errstate", "catch_warnings", "simplefilter", "filterwarnings"})
"""Calls that change no number and whose effects a replay may leave out (warnings; see Known differences)."""


TRANSPARENT = frozenset(
    value
    for value in (functools.partial, functools.reduce, *vars(itertools).values(), *vars(operator).values())
    if callable(value) and value not in (operator.is_, operator.is_not)
)
"""Calls that hand their arguments on and do no more: they are given the recorded values themselves."""


def opaque_reason(value: object) -> str:
    """The reason id for a call that cannot be followed, by where the function comes from."""
    owner = getattr(value, "__self__", None)
    if owner is not None and any(owner is stream for stream in (sys.stdout, sys.stderr, sys.stdin)):
        return "effect.print"
    name = getattr(value, "__name__", "")
    if name in EFFECTS_IN_NUMPY and _is_numpys(value):
        return EFFECTS_IN_NUMPY[name]
    for source in (value, owner, type(owner)):
        module = getattr(source, "__name__" if isinstance(source, ModuleType) else "__module__", None)
        # From the inside out: `numpy.random.mtrand` is found as `numpy.random`, `datetime` as itself; C modules of the
        # standard library start with an underscore (`_io`, `_random`).
        while isinstance(module, str) and module:
            if module.lstrip("_") in _OPAQUE_REASONS:
                return _OPAQUE_REASONS[module.lstrip("_")]
            module = module.rpartition(".")[0]
    return "call.opaque"


def _is_numpys(value: object) -> bool:
    return str(getattr(value, "__module__", None)).partition(".")[0] == "numpy"


def computes(value: object) -> bool:
    """Whether a function is one of NumPy's that computes from its arguments and does no more."""
    return (
        _is_numpys(value)
        and not value.__module__.startswith("numpy.random")
        and getattr(value, "__name__", "") not in EFFECTS_IN_NUMPY
    )


def settings_now() -> Any:
    """Return the filters of warnings and NumPy's handling of floating-point events. Replays change neither."""
    return list(warnings.filters), np.geterr()


class Harmless(StandIn):
    """A function whose effects a replay may leave out, unless it turns floating-point events into errors."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = unwrap(args), unwrap(kwargs)
        display = self._recording_.display
        if display.settings is None:
            display.settings = settings_now()
        display.filters_changed |= getattr(self._plain_, "__module__", "") in WARNINGS
        # `with warnings.catch_warnings(record=True) as log`: the program looks at the warnings, of which a replay gives
        # none.
        if kwargs.get("record"):
            self._recording_.break_("effect.print", "warnings are recorded, and replays give none")
        # `np.errstate(divide="raise")`, `simplefilter("error")`: what was a warning is now control flow.
        if not _LOUD.isdisjoint(value for value in (*args, *kwargs.values()) if isinstance(value, str)):
            self._recording_.break_("fp.errstate", getattr(self._plain_, "__name__", ""))
        return self._plain_(*args, **kwargs)


_LOUD = frozenset({"raise", "call", "print", "log", "error"})


def is_harmless(function: object) -> bool:
    """Whether replays may leave out what a function does: it changes no number."""
    module = (getattr(function, "__module__", "") or "").partition(".")[0]
    return module in _HARMLESS_MODULES and getattr(function, "__name__", "") in _HARMLESS


def call_opaque(recording: Recording, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call what cannot be followed, with plain values."""
    if lookup(function) is None or not recording.active:
        reason = opaque_reason(function)
        name = getattr(function, "__qualname__", type(function).__name__)
        recording.break_(reason, f"{getattr(function, '__module__', None) or ''}.{name}".lstrip("."), touched=True)
    # The callee may keep what it is given (`observers.append(x)`), so that containers are unwrapped later, not copied.
    held = {key: recording.kept.unwrap_to_store(value) for key, value in kwargs.items()}
    return on_behalf(function, tuple(map(recording.kept.unwrap_to_store, args)), held)
