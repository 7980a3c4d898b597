"""Cells: code that has lines, but no file."""

from __future__ import annotations

import linecache
import os


def is_cell(filename: str) -> bool:
    """Whether a source is a cell of a notebook, or what a user typed into IPython: Python knows its lines, but no file.

    IPython names cells "<ipython-input-...>", and a notebook's kernel after files in a folder that is never written.
    """
    named = filename.startswith("<ipython-input-") or f"{os.sep}ipykernel_" in filename
    return named and filename in linecache.cache
