"""Recorded values as they are when they are shown: nodes of the tape, and what the path fixes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.ir.template import leaves
from accel.record.state.inputs import MISSING
from accel.record.state.shown import Formatted, Seen, Text, Unshowable, shown_text
from accel.record.state.wrapper import has_wrapper, isinstance_wrapper, unwrap
from accel.record.values.arrays import RecordedArray, RecordedScalar
from accel.rules.rule import Unsupported

if TYPE_CHECKING:
    from accel.record.state.recording import Recording

REASON = "effect.print"

_CONSTANT = frozenset({str, bytes, bool, int, float, complex, type(None)})
_LIMITED = re.compile(r"(?:.?[<>=^])?[-+ ]?z?#?0?[0-9]*[_,]?(?:\.(?P<precision>[0-9]+))?(?P<kind>[eEfFgG%]?)")
"""Formats of floating-point numbers."""

MOST_DECIMALS = 9


def captured(recording: Recording, value: Any) -> Any:
    """A value as a template with `Seen` leaves. Raises Unsupported where its text is not known to a replay."""
    kind = type(value)
    if issubclass(kind, RecordedScalar):
        forced = recording.writer.forced(value.node())
        # the path fixes it
        if forced is not MISSING and type(forced) is type(value._plain_):
            return value._plain_
        return Seen(value.node(), type(value._plain_))
    if issubclass(kind, RecordedArray):
        return Seen(value.node(), np.ndarray)
    if isinstance_wrapper(value):
        raise Unsupported(REASON, f"shows a {type(unwrap(value)).__name__}")
    if kind in (list, tuple):
        return kind([captured(recording, part) for part in value])
    if kind is dict and not any(map(has_wrapper, value)) and all(type(key) in _CONSTANT for key in value):
        return {key: captured(recording, part) for key, part in value.items()}
    if kind in _CONSTANT or issubclass(kind, np.generic):
        return value
    raise Unsupported(REASON, f"shows a {kind.__name__}")


def captured_text(recording: Recording, value: Any) -> Text:
    """A value as `print` shows it. Raises Unsupported."""
    if type(value) is str:
        return recording.display.texts.parts(value)
    return Text((formatted(recording, value, "str"),))


def formatted(recording: Recording, value: Any, how: str, spec: str = "") -> Formatted:
    """A value as a part of a text. Raises Unsupported where it would show numbers in full precision."""
    template = captured(recording, value)
    rounded = is_rounded(template)
    if rounded and not _is_limited(template, how, spec):
        raise Unsupported(REASON, "shows a number computed from arrays in full precision")
    check_shown(unwrap(value), how, spec, rounded=rounded)
    return Formatted(template, how, spec, rounded)


def check_shown(value: Any, how: str, spec: str, *, rounded: bool) -> None:
    """Unsupported where the text of the plain value has digits that rounding decides."""
    if rounded:
        try:
            shown_text(value, how, spec, rounded=True)
        except Unshowable as error:
            raise Unsupported(REASON, str(error)) from None


def is_rounded(template: Any) -> bool:
    """Whether there is a floating-point number from arrays in it. Those of Python's own arithmetic are exact."""
    return any(
        not seen.node.host and (seen.node.dtype is None or seen.node.dtype.kind not in "biu")
        for seen in leaves(template, Seen)
    )


def _is_limited(template: Any, how: str, spec: str) -> bool:
    """Whether a rounded value is shown with fewer digits than it has."""
    if type(template) is not Seen:
        # in a list, numbers have all their digits
        return all(
            not is_rounded(seen) or (seen.kind is np.ndarray and _is_limited(seen, "repr", ""))
            for seen in leaves(template, Seen)
        )
    if template.kind is np.ndarray:
        # with eight digits, as NumPy's options say: single precision has no more
        return template.node.dtype == np.float64 and not spec
    if how != "format":
        return False
    found = _LIMITED.fullmatch(spec)
    if found is None or issubclass(template.kind, (complex, np.complexfloating)):
        return False
    precision, kind = found["precision"], found["kind"]
    # without either Python shows all digits
    return (precision is not None or bool(kind)) and int(precision or 6) <= MOST_DECIMALS


# -- the arguments of a log record ------------------------------------------------------------------------------------

DIRECTIVE = re.compile(r"%[#0\- +]*[0-9]*(?:\.(?P<precision>[0-9]+))?[hlL]?(?P<kind>[diouxXeEfFgGcrsa%])")


def logged_args(recording: Recording, message: str, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
    """The arguments of a log record as templates, and whether one is rounded. Raises Unsupported."""
    templates = tuple([captured(recording, arg) for arg in args])
    if not templates:
        return (), False
    if len(args) == 1 and isinstance(templates[0], dict):  # `%(name)s`
        raise Unsupported(REASON, "logs with a dict for its argument")
    found = [each for each in DIRECTIVE.finditer(message) if each["kind"] != "%"]
    if len(found) != len(args) or DIRECTIVE.sub("", message).count("%"):
        raise Unsupported(REASON, "logs with a format that is not followed")
    rounded = is_rounded(templates)
    for directive, template in zip(found, templates, strict=True):
        if is_rounded(template) and not _is_limited(template, *_as_format(directive)):
            raise Unsupported(REASON, "shows a number computed from arrays in full precision")
    check_shown(message % tuple(map(unwrap, args)), "str", "", rounded=rounded)
    return templates, rounded


def formatted_by_percent(recording: Recording, value: Any, directive: re.Match[str]) -> Formatted:
    """A value as `%` shows it. Raises Unsupported where it would show numbers in full precision."""
    template = captured(recording, value)
    rounded = is_rounded(template)
    if rounded and not _is_limited(template, *_as_format(directive)):
        raise Unsupported(REASON, "shows a number computed from arrays in full precision")
    check_shown(unwrap(value), "percent", directive[0], rounded=rounded)
    return Formatted(template, "percent", directive[0], rounded)


def _as_format(directive: re.Match[str]) -> tuple[str, str]:
    """The `format` specification that equals a directive, for floating-point numbers."""
    kind = directive["kind"]
    if kind in "eEfFgG":
        return "format", f".{directive['precision'] or 6}{kind}"
    if kind in "diu":  # cut to an integer
        return "format", ".0f"
    return "repr", ""
