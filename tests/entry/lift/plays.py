"""`play`: runs a program and keeps all that can be seen of it; `same` compares two such runs."""

from __future__ import annotations

import difflib
import pprint
import sys
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import accel

ACCEL = str(Path(accel.__file__).parent)


@dataclass
class Seen:
    """What a run showed. outcome: its value or error. variables: of the frame that ran the loop, at its end."""

    outcome: Any = None
    notes: list[Any] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)


def text(value: object) -> str:
    """A value as text that is the same for the same value in another run."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{type(value).__name__} {value.__qualname__}"
    if isinstance(value, BaseException):
        return repr(value)
    if type(value).__repr__ is object.__repr__ or "." in type(value).__qualname__:
        return f"a {type(value).__qualname__}"
    return f"{type(value).__name__} {value!r}"


def described(error: BaseException | None, depth: int = 3) -> Any:
    """An error with its traceback, and those of its cause and context."""
    if error is None or depth == 0:
        return None
    frames = []
    for frame, place in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename != __file__:
            frames.append((frame.f_code.co_name, frame.f_code.co_qualname, place, dict(frame.f_globals)["__name__"]))
    lines = [each for each in traceback.format_exception(error, chain=False) if __file__ not in each]
    parts = type(error).__name__, text(error), error.args if isinstance(error, UnboundLocalError) else ()
    beyond = error.__cause__, error.__context__
    return parts, frames, lines, error.__suppress_context__, [described(each, depth - 1) for each in beyond]


def play(run: Callable[[], Any], names: dict[str, Any], is_loops: Callable[[CodeType], bool]) -> Seen:
    """Run a program in a module's names. is_loops: tells the code of the frame that holds the loop."""
    seen = Seen()
    names["kept_everywhere"] = seen.kept
    names["note"] = lambda *values: seen.notes.append((_line_of_program(), *map(text, values)))
    names["G"] = 0

    def profile(frame: FrameType, event: str, arg: object) -> None:
        if event == "return" and is_loops(frame.f_code):
            found = {name: text(value) for name, value in frame.f_locals.items() if _is_programs(name, value)}
            seen.variables = found

    sys.setprofile(profile)
    try:
        seen.outcome = text(run())
    except Exception as error:
        sys.setprofile(None)
        seen.outcome = described(error)
    finally:
        sys.setprofile(None)
    # what the loop left behind reads its variables as they are at the end
    for each in seen.kept:
        try:
            seen.notes.append(text(each()))
        except Exception as error:
            seen.notes.append(described(error))
    seen.notes.append(("G", text(names["G"])))
    return seen


def _line_of_program() -> int:
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith((ACCEL, __file__)):
        assert frame.f_back is not None
        frame = frame.f_back
    return frame.f_lineno


def traced(run: Callable[[], Any], names: dict[str, Any], path: str) -> list[tuple[str, str, int]]:
    """What a debugger sees of a program: its frames' events, and the lines."""
    seen = []

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename == path:
            seen.append((frame.f_code.co_qualname, event, frame.f_lineno))
        return trace

    names.update(kept_everywhere=[], note=lambda *values: None, G=0)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except Exception:
        pass
    finally:
        sys.settrace(before)
    return seen


def _without(seen: Any, own: Collection[str]) -> Any:
    if not isinstance(seen, dict):
        return seen
    return {name: text for name, text in seen.items() if not name.endswith(tuple(own))}


def _is_programs(name: str, value: object) -> bool:
    return not name.startswith((".", "__")) and name not in ("note", "kept_everywhere", "kept")


def same(one: Seen, other: Seen, own: Collection[str] = ()) -> None:
    """Assert that two runs showed the same. own: variables that the function need not have at its end."""
    for name in ("notes", "outcome", "variables"):
        plain, lifted = (pprint.pformat(_without(getattr(each, name), own), width=150) for each in (one, other))
        assert lifted == plain, "\n".join(difflib.unified_diff(plain.splitlines(), lifted.splitlines(), lineterm=""))
