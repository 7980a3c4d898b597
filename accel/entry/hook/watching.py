"""Sampling profiler: which functions of the user's own code take the time (`accel run --auto`).

A thread samples the program's main thread a hundred times a second, for the first minute. A function that is on the
stack in a tenth of the samples is accelerated from its next call on. It needs no catalogue row. Without such a
function, accelerating costs nothing. Loops need no sampling: all loops of the program itself are outlined when it is
loaded.

The samples also tell where the program's own code waits for code that is compiled already. If that takes most of the
time, no program of accel's could pay for itself.

Later runs of programs that spend their time in compiled code are left alone.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

from accel.backend.disk import cache
from accel.catalogue import Row
from accel.platform import freed
from accel.platform.bodies import runs_body
from accel.platform.clocks import time
from accel.platform.own_code import is_project_file
from accel.platform.tracebacks import with_callers

INTERVAL_S, LONGEST_S = 0.01, 60.0
"""Seconds between two samples, and seconds after which sampling ends."""

LOOKS = 100
"""Number of samples between two decisions."""

SHARE = 0.1
"""Minimum share of all samples in which a function must be on the stack to be chosen."""

COMPILED = "numpy.linalg numpy.random scipy.linalg scipy.optimize scipy.sparse scipy.spatial".split()
"""Modules whose functions spend their time in compiled code. Not transforms: a spectral step takes 4.3 ms
compiled and 10.9 ms on NumPy."""

MOST_SHARE, MOST_AFTER = 0.8, 1000
"""Minimum share of the samples with one compiled function on top, and minimum number of samples, from which the program
is left alone: if the rest were free, it would be 1.25 times as fast. Guess."""

Choose = Callable[[Row], bool]
"""Accelerates the function of a row from its next call on. Returns whether there is such a function."""


class Watch:
    """Samples one thread of the program. choose: accelerates a function that takes the time. why: a note for its
    row.

    leave: is told once of a function of compiled code that takes most of the time, and which share.
    """

    def __init__(
        self, thread: int, choose: Choose, why: str, leave: Callable[[str, float], object] = lambda name, share: None
    ) -> None:
        self._leave = leave
        self._called: Counter[str] = Counter()
        self._is_over = False
        self._thread = thread
        self._choose = choose
        self._why = why
        self._looks = 0
        self._seen: Counter[CodeType] = Counter()
        self._modules: dict[CodeType, str] = {}
        self._decided: set[CodeType] = set()

    def start(self) -> None:
        """Start a daemon thread that samples."""
        threading.Thread(target=self._work, name="accel-watch", daemon=True).start()

    def _work(self) -> None:
        began = time.monotonic()
        while time.monotonic() < began + LONGEST_S and not self._is_over:
            time.sleep(INTERVAL_S)
            if freed.current.waits and time.monotonic() > began + freed.LATEST_S[1]:
                freed.current.begin()
            try:
                self.look(sys._current_frames().get(self._thread))
            except Exception:  # the program runs on while it is sampled: a missed function is seen later
                continue

    def look(self, frame: FrameType | None) -> None:
        """Record one sample of the stack. After every LOOKS samples, choose functions."""
        if frame is None:
            return
        self._looks += 1
        called = _called_by_project(frame)
        if called is not None:
            self._called[called] += 1
        now: set[CodeType] = set()
        for each in with_callers(frame):
            code = each.f_code
            # the body of an outlined loop is a target already
            if code not in self._decided and is_project_file(code.co_filename) and not runs_body(code):
                now.add(code)
                self._modules[code] = each.f_globals.get("__name__", "")
        self._seen.update(now)
        if self._looks % LOOKS == 0:
            self._decide()

    def _decide(self) -> None:
        for name, seen in self._called.most_common(1):
            if self._looks >= MOST_AFTER and seen >= MOST_SHARE * self._looks and not self._is_over:
                self._is_over = True
                self._leave(name, seen / self._looks)
        if self._is_over:
            return
        for code, seen in self._seen.most_common():
            if seen < SHARE * self._looks:
                return
            if code in self._decided:
                continue
            self._decided.add(code)
            if "<" not in code.co_qualname:  # neither a nested function, nor the module itself
                self._choose(Row(self._modules[code], code.co_qualname, self._why))


def _called_by_project(frame: FrameType) -> str | None:
    """The function of compiled code that the program's own code is waiting for; None if that runs itself.

    >>> _called_by_project(sys._getframe())
    """
    name = None
    for each in with_callers(frame):
        if is_project_file(each.f_code.co_filename):
            return name
        module = each.f_globals.get("__name__") or ""
        if module.startswith(tuple(COMPILED)):
            parts = module.split(".")
            public = [
                part for place, part in enumerate(parts) if not any(p.startswith("_") for p in parts[: place + 1])
            ]
            name = ".".join([*public, each.f_code.co_name])
    return None


# -- programs that spend their time in compiled code ------------------------------------------------------------------


def _key() -> str | None:
    """The name on disk of this program with these arguments; None for one that has no file."""
    try:
        source = Path(sys.argv[0]).read_bytes()
    except (OSError, IndexError, ValueError):
        return None
    parts = b"hopeless", source, *(each.encode(errors="replace") for each in sys.argv)
    return hashlib.sha1(b"\0".join(parts), usedforsecurity=False).hexdigest()


def known_hopeless() -> str | None:
    """The sentence that an earlier run has kept about this program, or None."""
    key = _key()
    if key is None or not cache.is_used():
        return None
    return cache.parsed(key, cache.KNOWN, lambda text: text.decode() or None)


def keep_hopeless(sentence: str) -> None:
    """Keep for later runs what takes the time of this program."""
    key = _key()
    if key is not None:
        cache.save(key, sentence.encode(), cache.KNOWN)
