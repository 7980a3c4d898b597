"""What to accelerate in one program, as data: rows (targets), holds (switches kept still), and where its demo is.

A catalogue lives in a distribution of its own and is found through the entry point group `accel.catalogues`, so that
accel itself knows no program.
"""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from accel import logs
from accel.config import SettingError

ENTRY_POINTS = "accel.catalogues"

TRAITS: Mapping[str, str] = MappingProxyType(
    {
        "outer": "called by the program's own loop: what it calls is inlined into its program",
        "mutates": "changes arguments, or attributes of an object",
        "prints": "prints on some paths: is recorded again on a later call",
        "random": "draws random numbers on some paths",
        "rare": "called once a day or less often: compiling must pay off over few calls",
        "optional": "absent from some revisions of the program",
    }
)
"""What a row may declare about its target."""


@dataclass(frozen=True, slots=True)
class Row:
    """One target: the function `qualname` of `module`, and why it is, or is not, accelerated.

    rtol: accepted difference from NumPy relative to an array's largest magnitude; None takes the setting's.
    declined: None, or why the function is left alone although it was considered.
    """

    module: str
    qualname: str
    why: str
    rtol: float | None = None
    traits: frozenset[str] = frozenset()
    declined: str | None = None

    @property
    def target(self) -> str:
        """The name under which the report knows it."""
        return f"{self.module}.{self.qualname}"


@dataclass(frozen=True, slots=True)
class Hold:
    """A function that answers `value` to any arguments while accel is installed; `note` is for the report."""

    module: str
    qualname: str
    value: object
    note: str

    @property
    def target(self) -> str:
        """The name under which the report knows it."""
        return f"{self.module}.{self.qualname}"


@dataclass(frozen=True, slots=True)
class Steps:
    """What a step of the program is and where its state lies: for reports by step and for comparison runs.

    step: the target that is called once in every step. fields: by target, the attributes of its first argument that
    hold the state. perturbed: target and attribute of what a perturbed run moves by a last place before the first step.
    """

    step: str
    fields: Mapping[str, tuple[str, ...]]
    perturbed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything accel needs to know of one program.

    demo_root: a folder to put on sys.path for `--demo`, or None. demo_target: the module that is the program there.
    steps: None where the program has none to speak of.
    """

    name: str
    rows: tuple[Row, ...]
    holds: tuple[Hold, ...] = ()
    demo_root: Path | None = None
    demo_target: str = ""
    steps: Steps | None = None


def load(path: str) -> Catalogue:
    """Return the `CATALOGUE` that a Python file holds, as `accel doctor` writes it. Raises SettingError."""
    try:
        found = runpy.run_path(path).get("CATALOGUE")
    except Exception as error:
        problem = f"cannot be read ({type(error).__name__}: {error})"
        raise SettingError("--catalogue", path, _FILES, problem) from error
    if not isinstance(found, Catalogue):
        raise SettingError("--catalogue", path, _FILES, "holds no catalogue")
    return found


_FILES = "a Python file with CATALOGUE in it, as accel doctor writes it"


def discover() -> tuple[Catalogue, ...]:
    """Return the catalogues of the installed distributions, in order of entry point name; none is no error.

    One that fails to load is left out with a warning: it must not keep the others, or the user's program, from working.
    """
    found = []
    for point in sorted(metadata.entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            found.append(point.load())
        except Exception as error:
            logs.LOGGER.warning("the catalogue %r could not be loaded from %s: %s", point.name, point.value, error)
    return tuple(found)
