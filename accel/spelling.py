"""Spelling: which of some words a misspelt one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.6
"""Words are alike from this ratio on, as difflib counts."""


def did_you_mean(word: str, words: Iterable[str], alike: float = ALIKE) -> str:
    """Return a question that names the word most like a misspelt one, or "".

    >>> did_you_mean("--reprot", ["--report", "--only"])
    ' (did you mean --report?)'
    """
    by_letters = {each.strip("-").lower(): each for each in words}
    near = get_close_matches(word.strip("-").lower(), by_letters, 1, alike)
    return f" (did you mean {by_letters[near[0]]}?)" if near else ""
