"""Warn once about rows of a user's own catalogue that name nothing, such as misspelt ones, with the row's place.

Rows of installed catalogues give no warning, because revisions of a program differ. Nor do rows with the trait
"optional".
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, MappingProxyType, ModuleType

import wrapt

from accel.catalogue import Catalogue, Row, is_installed
from accel.entry.hook.attributes import find, namespace
from accel.entry.hook.imports import locate
from accel.entry.hook.lifts import MAIN, is_file_of
from accel.platform import logs
from accel.platform.ledger import current_run, open_ledger
from accel.platform.own_code import is_project_file
from accel.platform.spelling import did_you_mean

Numbers = Mapping[str, int]
"""Row numbers, from 1, by the names of their targets."""


class OwnRows:
    """The rows of a user's own catalogue. Empty if `catalogue` is None or an installed one."""

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self._file = ""
        self._numbers: Numbers = MappingProxyType({})
        self._told: set[str] = set()
        self.slips: list[str] = []  # the warnings so far, as sentences
        if catalogue is not None and not is_installed(catalogue):
            self._file = catalogue.file or f"catalogue {catalogue.name}"
            self._numbers = {row.target: number for number, row in enumerate(catalogue.rows, 1) if _must_be_there(row)}

    def warn_of_missing(self, module: ModuleType, row: Row) -> None:
        """Warn once that `module`, whose code has run, does not define the row's function."""
        number = self._numbers.get(row.target)
        if number is not None and row.target not in self._told:
            self._told.add(row.target)
            guess = did_you_mean(row.qualname, _names_in(module))
            self.slips.append(f"{self._file}, row {number}: {row.module} has no {row.qualname}{guess}")
            logs.LOGGER.warning("%s", self.slips[-1])

    def look_back(self, rows: Iterable[Row]) -> None:
        """Warn at the end of the program about rows whose module was not imported or whose function was not defined."""
        unknown: dict[str, list[str]] = {}
        for row in rows:
            if row.target not in self._numbers:
                continue
            book = open_ledger(row.target)
            if book.calls or book.inlined_calls:
                continue
            module = sys.modules.get(row.module)
            if module is None:
                unknown.setdefault(row.module, []).append(str(self._numbers[row.target]))
            # only now: nothing signals that the program has defined all its functions
            elif row.module == MAIN and find(module, row.qualname) is None:
                self.warn_of_missing(module, row)
        fresh: list[str] = []
        for name, numbers in unknown.items():
            what = f"row{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
            sentence = f"{self._file}, {what}: {_unknown(name)}"
            current_run().note(sentence)
            if sentence not in self.slips:
                fresh.append(sentence)
        self.slips += fresh
        if fresh:  # in one line, because a catalogue may be for several programs
            logs.LOGGER.warning("%s%s", fresh[0], f"; the report has {len(fresh) - 1} more" if fresh[1:] else "")


def _must_be_there(row: Row) -> bool:
    """Return whether the program is expected to have the row's function.

    "<module>" names the top of a file, and "<locals>" a function that is defined later.
    """
    return "optional" not in row.traits and "<" not in row.qualname


def _unknown(name: str) -> str:
    """Return the message that the program has not imported a module, with similar names."""
    if is_file_of(name, str(getattr(sys.modules[MAIN], "__file__", ""))):
        return f"{name} is the program itself, whose module is {MAIN}"
    known = () if locate(name) is not None else _own_modules()
    return f"the program has not imported {name}{did_you_mean(name, known)}"


def _own_modules() -> Iterator[str]:
    """Yield the names of the user's own modules that are imported."""
    for name, module in tuple(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and is_project_file(file):
            yield name


def _names_in(module: ModuleType) -> Iterator[str]:
    """Yield the names that a row may use in a module: its functions, and the methods of its classes."""
    for name, value in tuple(namespace(module).items()):
        if issubclass(type(value), (FunctionType, wrapt.CallableObjectProxy)):
            yield name
        elif isinstance(value, type):
            yield from (f"{name}.{each}" for each in tuple(namespace(value)) if not each.startswith("__"))
