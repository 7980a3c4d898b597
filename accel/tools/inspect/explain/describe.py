"""Describe a recording, complete or stopped, as plain dicts for JSON."""

from __future__ import annotations

import linecache
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from types import FrameType
from typing import Any

import numpy as np

from accel.ir.tape import Node, Place
from accel.platform.reasons import Refusal, place_of
from accel.record import Trace
from accel.record.objects.generators import GeneratorProxy
from accel.record.objects.names.variables import CONTENTS
from accel.record.objects.objects import ObjectProxy
from accel.record.state.changes import Write
from accel.record.state.leaves import (
    FixedValue,
    FromSlot,
    NewArray,
    NewContainer,
    NewObject,
    NewSet,
    Number,
    SharedLeaf,
)
from accel.record.state.on_behalf import frames_of
from accel.record.state.recording import Recording, place_text

Message = dict[str, Any]
LONGEST = 60
"""Maximum characters of a value's text."""

__all__ = ["place_text", "program", "so_far", "source", "stop"]


# -- where ------------------------------------------------------------------------------------------------------------


def stop(refusal: Refusal, recording: Recording | None) -> Message:
    """Return a refusal as a dict, with the text of its line, the columns of the expression, and the call stack."""
    frames = list(frames_of(recording)) if recording is not None else []
    here = next((frame for frame in frames if place_text(_place(frame)) == refusal.where), None)
    found: Message = {
        "id": refusal.reason,
        "where": refusal.where,
        "function": here.f_code.co_qualname if here is not None else None,
        "why": refusal.why,
        "hint": refusal.hint,
        "detail": refusal.detail,
        "source": None,
        "column": None,
        "end_column": None,
        "via": [f"{place_text(_place(frame))} in {frame.f_code.co_qualname}" for frame in frames if frame is not here],
    }
    if here is not None:
        text, columns = source(_place(here)), _columns(here)
    else:
        text, columns = source(place_of(refusal.where)), None
    if text.strip():
        found["source"], found["column"], found["end_column"] = _trimmed(text, columns)
    return found


def _place(frame: FrameType) -> Place:
    return frame.f_code.co_filename, frame.f_lineno


def source(place: Place) -> str:
    """Return the text of a line; "" if it cannot be read."""
    return linecache.getline(*place).rstrip("\n")


def _columns(frame: FrameType) -> tuple[int, int] | None:
    """Return the columns of the expression that the frame is evaluating: first, and exclusive last, in bytes of its
    line."""
    # there is one entry for each two bytes of code
    positions = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    line, end_line, column, end = positions
    if line != frame.f_lineno or column is None or end is None or (line, column) == (end_line, end):
        return None
    return column, end if end_line == line else sys.maxsize


def _trimmed(text: str, columns: tuple[int, int] | None) -> tuple[str, int | None, int | None]:
    """Return the line without its indentation, and the columns in it, in characters."""
    stripped = text.strip()
    if columns is None:
        return stripped, None, None
    indent = len(text) - len(text.lstrip())
    raw = text.encode()
    first, last = (len(raw[:column].decode(errors="ignore")) - indent for column in columns)
    return stripped, max(0, first), min(last, len(stripped))


# -- what was recorded ------------------------------------------------------------------------------------------------


def so_far(recording: Recording) -> Message:
    """Return operations, inputs with their guards, and outcomes of a recording in progress."""
    nodes = recording.writer.tape.nodes
    rules = Counter(node.rule.name for node in nodes if not node.is_input)
    return {
        "operations": {
            "count": rules.total(),
            "host": sum(node.host for node in nodes if not node.is_input),
            "rules": dict(rules.most_common()),
        },
        "inputs": list(_inputs(recording)),
        "aliases": _pairs(recording, recording.aliases) + _pairs(recording, recording.same),
        "outcomes": [
            {"where": place_text(each.where), "source": source(each.where).strip(), "value": _text(each.expected)}
            for each in recording.writer.tape.outcomes
        ],
        "inlined": sorted(target.name for target in recording.inlined),
    }


def _pairs(recording: Recording, pairs: list[tuple[int, int]]) -> list[list[str]]:
    return [[recording.inputs.name(slot) for slot in pair] for pair in pairs]


def _inputs(recording: Recording) -> Iterator[Message]:
    for key, slot in recording.inputs.entries():
        kind, what, guard = _guard(recording, key, slot)
        yield {"path": recording.inputs.name(slot), "kind": kind, "is": what, "guard": guard}


def _guard(recording: Recording, key: Any, slot: int) -> tuple[str, str, str]:
    """Return the kind of an input, its value in words, and its guard."""
    if key[0] in _WITHOUT_VALUE:
        return _WITHOUT_VALUE[key[0]](key)
    if slot not in recording.entered:
        return "code", "", "the same object"
    value, wrapped = recording.entered[slot]
    if isinstance(value, np.ndarray):
        return "array", f"{value.dtype}{list(value.shape)}", "type, shape, dtype, strides"
    kind = type(value)
    if kind in (int, float, complex) or isinstance(value, np.number):
        return "number", kind.__name__, "type"
    if value is None or kind in (bool, str, bytes, np.bool_, range, slice) or isinstance(value, np.dtype):
        return "fixed", _text(value), "equal"
    if kind in (list, tuple, dict):
        return "object", f"{kind.__name__} of {len(value)}", "type, and what of it is read"
    if issubclass(type(wrapped), (ObjectProxy, GeneratorProxy)):
        return "object", kind.__qualname__, "type"
    return "code", kind.__name__, "the same object"


_WITHOUT_VALUE: dict[str, Callable[[Any], tuple[str, str, str]]] = {
    "env": lambda key: ("environment", _text(os.environ[key[1]]) if key[1] in os.environ else "unset", "equal"),
    "missing": lambda key: ("code", "missing", "still missing"),
    "lookup": lambda key: ("code", "class attribute", "the same object"),
    "own": lambda key: ("code", "", "none hides the class's"),
    "function": lambda key: ("code", "function", "code and defaults"),
    "call": lambda key: ("code", "", "number of arguments and keywords"),
    "draw": lambda key: ("draw", "", "none: a replay draws it anew"),
}


def _text(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


# -- what comes out ---------------------------------------------------------------------------------------------------


def program(trace: Trace) -> Message:
    """Return the result and the side effects of a complete recording."""
    outputs = trace.outputs
    return {
        "outputs": {
            "result": _result(trace, outputs.result),
            "changed": [trace.inputs.name(slot) for slot, _ in outputs.changed],
            "writes": [_written(trace, write) for write in outputs.writes if not _stays(trace, write)],
        }
    }


def _stays(trace: Trace, write: Any) -> bool:
    """Return whether the attribute is set to the object that it had before, as by an in-place operator."""
    if not isinstance(write, Write):
        return False
    held = trace.inputs.find(("attr", write.owner, write.name))
    return type(write.value) is FromSlot and not write.value.chain and write.value.slot == held


def _written(trace: Trace, write: Any) -> str:
    owner = trace.inputs.name(write.owner)
    if not isinstance(write, Write):
        return f"what {owner} holds"
    if write.is_item:
        return f"{owner}[...]" if isinstance(write.name, Number) else f"{owner}[{write.name!r}]"
    return owner if write.name == CONTENTS else f"{owner}.{write.name}"


def _result(trace: Trace, template: Any) -> str:
    """Return the result in words: which parts are new, and which are inputs."""
    kind = type(template)
    if kind is NewArray:
        return _node(trace.outputs.arrays[template.index], template.chain)
    if kind is FromSlot:
        return f"{'a view of ' if template.chain else ''}{trace.inputs.name(template.slot)}"
    if kind is Number:
        return f"{template.kind.__name__}"
    if kind is FixedValue:
        return _text(template.value)
    if kind is SharedLeaf:
        return "one object in several places"
    if kind in (NewObject, NewContainer):
        return f"new {template.kind.__qualname__}"
    if kind is NewSet:
        return _text(template.members)
    if isinstance(template, dict):
        return "{" + ", ".join(f"{key!r}: {_result(trace, part)}" for key, part in template.items()) + "}"
    if isinstance(template, (list, tuple)):
        inner = ", ".join(_result(trace, part) for part in template)
        return f"[{inner}]" if isinstance(template, list) else f"({inner})"
    return _text(template)


def _node(node: Node, chain: object) -> str:
    return f"{'a view of a new' if chain else 'new'} {node.dtype}{list(node.shape)}"
