"""Attach an ensemble (`--ensemble`) to the loop of the program that its members step beside."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from accel.catalogue import Row
from accel.entry.hook import lifts
from accel.entry.hook.lifts import MAIN
from accel.platform.ledger import current_run
from accel.tools.cli.commandline import EnsembleOptions
from accel.tools.cli.starts import NoProgram
from accel.transform.ensembles import perturbation

if TYPE_CHECKING:
    from accel.entry.lift.switch import Switch


class Joining:
    """The ensemble that `--ensemble` requests, attached to one loop of the program.

    quiet: True if only refusals are shown. rows: loops to outline outside `__main__`, whose loops are outlined anyway.
    Raises SettingError.
    """

    def __init__(self, options: EnsembleOptions, quiet: bool) -> None:
        from accel.transform.ensembles.members import Members  # imports NumPy

        self._named = perturbation.load(options.perturb)
        self._members = Members(self._named, options.members, options.path, _say, _nothing if quiet else _say)
        self._found: list[Switch] = []
        lifts.listeners.append(self._lifted)

    @property
    def rows(self) -> list[Row]:
        named = self._named
        if named.module == MAIN or named.function is None:
            return []
        return [Row(named.module, named.function, "named by LOOP", loops=True)]

    def run(self, execute: Callable[[], int]) -> int:
        """Run the program, then save the members. Returns the exit code if the program raised nothing."""
        code = failed = 0
        try:
            code = execute()
        finally:
            lifts.listeners.remove(self._lifted)
            if not code:
                failed = self._members.finish()
        return code or failed

    def _lifted(self, switch: Switch, names: dict[str, Any]) -> None:
        assert switch.around is not None
        module = names.get("__name__", "")
        if self._named.names(module, switch.around.co_qualname, switch.line):
            self._found.append(switch)
            if module != MAIN:
                self._members.join(switch, module)

    def choose(self) -> None:
        """Choose the loop to step beside, once the program's loops are outlined. Raises NoProgram."""
        if self._named.module != MAIN:
            return
        if len(self._found) == 1:
            self._members.join(self._found[0], MAIN)
            return
        named = self._named.function or self._named.line
        if self._found:
            found = sorted(self._found, key=lambda each: each.line)
            known = ", ".join(f"{each.line} ({each.around.co_qualname})" for each in found if each.around)
            raise NoProgram("LOOP", named, f"one of the lines {known}", "names several loops")
        notes = [each for each in current_run().notes if "lifted: " in each]
        raise NoProgram(
            "LOOP", named, "a loop of the program", "; ".join(["names no loop that can be stepped", *notes])
        )


def _nothing(line: str) -> None:
    pass


def _say(line: str) -> None:
    if sys.stderr is not None and not sys.stderr.closed:
        sys.stdout.flush()
        sys.stderr.write(f"{line}\n")
