"""Building programs of kernels: which operations kernels take, and XLA's part of the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accel.backend import callbacks
from accel.backend.options import compile_with
from accel.kernels import jaxprs, machine_code
from accel.kernels.graph import reachable
from accel.kernels.jaxprs import Atom, Flat, Importer, Literal, Step, Variable
from accel.kernels.module import module_of
from accel.kernels.segments import Given, Kernel, Segmented, aligned
from accel.lower.precision.evaluation import Evaluation
from accel.config import FLOAT64
from accel.lower.rounding import rounded_as_numpy

_CONTROL = frozenset(["while", "scan", "cond"])
"""Operations with programs inside of them. XLA compiles programs that have these whole."""

_MOST_PHASES = 8
"""Maximum changes between kernels and XLA in one program. Guess."""


class NotWorthwhile(Exception):
    """A program that XLA compiles better whole."""


@dataclass(slots=True)
class InXla:
    """A segment that XLA computes. payload: how the executable is serialized, see `accel.backend.compile`."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    compiled: Any

    def run(self, given: Sequence[Any], made: Sequence[Any]) -> list[Any]:
        return [np.asarray(each) for each in self.compiled(np.True_, *given)]


@dataclass(slots=True)
class OnHost:
    """A segment that a function of Python's computes, see `accel.backend.callbacks`."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    function: Callable[..., Any]
    forms: Sequence[callbacks.Form]
    fills: bool

    def run(self, given: Sequence[Any], made: Sequence[Any]) -> list[Any]:
        if self.fills:
            filled = [aligned(shape, np.dtype(dtype)) for shape, dtype in self.forms]
            self.function(*given, *filled)
            return [*filled, np.True_]
        # copies: the function may keep them
        found = [np.asarray(each, order="C") for each in self.function(*(each.copy() for each in given))]
        if [(each.shape, each.dtype.str) for each in found] == list(self.forms):
            return [*found, np.True_]
        return [*(np.zeros(shape, dtype) for shape, dtype in self.forms), np.False_]


def built(function: Callable[..., Any], arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Segmented:
    """The program of a function of JAX's. arguments: their forms, as `entry` takes them.

    Raises NotWorthwhile, ImportError without llvmlite, RuntimeError if LLVM refuses, and what JAX raises.
    """
    import jax

    machine_code.binding()
    closed, form = jax.make_jaxpr(function, return_shape=True)(*arguments)
    program = jaxprs.flat(closed)
    phases = list(jaxprs.phases(program.steps))
    if any(step.name in _CONTROL for step in program.steps):
        raise NotWorthwhile("it has loops or branches that depend on arrays")
    if len(phases) > _MOST_PHASES or not any(is_kernel for is_kernel, _ in phases):
        raise NotWorthwhile(f"{len(phases)} parts would be kernels and XLA's in turn")
    return _Builder(program, phases, options).segmented(jax.tree_util.tree_structure(form))


class _Builder:
    def __init__(self, program: Flat, phases: Sequence[tuple[bool, Sequence[Step]]], options: Mapping[str, Any]) -> None:
        self._program, self._options = program, options
        self._numbers: dict[Variable, int] = {each: number for number, each in enumerate(program.inputs)}
        self._constants: dict[int, Any] = {}
        self._producers = {result: step for step in program.steps for result in step.results}
        # the parts in order: of a kernel, what imports it
        self._parts: list[tuple[Importer | None, Sequence[Step]]] = []
        for is_kernel, steps in phases:
            self._parts.append((self._imported(steps) if is_kernel else None, steps))

    def _imported(self, steps: Sequence[Step]) -> Importer:
        importer = Importer(self._producers)
        for step in steps:
            if not importer.take(step):
                raise NotWorthwhile(f"{step.name} has other operands than expected")
        return importer

    def segmented(self, tree: Any) -> Segmented:
        import jax

        read: set[Variable] = {each for each in self._program.outputs if isinstance(each, Variable)}
        segments: list[Any] = []
        for importer, steps in reversed(self._parts):
            made = [each for step in steps for each in step.results if each in read]
            if not made:
                continue
            if importer is not None:
                segments.append(self._kernel(importer, made, read))
                continue
            called, others = _host_calls(steps)
            made = [each for step in others for each in step.results if each in read]
            # XLA's part after the calls: neither reads the other's results
            if made:
                segments.append(self._in_xla(others, made, read))
            segments += [self._on_host(step, read) for step in called]
        template = jax.tree_util.tree_unflatten(tree, [self._result(each) for each in self._program.outputs])
        forms = tuple((each.shape, each.dtype) for each in self._program.inputs)
        return Segmented(forms, self._constants, tuple(reversed(segments)), template, len(self._numbers))

    def _number(self, variable: Variable) -> int:
        if variable not in self._numbers:
            self._numbers[variable] = len(self._numbers)
            if variable.constant is not None:
                self._constants[self._numbers[variable]] = np.asarray(variable.constant, order="C")
        return self._numbers[variable]

    def _result(self, atom: Atom) -> int | Given:
        if isinstance(atom, Literal):
            return Given(self._number(_known(atom)))
        number = self._number(atom)
        return number if atom in self._producers else Given(number)

    def _kernel(self, importer: Importer, made: Sequence[Variable], read: set[Variable]) -> Kernel:
        outputs = [importer.node(each) for each in made]
        needed = reachable(outputs)
        inputs = [each for each in importer.inputs if importer.node(each) in needed]
        module = module_of(importer.graph, [importer.node(each) for each in inputs], outputs)
        read.update(inputs)
        forms = tuple((each.shape, each.dtype) for each in made)
        numbers = tuple(map(self._number, inputs)), tuple(map(self._number, made))
        return Kernel(machine_code.object_of(module.text), *numbers, forms, module.room)

    def _on_host(self, step: Step, read: set[Variable]) -> OnHost:
        called = callbacks.called_by(step.eqn.params)
        assert called is not None
        function, _, forms, fills = called
        operands = [each if isinstance(each, Variable) else _known(each) for each in step.operands]
        read.update(operands)
        return OnHost(tuple(map(self._number, operands)), tuple(map(self._number, step.results)), function, forms, fills)

    def _in_xla(self, steps: Sequence[Step], made: Sequence[Variable], read: set[Variable]) -> InXla:
        import jax

        own = {each for step in steps for each in step.results}
        operands = [each for step in steps for each in step.operands if isinstance(each, Variable)]
        inputs = [each for each in dict.fromkeys(operands) if each not in own]
        read.update(inputs)

        def function(always: Any, *given: Any) -> list[Any]:
            evaluation, values = Evaluation(FLOAT64), dict(zip(inputs, given, strict=True))
            for step in steps:
                values.update(zip(step.results, evaluation.step(step.eqn, [_value(each, values) for each in step.operands]), strict=True))
            return [values[each] for each in made]

        forms = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in inputs]
        rounded = rounded_as_numpy(function, lambda always, *given: always)
        compiled = compile_with(jax.jit(rounded).lower(np.True_, *forms), self._options)
        return InXla(tuple(map(self._number, inputs)), tuple(map(self._number, made)), compiled)


def _known(literal: Literal) -> Variable:
    return Variable((), literal.value.dtype, np.asarray(literal.value))


def _host_calls(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """The calls of Python's functions among steps that no kernel has, and the other steps.

    Calls that read what XLA computes, or the other way round, are left to XLA.
    """
    called = [step for step in steps if step.name == "ffi_call" and callbacks.called_by(step.eqn.params) is not None]
    others = [step for step in steps if step not in called]
    made = {each for step in called for each in step.results}
    of_others = {each for step in others for each in step.results}
    is_apart = not any(each in of_others for step in called for each in step.operands)
    is_apart = is_apart and not any(each in made for step in steps for each in step.operands)
    return (called, others) if is_apart else ([], list(steps))


def of_xla(program: Segmented) -> list[Any]:
    """What XLA has compiled of a program."""
    return [each.compiled for each in program.segments if isinstance(each, InXla)]


def without_xla(program: Segmented) -> Segmented:
    """The program without what XLA has compiled."""
    return replace(program, segments=[_emptied(each, None) for each in program.segments])


def loaded(program: Segmented, compiled: Sequence[Any]) -> Segmented:
    """A program that `without_xla` gave, with what XLA has compiled, ready to run. Raises what llvmlite raises."""
    parts = iter(compiled)
    segments = [replace(each, compiled=next(parts)) if isinstance(each, InXla) else each for each in program.segments]
    for each in segments:
        if isinstance(each, Kernel):
            each.load()
    return replace(program, segments=segments)


def _emptied(segment: Any, compiled: Any) -> Any:
    return replace(segment, compiled=compiled) if isinstance(segment, InXla) else segment


def _value(atom: Atom, values: Mapping[Variable, Any]) -> Any:
    from jax import numpy as jnp

    return jnp.asarray(atom.value) if isinstance(atom, Literal) else values[atom]

