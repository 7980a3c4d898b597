"""Recordings on disk: a later run finds the paths of a target, and records nothing again.

A recording that led to a program is kept with it: its tape, the sources of its inputs, its guards, and the plan of its
effects. Its key is what the target runs: its code and the code's name. Objects of the program are stored by name (see
accel.backend.disk.references). A recording that holds anything without a name is not kept. A later run takes it up as
if it had just been made: guards are checked in each call, first replays are compared.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from accel.backend.disk import cache, experience, references
from accel.backend.disk.named import CLASS_NAMESPACE, NamingReader, NamingWriter, Own, Places, is_of_function
from accel.backend.disk.references import Files, Unnamed
from accel.backend.job import nodes_of, row_of
from accel.ir.fingerprint import digest
from accel.ir.tape import Tape
from accel.platform import logs
from accel.platform.interrupts import pass_on
from accel.record import Trace
from accel.record.state.inputs import Code, Inputs, Slot

_IS = re.compile(r"\bis (?:not )?\{(\d+)\}")
"""Pattern of an expression's comparison with one of its constants by identity."""


def save(target: str, path: str, trace: Trace, own: Own) -> None:
    """Keep a recording, if it can be. target: the key of what it is of. path: its own. own: what the target brings."""
    try:
        content = _written(trace, own)
    except Exception as why:
        pass_on(why)
        logs.LOGGER.debug("a recording is not kept: %s: %s", type(why).__name__, why)
        return
    if not cache.save(digest(target, path), content, cache.RECORDING):
        experience.note_recording(target, path)


def read(target: str, own: Own, targets: Callable[[str], Any]) -> Iterator[Trace]:
    """The recordings of a target that earlier runs have kept, the last first.

    own: what the target brings. targets: gives a target by its name, or None; those that ran inside are named so.
    """
    for path in experience.recordings_of(target):
        content = cache.read(digest(target, path), cache.RECORDING)
        try:
            if content is not None:
                trace = _read(content, own, targets)
                trace.key = path
                yield trace
        except Exception as why:
            pass_on(why)
            logs.LOGGER.debug("a recording on disk cannot be used: %s: %s", type(why).__name__, why)


# -- one recording -----------------------------------------------------------------------------------------------------

_PARTS = "outputs aliases same objects array_slots scalar_slots identity pinned draws joins".split()
"""Attributes of a trace that are stored unchanged. The heads of its loops are left out: they have been examined."""


def _written(trace: Trace, own: Own) -> bytes:
    files, body = Files(), io.BytesIO()
    files.add(own[1].co_filename)
    places = _places_of(trace.inputs.slots)
    writer = NamingWriter(body, trace.tape.nodes, files, own, places)
    kept = [(key, slot) for key, slot in trace.inputs.entries() if key[0] in ("arg", "kwarg")]
    for slot in trace.inputs.slots:
        _check(slot, places)
    writer.dump([row_of(node) for node in trace.tape.nodes])
    writer.dump(
        (
            trace.tape.outcomes,
            (trace.inputs.slots, kept, trace.inputs.environment),
            {name: getattr(trace, name) for name in _PARTS},
            [target.name for target in trace.inlined],
        )
    )
    return pickle.dumps((files.hashes, body.getvalue()))


def _read(content: bytes, own: Own, targets: Callable[[str], Any]) -> Trace:
    files = Files()
    files.hashes, body = pickle.loads(content)
    if not files.are_unchanged():
        raise Unnamed("the program has changed")
    reader = NamingReader(io.BytesIO(body), own)
    reader.nodes = nodes_of(reader.load())
    outcomes, entered, parts, inlined = reader.load()
    found = filter(None, map(targets, inlined))
    return Trace(Tape(reader.nodes, outcomes), _inputs(*entered), inlined=frozenset(found), **parts)


def _inputs(slots: Iterable[Slot], keys: Iterable[Any], environment: dict[int, Any]) -> Inputs:
    made = Inputs()
    made.slots.extend(slots)
    for key, slot in keys:
        made.note(key, slot)
    made.environment.update(environment)
    made.prepare()
    return made


def _places_of(slots: Iterable[Slot]) -> Places:
    """Places of inputs in modules and classes without names of their own, or with others: lambdas, generated code."""
    places: Places = {}
    for slot in slots:
        held = _held_at(slot.fetch)
        if held is not None and (type(held[0]) is FunctionType or _are_fields(*held)):
            places[id(held[0])] = held[1]
    return places


def _are_fields(value: Any, place: tuple[str, str]) -> bool:
    is_of_class = type(value) is dict and place[1].endswith(".__dataclass_fields__")
    return is_of_class and references.told_fields(value) is not None


def _held_at(fetch: Code) -> tuple[Any, tuple[str, str]] | None:
    """Return a value found in a module or class, and its place; None for a value from elsewhere."""
    name = fetch.constants[-1] if fetch.constants else None
    if not isinstance(name, str) or fetch.parent is not None:
        return None
    holder = fetch.constants[-2] if len(fetch.constants) > 1 else None
    if type(holder) is dict:
        module, path = references.module_of(holder), name
    elif type(holder) is ModuleType:
        module, path = references.module_of(vars(holder)), name
    else:
        # the class, or what looks a name up in it, stands before: see `inputs.of_class`
        kind = next((each for each in fetch.constants if isinstance(each, type)), None)
        owner = next((each for each in kind.__mro__ if name in each.__dict__), None) if kind is not None else None
        if owner is None:
            return None
        module, path = owner.__module__, f"{owner.__qualname__}.{name}"
    return None if module is None else (references.found(module, path), (module, path))


def _check(slot: Slot, places: Places) -> None:
    """Raises Unnamed where an input is found by, or compared with, something that another process has another of."""
    for constant in slot.fetch.constants:
        if not (references.is_plain(constant) or _is_namespace(constant)):
            raise Unnamed(f"{slot.name} is found in an object of {type(constant).__qualname__}")
    for check in slot.checks:
        for position in map(int, _IS.findall(check.text)):
            value = check.constants[position]
            is_named = references.has_identity(value) or type(value) is CodeType or id(value) in places
            if not (is_named or is_of_function(check)):
                raise Unnamed(f"{slot.name} is to be the very object of {type(value).__qualname__}")


def _is_namespace(value: Any) -> bool:
    return type(value) is CLASS_NAMESPACE or (type(value) is dict and references.module_of(value) is not None)
