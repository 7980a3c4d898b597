"""`warnings.warn` as a sink: the warning is shown after the run, in the name of the line that it would have named.

Filters and the registry of what was shown already are asked then, by Python itself. A filter that makes an error of the
warning decides the program's path: such a call stays on NumPy.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

from accel.platform.filters import makes_no_error
from accel.platform.warned import frames_of_program
from accel.record.objects.sinks.show import Act, calling_frame, plain, show
from accel.record.state import inputs
from accel.record.state.on_behalf import on_behalf
from accel.record.state.recording import Recording
from accel.record.state.shown import Place, Warned, warn
from accel.record.state.wrapper import StandIn
from accel.record.values.text.capture import REASON
from accel.rules.rule import Unsupported


class WarnFunction(StandIn):
    """`warnings.warn`."""

    __slots__ = ()
    shows_text = True

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        recording = self._recording_
        frame = calling_frame(recording)
        values = [plain(recording, arg) for arg in args]
        held = {name: plain(recording, value) for name, value in kwargs.items()}

        def act() -> Act:
            return lambda: on_behalf(warnings.warn, tuple(values), held)

        show(recording, lambda: _noted(recording, frame, *args, **kwargs), act)


def _noted(
    recording: Recording,
    frame: FrameType | None,
    message: Any = None,
    category: Any = None,
    stacklevel: Any = 1,
    **others: Any,
) -> tuple[Warned, Act]:
    """The warning as an effect, and the call that gives it. Raises Unsupported."""
    category = UserWarning if category is None else plain(recording, category)
    if type(message) is not str or others or type(stacklevel) is not int or frame is None:
        raise Unsupported(REASON, "warns of other things than text")
    if not isinstance(category, type) or not issubclass(category, Warning):
        raise Unsupported(REASON, "a warning whose category is none")
    if recording.display.filters_changed or not makes_no_error(warnings.filters, category):
        raise Unsupported(REASON, "a warning under a filter of its own, or one that makes it an error")
    if recording.inputs.find(("warnings", category)) is None:
        fetch, check = inputs.of_object(warnings, "filters"), inputs.satisfies(makes_no_error, category)
        recording.inputs.add(("warnings", category), "warnings.filters", fetch, check)
    place = _place(recording, frame, max(stacklevel, 1) - 1)
    effect = Warned(recording.display.texts.parts(message), category, place)
    text = recording.display.texts.resolved(message)
    return effect, lambda: warn(text, category, place)


def _place(recording: Recording, frame: FrameType, above: int) -> Place:
    """The place that `warnings.warn` finds, `above` frames above `frame`."""
    frames = list(frames_of_program(frame))
    inside = [getattr(each.f_globals, "recording", None) is recording for each in frames]
    depth = len(frames) - inside[::-1].index(True)
    if not all(inside[:depth]):
        raise Unsupported(REASON, "a warning of code that a library calls")
    if above >= depth:
        return above - depth
    found = frames[above]
    namespace = found.f_globals.namespace  # type: ignore[attr-defined]  # of substituted globals
    name = namespace.get("__name__")
    if vars(sys.modules.get(name, sys)) is not namespace:
        raise Unsupported(REASON, "a warning of a module that is not among Python's")
    return found.f_code.co_filename, found.f_lineno, name
