"""Markers: whether a formatted value may stay a marker, because nothing but sinks can see the text."""

from __future__ import annotations

import builtins
import dis
import sys
from types import CodeType, FrameType
from typing import Any

from accel.record.state.recording import Recording
from accel.record.state.wrapper import has_wrapper, unwrap
from accel.record.values.text import flow
from accel.record.values.text.capture import DIRECTIVE, formatted, formatted_by_percent
from accel.record.values.text.opcodes import instructions

_made: dict[int, tuple[CodeType, CodeType]] = {}


def with_forms(code: CodeType) -> CodeType:
    """The code to record instead of `code`: always the same one.

    `"%.3f" % x` is Python's own formatting, which takes plain numbers and calls no method. So the recorded code has
    another string in the place of a constant that stands on the left of `%` and nowhere else. This string formats
    recorded values itself. The instructions stay the same.
    """
    known = _made.get(id(code))
    if known is None or known[0] is not code:
        forms = {index: MarkingFormat(code.co_consts[index]) for index in _forms(code)}
        constants = tuple(forms.get(index, each) for index, each in enumerate(code.co_consts))
        known = _made[id(code)] = code, code.replace(co_consts=constants) if forms else code
    return known[1]


def _forms(code: CodeType) -> set[int]:
    """The indices of the constants that are formats of shown text, and nothing else."""
    candidates = {i for i, each in enumerate(code.co_consts) if type(each) is str and "%" in each}
    if not candidates or _REMAINDER not in code.co_code[::2]:
        return set()
    found = instructions(code)
    loads = dict.fromkeys(candidates, 0)
    for each in found:
        if each.opcode in dis.hasconst and each.arg in candidates:
            loads[each.arg] += 1 if each.opname == "LOAD_CONST" else len(found)
    uses = dict.fromkeys((code.co_consts[index] for index in candidates), 0)
    for index, each in enumerate(found):
        if each.opname == "BINARY_OP" and each.argrepr == "%":
            form = flow.left_operand(code, index)
            if form in uses:
                uses[form] += 1 if flow.readers(code, each.offset, "percent") else len(found)
    return {index for index, count in loads.items() if count == uses[code.co_consts[index]]}


_REMAINDER = dis.opmap["BINARY_OP"]


class MarkingFormat(str):
    """A format whose text only sinks can see."""

    __slots__ = ()

    def __mod__(self, values: Any) -> str:
        plain, frame = str(self), sys._getframe(1)
        recording = getattr(frame.f_globals, "recording", None)
        if recording is None or not recording.active or not has_wrapper(values):
            return str(plain % (values if recording is None else unwrap(values)))
        marked = recording.write_down(lambda: recording.marker(recording, values, "percent", plain, "", frame), None)
        if not recording.active:
            return str(plain % unwrap(values))
        return str(plain % values if marked is None else marked)


def text_by_percent(recording: Any, form: str, values: Any) -> str | None:
    """`form % values` with markers; None where the format is not followed. Raises Unsupported."""
    args = values if type(values) is tuple else (values,)
    directives = list(DIRECTIVE.finditer(form))
    shown = [each for each in directives if each["kind"] != "%"]
    if len(shown) != len(args) or "%" in DIRECTIVE.sub("", form) or any(type(each) is dict for each in args):
        return None
    left, text, end = iter(args), "", 0
    for directive in directives:
        text += form[end : directive.start()]
        end = directive.end()
        if directive["kind"] == "%":
            text += "%"
            continue
        value = next(left)
        if has_wrapper(value):
            part = formatted_by_percent(recording, value, directive)
            text += recording.display.texts.mark(part, directive[0] % (unwrap(value),))
        else:
            text += directive[0] % (value,)
    return text + form[end:]


_BUILTINS = {name: getattr(builtins, name) for name in ("print", "str", "repr", "format")}


def marker(recording: Recording, value: Any, how: str, spec: str, text: str, frame: FrameType) -> str | None:
    """A marker for a recorded value that becomes text, if nothing but sinks can see that text; else None.

    frame: the one that asks for the text. Raises Unsupported where the text goes to a sink, which cannot show it.
    """
    if recording.display.texts.refused or getattr(frame.f_globals, "recording", None) is not recording:
        return None
    code, offset = frame.f_code, frame.f_lasti
    readers = flow.readers(code, offset, how)
    if not readers or not all(_is_sink(recording, frame, reader) for reader in readers):
        return None
    for maker in flow.makers(code, offset):
        if maker.kind == "global" and not _is_builtin(frame, maker.name):
            return None
    if how == "percent":
        return text_by_percent(recording, spec, value)
    made: str = recording.display.texts.mark(formatted(recording, value, how, spec), text)
    return made


def _is_sink(recording: Recording, frame: FrameType, reader: flow.Origin) -> bool:
    if reader.kind == "global":
        return reader.name == "print" and _is_builtin(frame, "print")
    return recording.display.texts.is_loaded(frame, reader.offset)


def _is_builtin(frame: FrameType, name: str) -> bool:
    """Whether a global name means Python's own function in the frame."""
    scope: Any = frame.f_globals
    if name in scope or name in scope.namespace:
        return False
    found = scope.namespace.get("__builtins__", builtins)
    namespace = found if isinstance(found, dict) else vars(found)
    return bool(namespace.get(name) is _BUILTINS[name])
