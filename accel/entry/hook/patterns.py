"""Patterns: which rows of a catalogue `only` and `exclude` select."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from accel.catalogue import Row
from accel.platform.config import SettingError
from accel.platform.spelling import dotted


def matches(target: str, pattern: str) -> bool:
    """Whether `pattern` selects `target`.

    A colon is read as a dot, in both. A pattern with `*`, `?` or `[` is a shell pattern for the whole
    name. Any other pattern must be the first or the last dotted parts of the name.

    >>> [matches("pygcm.ocean:Ocean.step", pattern) for pattern in ("pygcm.ocean", "step", "*Ocean*", "ocean")]
    [True, True, True, False]
    """
    target, pattern = dotted(target), dotted(pattern)
    if any(sign in pattern for sign in "*?["):
        return fnmatchcase(target, pattern)
    return f"{target}.".startswith(f"{pattern}.") or f".{target}".endswith(f".{pattern}")


def selected(row: Row, only: Iterable[str], exclude: Iterable[str]) -> bool:
    """Return whether a row is to be wrapped: it matches `only`, if given, and no pattern of `exclude`."""
    wanted = not only or any(matches(row.target, pattern) for pattern in only)
    return wanted and not any(matches(row.target, pattern) for pattern in exclude)


def check_patterns(rows: Iterable[Row], **patterns: Iterable[str]) -> None:
    """Raise `SettingError` for a pattern that selects no row: a misspelt one would go unnoticed.

    patterns: lists of patterns, by the name of the option or argument that holds them.
    """
    rows = tuple(rows)
    for option, values in patterns.items():
        for pattern in values:
            if not any(matches(row.target, pattern) for row in rows):
                example = rows[0].target if rows else "none: no catalogue is installed"
                raise SettingError(option, pattern, f"patterns such as {example}", "selects no function")
