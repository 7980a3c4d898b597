"""Building programs of kernels: which operations kernels take, and what computes the rest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from accel.backend.executable import shared
from accel.backend.options import compile_once
from accel.compiler.kernels import importing, jaxprs, machine_code
from accel.compiler.kernels.graph import reachable
from accel.compiler.kernels.importing import Importer
from accel.compiler.kernels.indexing import SCATTERED
from accel.compiler.kernels.iterating import has_kernels_alone
from accel.compiler.kernels.jaxprs import Atom, Equation, Flat, Literal, Variable
from accel.compiler.kernels.module import module_of
from accel.compiler.kernels.nested import Choice, Nested, Scan, While
from accel.compiler.kernels.segments import Given, HostCall, Kernel, MatrixProduct, Segment, Segmented, body_of
from accel.compiler.lower.precision.evaluation import ReducedEvaluation
from accel.compiler.lower.precision.widths import AsTraced, scan_counts
from accel.compiler.lower.rounding import rounded_as_numpy
from accel.platform import callbacks, config, logs, underflow
from accel.platform.config import FLOAT64

_LEAST_OF_SEGMENTS = 200_000
"""Minimum number of elements that a loop's iteration computes, all operations together, where other segments than
kernels take part. An iteration takes 25 us more than one of XLA's, but computes twice as fast."""

_WRITES = {"dynamic_update_slice": 1, **dict.fromkeys(SCATTERED, 2)}
"""Operations that write to a part of an array: by name, which operand is written. A segment copies all of the array."""

_STEPS_PER_PART = 100
"""Least number of kernels' operations for each part that XLA compiles: a part takes 0.1 ms more in each run. Guess."""

_MOST_SEGMENTS = 16
"""Maximum parts of one program that are run one after the other. Guess."""


class NotWorthwhile(Exception):
    """A program that XLA compiles better whole."""


@dataclass(slots=True)
class InXla(Segment):
    """A segment that XLA computes."""

    compiled: Any

    def run(self, given: Sequence[Any]) -> list[Any]:
        import jax

        with callbacks.allowed(), jax.enable_x64(True):
            found = jax.block_until_ready(self.compiled(np.True_, *given))
            underflow.note()
        # writable, as a kernel's: they may be the program's results
        return [shared(each, each.shape, np.dtype(each.dtype).str) for each in found]


def built(function: Callable[..., Any], arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Segmented:
    """The program of a function of JAX's. arguments: their forms, as `entry` takes them.

    Raises NotWorthwhile, ImportError without llvmlite, RuntimeError if LLVM refuses, and what JAX raises.
    """
    import jax

    machine_code.binding()
    closed, form = jax.make_jaxpr(function, return_shape=True)(*arguments)
    return _segmented(jaxprs.flat(closed), jax.tree_util.tree_structure(form), options)


def _segmented(program: Flat, tree: Any, options: Mapping[str, Any], *, is_branch: bool = False) -> Segmented:
    """is_branch: a program around it runs it, which would be XLA's too if this one were refused."""
    phases = importing.phases(program.steps, program.producers())
    parts = [part for importer, steps in phases for part in _parts(importer, steps, options)]
    in_kernels = sum(len(steps) for kind, steps, _ in parts if kind not in (_CALL, _PRODUCT, _XLA))
    in_xla = sum(kind == _XLA for kind, _, _ in parts)
    if config.current().exact:
        if in_xla:
            raise NotWorthwhile(_xla_parts(parts))
    elif not is_branch and (len(parts) > _MOST_SEGMENTS or in_kernels < _STEPS_PER_PART * in_xla):
        raise NotWorthwhile(_xla_parts(parts))
    return _Builder(program, parts, options).segmented(tree)


def _xla_parts(parts: Sequence[_Part]) -> str:
    names = [sorted({step.name for step in steps}) for kind, steps, _ in parts if kind == _XLA]
    return f"of its {len(parts)} parts, {len(names)} would be XLA's: {', '.join(itertools.chain(*names))}"


_KERNEL, _CALL, _PRODUCT, _NESTED, _XLA = "kernel", "call", "product", "nested", "XLA"
"""Kinds of segments: what computes each. A nested one runs other programs."""

_Numbers = tuple[int, ...]

_Part = tuple[str, Sequence[Equation], Importer | Callable[[_Numbers, _Numbers], Nested] | None]
"""Kind, steps, and what makes the segment: a kernel's graph, or a function for a nested one."""


def _parts(importer: Importer | None, steps: Sequence[Equation], options: Mapping[str, Any]) -> Iterator[_Part]:
    """The parts of one phase."""
    if importer is not None:
        yield _KERNEL, steps, importer
        return
    rest: list[Equation] = []
    for step in steps:
        nested = _nested(step, options) if step.name in _PROGRAMS else None
        kind = _kind(step) if nested is None else _NESTED
        if kind == _XLA:
            rest.append(step)
            continue
        if rest:
            yield _XLA, rest, None
            rest = []
        yield kind, [step], nested
    if rest:
        yield _XLA, rest, None


def _kind(step: Equation) -> str:
    """Return the kind of segment for an operation that kernels do not take and that runs no other program."""
    if callbacks.called_by(step.params):
        return _CALL
    dtypes = {each.value.dtype if isinstance(each, Literal) else each.dtype for each in (*step.operands, *step.results)}
    is_numpys = step.name == "dot_general" and len(dtypes) == 1 and dtypes.pop().kind in "iuf"
    return _PRODUCT if is_numpys else _XLA


class _Builder:
    def __init__(self, program: Flat, parts: Sequence[_Part], options: Mapping[str, Any]) -> None:
        self._program, self._options, self._parts = program, options, parts
        self._numbers: dict[Variable, int] = {each: number for number, each in enumerate(program.inputs)}
        self._constants: dict[int, Any] = {}
        self._asked: set[int] = set()
        self._producers = program.producers()
        # what later parts read of earlier ones: found from the end
        self._outputs = {each for each in program.outputs if isinstance(each, Variable)}
        self._read = set(self._outputs)

    def segmented(self, tree: Any) -> Segmented:
        import jax

        make = {_CALL: self._on_host, _PRODUCT: self._product, _XLA: self._in_xla}
        segments: list[Any] = []
        for kind, steps, maker in reversed(self._parts):
            made = [each for step in steps for each in step.results if each in self._read]
            if not made:
                continue
            if isinstance(maker, Importer):
                segments.append(self._kernel(maker, made))
            elif maker is not None:
                segments.append(maker(*self._numbered(self._operands(steps[0]), steps[0].results)))
            else:
                segments.append(make[kind](steps, made))
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
        # a value that is asked for twice is two arrays: who is given them may write to one
        if atom not in self._producers or number in self._asked:
            return Given(number)
        self._asked.add(number)
        return number

    def _operands(self, step: Equation) -> list[Variable]:
        """A step's operands as values that a segment is given."""
        found = [each if isinstance(each, Variable) else _known(each) for each in step.operands]
        self._read.update(found)
        return found

    def _numbered(self, *groups: Sequence[Variable]) -> list[tuple[int, ...]]:
        return [tuple(map(self._number, group)) for group in groups]

    def _kernel(self, importer: Importer, made: Sequence[Variable]) -> Kernel:
        outputs = [importer.node(each) for each in made]
        needed = reachable(outputs)
        inputs = [each for each in importer.inputs if importer.node(each) in needed]
        self._read.update(inputs)
        checked = [at for at, each in enumerate(made) if each in self._outputs]
        module = module_of(importer.graph, [importer.node(each) for each in inputs], outputs, checked)
        forms = tuple((each.shape, each.dtype) for each in made)
        given, results = self._numbered(inputs, made)
        reused = tuple((given[source], results[target]) for source, target in module.reused)
        found = tuple(results[at] for at in module.checked)
        return Kernel(given, results, machine_code.object_of(*module.units), forms, module.size, reused, found)

    def _on_host(self, steps: Sequence[Equation], made: Sequence[Variable]) -> HostCall:
        (step,) = steps
        called = callbacks.called_by(step.params)
        assert called is not None
        function, _, forms, fills = called
        given, results = self._numbered(self._operands(step), step.results)
        return HostCall(given, results, function, forms, fills)

    def _product(self, steps: Sequence[Equation], made: Sequence[Variable]) -> MatrixProduct:
        (step,) = steps
        given, results = self._numbered(self._operands(step), step.results)
        return MatrixProduct(given, results, *step.params["dimension_numbers"])

    def _in_xla(self, steps: Sequence[Equation], made: Sequence[Variable]) -> InXla:
        import jax

        own = {each for step in steps for each in step.results}
        operands = [each for step in steps for each in step.operands if isinstance(each, Variable)]
        inputs = [each for each in dict.fromkeys(operands) if each not in own]
        self._read.update(inputs)

        def function(always: Any, *given: Any) -> list[Any]:
            evaluation, values = ReducedEvaluation(AsTraced(FLOAT64)), dict(zip(inputs, given, strict=True))
            for step in steps:
                found = evaluation.step(step.eqn, [_value(each, values) for each in step.operands])
                values.update(zip(step.results, found, strict=True))
            return [values[each] for each in made]

        forms = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in inputs]
        rounded = rounded_as_numpy(function, lambda always, *given: always)
        compiled = compile_once(rounded, [np.True_, *forms], self._options)
        given, results = self._numbered(inputs, made)
        return InXla(given, results, compiled)


def _nested(step: Equation, options: Mapping[str, Any]) -> Callable[[_Numbers, _Numbers], Nested] | None:
    """Return what makes the segment of a branch or loop; None where XLA compiles it better."""
    try:
        return _PROGRAMS[step.name](step, options)
    except NotWorthwhile as reason:
        logs.LOGGER.debug("XLA computes a part of a program: %s", reason)
        return None


def _choice(step: Equation, options: Mapping[str, Any]) -> Callable[..., Nested]:
    branches = [_inner(jaxprs.flat(each), options, is_branch=True) for each in step.params["branches"]]
    return partial(Choice, programs=tuple(branches))


def _scan(step: Equation, options: Mapping[str, Any]) -> Callable[..., Nested]:
    params = step.params
    fixed, state = scan_counts(step.eqn)
    forms = tuple((each.shape, each.dtype) for each in step.results[state:])
    body = _iteration(jaxprs.flat(params["jaxpr"]), range(fixed, fixed + state), options)
    return partial(
        Scan,
        programs=(body,),
        fixed=fixed,
        state=state,
        iterations=params["length"],
        backwards=params["reverse"],
        forms=forms,
    )


def _while(step: Equation, options: Mapping[str, Any]) -> Callable[..., Nested]:
    params = step.params
    goes_on = jaxprs.flat(params["cond_jaxpr"])
    if any(each.shape for each in goes_on.outputs if isinstance(each, Variable)):
        raise NotWorthwhile("it has a loop with a condition for each member")
    first, second, count = params["cond_nconsts"], params["body_nconsts"], len(step.results)
    body = jaxprs.iteration(params["cond_jaxpr"], params["body_jaxpr"], first)
    state = range(first + second, first + second + count)
    iteration = _iteration(body, state, options)
    return partial(While, programs=(_inner(goes_on, options), iteration), fixed=(first, second))


_PROGRAMS: Mapping[str, Callable[[Equation, Mapping[str, Any]], Callable[[_Numbers, _Numbers], Nested]]] = {
    "cond": _choice,
    "scan": _scan,
    "while": _while,
}
"""Functions that compile the programs which an operation runs, by its name. Each returns what makes its segment, and
raises NotWorthwhile."""


def _iteration(body: Flat, state: range, options: Mapping[str, Any]) -> Segmented:
    """The program of a loop's iteration. state: the arguments that one iteration hands to the next."""
    computed = sum(map(_computed, body.steps))
    program = body_of(_inner(body, options), state)
    if computed < _LEAST_OF_SEGMENTS and not has_kernels_alone(program):
        raise NotWorthwhile("it has a loop with little to compute in an iteration")
    in_place = {body.inputs[number] for number in program.changed}
    copied = 0
    for step in body.steps:
        if step.name in _WRITES and step.operands[0] in in_place:
            in_place.update(step.results)
        elif step.name in _WRITES:
            copied += math.prod(step.results[0].shape)
    if copied > computed:
        raise NotWorthwhile("it has a loop that writes to parts of large arrays")
    return program


def _computed(step: Equation) -> int:
    """Number of elements that an operation computes: what it writes, where it writes to a part of an array."""
    made = [step.operands[_WRITES[step.name]]] if step.name in _WRITES else step.results
    return sum(math.prod(each.shape) for each in made if isinstance(each, Variable))


def _inner(program: Flat, options: Mapping[str, Any], *, is_branch: bool = False) -> Segmented:
    """A program that another one runs, and which gives a list. It may give what it is given, and compute nothing."""
    import jax

    tree = jax.tree_util.tree_structure([0] * len(program.outputs))
    if program.steps:
        return _segmented(program, tree, options, is_branch=is_branch)
    return _Builder(program, [], options).segmented(tree)


def _known(literal: Literal) -> Variable:
    return Variable((), literal.value.dtype, np.asarray(literal.value))


def programs(program: Segmented) -> Iterator[Segmented]:
    """A program and those that its segments hold."""
    yield program
    for segment in program.segments:
        if isinstance(segment, Nested):
            for each in segment.programs:
                yield from programs(each)


def of_xla(program: Segmented) -> list[Any]:
    """Return the parts of a program that XLA has compiled."""
    return [each.compiled for part in programs(program) for each in part.segments if isinstance(each, InXla)]


def without_xla(program: Segmented) -> Segmented:
    """The program without what XLA has compiled."""
    return _with_xla(program, iter([None] * len(of_xla(program))))


def loaded(program: Segmented, compiled: Sequence[Any]) -> Segmented:
    """A program that `without_xla` gave, with what XLA has compiled, ready to run. Raises what llvmlite raises."""
    whole = _with_xla(program, iter(compiled))
    for part in programs(whole):
        for each in part.segments:
            if isinstance(each, Kernel):
                each.load()
    return whole


def _with_xla(program: Segmented, compiled: Iterator[Any]) -> Segmented:
    segments: list[Segment] = []
    # XLA's parts in the order of `of_xla`: a program's own before those of its segments' programs
    for each in program.segments:
        segments.append(replace(each, compiled=next(compiled)) if isinstance(each, InXla) else each)
    for at, each in enumerate(segments):
        if isinstance(each, Nested):
            segments[at] = replace(each, programs=tuple(_with_xla(inner, compiled) for inner in each.programs))
    return replace(program, segments=tuple(segments))


def _value(atom: Atom, values: Mapping[Variable, Any]) -> Any:
    from jax import numpy as jnp

    return jnp.asarray(atom.value) if isinstance(atom, Literal) else values[atom]
