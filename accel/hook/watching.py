"""Watching: which functions of the user's own code hold the time, while the program runs (`accel run --auto`).

A thread looks at the program's main thread a hundred times a second, for the first minute. A function that is on the
stack in a tenth of these looks is accelerated from its next call on, as if a catalogue named it: if there is none, that
costs nothing. So is one with a smaller share, once it has held the time for a while: in a run that long it may still
pay. A function that an earlier run has recorded needs one look, so that its programs are used from the start. Loops
need no watching: all loops of the program itself are lifted when it is loaded.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType, FrameType

from accel.catalogue import Row
from accel.process.bodies import runs_body
from accel.process.own_code import is_project_file

INTERVAL_S, LONGEST_S = 0.01, 60.0
"""Seconds between two looks, and for how long the program is watched."""

LOOKS = 100
"""After every so many looks it is decided anew."""

SHARE = 0.1
"""A function is chosen that is on the stack in this share of all looks."""

HELD, LEAST_SHARE = 30, 0.02
"""So is one that is there in so many looks, and in this share of all. Chosen, not measured."""

Choose = Callable[[Row], bool]
"""Accelerates the function of a row from its next call on. Returns whether there is one."""

IsKnown = Callable[[Row, CodeType], bool]
"""Whether an earlier run has recorded the function of a row, which has this code."""


class Watch:
    """Watches one thread of the program. choose: what is done with a function that holds the time. why: for its row.

    is_known: tells of functions that need not be seen often, as an earlier run has chosen them.
    """

    def __init__(self, thread: int, choose: Choose, why: str, is_known: IsKnown = lambda row, code: False) -> None:
        self._thread = thread
        self._choose = choose
        self._why = why
        self._is_known = is_known
        self._looks = 0
        self._seen: Counter[CodeType] = Counter()
        self._modules: dict[CodeType, str] = {}
        self._decided: set[CodeType] = set()

    def start(self) -> None:
        """Begin, in a thread of its own that does not keep the program from ending."""
        threading.Thread(target=self._work, name="accel-watch", daemon=True).start()

    def _work(self) -> None:
        ends = time.monotonic() + LONGEST_S
        while time.monotonic() < ends:
            time.sleep(INTERVAL_S)
            try:
                self.look(sys._current_frames().get(self._thread))
            except Exception:  # the program changes while it is looked at: what is missed is seen later
                continue

    def look(self, frame: FrameType | None) -> None:
        """Note what is on the stack; now and then, decide."""
        if frame is None:
            return
        self._looks += 1
        now: set[CodeType] = set()
        for each in _frames(frame):
            code = each.f_code
            # the body of a lifted loop is a target already
            if code not in self._decided and is_project_file(code.co_filename) and not runs_body(code):
                now.add(code)
                self._modules[code] = each.f_globals.get("__name__", "")
        new = now - self._seen.keys()
        self._seen.update(now)
        for code in new:
            if self._is_named(code) and self._is_known(self._row(code), code):
                self._decide_for(code)
        if self._looks % LOOKS == 0:
            self._decide()

    def _decide(self) -> None:
        enough = min(SHARE * self._looks, max(HELD, LEAST_SHARE * self._looks))
        for code, seen in self._seen.most_common():
            if seen < enough:
                return
            if code not in self._decided:
                self._decide_for(code)

    def _decide_for(self, code: CodeType) -> None:
        self._decided.add(code)
        if self._is_named(code):
            self._choose(self._row(code))

    def _row(self, code: CodeType) -> Row:
        return Row(self._modules[code], code.co_qualname, self._why)

    @staticmethod
    def _is_named(code: CodeType) -> bool:
        """Whether it is neither a nested function's, nor the module's itself."""
        return "<" not in code.co_qualname


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
