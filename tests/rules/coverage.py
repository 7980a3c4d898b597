"""Coverage: the page of the public functions of NumPy and SciPy that accel compiles, generated from the rules.

`python -m tests.rules.coverage > docs/coverage.md` writes it.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.record.objects.library.scientific import OBJECTS
from accel.record.values.methods import METHODS
from accel.reports.layout import markdown_table
from accel.rules import load
from accel.rules.rule import RULES, Rule, Unsupported
from accel.rules.special import ArrayOf, Like, NanToNum, Static, Unrecordable, Where
from accel.rules.tables import ufuncs

SCIPY = "fft integrate interpolate linalg ndimage optimize signal spatial.distance special stats".split()
"""SciPy's modules that have rules."""

NUMPY = ("numpy", "numpy.linalg", "numpy.fft", "ndarray")
"""Prefixes of the names of NumPy's functions and methods."""

LEFT_OUT: dict[str, str] = {
    "files and buffers": "load save savez savez_compressed savetxt loadtxt genfromtxt fromfile fromregex fromstring "
    "frombuffer from_dlpack tofile tobytes dump dumps data ctypes memmap",
    "printing": "array2string array_repr array_str base_repr binary_repr format_float_positional "
    "format_float_scientific set_printoptions get_printoptions printoptions typename",
    "settings": "geterr seterr geterrcall seterrcall getbufsize setbufsize errstate show_config show_runtime "
    "get_include info test einsum_path setflags",
    "dates": "busday_count busday_offset is_busday datetime_as_string datetime_data isnat",
    "deprecated names": "row_stack",
    "matrices, iterators, raw memory": "asmatrix bmat nested_iters may_share_memory shares_memory byteswap getfield "
    "setfield to_device",
}
"""Functions that do not compute with arrays of numbers, by the reason for leaving them out."""

ALWAYS_DEFAULT = frozenset(
    """like device subok order casting out self dummy xp
    workers plan overwrite_x overwrite_a overwrite_b overwrite_ab overwrite_data output""".split()
)
"""Parameters that the engine handles for every rule, or that do not affect values."""

SPECIAL_LIMITS: dict[type, tuple[str, ...]] = {
    ArrayOf: ("ndmin",),
    NanToNum: (),
    Like: (),
    Static: (),
    Where: (),
}
"""Unsupported parameters of functions that are recorded by special code (see accel.rules.special)."""


@dataclass(frozen=True)
class CoverageRow:
    """One function. status: "compiled", "compiled with limits" or "refused". detail: the limits, or the reason."""

    name: str
    status: str
    detail: str = ""


def entries() -> list[CoverageRow]:
    """Return every public function of numpy, numpy.linalg and numpy.fft, and every method of ndarray."""
    load()
    modules = (("numpy", np), ("numpy.linalg", np.linalg), ("numpy.fft", np.fft))
    found = [_entry(f"{prefix}.{name}", value) for prefix, module in modules for name, value in _functions(module)]
    return found + [_method(name) for name in sorted(_method_names())]


def of_scipy() -> dict[str, list[CoverageRow]]:
    """Return, by module, every public function of SciPy's modules that have rules."""
    load(everything=True)
    modules = {f"scipy.{name}": importlib.import_module(f"scipy.{name}") for name in SCIPY}
    return {
        name: [_entry(f"{name}.{function}", value) for function, value in _functions(module)]
        for name, module in modules.items()
    }


def _left_out() -> frozenset[str]:
    return frozenset(name for names in LEFT_OUT.values() for name in names.split())


def _functions(module: Any) -> Iterator[tuple[str, Any]]:
    for name in sorted(set(module.__all__) - _left_out()):
        value = getattr(module, name)
        if callable(value) and not isinstance(value, type):
            yield name, value


def _method_names() -> Iterator[str]:
    for name in set(dir(np.ndarray)) - _left_out():
        if not name.startswith("_") and callable(getattr(np.ndarray, name)):
            yield name


def _entry(name: str, function: Callable[..., Any]) -> CoverageRow:
    rule = RULES.get(function)
    if isinstance(function, np.ufunc) and rule is None:
        return _ufunc(name, function)
    if rule is None:
        return CoverageRow(name, "refused", "rule.missing")
    if isinstance(rule.recorded.special, Unrecordable):
        return CoverageRow(name, "refused", rule.recorded.special.reason)
    limits = _limits(rule)
    return CoverageRow(name, "compiled with limits" if limits else "compiled", ", ".join(limits))


def _ufunc(name: str, function: np.ufunc) -> CoverageRow:
    try:
        ufuncs.rule_for(function)
    except Unsupported as gap:
        return CoverageRow(name, "refused", gap.reason)
    return CoverageRow(name, "compiled")


def _limits(rule: Rule) -> tuple[str, ...]:
    """Return the parameters that a rule does not support."""
    limits = SPECIAL_LIMITS.get(type(rule.recorded.special))
    if limits is not None:
        return limits
    if rule.signature is None:
        return ()
    known = {*rule.operands, *rule.static} | ALWAYS_DEFAULT
    kinds = (parameter for parameter in rule.signature.parameters.values() if parameter.name not in known)
    return tuple(parameter.name for parameter in kinds if parameter.kind is not parameter.VAR_KEYWORD)


def _method(name: str) -> CoverageRow:
    where = f"ndarray.{name}"
    return CoverageRow(where, "compiled") if name in METHODS else CoverageRow(where, "refused", "rule.missing")


def share(found: list[CoverageRow]) -> float:
    """Return the percentage of functions that are compiled, with limits or without."""
    return 100.0 * sum(entry.status != "refused" for entry in found) / len(found)


def series() -> str:
    """Return NumPy's version without the patch number, which does not change functions or signatures."""
    return ".".join(np.__version__.split(".")[:2])


def scipy_series() -> str:
    """Return SciPy's version without the patch number."""
    return ".".join(importlib.import_module("scipy").__version__.split(".")[:2])


def table() -> str:
    """Return the coverage as a Markdown page."""
    found = entries()
    counts = {status: sum(entry.status == status for entry in found) for status in _STATUSES}
    limited = [entry for entry in found if entry.status != _STATUSES[0]]
    lines = [
        "# Covered functions",
        "",
        f"This page is made from accel's rules, for NumPy {series()} and SciPy {scipy_series()}.",
        "The lists name the functions that are compiled as they are. A call that is not covered stays on NumPy.",
        "",
        "## NumPy",
        "",
        f"{share(found):.1f} % of {len(found)} public functions on arrays are compiled: {counts['compiled']} "
        f"as they are, {counts['compiled with limits']} with limits; {counts['refused']} are refused.",
        "",
        *_names(found, NUMPY),
        "## NumPy, with limits",
        "",
        *markdown_table(
            ("function", "status", "limits, or reason"),
            [(f"`{entry.name}`", entry.status, _cell(entry)) for entry in limited],
        ),
        "",
        "Left out: " + "; ".join(f"{why} ({', '.join(names.split())})" for why, names in LEFT_OUT.items()) + ".",
        "",
        *_scipy_lines(),
    ]
    return "\n".join(lines) + "\n"


def _scipy_lines() -> list[str]:
    by_module = of_scipy()
    limited = [entry for found in by_module.values() for entry in found if entry.status == _STATUSES[1]]
    lines = ["## SciPy", "", "Functions that are not listed are refused (`rule.missing`).", ""]
    for module, found in by_module.items():
        lines += _names(found, (module,))
    lines += markdown_table(("function", "limits"), [(f"`{entry.name}`", _cell(entry)) for entry in limited])
    return [*lines, "", "Objects that the program holds:", ""] + [
        f"- {module}: {what}." for module, what in OBJECTS.items()
    ]


def _names(found: list[CoverageRow], modules: tuple[str, ...]) -> list[str]:
    """Return a paragraph per module: number and names of its functions that are compiled without limits."""
    lines = []
    for module in modules:
        within = [entry for entry in found if entry.name.rpartition(".")[0] == module]
        names = [f"`{entry.name.rpartition('.')[2]}`" for entry in within if entry.status == _STATUSES[0]]
        text = f"**{module}**, {len(names)} of {len(within)}: {', '.join(names)}"
        lines += [*textwrap.wrap(text, 120, break_on_hyphens=False, break_long_words=False), ""]
    return lines


_STATUSES = ("compiled", "compiled with limits", "refused")


def _cell(entry: CoverageRow) -> str:
    if entry.status == "compiled with limits":
        return f"without {entry.detail}"
    return f"`{entry.detail}`" if entry.detail else ""


if __name__ == "__main__":
    sys.stdout.write(table())
