"""Settings: their defaults, where they are read from, and the errors for invalid values.

They are read once, at first use: from the environment, and below it from the program's `pyproject.toml`. This module
does not import JAX. Whether a platform exists on this machine is checked later
(`accel.backend.devices.check_platform`), and only if the user names one.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

from accel.platform import project
from accel.platform.spelling import did_you_mean

PLATFORMS = ("cpu", "gpu", "tpu")
ALL = "all"
CLUSTER = "cluster"
MODES = ("off", "auto", "verify", "strict")
BUDGET, EAGER = POLICIES = ("budget", "eager")
LOG_LEVELS = ("off", "error", "warning", "info", "debug")

FLOAT64, FLOAT32, MIXED = PRECISIONS = ("float64", "float32", "mixed")

RTOL: Mapping[str, float] = {FLOAT64: 1e-9, FLOAT32: 1e-3, MIXED: 1e-3}
"""Default tolerance, by precision: the largest accepted difference from NumPy."""

UNIT: Mapping[str, float | None] = {FLOAT64: None, FLOAT32: 2.0**-23, MIXED: 2.0**-23}
"""Relative spacing of floats by the precision of programs. None: the same as NumPy's."""

TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")
"""Words for a switch, in lower case."""


class SettingError(ValueError):
    """An invalid setting. The message is one line: the setting, its value, what is wrong, and what is expected.

    >>> print(SettingError("QD_JAX_MODE", "fast", "off, auto, verify, strict"))
    QD_JAX_MODE='fast' cannot be used; expected: off, auto, verify, strict
    """

    def __init__(self, name: str, value: object, possible: str, problem: str = "cannot be used") -> None:
        super().__init__(name, value, possible, problem)
        self.name = name
        self.value = value
        self.possible = possible
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.name}={self.value!r} {self.problem}; expected: {self.possible}"

    def renamed(self, name: str) -> SettingError:
        """Return the same error under the name by which the user gave the value, such as a command-line option."""
        return SettingError(name, self.value, self.possible, self.problem)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. Immutable: derive another with `dataclasses.replace` or `override`.

    enabled: False makes `install()` do nothing. Decorated functions, and so the program, then run on NumPy.
    platform: the JAX platform to compile for; None takes JAX's default.
    devices: number of devices of the platform among which programs divide their arrays; "all" for every device.
    machines: how processes that are started together find each other, to divide arrays among the devices of all of
    them. "cluster": by the variables that their launcher sets. HOST:PORT: the address of the first process. None: each
    process works alone.
    processes, process: with an address, the number of processes, and the rank of this one, from 0. None: taken from the
    launcher.
    threads: XLA's threads on the CPU. None takes one thread if the first program's arrays are small, and otherwise all.
    ahead_of_time: True compiles in the background, while calls go on in NumPy; False compiles at first need.
    mode: "off" runs every call on NumPy; "auto" replays, and compares a decreasing share of the calls with NumPy;
    "verify" compares every replay; "strict" raises an error for each refusal.
    policy: "budget" compiles what is likely to pay; "eager" compiles everything at once, whatever it costs.
    log: the level of the logger named "accel".
    max_variants: maximum recorded paths to keep per target, compiled or not. 32 paths that share one program count as
    one.
    max_nodes: maximum operations in one recording, counting each repetition.
    max_compile_s: maximum seconds for one compile.
    finish_s: seconds after the program's end in which unfinished compiles may be completed for later runs.
    precision: the precision of programs in place of float64: "float64" itself, "float32", or "mixed", which accumulates
    in float64. The program sees NumPy's dtypes in any case.
    rtol: the largest accepted difference from NumPy (docs/settings.md says relative to what). A catalogue's row may
    override it. None: the default for the precision, from `RTOL`.
    check_share: in mode "auto", the share that comparisons with NumPy may take of the time of compiled calls, and of
    the time saved.
    cache_dir: the folder of the disk cache of compiled programs; None keeps nothing on disk.
    cache_shared: a second cache, for many users, that is read after the first and never written to; or None.
    quiet: True leaves out the summary line at the end of the process.
    kernels: False makes XLA compile everything on the CPU, see accel.compiler.kernels.
    exact: True makes NumPy compute the operations that accel's kernels would round differently, see
    accel.compiler.lower.exact.
    tune: False leaves process-wide settings as they are; accel.platform.tuning lists them.
    """

    enabled: bool = True
    platform: str | None = None
    devices: int | str = 1
    machines: str | None = None
    processes: int | None = None
    process: int | None = None
    threads: int | None = None
    ahead_of_time: bool = True
    mode: str = "auto"
    policy: str = BUDGET
    log: str = "warning"
    max_variants: int = 8
    max_nodes: int = 200_000
    max_compile_s: float = 120.0
    finish_s: float = 60.0
    precision: str = FLOAT64
    rtol: float | None = None
    check_share: float = 0.03
    cache_dir: Path | None = None
    cache_shared: Path | None = None
    quiet: bool = False
    kernels: bool = True
    exact: bool = False
    tune: bool = True

    @property
    def tolerance(self) -> float:
        """The largest accepted difference from NumPy."""
        return RTOL[self.precision] if self.rtol is None else self.rtol

    @property
    def finishes(self) -> bool:
        """True if compiles that are unfinished at the program's end are completed for later runs."""
        return self.finish_s > 0.0 and self.cache_dir is not None

    @property
    def divides(self) -> bool:
        """True if programs divide their arrays among several devices; such programs are not kept on disk."""
        return self.devices != 1 or self.machines is not None

    @property
    def unit(self) -> float | None:
        """The unit in the last place by which rounding may explain a difference beyond the tolerance; see `UNIT`.

        None if the user set a tolerance: float32's rounding then explains nothing.
        """
        return UNIT[self.precision] if self.rtol is None else None

    def __post_init__(self) -> None:
        """Check settings made in code in the same way as those from the environment."""
        for name in _BY_FIELD:
            check(name, getattr(self, name))


def platform_named(text: str) -> str:
    """The platform of a name as users write it: cuda is a GPU."""
    return {"cuda": "gpu"}.get(text.lower(), text.lower())


def _parse_bool(text: str) -> bool:
    return {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}[text.lower()]


def _parse_cache_dir(text: str) -> Path | None:
    return None if text.lower() in FALSE else Path(text).expanduser()


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_count(value: object) -> bool:
    # to Python, True is an int
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_address(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r".+:\d+", value) is not None


def _is_path(value: object) -> bool:
    return isinstance(value, Path)


def _is_positive(value: object) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)  # Real: NumPy's numbers, too
    return is_number and math.isfinite(value) and float(value) > 0  # type: ignore[arg-type]


def _or(accepts: Callable[[object], bool], *others: object) -> Callable[[object], bool]:
    return lambda value: accepts(value) or (value in others and not isinstance(value, bool))


def _one_of(*choices: str | None) -> Callable[[object], bool]:
    return lambda value: value in choices


class _Variable(NamedTuple):
    """One row: a field's environment variable, the check and description of its values, and the parser of its text."""

    name: str
    accepts: Callable[[Any], bool]
    possible: str
    parse: Callable[[str], Any]


_BY_FIELD: dict[str, _Variable] = {
    "enabled": _Variable("QD_USE_JAX", _is_bool, "1 or 0", _parse_bool),
    "platform": _Variable(
        "QD_JAX_PLATFORM", _one_of(None, *PLATFORMS), f"{', '.join(PLATFORMS)}, or unset", platform_named
    ),
    "devices": _Variable(
        "QD_JAX_DEVICES",
        _or(_is_count, ALL),
        f"a whole number from 1, or {ALL}",
        lambda text: ALL if text.lower() == ALL else int(text),
    ),
    "machines": _Variable("QD_JAX_MACHINES", _or(_is_address, None, CLUSTER), f"{CLUSTER}, HOST:PORT, or unset", str),
    "processes": _Variable("QD_JAX_PROCESSES", _or(_is_count, None), "a whole number from 1, or unset", int),
    "process": _Variable("QD_JAX_PROCESS", _or(_is_count, None, 0), "a whole number from 0, or unset", int),
    "threads": _Variable("QD_JAX_THREADS", _or(_is_count, None), "a whole number from 1, or unset", int),
    "ahead_of_time": _Variable("QD_JAX_AOT", _is_bool, "1 or 0", _parse_bool),
    "mode": _Variable("QD_JAX_MODE", _one_of(*MODES), ", ".join(MODES), str.lower),
    "policy": _Variable("QD_JAX_POLICY", _one_of(*POLICIES), ", ".join(POLICIES), str.lower),
    "log": _Variable("QD_JAX_LOG", _one_of(*LOG_LEVELS), ", ".join(LOG_LEVELS), str.lower),
    "max_variants": _Variable("QD_JAX_MAX_VARIANTS", _is_count, "a whole number from 1", int),
    "max_nodes": _Variable("QD_JAX_MAX_NODES", _is_count, "a whole number from 1", int),
    "max_compile_s": _Variable("QD_JAX_MAX_COMPILE_S", _is_positive, "seconds, more than 0", float),
    "finish_s": _Variable("QD_JAX_FINISH_S", _or(_is_positive, 0), "seconds, 0 or more", float),
    "precision": _Variable("QD_JAX_PRECISION", _one_of(*PRECISIONS), ", ".join(PRECISIONS), str.lower),
    "rtol": _Variable("QD_JAX_RTOL", _or(_is_positive, None), "a number more than 0", float),
    "check_share": _Variable(
        "QD_JAX_CHECK_SHARE", lambda value: _is_positive(value) and value <= 1, "a number more than 0, up to 1", float
    ),
    "cache_dir": _Variable("QD_JAX_CACHE_DIR", _or(_is_path, None), "a folder, or off", _parse_cache_dir),
    "cache_shared": _Variable("QD_JAX_CACHE_SHARED", _or(_is_path, None), "a folder, or off", _parse_cache_dir),
    "quiet": _Variable("QD_JAX_QUIET", _is_bool, "1 or 0", _parse_bool),
    "kernels": _Variable("QD_JAX_KERNELS", _is_bool, "1 or 0", _parse_bool),
    "exact": _Variable("QD_JAX_EXACT", _is_bool, "1 or 0", _parse_bool),
    "tune": _Variable("QD_JAX_TUNE", _is_bool, "1 or 0", _parse_bool),
}

VARIABLES: Mapping[str, str] = {field: variable.name for field, variable in _BY_FIELD.items()}
"""The environment variable of each field of `Settings`."""


def check(field: str, value: object) -> None:
    """Raise `SettingError` if `value` is invalid for this field of `Settings`."""
    if not _BY_FIELD[field].accepts(value):
        raise SettingError(field, value, _BY_FIELD[field].possible)


def _default_cache_dir(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "pygcm-accel"


def _read(variable: _Variable, text: str) -> Any:
    """Parse `text` as the value of this variable. Raises `SettingError`."""
    try:
        value = variable.parse(text.strip())
    except (KeyError, ValueError):
        raise SettingError(variable.name, text, variable.possible) from None
    if not variable.accepts(value):
        raise SettingError(variable.name, text, variable.possible)
    return value


def from_environment(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings in `environ`. None: in the process's environment, and below it in the program's file.

    A variable that is unset or blank takes its default. Raises `SettingError` for an invalid value.

    >>> from_environment({"QD_JAX_MODE": "strict"}).mode
    'strict'
    """
    below = from_project(project.find()) if environ is None else {}
    environ = os.environ if environ is None else environ
    values = {
        field: _read(variable, environ[variable.name])
        for field, variable in _BY_FIELD.items()
        if environ.get(variable.name, "").strip()
    }
    # settings that are made in code keep nothing on disk, unless they name a folder
    return Settings(**{"cache_dir": _default_cache_dir(environ), **below, **values})


def from_project(found: project.Project | None) -> dict[str, Any]:
    """Return the settings of the program's `pyproject.toml`, by field. Raises `SettingError` for an invalid one.

    Folders are relative to the file's. The key "catalogue" is no setting, see `accel.catalogue.default`.
    """
    if found is None:
        return {}
    if found.problem:
        raise SettingError(str(found.path), f"[{project.TABLE}]", "a file that tomllib can read", found.problem)
    return {key: _of_project(found, key, value) for key, value in found.table.items() if key != CATALOGUE}


def _of_project(found: project.Project, key: str, value: object) -> Any:
    name = f"{project.TABLE}.{key}"
    variable = _BY_FIELD.get(key)
    if variable is None:
        known = [*_BY_FIELD, CATALOGUE]
        raise SettingError(name, value, ", ".join(known), f"is unknown, in {found.path}{did_you_mean(key, known)}")
    if isinstance(value, str):
        value = _read(variable._replace(name=name), value)
    if isinstance(value, Path):
        value = found.path.parent / value
    if not variable.accepts(value):
        raise SettingError(name, value, variable.possible, f"cannot be used, in {found.path}")
    return value


CATALOGUE = "catalogue"
"""The key of `[tool.accel]` that names a file with a catalogue."""


in_force: Settings | None = None
"""The current settings; None until `current` has read them."""


def current() -> Settings:
    """Return the current settings, which the first call reads.

    Raises `SettingError` if the environment, or the program's `pyproject.toml`, holds an invalid value.
    """
    global in_force
    if in_force is None:
        in_force = from_environment()
    return in_force


def set_current(settings: Settings | None) -> None:
    """Make `settings` the current ones. None reads the environment again at the next use."""
    global in_force
    in_force = settings


@contextmanager
def override(**changes: Any) -> Iterator[Settings]:
    """Change the current settings of the whole process for a `with` block.

    >>> with override(mode="strict") as settings:
    ...     settings.mode
    'strict'
    """
    unknown = changes.keys() - {field.name for field in fields(Settings)}
    if unknown:
        raise SettingError("setting", min(unknown), ", ".join(VARIABLES), "is unknown")
    before = current()
    set_current(replace(before, **changes))
    try:
        yield current()
    finally:
        set_current(before)
