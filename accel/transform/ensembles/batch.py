"""Batches: one step of all members as one compiled program.

Values that are equal in all members, and stay equal, are computed once, such as a counter. A branch on such a value
computes one side. Values that differ are mapped over the members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.backend.options import compile_with, need_plain_reductions, options_for
from accel.compiler.lower.rounding import rounded_as_numpy
from accel.entry.callables import PlainCall
from accel.platform.clocks import time
from accel.rules.tracing import traced
from accel.transform.ensembles.addresses import address_of
from accel.transform.ensembles.division import Division, InGroups, devices_for, number_of_groups, part
from accel.transform.ensembles.inventory import Inventory, inventory_of
from accel.transform.pure import places as places_module
from accel.transform.pure.program import PureProgram
from accel.transform.pure.recorded import RecordedFunction, refused
from accel.transform.pure.transforms import is_same_constant

TOGETHER = 16384
"""Maximum elements of one array, over all members computed together on a CPU. More do not stay in its cache.

Measured on the miniature's air, with values stored: 16 members at 121x240 take 32 ms one by one, 39 in pairs and 59 all
together; 64 members at 31x60 take the same 6.5 ms in chunks of 8 to 64."""

ALWAYS = np.True_
"""Runtime truth by which values are stored and rounded (see accel.rules.tracing and accel.compiler.lower.rounding)."""


@dataclass(slots=True)
class BatchStep:
    """The result of one step of all members. state, result: arrays; those in `apart` have the members along their first
    axis.

    ok: by member, whether its step took a known path.
    """

    state: dict[str, Any]
    result: list[Any]
    ok: np.ndarray[Any, Any]
    apart: frozenset[str]
    result_apart: list[bool]


class Batch:
    """A program compiled from recorded steps. varied: names that may differ between members though no step changes
    them.

    takes: the names of its inputs. built_s: seconds that building and compiling took.
    """

    def __init__(self, recorded: RecordedFunction, varied: Iterable[str], members: int) -> None:
        began = time.perf_counter()
        self._members = members
        self._places = places_module.places_of(recorded)
        names = [name for name in varied if name in self._places.leaves]
        for name in set(varied).difference(names).intersection(self._places.names.values()):
            raise refused(recorded.name, "pure.host", f"{name}, a constant of some paths")
        self._program = PureProgram(recorded, self._places, names, takes_state=True, derives=False)
        self.inventory: Inventory = inventory_of(recorded, self._places, self._program.ways, self._program.returned)
        self.takes = sorted(self._program.names)
        self.form = self._program.form
        self._compiled: dict[frozenset[str], Any] = {}
        self._outside = _outside(recorded)
        self._gives: list[str] = []
        self._jaxpr: Any = None
        self.built_s = time.perf_counter() - began

    @property
    def leaves(self) -> dict[str, np.ndarray[Any, Any]]:
        """Every value that known steps read, by name, as the recorded call found it."""
        return {name: leaf.value for name, leaf in self._places.leaves.items()}

    @property
    def constants(self) -> frozenset[str]:
        """Names of values that known steps read and that are constants of the program."""
        return frozenset(self._places.leaves).difference(self.takes)

    def is_current(self, call: PlainCall) -> bool:
        """Return whether the values that steps read outside the call's arguments are unchanged.

        These are settings, functions and global names.
        """
        recorded = self._program.recorded
        values, alive = recorded.trace.inputs.fetch(call.args, call.kwargs)
        if alive != recorded.trace.inputs.all_paths:
            return False
        return all(is_same_constant(values[slot], recorded.values[slot]) for slot in self._outside)

    def _trace(self) -> None:
        """Trace the program to JAX operations, once, and find the inputs on which each output depends."""
        import jax

        def flat(inputs: list[Any], always: Any) -> Any:
            with traced(stored_by=always if self._on_cpu else None):
                output = self._program(dict(zip(self.takes, inputs, strict=True)))
            self._gives = list(output.state)
            return [*output.state.values(), *output.result, output.ok]

        self._on_cpu = jax.default_backend() == "cpu"
        with jax.enable_x64(True):
            given = [self._places.leaves[name].value for name in self.takes]
            self._jaxpr = jax.make_jaxpr(rounded_as_numpy(flat, lambda inputs, always: always))(given, ALWAYS)
        for name, form in zip(self._gives, self._jaxpr.out_avals, strict=False):
            leaf = self._places.leaves.get(name)
            if leaf is not None and (form.shape, form.dtype) != (leaf.value.shape, leaf.value.dtype):
                detail = f"{name} is {leaf.value.dtype}{list(leaf.value.shape)} before a step, and other after it"
                raise refused(self._program.recorded.name, "pure.result", detail)
        self._depends = _dependences(self._jaxpr.jaxpr)

    def run(self, values: Mapping[str, Any], apart: frozenset[str]) -> BatchStep:
        """Run one step. apart: the names of values with the members along their first axis."""
        import jax

        with jax.enable_x64(True):
            began = time.perf_counter()
            if self._jaxpr is None:
                self._trace()
            inputs_apart, outputs_apart = self._mapped(apart.intersection(self.takes))
            given = [self._given(name, values[name], apart, inputs_apart) for name in self.takes]
            if inputs_apart not in self._compiled:
                self._compiled[inputs_apart] = self._compile(inputs_apart, outputs_apart, given)
                self.built_s += time.perf_counter() - began
            *found, ok = self._compiled[inputs_apart](given)
        state = dict(zip(self._gives, found, strict=False))
        count = len(self._gives)
        return BatchStep(
            state,
            found[count:],
            np.array(np.broadcast_to(np.asarray(ok), (self._members,))),
            frozenset(name for name, each in zip(self._gives, outputs_apart, strict=False) if each),
            outputs_apart[count:-1],
        )

    def _given(self, name: str, value: Any, apart: frozenset[str], inputs_apart: frozenset[str]) -> Any:
        from jax import numpy as jnp

        if name in inputs_apart and name not in apart:
            return jnp.broadcast_to(jnp.asarray(value), (self._members, *jnp.shape(value)))
        return jnp.asarray(value)

    def _compile(
        self, inputs_apart: frozenset[str], outputs_apart: Sequence[bool], given: list[Any]
    ) -> Callable[[list[Any]], Sequence[Any]]:
        """Compile a step of all members. The compiled function takes values in the order of `takes`."""
        import jax
        from jax.extend.core import jaxpr_as_fun

        own = [position for position, name in enumerate(self.takes) if name in inputs_apart]
        largest = max((given[position].size // self._members for position in own), default=0)
        chunk = self._members if not self._on_cpu else max(1, TOGETHER // max(1, largest))
        used = devices_for(self._members)
        groups = len(used) or number_of_groups(self._members, chunk)
        size = self._members // groups
        function = _for_members(jaxpr_as_fun(self._jaxpr), own, outputs_apart, size, min(chunk, size))
        nodes = self._program.recorded.trace.tape.nodes
        options = options_for("cpu" if self._on_cpu else "", plain_reductions=need_plain_reductions(nodes))
        if used:
            division = Division(used, own, outputs_apart)
            given, always = division.placed(given), division.everywhere(ALWAYS)
            divided = compile_with(jax.jit(division.of_each(function, len(given))).lower(*given, always), options)
            return lambda given: divided(*division.placed(given), always)
        first = part(given, own, slice(size)) if groups > 1 else given
        compiled = compile_with(jax.jit(function).lower(*first, ALWAYS), options)
        if groups == 1:
            return lambda given: compiled(*given, ALWAYS)
        return InGroups(lambda given: compiled(*given, ALWAYS), own, outputs_apart, groups, size)

    def _mapped(self, apart: frozenset[str]) -> tuple[frozenset[str], list[bool]]:
        """Return which inputs and outputs have one value per member: those that depend on a value that has."""
        while True:
            bits = sum(1 << position for position, name in enumerate(self.takes) if name in apart)
            outputs = [bool(each & bits) for each in self._depends]
            more = {name for name, each in zip(self._gives, outputs, strict=False) if each and name in self.takes}
            if more <= apart:
                # a value that each member owns stays separate, even if a step gave all members the same
                gives = [each or name in apart for name, each in zip(self._gives, outputs, strict=False)]
                return apart, [*gives, *outputs[len(self._gives) :]]
            apart |= more


def _for_members(
    function: Callable[..., list[Any]], own: Sequence[int], outputs_apart: Sequence[bool], members: int, chunk: int
) -> Callable[..., list[Any]]:
    """Map a function of one member over all members. own: positions of the arguments with the members along their first
    axis.

    chunk: number of members to compute together. Chunks are computed one after the other.
    """

    def for_all(*given: Any) -> list[Any]:
        import jax
        from jax import lax

        def one(values: list[Any]) -> list[Any]:
            full = list(given)
            for position, value in zip(own, values, strict=True):
                full[position] = value
            return function(*full)

        def apart(values: list[Any]) -> list[Any]:
            return [each for each, is_apart in zip(one(values), outputs_apart, strict=True) if is_apart]

        values = [given[position] for position in own]
        same = one([value[0] for value in values])
        if chunk >= members or not values:
            found = iter(jax.vmap(apart, axis_size=members)(values))
        else:
            found = iter(lax.map(apart, values, batch_size=chunk if chunk > 1 else None))
        return [next(found) if is_apart else each for each, is_apart in zip(same, outputs_apart, strict=True)]

    return for_all


def _outside(recorded: RecordedFunction) -> list[int]:
    """Return the slots of numbers and arrays that are not below an argument of the call."""
    slots = recorded.trace.inputs.slots
    wanted = [*recorded.trace.array_slots, *recorded.trace.scalar_slots]
    return [slot for slot in wanted if address_of(slots, slot) is None]


def _dependences(jaxpr: Any) -> list[int]:
    """Return for each output a bit mask of the inputs on which it may depend."""
    masks: dict[Any, int] = {variable: 1 << position for position, variable in enumerate(jaxpr.invars)}

    def mask(variable: Any) -> int:
        return masks.get(variable, 0) if not hasattr(variable, "val") else 0

    for equation in jaxpr.eqns:
        found = 0
        for variable in equation.invars:
            found |= mask(variable)
        for variable in equation.outvars:
            masks[variable] = found
    return [mask(variable) for variable in jaxpr.outvars]
