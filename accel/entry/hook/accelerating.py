"""The usual replacements: a row's function by the accelerated one, and an outlined loop's iterations by a target."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from accel.catalogue import Row
from accel.entry.hook.installation import NUMPY
from accel.platform import ledger

if TYPE_CHECKING:
    from accel.entry.lift.iterations import Splits
    from accel.entry.lift.switch import Switch


@dataclass(frozen=True)
class Accelerating:
    """The usual replacement: the accelerated function. mode: None for the mode in the settings."""

    mode: str | None

    def __call__(self, row: Row, function: FunctionType) -> Any:
        from accel.dispatch import accelerated

        return accelerated(function, name=row.target, rtol=row.rtol, mode=self.mode, effects=row.effects)

    def prepare(self) -> None:
        """Import the modules that accelerate functions."""
        with ledger.current_run().loading():
            from accel import dispatch  # noqa: F401

    def start_loop(self, row: Row, switch: Switch, names: dict[str, Any], splits: Splits | None) -> None:
        """Attach a target to an outlined part once the program has imported NumPy. Until then it runs as it is."""
        from accel.entry.lift.switch import name_of

        name = name_of(switch, row.module)
        if names.get("__name__") == "__main__":
            ledger.current_run().loops.append(name)
        begin = functools.partial(self._begin, row, switch, names, name, splits)
        if NUMPY in sys.modules:
            begin()
        else:
            switch.wait(lambda: NUMPY in sys.modules, begin)

    def _begin(self, row: Row, switch: Switch, names: dict[str, Any], name: str, splits: Splits | None) -> None:
        from accel.entry.lift.iterations import start

        start(switch, names, name, rtol=row.rtol, mode=self.mode, effects=row.effects, splits=splits)
