"""The line profile: time of each line of the user's own code, on NumPy or compiled, and the reasons for NumPy.

A thread samples the line of the profiled thread. The time between two samples belongs to the innermost line of the
user's own code. If a compiled program answers a call, that is the calling line; if NumPy does, the lines inside the
function. Nothing is traced, so calls are compiled as usual.
"""

from __future__ import annotations

import dis
import functools
import linecache
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from types import FrameType
from typing import NamedTuple

import accel
from accel.platform import background, ledger
from accel.platform.clocks import time
from accel.platform.own_code import is_project_file
from accel.platform.reasons import place_of, source_line
from accel.reports.html import table
from accel.reports.words import in_s

INTERVAL_S, RARE_S = 1e-3, 0.05
"""Seconds between two samples: where a user has asked for a profile; and in every run, for the report."""

_ACCEL = os.path.join(os.path.dirname(accel.__file__), "")
_REPLAY = os.path.join(_ACCEL, "dispatch", "replay", "")
_PLUGINS = os.path.join(_ACCEL, "tools", "plugins", "")
_STARTERS = (_PLUGINS + "notebook.py", os.path.join(_ACCEL, "tools", "cli", ""))
"""Code that runs the program: a sample in which it lies nearer than a line of the user's own belongs to no line."""

NUMPY, PYTHON, COMPILED, ACCEL = COLUMNS = ("NumPy", "Python", "compiled", "accel")
"""Kinds of time that a line took. NUMPY: libraries, above all NumPy. PYTHON: the interpreter. ACCEL: recording,
loading, comparing, checking inputs."""

LEAST_SHARE = 0.002
"""The text leaves out lines that took a smaller share of the time, unless they keep something on NumPy. A guess."""

_WORKING = ("CALL", "PRECALL", "BINARY_", "COMPARE_", "CONTAINS_", "UNARY_", "STORE_SUBSCR", "STORE_SLICE")
"""Instructions, by how their names begin, that run a library's code, if that takes long enough to be seen."""


class Line(NamedTuple):
    """One line of the profile. seconds: by kind of time. reasons: why calls there stay on NumPy.

    functions: the user's own that ran it, the innermost first, as targets are named, and the line of each; a module for
    its top level.
    """

    filename: str
    number: int
    seconds: dict[str, float]
    reasons: list[str]
    functions: tuple[tuple[str, int], ...] = ()

    @property
    def on_numpy(self) -> float:
        """Seconds that no program answered."""
        return self.seconds.get(NUMPY, 0.0) + self.seconds.get(PYTHON, 0.0)

    @property
    def text(self) -> str:
        """The source text of the line."""
        return linecache.getline(self.filename, self.number).rstrip()


class LineProfile:
    """The time of each line. `str()` is text; a notebook shows a table."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self.interval_s = interval_s
        self.seconds = 0.0
        self._seconds: dict[tuple[str, int], dict[str, float]] = {}
        self._functions: dict[tuple[str, int], tuple[tuple[str, int], ...]] = {}

    def note(self, frame: FrameType | None, seconds: float) -> None:
        """Add seconds to the line at which the profiled thread is."""
        what, found = NUMPY, frame
        while found is not None and not is_project_file(found.f_code.co_filename):
            filename = found.f_code.co_filename
            if filename.startswith(_STARTERS):
                return
            if filename.startswith(_REPLAY):
                what = COMPILED
            elif filename.startswith(_ACCEL) and not filename.startswith(_PLUGINS) and what == NUMPY:
                what = ACCEL
            found = found.f_back
        line = None if found is None else _line_of(found)
        if found is not None and line is not None:
            if found is frame and what == NUMPY and not _runs_library(found):
                what = PYTHON
            place = found.f_code.co_filename, line
            entry = self._seconds.setdefault(place, {})
            entry[what] = entry.get(what, 0.0) + seconds
            if place not in self._functions:
                self._functions[place] = tuple(_functions_of(found))

    def lines(self) -> list[Line]:
        """Return all lines that took time or keep a function on NumPy, in the order of their files."""
        reasons = _reasons()
        places = {source_line(*place): place for place in self._seconds}
        files = {filename for filename, _ in self._seconds}
        found = {where: place_of(where) for where in reasons.keys() - places.keys()}
        places |= {where: place for where, place in found.items() if place[0] in files}
        return [
            Line(*place, self._seconds.get(place, {}), reasons.get(where, []), self._functions.get(place, ()))
            for where, place in sorted(places.items(), key=lambda item: item[1])
        ]

    def __str__(self) -> str:
        shown, filename = [f"{in_s(self.seconds)} in all", " ".join(f"{f'{what} s':>10}" for what in COLUMNS)], ""
        for line in self.lines():
            if not line.reasons and sum(line.seconds.values()) < LEAST_SHARE * self.seconds:
                continue
            if line.filename != filename:
                filename = line.filename
                shown.append(_title(filename))
            shown.append(" ".join([*(f"{_in_s(line, what):>10}" for what in COLUMNS), f"{line.number:>5} {line.text}"]))
            shown += [f"{'':>49} ^ {reason}" for reason in line.reasons]
        return "\n".join(shown)

    def __repr__(self) -> str:
        return str(self)  # IPython's representation in a terminal

    def _repr_html_(self) -> str:
        rows = [
            (
                f"{_title(line.filename).rpartition('/')[2]}:{line.number}",
                line.text.strip(),
                *(_in_s(line, what) for what in COLUMNS),
                "; ".join(line.reasons),
            )
            for line in self.lines()
        ]
        titles = ("line", "source", *(f"{what} s" for what in COLUMNS), "what keeps it on NumPy")
        return f"<p>{escape(in_s(self.seconds))} in all</p>" + table(titles, rows, left=2, wrapped=True)


def _functions_of(frame: FrameType | None) -> Iterator[tuple[str, int]]:
    """Yield the user's own functions on the stack, and their lines; of the program's module both names that it has."""
    while frame is not None:
        code, names = frame.f_code, frame.f_globals
        if is_project_file(code.co_filename):
            inside = "" if code.co_name == "<module>" else f":{code.co_qualname}"
            for module in dict.fromkeys((names.get("__name__"), getattr(names.get("__spec__"), "name", None))):
                if module is not None:
                    yield f"{module}{inside}", _line_of(frame) or 0
        frame = frame.f_back


def _line_of(frame: FrameType) -> int | None:
    """Return the line at which a frame is. The call of an outlined `while` body has none, and gets that of the loop."""
    before = (each for start, _, each in frame.f_code.co_lines() if start <= frame.f_lasti)
    return frame.f_lineno or next((each for each in reversed(list(before)) if each), None)


def _runs_library(frame: FrameType) -> bool:
    """Whether the instruction that a frame of the user's own stands at may run a library's code."""
    code = frame.f_code.co_code
    return dis.opname[code[frame.f_lasti]].startswith(_WORKING) if 0 <= frame.f_lasti < len(code) else True


def _title(filename: str) -> str:
    """Return the usual name of a file: `In[3]` for a cell of a notebook, or the path that refusals show."""
    return source_line(filename, 1).rpartition(":")[0]


def _in_s(line: Line, what: str) -> str:
    return f"{line.seconds[what]:.3f}" if what in line.seconds else ""


def _reasons() -> dict[str, list[str]]:
    """Return the reasons that keep calls on NumPy, by the line that causes them: "file:line"."""
    found: dict[str, list[str]] = {}
    for book in ledger.ledgers():
        for refusal in book.refusals:
            if refusal.where:
                found.setdefault(refusal.where, []).append(f"{book.target}: {refusal.why}  [{refusal.reason}]")
    return found


class Looking:
    """A thread that profiles the thread which makes it, from then on. profile: complete once it has stopped.

    It takes no sample while arrays of the program are out of date (see accel.platform.background).
    """

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self.profile = LineProfile(interval_s)
        self._thread = threading.get_ident()
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, name="accel-lines", daemon=True)
        self._started = time.perf_counter()
        self._looking.start()

    def _look(self) -> None:
        before = time.perf_counter()
        while not self._over.wait(self.profile.interval_s):
            now = time.perf_counter()
            with suppress(Exception):  # the program runs on while it is sampled
                background.threads.may(functools.partial(self._note, now - before))
            before = now

    def _note(self, seconds: float) -> None:
        self.profile.note(sys._current_frames().get(self._thread), seconds)

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self._looking.join()
        self.profile.seconds = time.perf_counter() - self._started


@contextmanager
def line_profile() -> Iterator[LineProfile]:
    """Profile a block, line by line: how long each line of the user's own code ran, on NumPy or compiled.

    The profile is complete at the end of the block. It samples the thread that the block runs in, a thousand times a
    second.

    >>> import accel
    >>> with accel.line_profile() as profile:
    ...     pass
    >>> print(str(profile).splitlines()[1].split())
    ['NumPy', 's', 'Python', 's', 'compiled', 's', 'accel', 's']
    """
    looking = Looking()
    try:
        yield looking.profile
    finally:
        looking.stop()
