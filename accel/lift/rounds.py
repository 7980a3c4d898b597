"""Rounds: the target of an outlined loop answers them, one call each."""

from __future__ import annotations

import time
from types import CodeType, FunctionType
from typing import Any

from accel.backend import resident
from accel.dispatch import accelerated
from accel.dispatch.costs import account, rest
from accel.lift.holding import Holding
from accel.lift.switch import Switch
from accel.process.bodies import add_body

LOOK_AFTER = 32
"""Number of iterations after which accel asks again whether a loop can gain anything."""

COUNTED_S = 3e-4
"""Seconds of an iteration from which iterations go on being counted although the loop's programs were slower than
NumPy. The programs are tried again later, as those of functions are."""


class Rounds:
    """Answers the iterations of one loop.

    accelerated: a function that runs the body that it is given. Each call of the program's function makes a new body.

    Turns the loop's switch off where no program can gain anything: the program's own loop costs nothing.
    """

    def __init__(self, switch: Switch, accelerated: Any) -> None:
        self._switch = switch
        self._accelerated = accelerated
        self._target = accelerated._self_target
        self._holding = Holding(switch, self._target)
        self._target.parts.calls_left = lambda: switch.left
        self._left = LOOK_AFTER
        self._since = time.perf_counter()

    def __call__(self, body: FunctionType) -> Any:
        self._left -= 1
        if self._left <= 0:
            self._look()
        if resident.current.possible:
            return self._holding.run(self._accelerated, body)
        return self._accelerated(body)

    def _look(self) -> None:
        """Turn the switch off if the target stays on NumPy, or if iterations are too short for a program."""
        now, target = time.perf_counter(), self._target
        round_s = (now - self._since) / LOOK_AFTER
        self._left, self._since = LOOK_AFTER, now
        is_small = account.is_limited(target.mode) and not target.paths and round_s < rest.SMALL_CALL_S
        stays = target.final and not (target.may_try_again and round_s >= COUNTED_S)
        if target.mode != "strict" and (stays or is_small):
            self._switch.turn_off()


def calling(switch: Switch, names: dict[str, Any]) -> FunctionType:
    """The target's function, which runs the body that it is given. It belongs to the program's module and line."""
    assert switch.around is not None
    code: CodeType = _call.__code__.replace(
        co_filename=switch.around.co_filename,
        co_firstlineno=switch.line,
        co_name=switch.around.co_name,
        co_qualname=switch.around.co_qualname,
    )
    made = FunctionType(code, names, switch.around.co_name)
    made.__module__ = names.get("__name__", "")
    made.__qualname__ = switch.around.co_qualname
    return made


def _call(body: Any) -> Any:
    return body()


def start(
    switch: Switch,
    names: dict[str, Any],
    name: str,
    *,
    rtol: float | None = None,
    mode: str | None = None,
    effects: bool = True,
) -> None:
    """Give an outlined loop a target of this name, and turn its switch on. names: the globals of its module.

    rtol, mode, effects: see `accel.accelerate`.
    """
    if switch.code is None:
        return  # Python's compiler has left the loop out: it is never reached
    add_body(switch.code)
    function = calling(switch, names)
    made = accelerated(function, name=name, rtol=rtol, mode=mode, effects=effects, in_parts=switch.code)
    switch.call = Rounds(switch, made)
    switch.on = True
