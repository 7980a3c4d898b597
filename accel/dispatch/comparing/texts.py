"""Text in comparisons: what the replay would show, against what NumPy's call has shown.

NumPy's call shows its text as ever, through streams and loggers. These are watched while it runs: an attribute of the
stream or logger itself stands before its `write` or `handle`. So the stream stays the same object, of the same type.
"""

from __future__ import annotations

import contextlib
import re
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from accel.dispatch.replay import StagedOutputs
from accel.dispatch.replay.commit import ready_effects
from accel.platform.ledger import Difference
from accel.record.objects.sinks.streams import TextObserver
from accel.record.state.shown import Flushed, Logged, Unshowable, Warned

FIELD = "the text that is shown"

LAST_DIGIT = "rounding decides the last digit that is shown"
"""The verdict on numbers in a text that differ by one in their last digit."""

_NOTHING = object()

_LOCK = threading.Lock()
_WATCHING: weakref.WeakSet[ShownTexts] = weakref.WeakSet()
"""The one that watches, if any. Weak, so that one whose call was interrupted before `stop` does not stand for ever."""

Shown = list[tuple[int, str]]
"""Texts in order, each with the identity of its stream or logger."""


class ShownTexts:
    """Text that a replay would show, and text that NumPy's call shows while it is watched.

    Made before NumPy's call, which may change the objects that the text is made from.
    """

    def __init__(self, staged: StagedOutputs) -> None:
        self._staged = staged
        self._effects = [each for each in staged.trace.outputs.shown if not isinstance(each, Flushed | Warned)]
        self.numpys: Shown = []
        self.replays = _shown_by(staged)
        self.last_digit: Difference | None = None
        self._in_handler = False
        self._watched: list[tuple[Any, str, Any]] = []

    def watch(self) -> None:
        """Note from now on what this thread shows by the sinks of the path."""
        # one call at a time: the text of another is not compared
        with _LOCK:
            if self.replays is None or _WATCHING:
                self.replays = None
                return
            _WATCHING.add(self)
        try:
            for effect in self._effects:
                sink = self._staged.values[effect.logger if isinstance(effect, Logged) else effect.stream]
                if not any(sink is each for each, _, _ in self._watched):
                    is_logger = isinstance(effect, Logged)
                    watch = self._watch_of_logger(sink) if is_logger else self._watch_of_stream(sink)
                    name = "handle" if is_logger else "write"
                    # what stands there already is put back: IPython's tee, the status line's
                    self._watched.append((sink, name, vars(sink).get(name, _NOTHING)))
                    setattr(sink, name, watch)
        except (AttributeError, TypeError):  # a stream that takes no attribute
            self.replays = None
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Note nothing any more."""
        while self._watched:
            sink, name, before = self._watched.pop()
            with contextlib.suppress(AttributeError, TypeError):  # it took no attribute
                delattr(sink, name) if before is _NOTHING else setattr(sink, name, before)
        _WATCHING.discard(self)

    def _watch_of_stream(self, stream: Any) -> TextObserver:
        def note(text: str) -> None:
            if not self._in_handler:  # else it is noted as a record
                _append(self.numpys, id(stream), text)

        return TextObserver(stream.write, note)

    def _watch_of_logger(self, logger: Any) -> TextObserver:
        real = logger.handle

        def note(record: Any) -> None:
            _append(self.numpys, id(logger), f"{record.levelno} {record.getMessage()}\n")
            # its handlers write it to streams, which need not be noted
            self._in_handler = True

        def handle(record: Any) -> None:
            try:
                real(record)
            finally:
                self._in_handler = False

        return TextObserver(handle, note)

    def differences(self, rtol: float) -> list[Difference]:
        """Return the difference to NumPy's text: numbers that differ by more than their last digit, or words."""
        if self.replays is None or self.replays == self.numpys:
            return []
        found = _difference(self.numpys, self.replays, rtol)
        if found is not None:
            return [found]
        self.last_digit = replace(_in_words(self.numpys, self.replays), error=0.0, points=1)
        return []

    def is_of_tape(self, arrays: Sequence[Any], numbers: Sequence[Any], values: Sequence[Any]) -> bool:
        """Whether the tape, as NumPy computes it, gives NumPy's text. arrays, numbers: the outputs that it computes."""
        outputs = self._staged.trace.outputs
        plain = [np.asarray(number)[()] for number in numbers]
        taken = replace(self._staged, values=values, made=list(arrays), numbers=plain)
        assert len(outputs.numbers) == len(plain)
        shown = _shown_by(taken)
        return shown is not None and (shown == self.numpys or _difference(self.numpys, shown, 0.0) is None)


def _shown_by(staged: StagedOutputs) -> Shown | None:
    """Return the text that a run shows; None if NumPy has to show it."""
    shown: Shown = []
    try:
        for effect, ready in zip(staged.trace.outputs.shown, ready_effects(staged), strict=True):
            if isinstance(effect, Warned):  # which Python may show, or not
                continue
            text = f"{effect.level} {ready.text}\n" if isinstance(effect, Logged) else ready.text
            _append(shown, id(ready.sink), text)
    except Unshowable:
        return None
    return shown


def _append(shown: Shown, sink: int, text: str) -> None:
    if shown and shown[-1][0] == sink:
        shown[-1] = sink, shown[-1][1] + text
    elif text:
        shown.append((sink, text))


# -- differences ------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\b(?:nan|inf)\b)")


def _difference(numpys: Shown, replays: Shown, rtol: float) -> Difference | None:
    """The worst difference; None if all are within one unit of the last digit that is shown."""
    if [sink for sink, _ in numpys] != [sink for sink, _ in replays]:
        return _in_words(numpys, replays)
    worst: Difference | None = None
    for (_, numpy), (_, replay) in zip(numpys, replays, strict=True):
        mine, theirs = _NUMBER.split(numpy), _NUMBER.split(replay)
        # at the odd places are the numbers; padding may follow their lengths
        if len(mine) != len(theirs) or list(map(_words, mine[::2])) != list(map(_words, theirs[::2])):
            return _in_words(numpys, replays)
        for one, other in zip(mine[1::2], theirs[1::2], strict=True):
            error = _error(one, other)
            if error > 0 and (worst is None or error > worst.error):
                worst = Difference(FIELD, "", f"NumPy {one}, replay {other}", max(error, 2 * rtol), 1)
    return worst


def _words(text: str) -> str:
    return " ".join(text.split())


def _in_words(numpys: Shown, replays: Shown) -> Difference:
    mine, theirs = ("".join(text for _, text in shown) for shown in (numpys, replays))
    at = next((i for i, (one, other) in enumerate(zip(mine, theirs, strict=False)) if one != other), 0)
    first = max(at - 10, 0)
    what = f"NumPy {mine[first : at + 30]!r}, replay {theirs[first : at + 30]!r}"
    return Difference(FIELD, "", what, np.inf)


def _error(one: str, other: str) -> float:
    """The relative error of a number in a text; 0 if it is one unit of the last digit at most."""
    if one == other:
        return 0.0
    left, right = float(one), float(other)
    gap = abs(left - right)
    # whole numbers are no rounded ones, as far as anybody knows
    if "." in one and gap <= 1.000001 * max(_unit(one), _unit(other)):
        return 0.0
    error = gap / max(abs(left), abs(right)) if gap else 0.0
    return error if error == error else float("inf")


def _unit(number: str) -> float:
    """The unit of the last digit."""
    digits, _, exponent = number.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
