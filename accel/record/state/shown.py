"""Text that a recorded call showed, as data: the plan by which replays show it with their own values.

While a call is recorded, the templates hold `Seen` leaves, which name nodes of the tape. In a finished trace they hold
leaves of the outputs (see accel.record.run.outputs).
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import numpy as np

from accel.ir.tape import Node
from accel.ir.template import fill
from accel.platform.warned import frames_of_program

MOST_DIGITS = 12
"""Maximum digits that a replay shows of a number computed from arrays: rounding decides those behind. Guess."""

MOST_PRECISION = 8
"""Maximum print precision of arrays that a replay shows: NumPy's default. Others stay on NumPy."""

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
        """The text of a run. Raises Unshowable."""
        return "".join([part if isinstance(part, str) else part.text(build) for part in self.parts])

    def with_leaves(self, leaf_of: Callable[[Seen], Any]) -> Text:
        """The text with leaves of the outputs in the place of nodes."""
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
        """The effect with a run's values. Raises Unshowable."""
        stream, args = values[self.stream], [each.made(build) for each in self.args]
        sep, end = self.sep.made(build), self.end.made(build)
        make = functools.partial(print, *args, sep=sep, end=end, file=stream, flush=self.flush)
        return Ready(stream, sep.join(args) + end, make)


@dataclass(frozen=True, slots=True)
class StreamWrite:
    """`stream.write(text)`. stream: its slot."""

    stream: int
    text: Text

    def with_leaves(self, leaf_of: Callable[[Seen], Any]) -> StreamWrite:
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
"""The place that a warning names: file, line and module; or the number of frames above the accelerated call."""


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
    """The frame `number` frames above the innermost one that is not accel's; None above the outermost."""
    return next(itertools.islice(frames_of_program(sys._getframe(1)), number, None), None)


Effect = Printed | StreamWrite | Flushed | Logged | Warned


def templates_of(effect: Effect) -> list[Any]:
    """The templates of the values that an effect shows, in order."""
    texts: tuple[Text, ...] = ()
    rest: tuple[Any, ...] = ()
    match effect:
        case Printed():
            texts = (*effect.args, effect.sep, effect.end)
        case StreamWrite() | Warned():
            texts = (effect.text,)
        case Logged():
            texts, rest = (effect.message,), effect.args
    return [*(part.value for text in texts for part in text.parts if isinstance(part, Formatted)), *rest]


class Texts:
    """The markers of one recording.

    refused: no more of them are made, since an exception may show a text to a handler of the program's.
    """

    def __init__(self) -> None:
        self.refused = False
        self._formatted: list[tuple[Formatted, str]] = []
        self._pattern: re.Pattern[str] | None = None
        self._token = ""
        self._loaded: set[tuple[int, int]] = set()

    @property
    def are_made(self) -> bool:
        """Whether there are markers."""
        return self._pattern is not None

    def mark(self, formatted: Formatted, text: str) -> str:
        """A marker for a value that is formatted as `text` now."""
        if self._pattern is None:
            self._token = f"\ue000accel{os.urandom(9).hex()}:"
            self._pattern = re.compile(re.escape(self._token) + "([0-9]+)\ue001")
        self._formatted.append((formatted, text))
        return f"{self._token}{len(self._formatted) - 1}\ue001"

    def parts(self, text: str) -> Text:
        """A string as text: what stands for markers in it, between what the path fixes."""
        if self._pattern is None:
            return Text((text,))
        split = self._pattern.split(text)
        parts = [self._formatted[int(part)][0] if i % 2 else part for i, part in enumerate(split)]
        return Text(tuple(part for part in parts if part != ""))

    def holds_marker(self, value: Any) -> bool:
        """Whether a value is text with a marker in it."""
        return self._pattern is not None and type(value) is str and self._token in value

    def resolved(self, value: Any) -> Any:
        """A string with the digits in the place of the markers; anything else as it is, and so are lists and the like.

        (A marker is in no list: the flow of a text ends where one is made.)
        """
        if not self.holds_marker(value):
            return value
        assert self._pattern is not None
        return self._pattern.sub(lambda found: self._formatted[int(found[1])][1], value)

    # -- methods of sinks, loaded to be called ------------------------------------------------------------------------

    def note_load(self, frame: FrameType) -> None:
        """A sink is being loaded by the frame's present instruction, as an attribute."""
        self._loaded.add((id(frame), frame.f_lasti))

    def is_loaded(self, frame: FrameType, offset: int) -> bool:
        """Whether the instruction at `offset` has loaded a sink's method that the frame has not called yet."""
        return (id(frame), offset) in self._loaded

    def note_call(self, frame: FrameType) -> None:
        """A sink is called by the frame: whatever it loads next, it notes anew."""
        self._loaded = {each for each in self._loaded if each[0] != id(frame)}


@dataclass(slots=True)
class Display:
    """The text that one recorded call shows.

    allowed: replays may show text. silent: sinks show nothing. shown: the effects so far, in order. waiting: the calls
    that show them, once the recorded call cannot be undone any more. error: of a stream then. filters_changed: the
    recorded code has changed the filters of `warnings`. settings: those of warnings and NumPy before the first call
    that may change them; None if there was none.
    """

    allowed: bool
    silent: bool = False
    shown: list[Effect] = field(default_factory=list)
    waiting: list[Callable[[], Any]] = field(default_factory=list)
    error: Exception | None = None
    filters_changed: bool = False
    settings: Any = None
    texts: Texts = field(default_factory=lambda: Texts())
