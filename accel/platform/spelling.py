"""Spelling: the names of functions, and suggestions for misspelt words."""

from __future__ import annotations

from collections.abc import Iterable

ALIKE = 0.6
"""Minimum similarity ratio, by difflib, at which a word is suggested for another."""


def function_name(module: str, qualname: str) -> str:
    """Return a function's name as all of accel spells it.

    >>> function_name("pygcm.ocean", "Ocean.step")
    'pygcm.ocean:Ocean.step'
    """
    return f"{module}:{qualname}"


def dotted(name: str) -> str:
    """Return a function's name with dots alone, so that spellings with a colon compare equal."""
    return name.replace(":", ".")


def owner_of(name: str) -> tuple[str, str]:
    """Split a function's name into its class, or else its module, and its last part.

    >>> owner_of("pygcm.ocean:Ocean.step"), owner_of("pygcm.humidity:q_sat")
    (('pygcm.ocean:Ocean', 'step'), ('pygcm.humidity', 'q_sat'))
    """
    end = max(name.rfind("."), name.rfind(":"))
    return name[: max(end, 0)], name[end + 1 :]


def did_you_mean(word: str, words: Iterable[str], alike: float = ALIKE) -> str:
    """Return a question that names the word most like a misspelt one, or "".

    >>> did_you_mean("--reprot", ["--report", "--only"])
    ' (did you mean --report?)'
    """
    from difflib import get_close_matches  # for an error only

    by_letters = {each.strip("-").lower(): each for each in words}
    near = get_close_matches(word.strip("-").lower(), by_letters, 1, alike)
    return f" (did you mean {by_letters[near[0]]}?)" if near else ""
