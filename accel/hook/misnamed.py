"""Rows of a user's own catalogue that name nothing: a slip of the pen is told of, where the row stands, and once.

Rows of installed catalogues are left alone: revisions of a program differ. So are rows with the trait "optional".
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, MappingProxyType, ModuleType

import wrapt

from accel import logs
from accel.catalogue import Catalogue, Row, is_installed
from accel.hook.attributes import find, namespace
from accel.hook.imports import locate
from accel.hook.lifts import MAIN, is_file_of
from accel.process.own_code import is_project_file
from accel.reports.ledger import current_run, open_ledger
from accel.spelling import did_you_mean

Numbers = Mapping[str, int]
"""The numbers of rows, from 1, by the names of their targets."""


class OwnRows:
    """The rows of a user's own catalogue. catalogue: None, or an installed one, has none."""

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self._file = ""
        self._numbers: Numbers = MappingProxyType({})
        self._told: set[str] = set()
        self.slips: list[str] = []  # what was told, in sentences
        if catalogue is not None and not is_installed(catalogue):
            self._file = catalogue.file or f"catalogue {catalogue.name}"
            self._numbers = {row.target: number for number, row in enumerate(catalogue.rows, 1) if _must_be_there(row)}

    def warn_of_missing(self, module: ModuleType, row: Row) -> None:
        """Tell, once, that `module`, whose code has run, has nothing of the row's name."""
        number = self._numbers.get(row.target)
        if number is not None and row.target not in self._told:
            self._told.add(row.target)
            guess = did_you_mean(row.qualname, _names_in(module))
            self.slips.append(f"{self._file}, row {number}: {row.module} has no {row.qualname}{guess}")
            logs.LOGGER.warning("%s", self.slips[-1])

    def look_back(self, rows: Iterable[Row]) -> None:
        """At the end of the program: warn of modules that it has not imported, and of what it has not defined."""
        unknown: dict[str, list[str]] = {}
        for row in rows:
            book = open_ledger(row.target)
            if row.target not in self._numbers or book.calls or book.inlined_calls:
                continue
            module = sys.modules.get(row.module)
            if module is None:
                unknown.setdefault(row.module, []).append(str(self._numbers[row.target]))
            # only now: nobody tells when the program itself has defined all that it is going to
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
    """Whether a program is expected to have it. "<module>" names the top of a file, and "<locals>" what comes later."""
    return "optional" not in row.traits and "<" not in row.qualname


def _unknown(name: str) -> str:
    """Say that the program has not imported a module, and what may have been meant."""
    if is_file_of(name, str(getattr(sys.modules[MAIN], "__file__", ""))):
        return f"{name} is the program itself, whose module is {MAIN}"
    known = () if locate(name) is not None else _own_modules()
    return f"the program has not imported {name}{did_you_mean(name, known)}"


def _own_modules() -> Iterator[str]:
    """The names of the user's own modules that are imported."""
    for name, module in tuple(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and is_project_file(file):
            yield name


def _names_in(module: ModuleType) -> Iterator[str]:
    """What a row may name in a module: its functions, and the methods of its classes."""
    for name, value in tuple(namespace(module).items()):
        if issubclass(type(value), (FunctionType, wrapt.CallableObjectProxy)):
            yield name
        elif isinstance(value, type):
            yield from (f"{name}.{each}" for each in tuple(namespace(value)) if not each.startswith("__"))
