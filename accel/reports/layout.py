"""Layout: text within 100 columns, tables, and names by module, for all commands that print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from textwrap import wrap
from typing import Any

from accel.platform.spelling import owner_of

WIDTH = 100

Column = tuple[str, Callable[[dict[str, Any]], str]]
"""A column's title, and its cell of one function."""


def flow(text: str, label: str = "", hang: str | None = None, most: int | None = None) -> list[str]:
    """Wrap `text` after `label`. Further lines are aligned with the first, or begin with `hang`.

    most: maximum number of lines.
    """
    hanging = " " * len(label) if hang is None else hang
    return [
        line
        for number, each in enumerate(text.splitlines())
        for line in wrap(
            each,
            WIDTH,
            initial_indent=hanging if number else label,
            subsequent_indent=hanging,
            break_on_hyphens=False,
            max_lines=most,
        )
    ]


def text_table(
    columns: Sequence[Column],
    members: Sequence[dict[str, Any]],
    name: Callable[[dict[str, Any]], str] = lambda each: str(each["target"]),
) -> list[str]:
    """Return a table with one line for each function: its name, and right-aligned columns."""
    widths = [max(len(title), *(len(show(each)) for each in members)) for title, show in columns]
    names = [name(each) for each in members]
    first = min(WIDTH - 2 - sum(width + 2 for width in widths), max(map(len, names)))
    rows = [("", [title for title, _ in columns])]
    # the beginning of a long name is cut off, because names differ in their ends
    rows += [
        (each if len(each) <= first else f"...{each[3 - first :]}", [show(member) for _, show in columns])
        for each, member in zip(names, members, strict=True)
    ]
    return [
        f"  {each:{first}}  {'  '.join(f'{cell:>{width}}' for cell, width in zip(cells, widths, strict=True))}"
        for each, cells in rows
    ]


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    head, *body = (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in (titles, *rows))
    return [head, "|" + "---|" * len(titles), *body]


def by_owner(targets: Iterable[str]) -> list[str]:
    """Return names of functions, those of one module or class together."""
    owners = _owners(targets)
    return [line for owner, names in owners.items() for line in flow(f"{owner}: {', '.join(names)}", "  ", "    ")]


def counted_by_owner(targets: Iterable[str]) -> list[str]:
    """Return the modules and classes of functions, with the number of their functions."""
    owners = _owners(targets)
    return flow(", ".join(f"{owner} ({len(names)})" for owner, names in sorted(owners.items())), "  ")


def _owners(targets: Iterable[str]) -> dict[str, list[str]]:
    owners: dict[str, list[str]] = {}
    for target in targets:
        owner, name = owner_of(target)
        owners.setdefault(owner, []).append(name)
    return owners
