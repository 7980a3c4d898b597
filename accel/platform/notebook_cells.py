"""Cells of a notebook, and what is typed into IPython: their sources have names that nobody reads.

IPython names a cell "<ipython-input-...>", and a notebook's kernel after a file in a folder that is never written.
People call it by the number that stands beside it: `In[3]`.
"""

from __future__ import annotations

import linecache
import os
import sys


def is_cell(filename: str) -> bool:
    """Whether a source is a cell: Python knows its lines, but no file."""
    named = filename.startswith("<ipython-input-") or f"{os.sep}ipykernel_" in filename
    return named and filename in linecache.cache


def title(filename: str) -> str | None:
    """`In[3]`, by the number of the cell's last run; None for what is no cell."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and is_cell(filename) else None
    named = None if shell is None else shell.compile.format_code_name(filename)
    return None if named is None else str(named[1])


def source_of(cell: str) -> str | None:
    """The source's name for a title; None if no cell has it."""
    return next((filename for filename in list(linecache.cache) if title(filename) == cell), None)
