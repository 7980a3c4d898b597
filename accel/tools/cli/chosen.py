"""Report the targets that accel chose: one line for the user, and a catalogue for later runs without `--auto`."""

from __future__ import annotations

from collections.abc import Sequence

from accel.catalogue import Row

_NAMED = 6
"""Maximum number of targets that the summary line names."""


def summary_of_chosen(rows: Sequence[Row], target: str, *, again: bool = False) -> str:
    """Return one line that names the chosen targets that were compiled.

    target: the program, as the user named it. again: True if an earlier run made the choice.
    """
    if target == "-":
        return "accel: no loop is outlined: a script from standard input has no source file\n"
    if not rows:
        return "accel: nothing that accel chose was compiled before the program ended\n"
    names = [f"the loops of {_title(row)}" if row.loops else _title(row) for row in rows]
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"accel: chose {', '.join(names[:_NAMED])}{more}{', as an earlier run did' if again else ''}\n"


def _title(row: Row) -> str:
    return "the script itself" if row.qualname.startswith("<") else row.qualname


def as_catalogue(rows: Sequence[Row], target: str) -> str:
    """Return Python text that `accel run --catalogue FILE` reads. target: the program, as the user named it."""
    lines = [
        f'"""The choice of accel run in {target}: `accel run --catalogue THIS_FILE {target}`."""',
        "",
        "from accel.catalogue import Catalogue, Row",
        "",
        "ROWS = (",
    ]
    for row in rows:
        loops = ", loops=True" if row.loops else ""
        lines.append(f"    Row({row.module!r}, {row.qualname!r}, {row.why!r}{loops}),")
    return "\n".join([*lines, ")", 'CATALOGUE = Catalogue("chosen", ROWS)', ""])
