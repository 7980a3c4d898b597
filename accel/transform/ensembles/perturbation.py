"""The Python file that says how the members of a program's ensemble differ, and which loop they step."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from accel.platform.config import SettingError

_FILES = "a Python file that defines perturb(state, member, rng)"

_LOOPS = "a line, a function's name, or module:function, each with :line if it holds several loops"


@dataclass(frozen=True, slots=True)
class Perturbation:
    """The contents of a perturbation file.

    path: its name. perturb: see `accel.ensemble`. observe: called with the ensemble after each iteration; returns
    arrays and numbers by name. None if the file has none. module, function, line: the loop, as far as the file names
    it; the default module is `__main__`. begin: number of the iteration before which members are made. seed: of their
    generators.
    """

    path: str
    perturb: Callable[..., object]
    observe: Callable[..., Mapping[str, Any]] | None = None
    module: str = "__main__"
    function: str | None = None
    line: int | None = None
    begin: int = 1
    seed: int = 0

    def names(self, module: str, function: str, line: int) -> bool:
        """Return whether the file means this loop. function: its qualified name."""
        if module != self.module or (self.line is not None and line != self.line):
            return False
        return self.function is None or function == self.function


def load(path: str) -> Perturbation:
    """Read a perturbation file. Raises SettingError."""
    try:
        content = runpy.run_path(path)
    except Exception as error:
        problem = f"cannot be read ({type(error).__name__}: {error})"
        raise SettingError("--perturb", path, _FILES, problem) from error
    for name in ("perturb", "observe"):
        if not callable(content.get(name)) and (name == "perturb" or name in content):
            raise SettingError("--perturb", path, _FILES, f"defines no function {name}")
    module, function, line = _loop(content.get("LOOP"))
    return Perturbation(
        path,
        content["perturb"],
        content.get("observe"),
        module,
        function,
        line,
        _number(content, "BEGIN", 1, 1),
        _number(content, "SEED", 0, 0),
    )


def _number(content: Mapping[str, Any], name: str, default: int, least: int) -> int:
    value = content.get(name, default)
    if type(value) is not int or value < least:
        raise SettingError(name, value, f"an integer from {least} on")
    return value


def _loop(named: Any) -> tuple[str, str | None, int | None]:
    """Return module, function and line of LOOP."""
    if named is None or type(named) is int:
        return "__main__", None, named
    if type(named) is not str or not named:
        raise SettingError("LOOP", named, _LOOPS)
    parts = named.split(":")
    line = int(parts.pop()) if parts[-1].isdecimal() else None
    if len(parts) > 2:
        raise SettingError("LOOP", named, _LOOPS)
    return (parts[0] if len(parts) == 2 else "__main__"), (parts[-1] if parts else None), line
