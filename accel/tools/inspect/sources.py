"""Read the functions of a file without importing it."""

from __future__ import annotations

import ast
import inspect
import os
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from types import CodeType
from typing import NamedTuple

from accel.platform.codes import with_nested


class Source(NamedTuple):
    """One file of the program."""

    file: str
    tree: ast.Module
    code: CodeType


def is_function(code: CodeType) -> bool:
    """Whether this is a function's code; lambdas and comprehensions are part of the enclosing function."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")


def parse(file: str) -> Source:
    """Parse and compile a file. Raises OSError, SyntaxError, ValueError or RecursionError."""
    file = os.path.realpath(file)
    with open(file, "rb") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # syntax warnings, such as of escapes, appear when the program runs
        tree = ast.parse(stream.read(), file)
        return Source(file, tree, compile(tree, file, "exec", dont_inherit=True))


def functions_of(source: Source) -> list[str]:
    """Return the qualified name of every function defined in the file, in order."""
    return [code.co_qualname for code in with_nested(source.code) if is_function(code)]


def nearest(name: str, names: Iterable[str]) -> str:
    """Return names similar to a misspelt one, for a message."""
    names = list(names)
    last = name.rpartition(".")[2]
    near = [each for each in names if each.rpartition(".")[2] == last] or get_close_matches(name, names, 3, 0.5)
    return ", ".join(near or names[:5]) or "none: it contains no function"
