"""What a recorded call showed, as data: the plan by which replays show the same with their own values.

While a call is recorded, the templates hold `Seen` leaves, which name nodes of the tape. In a finished trace they hold
leaves of the outputs (see accel.record.run.outputs).
"""

from __future__ import annotations

import functools
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.ir.template import fill
from accel.process.own_code import PACKAGE

MOST_DIGITS = 12
"""A number that was computed from arrays is shown with at most so many digits: the last ones of more are rounding."""

MOST_PRECISION = 8
"""NumPy's own default for arrays. Those that are shown in more digits stay on NumPy."""

Build = Callable[[Any], Any]
"""Fills the leaves of a template from the outputs of a run."""


class Unshowable(Exception):
    """A text whose last digits rounding decides: NumPy has to show it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A value that was shown, as it was then. kind: the scalar's type, or ndarray."""

    node: Node
    kind: type


@dataclass(frozen=True, slots=True)
class Formatted:
    """A value as text.

    how: "format", "str", "repr" or "percent". rounded: it holds a floating-point number from arrays.
    """

    value: Any
    how: str = "str"
    spec: str = ""
    rounded: bool = False

    def text(self, build: Build) -> str:
        """The text. Raises Unshowable."""
        return shown_text(build(self.value), self.how, self.spec, rounded=self.rounded)


@dataclass(frozen=True, slots=True)
class Text:
    """Text that a replay makes: what the path fixes, and formatted values."""

    parts: tuple[str | Formatted, ...]

    def made(self, build: Build) -> str:
        return "".join([part if isinstance(part, str) else part.text(build) for part in self.parts])

    def with_leaves(self, leaf_of: Callable[[Seen], Any]) -> Text:
        parts = [
            part if isinstance(part, str) else replace(part, value=fill(part.value, leaf_of, Seen))
            for part in self.parts
        ]
        return Text(tuple(parts))


_HOW: dict[str, Callable[[Any, str], str]] = {
    "format": format,
    "str": lambda value, spec: str(value),
    "repr": lambda value, spec: repr(value),
    "percent": lambda value, spec: spec % (value,),
}


def shown_text(value: Any, how: str, spec: str, *, rounded: bool) -> str:
    """A value as text, as Python makes it. Raises Unshowable."""
    if rounded and not isinstance(value, (int, float, complex, np.generic)):
        options = np.get_printoptions()
        limited = options["precision"] <= MOST_PRECISION and options["floatmode"] != "unique"
        if not limited or options["formatter"] is not None:
            raise Unshowable("numpy's print options show numbers in full precision")
    text: str = _HOW[how](value, spec)
    if rounded:
        check_digits(text)
    return text


_NUMBER = re.compile(r"([0-9][0-9_,]*)(?:\.([0-9]*))?")


def check_digits(text: str) -> None:
    """Raises Unshowable where a number has more than MOST_DIGITS digits behind its leading zeros."""
    for whole, fraction in _NUMBER.findall(text):
        digits = (whole + fraction).replace("_", "").replace(",", "").lstrip("0")
        if len(digits) > MOST_DIGITS:
            raise Unshowable(f"a number is shown with {len(digits)} digits")


# -- effects ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """An effect that only has to be made. sink: the stream or logger. text: what it shows."""

    sink: Any
    text: str
    make: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Printed:
    """`print(*args, sep=sep, end=end, file=stream, flush=flush)`. stream: its slot."""

    stream: int
    args: tuple[Text, ...]
    sep: Text
    end: Text
    flush: bool

    def with_leaves(self, leaf_of: Callable[[Seen], Any]) -> Printed:
        args = tuple([each.with_leaves(leaf_of) for each in self.args])
        return replace(self, args=args, sep=self.sep.with_leaves(leaf_of), end=self.end.with_leaves(leaf_of))

    def ready(self, values: Sequence[Any], build: Build) -> Ready:
        stream, args = values[self.stream], [each.made(build) for each in self.args]
        sep, end = self.sep.made(build), self.end.made(build)
        make = functools.partial(print, *args, sep=sep, end=end, file=stream, flush=self.flush)
        return Ready(stream, sep.join(args) + end, make)


@dataclass(frozen=True, slots=True)
class Written:
    """`stream.write(text)`. stream: its slot."""

    stream: int
    text: Text

    def with_leaves(self, leaf_of: Callable[[Seen], Any]) -> Written:
        return replace(self, text=self.text.with_leaves(leaf_of))

    def ready(self, values: Sequence[Any], build: Build) -> Ready:
        stream, text = values[self.stream], self.text.made(build)
        return Ready(stream, text, functools.partial(stream.write, text))


@dataclass(frozen=True, slots=True)
class Flushed:
    """`stream.flush()`. stream: its slot."""

    stream: int

    def with_leaves(self, leaf_of: Callable[[Seen], Any]) -> Flushed:
        return self

    def ready(self, values: Sequence[Any], build: Build) -> Ready:
        stream = values[self.stream]
        return Ready(stream, "", stream.flush)


@dataclass(frozen=True, slots=True)
class Logged:
    """`logger.log(level, message, *args)`, of an enabled level.

    logger: its slot. args: templates. place: file, line and function of the call. rounded: as of `Formatted`.
    """

    logger: int
    level: int
    message: Text
    args: tuple[Any, ...]
    place: tuple[str, int, str]
    rounded: bool

    def with_leaves(self, leaf_of: Callable[[Seen], Any]) -> Logged:
        return replace(self, message=self.message.with_leaves(leaf_of), args=fill(self.args, leaf_of, Seen))

    def ready(self, values: Sequence[Any], build: Build) -> Ready:
        logger, message = values[self.logger], self.message.made(build)
        # a handler may keep the record, and an array that the program took may change
        args = tuple([each.copy() if isinstance(each, np.ndarray) else each for each in build(self.args)])
        text = shown_text(message % args if args else message, "str", "", rounded=self.rounded)
        record = record_of(logger, self.level, message, args, self.place)
        return Ready(logger, text, functools.partial(logger.handle, record))


def record_of(logger: Any, level: int, message: str, args: tuple[Any, ...], place: tuple[str, int, str]) -> Any:
    """The record that `logger.log(level, message, *args)` handles. place: file, line and function of that call."""
    file, line, function = place
    return logger.makeRecord(logger.name, level, file, line, message, args, None, function, None, None)


Place = tuple[str, int, str] | int
"""What a warning names: a file, a line and a module; or how many frames above the accelerated call it is."""


@dataclass(frozen=True, slots=True)
class Warned:
    """`warnings.warn(text, category)`, in the name of a place."""

    text: Text
    category: type[Warning]
    place: Place

    def with_leaves(self, leaf_of: Callable[[Seen], Any]) -> Warned:
        return replace(self, text=self.text.with_leaves(leaf_of))

    def ready(self, values: Sequence[Any], build: Build) -> Ready:
        text = self.text.made(build)
        return Ready(warnings, text, functools.partial(warn, text, self.category, self.place))


def warn(text: str, category: type[Warning], place: Place) -> None:
    """Give a warning in the name of a place. By the program's own frames where it is above the accelerated call."""
    if isinstance(place, tuple):
        filename, line, module = place
        namespace = vars(sys.modules[module])
    else:
        frame = program_frame_above(place)
        filename, line, namespace = ("sys", 1, vars(sys))
        if frame is not None:
            filename, line, namespace = frame.f_code.co_filename, frame.f_lineno, frame.f_globals
        module = namespace.get("__name__", "<string>")
    registry = namespace.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, filename, line, module, registry, namespace)


def program_frame_above(number: int) -> FrameType | None:
    """The frame of other code than accel's that is so many above the innermost of these; None above the outermost."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(str(PACKAGE)):
            if not number:
                return frame
            number -= 1
        frame = frame.f_back
    return None


Effect = Printed | Written | Flushed | Logged | Warned


def templates_of(effect: Effect) -> list[Any]:
    """The templates of the values that an effect shows, in order."""
    texts: tuple[Text, ...] = ()
    rest: tuple[Any, ...] = ()
    match effect:
        case Printed():
            texts = (*effect.args, effect.sep, effect.end)
        case Written() | Warned():
            texts = (effect.text,)
        case Logged():
            texts, rest = (effect.message,), effect.args
    return [*(part.value for text in texts for part in text.parts if isinstance(part, Formatted)), *rest]
