"""Units: parts of a module that are compiled each by itself.

A function that another module has too is compiled once: it has the same text there, and a name that follows from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_NAMES = re.compile(r"@([\w.]+)")
_LOCAL_NAMES = re.compile(r"( noalias)? %\w+")


def units_of(functions: Mapping[str, str], declared: Iterable[str], attributes: Sequence[str]) -> list[str]:
    """Return a text for each function, with declarations of the others that it calls.

    functions: definitions by name; one may follow others that it alone calls. declared: declarations of intrinsics and
    of the C library's functions.
    """
    known = {name: line for text in declared for line in text.splitlines() for name in _NAMES.findall(line)}
    heads = {name: _head(name, text) for name, text in functions.items()}
    known.update({name: f"declare {_LOCAL_NAMES.sub('', head)}" for name, head in heads.items()})
    return [
        "\n".join(
            [
                *(known[each] for each in sorted({*_NAMES.findall(text)} & known.keys() - {name})),
                text.replace(f"define internal {heads[name]}", f"define {heads[name]}"),
                *attributes,
            ]
        )
        for name, text in functions.items()
    ]


def _head(name: str, text: str) -> str:
    """Return a function's type, name and arguments."""
    found = re.search(rf"^define (?:internal )?(.* @{re.escape(name)}\(.*?\))", text, re.MULTILINE)
    assert found is not None, f"{name} is not defined"
    return found[1]
