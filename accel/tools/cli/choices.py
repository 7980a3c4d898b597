"""The choices of earlier runs without a catalogue: kept on disk by program, so that the next run begins with them.

They are names alone, in one small file in the folder of the disk cache: nothing that is read there runs. A choice holds
as long as the program's main file is the same.

A line tells the user what was chosen.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from accel.catalogue import Row
from accel.entry.hook import patching
from accel.entry.hook.lifts import WHY
from accel.platform import config, files, project
from accel.platform.ledger import current_run
from accel.tools.cli.starts import Start, source

NAME = "choices.json"

MOST = 100
"""Maximum number of programs whose choices are kept, the newest ones. A guess: an entry takes some 200 bytes."""

_USES_ACCEL = re.compile(rb"^\s*(?:import|from)\s+accel\b", re.MULTILINE)


def chooses(start: Start, *, named: bool, asked: bool | None = None) -> bool:
    """Whether accel chooses what to accelerate: no catalogue and no decorator names functions of this program.

    named: whether the command line names a catalogue, or rows of one. asked: whether it asks for a choice, which
    decides; None if it says nothing. Raises SettingError.
    """
    if asked is not None:
        return asked
    return not named and not _USES_ACCEL.search(source(start)) and not patching.is_catalogued()


class RunChoice:
    """The choice of one run. before: rows that an earlier run of the program chose, with which this one begins."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self.before = load(start)

    def settle(self, *, lost: bool = False, beforehand: bool = False) -> list[Row]:
        """Return at the program's end what was chosen and compiled, and keep it if it is faster than NumPy.

        Costs of compiling do not count for that: the next run has none. lost: whether the run lost, costs included.
        beforehand: whether `accel compile` made the run, whose gain says nothing.
        """
        if not self.before:
            chosen = patching.chosen()
            if current_run().gained_s > 0.0 or beforehand:
                keep(self._start, chosen)
            return chosen
        if lost:  # so the next run chooses anew
            keep(self._start, [])
        return self.before if patching.chosen() else []


def load(start: Start) -> list[Row]:
    """Return what an earlier run of this program chose; [] if none did, or if its main file has changed since."""
    found = files.known(_place()).get(_key(start))
    if not isinstance(found, dict) or found.get("source") != _digest(start):
        return []
    try:
        return [Row(module, qualname, WHY, loops=loops) for module, qualname, loops in found["rows"]]
    except (KeyError, TypeError, ValueError):
        return []


def keep(start: Start, rows: Iterable[Row]) -> None:
    """Keep a choice for the program's next run, or forget the one that is kept. Raises nothing."""
    place = _place()
    known = files.known(place)
    before = known.pop(_key(start), None)
    chosen = [[row.module, row.qualname, row.loops] for row in rows]
    if chosen and start.elsewhere[0] != "-":
        known[_key(start)] = {"source": _digest(start), "rows": chosen}
    elif before is None:
        return
    if place is not None:
        files.keep_known(place, known, MOST)


def _place() -> Path | None:
    root = config.current().cache_dir
    return None if root is None else root / NAME


def _key(start: Start) -> str:
    """The program, whatever its arguments are: "file", or "folder -m module"; the text itself is part of a -c."""
    target, args = start.elsewhere
    return " ".join([project.home(), target, args[0]]) if target in ("-m", "-c") else files.resolved(target)


def _digest(start: Start) -> str:
    return hashlib.sha256(source(start)).hexdigest()


# -- what is said of a choice -----------------------------------------------------------------------------------------


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
