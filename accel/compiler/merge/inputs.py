"""Merged inputs: the slots of several recorded paths as one list, fetched and checked for all of them at once.

Paths that read the same share a slot. Sets of paths are bit masks. A check that fails rules out the paths that asked
for it, and what only those would have read is not fetched any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from accel.ir.tape import Tape
from accel.record import Trace
from accel.record.state.environment import Environment
from accel.record.state.inputs import Check, Code, ConstantNames, Fetch, Inputs, is_same_code

ABSENT = type("Absent", (), {"__repr__": lambda self: "<absent>"})()
"""In the place of a value that only paths read which the call does not take."""


class Matched(list[Any]):
    """The values of a merged trace's slots. paths: those that the call may take."""

    def __init__(self, values: list[Any], paths: int) -> None:
        super().__init__(values)
        self.paths = paths


def paths_of(values: list[Any]) -> int:
    """The paths that a call with these values may take."""
    return values.paths if isinstance(values, Matched) else 1


NOT_FETCHED = Code("")
"""Code for a slot that no path of this process reads."""


@dataclass(slots=True)
class MergedSlot:
    """One input. paths: those that read it. checks: each with the paths that ask for it."""

    name: str
    fetch: Fetch
    paths: int = 0
    checks: list[tuple[Check, int]] = field(default_factory=list)

    def narrow(self, check: Check, path: int) -> None:
        """Let the slot be checked by `check` for one path, given as a mask."""
        for position, (known, paths) in enumerate(self.checks):
            if is_same_code(known, check):
                self.checks[position] = known, paths | path
                return
        self.checks.append((check, path))


class MergedInputs:
    """The slots of several paths. Slots 0 and 1 hold the call's arguments, as in `Inputs`."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        """names: of slots that are there before any path is added, and are fetched as the paths say."""
        self.slots = [MergedSlot(name, NOT_FETCHED) for name in names]
        self.all_paths = 0
        self._alike: dict[Hashable, list[int]] = {}
        self._variables: dict[tuple[str, str | None], int] = {}
        self._generated: Callable[[Any, Any], tuple[list[Any], int]] | None = None

    def copy(self) -> MergedInputs:
        """Return the same slots, to which more paths can be added."""
        copied = MergedInputs()
        copied.slots = [replace(slot, checks=list(slot.checks)) for slot in self.slots]
        copied.all_paths = self.all_paths
        copied._alike = {key: list(places) for key, places in self._alike.items()}
        copied._variables = dict(self._variables)
        return copied

    def add(self, trace: Trace, path: int, wanted: Sequence[int] = ()) -> list[int]:
        """Add a path's slots. Returns the merged slot of each. path: its mask. wanted: the slots that they are to be.

        Where a slot that is wanted is fetched otherwise by another path, the slot that is returned is not that one.
        """
        # one input that is an array on one path and a number, or anything else, on another is two slots
        inputs, forms = trace.inputs, _forms_of(trace.tape)
        self.all_paths |= path
        places = list(range(Inputs.ROOTS))
        for position, slot in enumerate(inputs.slots):
            parent = slot.fetch.parent
            fetch = slot.fetch if parent is None else slot.fetch._replace(parent=places[parent])
            key = _key(fetch, forms.get(position + Inputs.ROOTS))
            if wanted:
                self._want(wanted[position + Inputs.ROOTS], fetch, key)
            place = self._place(slot.name, fetch, key)
            places.append(place)
            merged = self.slots[place - Inputs.ROOTS]
            merged.paths |= path
            for check in slot.checks:
                merged.narrow(check, path)
        for variable in inputs.environment.values():
            self._variables[variable] = self._variables.get(variable, 0) | path
        return places

    def places_for(self, trace: Trace, merged: Tape) -> list[int]:
        """The slots that a path would have: those that are there, as far as they may be its own, and new ones.

        merged: the tape that reads the slots. Nothing is added.
        """
        inputs, forms, known = trace.inputs, _forms_of(trace.tape), _forms_of(merged)
        places = list(range(Inputs.ROOTS))
        new = len(self.slots) + Inputs.ROOTS
        for position, slot in enumerate(inputs.slots, Inputs.ROOTS):
            parent = slot.fetch.parent
            fetch = slot.fetch if parent is None else slot.fetch._replace(parent=places[parent])
            form = forms.get(position)
            place = self._alike_place(fetch, _key(fetch, form))
            if place is None:
                place = self._unread_place(slot.name, form, known, places)
            if place is None:
                place, new = new, new + 1
            places.append(place)
        return places

    def _unread_place(self, name: str, form: Hashable, known: Mapping[int, Hashable], taken: list[int]) -> int | None:
        """A slot of this name and form that no path of this process reads."""
        for place, slot in enumerate(self.slots, Inputs.ROOTS):
            is_free = slot.fetch is NOT_FETCHED and place not in taken
            if is_free and slot.name == name and known.get(place) == form:
                return place
        return None

    def _want(self, place: int, fetch: Fetch, key: Hashable) -> None:
        """Let a slot that no path reads yet be fetched so."""
        if place >= len(self.slots) + Inputs.ROOTS:
            return
        slot = self.slots[place - Inputs.ROOTS]
        if slot.fetch is NOT_FETCHED:
            slot.fetch = fetch
            self._alike.setdefault(key, []).append(place)

    def _place(self, name: str, fetch: Fetch, key: Hashable) -> int:
        """The slot that is fetched so, an old one or a new one. key: equal for slots that may be one."""
        place = self._alike_place(fetch, key)
        if place is None:
            self.slots.append(MergedSlot(name, fetch))
            place = len(self.slots) + Inputs.ROOTS - 1
            self._alike.setdefault(key, []).append(place)
        return place

    def _alike_place(self, fetch: Fetch, key: Hashable) -> int | None:
        """The slot that is fetched so, if there is one."""
        alike = self._alike.get(key, ())
        return next((at for at in alike if is_same_code(self.slots[at - Inputs.ROOTS].fetch, fetch)), None)

    def name(self, place: int) -> str:
        return self.slots[place - Inputs.ROOTS].name

    def paths_of(self, place: int) -> int:
        """The paths that read a slot."""
        return self.slots[place - Inputs.ROOTS].paths

    def fetch(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], int]:
        """Every slot's value, and the paths whose checks hold. Without any there need not be values."""
        if self._generated is None:
            self._generated = self._generate()
        return self._generated(args, kwargs)

    def _generate(self) -> Callable[[Any, Any], tuple[list[Any], int]]:
        names = ConstantNames()
        absent, changed = names.name(ABSENT), names.name(self._changed_environment())
        lines = ["def fetch(v0, v1):", f"  alive = {self.all_paths}", "  try:"]
        for position, slot in enumerate(self.slots):
            place = position + Inputs.ROOTS
            if slot.paths == self.all_paths:
                # as in `Inputs`: no `try` of its own, since what fails here rules out all paths
                lines.append(f"    x = v{place} = {names.fill(slot.fetch)}")
                common = [check for check, paths in slot.checks if paths == self.all_paths]
                lines += [f"    if not ({names.fill(check)}): return [], 0" for check in common]
                for check, paths in slot.checks:
                    if paths != self.all_paths:
                        lines += _ruling_out(paths, [f"if not ({names.fill(check)}): alive &= ~{paths}"])
            elif slot.fetch is NOT_FETCHED:
                lines.append(f"    v{place} = {absent}")
            else:
                body = [f"x = v{place} = {names.fill(slot.fetch)}"]
                body += [f"if not ({names.fill(check)}): alive &= ~{paths}" for check, paths in slot.checks]
                lines.append(f"    v{place} = {absent}")
                lines += _ruling_out(slot.paths, body)
        lines += ["  except Exception as error:", "    pass_on(error)", "    return [], 0", f"  alive &= ~{changed}()"]
        values = ", ".join(f"v{place}" for place in range(len(self.slots) + Inputs.ROOTS))
        lines.append(f"  return [{values}], alive")
        exec(compile("\n".join(lines), "<accel guards>", "exec"), names.namespace)  # see HostTape
        made: Callable[[Any, Any], tuple[list[Any], int]] = names.namespace["fetch"]
        return made

    def _changed_environment(self) -> Callable[[], int]:
        """A function that gives the paths whose environment variables are not what they were."""
        variables = dict(self._variables)
        expected = dict(variables.keys())
        quick = Environment(expected, dict.fromkeys(expected, 0)) if len(expected) == len(variables) else None

        def changed() -> int:
            if quick is not None and quick.changed() is None:
                return 0
            ruled_out = 0
            for (name, value), paths in variables.items():
                if os.environ.get(name) != value:
                    ruled_out |= paths
            return ruled_out

        return changed


def _key(fetch: Fetch, form: Hashable) -> Hashable:
    """Equal for slots that may be one: most are told apart by the name of an attribute or an item."""
    return fetch.text, fetch.parent, form, *(each for each in fetch.constants if isinstance(each, str))


def _forms_of(tape: Tape) -> dict[int, Hashable]:
    """The form of each slot that an operation may read."""
    return {node.args[0]: (node.shape, node.dtype, node.scalar) for node in tape.nodes if node.is_input}


def _ruling_out(paths: int, body: list[str]) -> list[str]:
    """Lines that run `body` while any of these paths is left, and rule all of them out if it raises."""
    return [
        f"    if alive & {paths}:",
        "      try:",
        *(f"        {line}" for line in body),
        "      except Exception as error:",
        "        pass_on(error)",
        f"        alive &= ~{paths}",
        "      if not alive: return [], 0",
    ]
