"""Warn once about rows of a user's own catalogue that name nothing, such as misspelt ones, with the row's place.

Rows of installed catalogues give no warning, because revisions of a program differ. Nor do rows with the trait
"optional".
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType

from accel.catalogue import Catalogue, Row, is_installed
from accel.entry.hook.attributes import find, namespace
from accel.entry.hook.lifts import MAIN, is_file_of
from accel.platform import logs
from accel.platform.ledger import current_run, open_ledger
from accel.platform.spelling import did_you_mean


class OwnRows:
    """The rows of a user's own catalogue. Empty if `catalogue` is None or an installed one."""

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self._file = ""
        self._numbers: dict[str, int] = {}  # from 1, by the names of the rows' targets
        self.slips: list[str] = []  # the warnings so far, as sentences
        if catalogue is not None and not is_installed(catalogue):
            self._file = catalogue.file or f"catalogue {catalogue.name}"
            self._numbers = {row.target: number for number, row in enumerate(catalogue.rows, 1) if _must_be_there(row)}

    def warn_of_missing(self, module: ModuleType, row: Row) -> None:
        """Warn once that `module`, whose code has run, does not define the row's function."""
        if row.target in self._numbers:
            top = dict(namespace(module))
            inside = [
                f"{name}.{each}" for name, value in top.items() if isinstance(value, type) for each in vars(value)
            ]
            guess = did_you_mean(row.qualname, [*top, *inside])
            sentence = f"{self._file}, row {self._numbers[row.target]}: {row.module} has no {row.qualname}{guess}"
            if sentence not in self.slips:
                self.slips.append(sentence)
                logs.LOGGER.warning("%s", sentence)

    def look_back(self, rows: Iterable[Row]) -> None:
        """Warn at the end of the program about rows whose module was not imported or whose function was not defined."""
        unknown: dict[str, list[str]] = {}
        for row in rows:
            book = open_ledger(row.target) if row.target in self._numbers else None
            if book is None or book.calls or book.inlined_calls:
                continue
            module = sys.modules.get(row.module)
            if module is None:
                unknown.setdefault(row.module, []).append(str(self._numbers[row.target]))
            # only now: nothing signals that the program has defined all its functions
            elif row.module == MAIN and find(module, row.qualname) is None:
                self.warn_of_missing(module, row)
        sentences = [self._unknown(name, numbers) for name, numbers in unknown.items()]
        for sentence in sentences:
            current_run().note(sentence)
        fresh = [sentence for sentence in sentences if sentence not in self.slips]
        self.slips += fresh
        if fresh:  # in one line, because a catalogue may be for several programs
            logs.LOGGER.warning("%s%s", fresh[0], f"; the report has {len(fresh) - 1} more" if fresh[1:] else "")

    def _unknown(self, name: str, numbers: list[str]) -> str:
        """Return the message that the program has not imported a module that these rows name."""
        problem = f"the program has not imported {name}"
        if is_file_of(name, str(getattr(sys.modules[MAIN], "__file__", ""))):
            problem = f"{name} is the program itself, whose module is {MAIN}"
        return f"{self._file}, row{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: {problem}"


def _must_be_there(row: Row) -> bool:
    """Return whether the program is expected to have the row's function.

    "<module>" names the top of a file, and "<locals>" a function that is defined later.
    """
    return "optional" not in row.traits and "<" not in row.qualname
