"""Run a program in a process of its own, time its functions, and try to record the expensive ones.

`measured` starts `python -m accel.tools.inspect.doctor.measure PLAN RESULT`; both files hold JSON. The program's output
goes to standard error. A function is tried while the program runs, on a real call, in a forked child (see
accel.tools.inspect.explain). The program itself runs on NumPy only, and is not affected.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import CodeType, FrameType, ModuleType
from typing import Any

from accel.entry.hook.attributes import wrappable
from accel.platform import config
from accel.platform.clocks import time
from accel.tools.inspect.explain import apart, explain_call
from accel.tools.inspect.explain.capture import call_of_frame, profiled, real_path
from accel.tools.inspect.programs import found, output_to_stderr, run
from accel.tools.inspect.sources import is_function

TRY_AT = (2, 8, 32)
"""Numbers of the calls at which a function is tried. First calls often print or set things up."""

WORTH_S, WORTH_SHARE = 0.005, 0.005
"""Minimum seconds in a function, and minimum share of the time in all functions that are timed, before it is tried."""

TRY_SECONDS = 30.0
"""Time limit of one attempt, in seconds."""

JAX_S = 30.0
"""Total seconds of attempts after which recordings are no longer checked with JAX."""

Answer = dict[str, Any]


def measured(program: Sequence[str], places: Iterable[str]) -> Answer:
    """Run the program in a new process and return the measurements.

    program: the words after --run. places: files, and folders of files, whose functions to time, as real paths. Returns
    {"ending", "wall_s", "functions"}; see `_Book.account`.
    """
    with tempfile.TemporaryDirectory(prefix="accel-doctor-") as folder:
        plan, result = os.path.join(folder, "plan.json"), os.path.join(folder, "result.json")
        with open(plan, "w", encoding="utf-8") as stream:
            json.dump({"program": program, "places": sorted(places), "tries": apart.available()}, stream)
        process = subprocess.Popen([sys.executable, "-m", "accel.tools.inspect.doctor.measure", plan, result])
        try:
            code = process.wait()
        except KeyboardInterrupt:  # the process gets it as well, and writes what it measured until then
            code = process.wait()
        try:
            with open(result, encoding="utf-8") as stream:
                return dict(json.load(stream))
        except (OSError, ValueError):
            ending = f"ended with exit code {code} and left no measurements"
            return {"ending": ending, "wall_s": 0.0, "functions": []}


class _Book:
    """Measurements of one function. own_s, total_s: seconds without and with the program's functions that it calls."""

    def __init__(self, code: CodeType, namespace: dict[str, Any]) -> None:
        self.code = code
        self.namespace = namespace
        self.calls = 0
        self.own_s = 0.0
        self.total_s = 0.0
        self.depth = 0
        self.tries: list[Answer] = []
        self.is_recorded = False

    def account(self) -> Answer:
        module = ModuleType(self.namespace.get("__name__", ""))  # a copy, because runpy removes its __main__
        vars(module).update(self.namespace)
        return {
            "file": real_path(self.code.co_filename),
            "qualname": self.code.co_qualname,
            "line": self.code.co_firstlineno,
            "module": module.__name__,
            "wrappable": wrappable(module, self.code.co_qualname),
            "calls": self.calls,
            "own_s": self.own_s,
            "total_s": self.total_s,
            "tries": self.tries,
        }


class _CallStack(threading.local):
    """The calls in progress in this thread, as [book, start, seconds in functions that it called]."""

    def __init__(self) -> None:
        self.stack: list[list[Any]] = []


class Profile:
    """A profile function for `sys.setprofile`. It times calls of functions in `places`, and tries to record them."""

    def __init__(self, places: Iterable[str], *, tries: bool) -> None:
        self._places = tuple(places)
        self._books: dict[CodeType, _Book | None] = {}
        self._thread = _CallStack()
        self._tries = tries
        self._inside = 0.0  # seconds in functions of `places`
        self._lost = 0.0  # seconds that went into tries
        self._started = time.perf_counter()

    def now(self) -> float:
        """Return the seconds since the start, without the time of attempts to record."""
        return time.perf_counter() - self._lost - self._started

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            book = self._book(frame)
            if book is not None:
                self._enter(book, frame)
        elif event == "return" and self._books.get(frame.f_code) is not None:
            self._leave()

    def _book(self, frame: FrameType) -> _Book | None:
        code = frame.f_code
        if code not in self._books:
            is_ours = is_function(code) and self._is_below(real_path(code.co_filename))
            self._books[code] = _Book(code, frame.f_globals) if is_ours else None
        return self._books[code]

    def _is_below(self, file: str) -> bool:
        """Whether a Python file is one of the places, or lies in one. What lies in a folder `.venv` there does not."""
        folders = (os.path.relpath(file, each).split(os.sep)[:-1] for each in self._places)
        return file.endswith(".py") and any(all(map(str.isidentifier, names)) for names in folders)

    def _enter(self, book: _Book, frame: FrameType) -> None:
        stack = self._thread.stack
        if self._tries and self._is_worth_a_try(book):
            self._try(book, frame)
        book.depth += 1
        stack.append([book, self.now(), 0.0])

    def _leave(self) -> None:
        stack = self._thread.stack
        if not stack:  # it began before the profile did
            return
        book, began, inside = stack.pop()
        seconds = self.now() - began
        book.calls += 1
        book.depth -= 1
        book.own_s += seconds - inside
        self._inside += seconds - inside
        if not book.depth:  # of a recursion, the outermost call counts
            book.total_s += seconds
        if stack:
            stack[-1][2] += seconds

    def _is_worth_a_try(self, book: _Book) -> bool:
        tried = len(book.tries)
        return (
            not book.is_recorded
            and not book.depth
            and tried < len(TRY_AT)
            and book.calls >= TRY_AT[tried]
            and book.total_s >= max(WORTH_S, WORTH_SHARE * self._inside)
        )

    def _try(self, book: _Book, frame: FrameType) -> None:
        """Record the call that is about to begin, in a child process. The time that this takes is not counted."""
        began = time.perf_counter()
        try:
            call = call_of_frame(frame)
            if call is None:
                # as many as there may be: it would not be found later either
                book.tries += [{"verdict": "unknown", "notes": ["its function could not be found"]}] * len(TRY_AT)
                return
            explained = explain_call(call, seconds=TRY_SECONDS, in_thread=True, jax=self._lost < JAX_S).data
            book.is_recorded = explained["verdict"] == "recorded"
            kept = {key: explained[key] for key in ("verdict", "stop", "lowered", "notes")}
            book.tries.append({**kept, "operations": explained["operations"]["count"]})
        except Exception:  # an error in accel must not reach the program
            book.tries.append({"verdict": "unknown", "stop": None, "notes": [traceback.format_exc()]})
        finally:
            self._lost += time.perf_counter() - began

    def account(self) -> list[Answer]:
        return [book.account() for book in self._books.values() if book is not None and book.calls]


def main(plan_file: str, result_file: str) -> None:
    """Run the plan, and write the result even if the program fails or is interrupted."""
    with open(plan_file, encoding="utf-8") as stream:
        plan = json.load(stream)
    start = found(plan["program"])
    process = os.getpid()
    config.set_current(replace(config.current(), mode="off"))  # what it accelerates itself runs on NumPy as well
    profile = Profile(plan["places"], tries=plan["tries"])
    with output_to_stderr():
        with profiled(profile):
            ending = run(start)
        if os.getpid() != process:  # a child that the program forked off, on its way out
            os._exit(0)
        wall_s = profile.now()
        with open(result_file, "w", encoding="utf-8") as stream:
            json.dump({"ending": ending, "wall_s": wall_s, "functions": profile.account()}, stream)


if __name__ == "__main__":
    main(*sys.argv[1:])
