"""Report the targets that accel chose: one line for the user, and a catalogue for later runs without `--auto`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from accel.catalogue import Row

_NAMED = 6
"""Maximum number of targets that the summary line names."""


def summary_of_chosen(rows: Sequence[Row], target: str, *, again: bool = False) -> str:
    """Return a line that names the chosen targets that were compiled, and one that says why no loop of the script is.

    target: the program, as the user named it. again: True if an earlier run made the choice.
    """
    what = without_source(target)
    missing = "" if what is None else f"accel: no loop is outlined: {what} has no source file\n"
    if not rows:
        return missing or "accel: nothing that accel chose was compiled before the program ended\n"
    names = [f"the loops of {_title(row)}" if row.loops else _title(row) for row in rows]
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"accel: chose {', '.join(names[:_NAMED])}{more}{', as an earlier run did' if again else ''}\n{missing}"


def without_source(target: str) -> str | None:
    """Return in words what the program is, if it has no source file to outline loops from; else None."""
    by_flag = {"-": "a script from standard input", "-c": "code given by -c"}
    file = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    is_gone = file.endswith(".pyc") or (os.path.isabs(file) and not os.path.isfile(file))  # in a zip file
    return by_flag.get(target, "the program" if is_gone else None)


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
