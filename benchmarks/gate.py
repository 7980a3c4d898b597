"""The child's side of a lockstep run: steps pass a gate that the parent opens, a block at a time.

The parent (`lockstep.py`) writes one command a line on the child's standard input: `go N` to run N steps, or the name
of an action with its argument. The child answers with one JSON object a line on what was its standard output, which it
takes for itself before the program under test can print there. Between blocks the child only waits, so no two children
ever compute at the same time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TextIO


class Gate:
    """Lets steps through as the parent allows, and stamps each of them.

    `capture(step)` is called, outside any timing, after each step named in `checkpoints` and after the last one.
    `limit` ends the run early; None takes every step of the program. `actions` are what the parent may ask for between
    blocks, by name, each with one text argument. `unsettled()` says whether something is still under way, such as
    compiling; `settled` counts the steps up to the last one of which it was true.
    """

    def __init__(
        self,
        capture: Callable[[int], None],
        checkpoints: Iterable[int] = (),
        limit: int | None = None,
        actions: Mapping[str, Callable[[str], None]] = MappingProxyType({}),
        unsettled: Callable[[], bool] = lambda: False,
    ):
        self._commands = sys.stdin
        self._answers = _take_standard_output()
        self._capture = capture
        self._checkpoints = frozenset(checkpoints)
        self._limit = limit
        self._actions = actions
        self._unsettled = unsettled
        self.settled = 0
        self._pending: list[float] = []
        self.steps = 0

    def through(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield `items`, one a step, each when the parent's allowance reaches it."""
        source, exhausted = iter(items), object()
        allowance = self._ask("ready")
        while self.steps != self._limit and (item := next(source, exhausted)) is not exhausted:
            if allowance == 0:
                allowance = self._ask("block")
            begin = time.perf_counter()
            yield item
            self._pending.append(time.perf_counter() - begin)
            allowance -= 1
            self._count_step()
        if self.steps not in self._checkpoints:
            self._capture(self.steps)
        self.tell("end", times=self._drained())

    def _count_step(self) -> None:
        self.steps += 1
        if self._unsettled():
            self.settled = self.steps
        if self.steps in self._checkpoints:
            self._capture(self.steps)

    def _ask(self, event: str) -> int:
        """Report `event` with the times since the last report, do what is asked, and return the next allowance."""
        self.tell(event, times=self._drained())
        while command := self._commands.readline().rstrip("\n"):
            verb, _, argument = command.partition(" ")
            if verb == "go":
                return int(argument)
            self._actions[verb](argument)
            self.tell("did")
        raise SystemExit("benchmark child: the parent went away")

    def _drained(self) -> list[float]:
        times, self._pending = self._pending, []
        return times

    def tell(self, event: str, **fields: Any) -> None:
        """Send one answer to the parent."""
        self._answers.write(json.dumps({"event": event, **fields}) + "\n")
        self._answers.flush()


def _take_standard_output() -> TextIO:
    """Keep file descriptor 1 for answers; whatever prints later goes to the log, as standard error does."""
    private = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(private, "w", encoding="utf-8")
