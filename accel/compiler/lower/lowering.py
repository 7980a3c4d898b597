"""Lowering proper: what a program needs of a tape, how it gets that, and the function that JAX traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from accel.compiler.lower import pipeline, written
from accel.compiler.lower.arguments import ProgramArguments
from accel.compiler.lower.folding import Folding
from accel.compiler.lower.passes.arrange import Part, check_size
from accel.compiler.lower.pipeline import About, Watch
from accel.compiler.lower.precision import reduced
from accel.compiler.lower.program import (
    PACKS,
    Fixed,
    Known,
    Lowerable,
    LoweredProgram,
    OutputNumber,
    Packed,
    agrees,
    pack_of,
)
from accel.compiler.lower.renewing import ConstantsAnew
from accel.compiler.lower.values import Values
from accel.compiler.lower.written import OnHost
from accel.ir.fingerprint import Indescribable, fingerprint
from accel.ir.tape import Node, Outcome
from accel.platform import config
from accel.platform.config import FLOAT64
from accel.rules.lowering import Array
from accel.rules.rule import Unsupported
from accel.rules.tracing import traced

_ALWAYS = np.bool_(True)
"""The last constant of every program: true. XLA cannot know that, so it cannot fuse or contract across a choice by this
value (see accel.rules.tracing and accel.compiler.lower.rounding)."""


def lower(
    trace: Lowerable, known: Known, *, on_cpu: bool = True, precision: str = FLOAT64, watch: Watch | None = None
) -> LoweredProgram:
    """The program of a trace. Raises Unsupported where a rule cannot do what the tape asks.

    on_cpu: whether it is for one CPU. precision: as in the settings. watch: is shown the operations before and after
    each pass.
    """
    return _Lowering(trace, known, on_cpu, precision, watch).program()


class _Lowering:
    """One lowering: what is needed of the tape, the passes over that, its arguments, and the function of them."""

    def __init__(self, trace: Lowerable, known: Known, on_cpu: bool, precision: str, watch: Watch | None) -> None:
        self._trace = trace
        self._on_cpu = on_cpu
        self._precision = precision
        self._watch = watch
        self._known = known
        self._folding = Folding(trace, known)
        self._arguments = ProgramArguments(self._folding)

    # -- the parts ----------------------------------------------------------------------------------------------------

    @np.errstate(all="ignore")  # folding computes again what NumPy has computed, and warned of, before
    def program(self) -> LoweredProgram:
        trace, arguments = self._trace, self._arguments
        outcomes = self._outcomes()
        changed = self._changed()
        targets = recorded = [*trace.outputs.arrays, *written.results(changed, len(trace.tape.nodes))]
        numbers = trace.outputs.numbers
        device_numbers = [node for node in numbers if not node.host and not self._folding.is_fixed(node)]
        checked = [outcome.node for outcome in outcomes]
        results = [*targets, *checked, *device_numbers]
        body: Sequence[Node] = [node for node in self._needed(results) if not arguments.includes(node)]
        body, parts = self._optimized(body, results)
        current = {node.index: node for node in body}
        targets, checked, device_numbers, results = (
            [current.get(node.index, node) for node in nodes] for nodes in (targets, checked, device_numbers, results)
        )
        for node in (*(operand for part in parts for operand in part.operands()), *results):
            arguments.add(node)
        host = self._host()
        count = len(trace.outputs.arrays)
        function, for_kernels, positions = self._function(parts, targets, changed, checked, device_numbers)
        described, indescribable = self._fingerprint(
            body, [recorded[:count], recorded[count:], checked, device_numbers]
        )
        return LoweredProgram(
            function=function,
            for_kernels=for_kernels,
            is_rounded=self._precision == FLOAT64,
            slots=arguments.slots,
            constants=[*arguments.constants, _ALWAYS],
            host=host,
            scalars=arguments.scalars,
            outcomes=outcomes,
            numbers=[self._number(node, positions) for node in numbers],
            known=self._known,
            operations=len(body),
            folded=self._folding.count,
            fingerprint=described,
            indescribable=indescribable,
            renewal=ConstantsAnew.of(trace, self._folding, arguments),
            written={at: each.views for at, each in enumerate(changed, count) if each.views is not None},
        )

    def _changed(self) -> list[written.Changed]:
        """The arrays that are changed in place."""
        # elsewhere, what a run has made may stay on the device for the next one
        if not self._on_cpu:
            return [written.Changed(node, None) for _, node in self._trace.outputs.changed]
        return [written.changed(slot, node, self._fixed_value) for slot, node in self._trace.outputs.changed]

    def _fingerprint(self, body: Sequence[Node], results: Sequence[Sequence[Node]]) -> tuple[str | None, str]:
        """The program's fingerprint and "", or None and what of it has no description."""
        try:
            return fingerprint(body, results, self._arguments.described, self._arguments.tables), ""
        except Indescribable as error:
            return None, str(error)

    def _number(self, node: Node, positions: dict[int, Packed]) -> OutputNumber:
        if node.index in positions:
            return positions[node.index]
        if node.host and not self._folding.is_fixed(node):
            return OnHost(node.index)
        return Fixed(self._folding.value(node))

    def _outcomes(self) -> list[Outcome]:
        """Outcomes that the device checks. Outcomes on the host are guards, which the matcher checks."""
        device: list[Outcome] = []
        for outcome in self._trace.tape.outcomes:
            # of a merged trace: what it is says which paths a call may take, whether it changes or not
            if outcome.expected is None and not outcome.node.host:
                device.append(outcome)
            elif self._folding.is_fixed(outcome.node):
                if not agrees(self._folding.value(outcome.node), outcome.expected):
                    raise Unsupported("guard.unstable", "an outcome of constants differs from the recorded one")
            elif not outcome.node.host:
                device.append(outcome)
        return device

    def _needed(self, roots: Iterable[Node]) -> list[Node]:
        """The nodes that the roots are computed from on the device, arguments included, in order."""
        found: dict[int, Node] = {}
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node.index in found:
                continue
            found[node.index] = node
            if not self._arguments.includes(node):
                stack.extend(node.operands())
        return [found[index] for index in sorted(found)]

    def _host(self) -> list[Node]:
        """Nodes that Python evaluates before launch: they depend on scalars alone. Any may raise, whether it is read or
        not."""
        return [node for node in self._trace.tape.nodes if node.host and not self._folding.is_fixed(node)]

    # -- the function -------------------------------------------------------------------------------------------------

    def _optimized(self, body: Sequence[Node], results: list[Node]) -> tuple[Sequence[Node], Sequence[Part]]:
        """The operations after the passes, without and with their loops. Large tables of the loops become arguments."""
        if self._watch is not None:
            self._watch("recorded", "what NumPy computed", self._trace.tape.nodes)
            self._watch("needed", "leave out what is constant, what Python computes, and what nothing reads", body)
        indices = frozenset(node.index for node in results)
        about = About(indices, self._trace.outputs.state, self._fixed_value)
        body = pipeline.optimized(body, about, self._watch)
        parts = pipeline.with_loops(body, about, self._watch)
        check_size(parts)
        for table in (table for part in parts if not isinstance(part, Node) for table in part.tables):
            self._arguments.add_table(table)
        return body, parts

    def _function(
        self,
        parts: Sequence[Part],
        targets: list[Node],
        changed: Sequence[written.Changed],
        outcomes: list[Node],
        numbers: list[Node],
    ) -> tuple[Callable[..., Any], Callable[..., Any] | None, dict[int, Packed]]:
        packs: dict[str, list[Node]] = {**{pack: [] for pack in PACKS}, "f": list(outcomes)}
        positions = {}
        for node in numbers:
            pack = pack_of(node.dtype)
            positions[node.index] = Packed(pack, len(packs[pack]))
            packs[pack].append(node)

        count = len(self._trace.outputs.arrays)

        def for_xla(arrays: list[Any], constants: list[Any], scalars: dict[str, Any]) -> Any:
            has_host_calls = self._on_cpu and self._precision == FLOAT64
            about = traced(stored_by=constants[-1] if self._on_cpu else None, has_host_calls=has_host_calls)
            return computed(arrays, constants, scalars, about)

        def for_kernels(arrays: list[Any], constants: list[Any], scalars: dict[str, Any]) -> Any:
            about = traced(has_host_calls=True, for_kernels=True, is_exact=config.current().exact)
            return computed(arrays, constants, scalars, about)

        def computed(
            arrays: list[Any], constants: list[Any], scalars: dict[str, Any], tracing: AbstractContextManager[None]
        ) -> Any:
            values = Values(self._arguments, arrays, constants[:-1], scalars)
            with tracing:
                for part in parts:
                    values.compute(part)
            flat = [self._own(node, values.fetch(node)) for node in targets]
            arrays_out = [*flat[:count], *written.grouped(flat[count:], changed)]
            return arrays_out, {pack: values.packed(nodes, PACKS[pack]) for pack, nodes in packs.items() if nodes}

        if self._precision != FLOAT64:
            return reduced(for_xla, self._precision), None, positions
        return for_xla, for_kernels if self._on_cpu else None, positions

    def _fixed_value(self, node: Node) -> Any:
        return self._folding.value(node) if node.dtype is not None and self._folding.is_fixed(node) else None

    def _own(self, node: Node, value: Array) -> Any:
        """A result that the device was given (an input, a constant), as an array of its own: callers write to it."""
        if not self._arguments.includes(node):
            return value
        from jax import numpy as jnp

        return jnp.array(value, copy=True)
