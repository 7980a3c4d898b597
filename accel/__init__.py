"""accel: run existing NumPy and SciPy functions compiled, with NumPy's results.

Importing accel defines these names, and an exit handler. NumPy, SciPy and JAX are imported when one of the names is
used.

accelerate      accelerate one function: a decorator
install, uninstall, installed
                accelerate the functions that catalogues name, and undo it; `installed` is a context manager
explain         record one call, and show the recording, or where it stops and why
to_jax          a pure JAX function from a NumPy function and example calls
grad, value_and_grad, jacobian, vmap
                derivatives and batches of NumPy functions, NumPy in and out
ensemble        copies of a program's state, stepped as one program
report, summary_line, reset_report
                what happened to each function, as text, JSON or Markdown; and resetting its counts
gather_children
                collect the figures of child processes, for report(children=True)
line_profile    where the time of a block goes, line by line
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any


def _bring_back(package: ModuleType) -> None:
    """Put modules that a program has removed from `sys.modules` back there, so that there is one copy of each.

    Two copies would mix: functions of the one import modules of the other in a call, and XLA keeps the callbacks of the
    first.
    """
    sys.modules[package.__name__] = package
    for name, each in vars(package).items():
        if isinstance(each, ModuleType) and each.__name__ == f"{package.__name__}.{name}":
            _bring_back(each)


_first = vars(sys).get("_accel")
"""This package as the process imported it first."""
if _first is not None:
    _bring_back(_first)
import_module("accel.platform.hidden").watch()  # before accel imports what the program's files may hide
import_module("accel.platform.ending")  # its exit handler has to be accel's first, so that it runs last

if TYPE_CHECKING:
    from accel import ndimage
    from accel.entry.hook.patching import install, installed, uninstall
    from accel.entry.lift.decorator import accelerate
    from accel.platform.config import SettingError, Settings, override
    from accel.platform.reasons import Refused
    from accel.reports.children import gather_children
    from accel.reports.reporting import report, reset_report
    from accel.reports.summary import summary_line
    from accel.tools.inspect.explain import explain
    from accel.tools.plugins.lines import line_profile
    from accel.tools.plugins.notebook import load_ipython_extension, unload_ipython_extension  # noqa: F401
    from accel.transform.ensembles.ensemble import ensemble
    from accel.transform.pure.function import to_jax
    from accel.transform.pure.transforms import grad, jacobian, value_and_grad, vmap

__version__ = "0.1.0"

__all__ = [
    "Refused",
    "SettingError",
    "Settings",
    "accelerate",
    "ensemble",
    "explain",
    "gather_children",
    "grad",
    "install",
    "installed",
    "jacobian",
    "line_profile",
    "ndimage",
    "override",
    "report",
    "reset_report",
    "summary_line",
    "to_jax",
    "uninstall",
    "value_and_grad",
    "vmap",
]

_HOMES = {
    "SettingError": "accel.platform.config",
    "Settings": "accel.platform.config",
    "override": "accel.platform.config",
    "accelerate": "accel.entry.lift.decorator",
    "explain": "accel.tools.inspect.explain",
    "install": "accel.entry.hook.patching",
    "installed": "accel.entry.hook.patching",
    "uninstall": "accel.entry.hook.patching",
    "line_profile": "accel.tools.plugins.lines",
    "load_ipython_extension": "accel.tools.plugins.notebook",
    "unload_ipython_extension": "accel.tools.plugins.notebook",
    "gather_children": "accel.reports.children",
    "report": "accel.reports.reporting",
    "reset_report": "accel.reports.reporting",
    "to_jax": "accel.transform.pure.function",
    "ensemble": "accel.transform.ensembles.ensemble",
    "grad": "accel.transform.pure.transforms",
    "jacobian": "accel.transform.pure.transforms",
    "value_and_grad": "accel.transform.pure.transforms",
    "vmap": "accel.transform.pure.transforms",
    "Refused": "accel.platform.reasons",
    "summary_line": "accel.reports.summary",
}


def __getattr__(name: str) -> Any:
    if name == "ndimage":
        return import_module("accel.ndimage")
    if name not in _HOMES:
        raise AttributeError(f"module 'accel' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


vars(sys).setdefault("_accel", sys.modules[__name__])
