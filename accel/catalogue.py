"""Catalogues: what to accelerate in one program, as data.

A catalogue has rows (targets), holds (functions that are fixed to one answer), and the location of a demo. It lives in
a distribution of its own, and is found by the entry point group `accel.catalogues`. So accel itself knows no program.
"""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from accel.platform import config, logs, project
from accel.platform.config import CATALOGUE, SettingError
from accel.platform.spelling import did_you_mean, dotted, function_name

ENTRY_POINTS = "accel.catalogues"

TRAITS: Mapping[str, str] = MappingProxyType(
    {
        "outer": "called by the program's own loop: the targets it calls are inlined into its program",
        "mutates": "changes arguments, or attributes of an object",
        "prints": "prints on some paths: it is recorded again on a later call",
        "random": "draws random numbers on some paths",
        "rare": "called once in a simulated day or less: compiling must pay off over few calls",
        "optional": "absent from some programs or revisions",
    }
)
"""Traits that a row may declare about its target, and what each means."""


@dataclass(frozen=True, slots=True)
class Row:
    """One target: the function `qualname` of `module`, and why it is, or is not, accelerated.

    module: its dotted name as the program imports it, or `__main__` for the script itself. qualname: the function's
    name there, `f` or `Class.method`. why: a note for readers of the catalogue, such as how much time it takes.
    rtol: the accepted difference from NumPy; None takes `Settings.tolerance`.
    traits: keys of TRAITS. declined: why the function is not accelerated although it was considered; None if it is.
    effects: True if calls that print or log may be compiled; their text then appears at the end of the call.
    loops: True if the function stays as it is and the bodies of its loops are targets (see accel.entry.lift). With
    "<module>" for `qualname`, these are the loops at the top level of the module.

    Raises SettingError for an unknown trait, and for an `rtol` that is not a positive number.
    """

    module: str
    qualname: str
    why: str
    rtol: float | None = None
    traits: frozenset[str] = frozenset()
    declined: str | None = None
    effects: bool = True
    loops: bool = False

    def __post_init__(self) -> None:
        """Raise SettingError for a misspelt trait or an unusable `rtol`, which would otherwise go unnoticed."""
        for trait in sorted(self.traits - TRAITS.keys()):
            raise SettingError("traits", trait, ", ".join(TRAITS), f"is unknown{did_you_mean(trait, TRAITS)}")
        config.check("rtol", self.rtol)

    @property
    def target(self) -> str:
        """The name under which the report knows it."""
        return function_name(self.module, self.qualname)


@dataclass(frozen=True, slots=True)
class Hold:
    """A function that returns `value` for any arguments while accel is installed. note: a sentence for the report."""

    module: str
    qualname: str
    value: object
    note: str

    @property
    def target(self) -> str:
        """The name of the function in the report."""
        return function_name(self.module, self.qualname)


@dataclass(frozen=True, slots=True)
class Steps:
    """A program's steps and its state, for reports by step and for comparison runs.

    step: the target that is called once in every step. fields: by target, the attributes of its first argument that
    hold the state. perturbed: targets and attributes that a perturbed run changes by one unit in the last place before
    the first step.
    """

    step: str
    fields: Mapping[str, tuple[str, ...]]
    perturbed: tuple[tuple[str, str], ...] = ()

    def spelled(self, spell: Callable[[str], str]) -> Steps:
        """Return a copy with each target's name replaced by `spell(name)`."""
        return Steps(
            spell(self.step),
            {spell(target): names for target, names in self.fields.items()},
            tuple((spell(target), name) for target, name in self.perturbed),
        )


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The functions to accelerate in one program, with its steps and its demo.

    demo_root: the folder to put on sys.path for `--demo`, or None. demo_target: the module to run there. steps: None if
    the program has no steps. file: the file that `load` read the catalogue from; None for any other catalogue.
    """

    name: str
    rows: tuple[Row, ...]
    holds: tuple[Hold, ...] = ()
    demo_root: Path | None = None
    demo_target: str = ""
    steps: Steps | None = None
    file: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Rewrite the targets of `steps` in the spelling that the rows use."""
        if self.steps is not None:
            own = {dotted(row.target): row.target for row in self.rows}
            object.__setattr__(self, "steps", self.steps.spelled(lambda name: own.get(dotted(name), name)))


def load(path: str) -> Catalogue:
    """Return the `CATALOGUE` in a Python file, such as `accel doctor` writes. Raises SettingError."""
    try:
        content = runpy.run_path(path).get("CATALOGUE")
    except SettingError as error:  # of a row
        problem = f"cannot be used ({_line_of(error, path)}{error.name}={error.value!r} {error.problem})"
        raise SettingError("--catalogue", path, error.possible, problem) from error
    except Exception as error:
        problem = f"cannot be read ({_line_of(error, path)}{type(error).__name__}: {error})"
        raise SettingError("--catalogue", path, _FILES, problem) from error
    if not isinstance(content, Catalogue):
        raise SettingError("--catalogue", path, _FILES, "holds no catalogue")
    return replace(content, file=path)


def _line_of(error: BaseException, path: str) -> str:
    """Return the line of the file at which an error was raised; "" if the file had not begun to run."""
    lines = [entry.lineno for entry in traceback.extract_tb(error.__traceback__) if entry.filename == path]
    return f"line {lines[-1]}: " if lines else ""


def default() -> tuple[Catalogue, ...]:
    """Return the catalogues that are used if none is named: the one that the program's `pyproject.toml` names, or else
    those of the installed distributions. Raises SettingError.
    """
    of_project = named_by_project()
    return discover() if of_project is None else (of_project,)


def named_by_project() -> Catalogue | None:
    """Return the catalogue that the program's `pyproject.toml` names, if it does. Raises SettingError."""
    found = project.find()
    named = None if found is None else found.table.get(CATALOGUE)
    if found is None or named is None:
        return None
    name = f"{project.TABLE}.{CATALOGUE}"
    if not isinstance(named, str):
        raise SettingError(name, named, _FILES, f"cannot be used, in {found.path}")
    try:
        return load(str(found.path.parent / named))
    except SettingError as error:
        raise error.renamed(name) from None


_FILES = "a Python file that defines CATALOGUE, such as accel doctor writes"


def named(name: str) -> Catalogue:
    """Return the installed catalogue of that name, or the one in a file of that name. Raises SettingError."""
    if name.endswith(".py"):
        try:
            return load(name)
        except SettingError as error:
            raise error.renamed("catalogue") from error.__cause__
    known = {each.name: each for each in discover()}
    if name not in known:
        there = ", ".join(known) or "none is installed"
        raise SettingError("catalogue", name, f"an installed catalogue ({there}), or a Python file", "is not installed")
    return known[name]


def _points() -> Iterable[Any]:
    from importlib import metadata  # its import takes longer than all else that starting a program needs

    return metadata.entry_points(group=ENTRY_POINTS)


def is_installed(catalogue: Catalogue) -> bool:
    """Whether a catalogue is that of an installed distribution. Loads none of them."""
    return any(getattr(sys.modules.get(point.module), point.attr, None) is catalogue for point in _points())


def discover() -> tuple[Catalogue, ...]:
    """Return the catalogues of the installed distributions, in order of entry point name. There may be none.

    A catalogue that fails to load is left out with a warning, so that the others and the user's program still work.
    """
    catalogues = []
    for point in sorted(_points(), key=lambda point: point.name):
        try:
            catalogues.append(point.load())
        except Exception as error:
            logs.LOGGER.warning("the catalogue %r could not be loaded from %s: %s", point.name, point.value, error)
    return tuple(catalogues)
