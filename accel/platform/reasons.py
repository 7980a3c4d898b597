"""Refusals: why a target, or one path through it, stays on NumPy, and at which line of the source.

A refusal is never raised into the user's code. Only accel.dispatch decides on its consequences.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from accel.platform import files, notebook_cells
from accel.platform.reason_table import REASONS as REASONS
from accel.platform.reason_table import Reason

_UNLISTED = Reason("", "a reason that is not in accel's table", "please report it: the table should have a row")

NO_LINE = "not at one line"
"""Text that messages show if a refusal has no line of the source."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason at one line of the source: why a target, or one path through it, stays on NumPy.

    reason: an id of `REASONS`. where: "file:line", or "" if no single line is the cause. detail: specifics such as a
    function's name or two dtypes, or "". stack: file and line in each recorded function where a recording stopped, the
    innermost first.
    """

    reason: str
    where: str = ""
    detail: str = ""
    stack: tuple[tuple[str, int], ...] = field(default=(), compare=False, repr=False)

    @property
    def why(self) -> str:
        """The reason in words, with this refusal's detail."""
        why = REASONS.get(self.reason, _UNLISTED).why
        return f"{why} ({self.detail})" if self.detail else why

    @property
    def hint(self) -> str:
        """Advice for the user."""
        return REASONS.get(self.reason, _UNLISTED).hint

    def message(self, target: str, what: str = "stayed on NumPy") -> str:
        """Return the log message, in four lines: what happened to `target`, where, why, and what to do about it."""
        return (
            f"accel: {target} {what}  [{self.reason}]\n"
            f"  where  {self.where or NO_LINE}\n"
            f"  why    {self.why}\n"
            f"  hint   {self.hint}"
        )


class Refused(RuntimeError):
    """Raised in mode "strict" if a target could not be accelerated, or was demoted."""


def source_line(filename: str, line: int) -> str:
    """Return "file:line" with `filename` relative to the entry of sys.path that it was imported from.

    A cell of a notebook is named by its number, "In[3]:7".

    >>> source_line(os.path.join(files.import_folders()[-1], "pkg", "mod.py"), 7)
    'pkg/mod.py:7'
    """
    cell = notebook_cells.title(filename)
    if cell is not None:
        return f"{cell}:{line}"
    # the longest first, because entries may lie inside one another
    roots = sorted((entry + os.sep for entry in files.import_folders()), key=len, reverse=True)
    root = next((root for root in roots if filename.startswith(root)), "")
    return f"{filename[len(root) :].replace(os.sep, '/')}:{line}"


def place_of(where: str) -> tuple[str, int]:
    """Return the file and line that `source_line` named. A file that no entry of sys.path has keeps its name."""
    name, _, line = where.rpartition(":")
    candidates = (os.path.join(root, name) for root in files.import_folders())
    file = notebook_cells.source_of(name) or next((path for path in candidates if os.path.isfile(path)), name)
    return file, int(line) if line.isdigit() else 0
