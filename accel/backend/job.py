"""Jobs: a trace to be compiled, as plain data.

A job is sent to the worker (see accel.backend.underway.worker). Its key names the result on disk, so that a later
process finds the program without lowering or compiling anything. The result is a `Product`: all that a replay needs of
a program, with tape indices in place of nodes.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from accel.compiler.lower import ConstantsAnew, Known, Lowerable, LoweredProgram
from accel.compiler.lower.program import refilled, with_values
from accel.ir.fingerprint import Describer, Indescribable, digest
from accel.ir.tape import Node, Outcome, Tape
from accel.ir.template import fill
from accel.platform import config, interrupts, logs, tuning
from accel.record.run.outputs import Outputs
from accel.record.state.draw import Draw
from accel.rules.rule import Rule

if TYPE_CHECKING:
    from accel.backend.executable import Executable


class KeyedTrace(Lowerable, Protocol):
    """A trace of one or several recorded paths. key: its key on disk, once it is known."""

    key: str | None


@dataclass(frozen=True, slots=True)
class Ref:
    """Stands for a node among another node's arguments. index: its index on the tape."""

    index: int

    def __reduce__(self) -> tuple[Any, ...]:
        # a dataclass's own way looks its fields up for each object: most of the time that a tape takes to load
        return Ref, (self.index,)


@dataclass(slots=True)
class Job:
    """A trace to compile, and the arguments to compile it for.

    nodes: the arguments of each `Node`, with `Ref`s in place of nodes. outcomes: index of the node, expected value, and
    line. outputs: those that are computed, with indices in place of nodes. pinned, known: as lowering takes them.
    draws: with `Ref`s in place of nodes. forms: shape and dtype of each slot's array, None for other slots. settings:
    those that the result depends on. trial: how the program is tried where it is compiled, if it is.
    """

    nodes: list[tuple[Any, ...]]
    outcomes: list[tuple[int, Any, Any]]
    outputs: Outputs
    pinned: dict[int, Any]
    draws: list[Draw]
    known: Known
    forms: list[tuple[tuple[int, ...], np.dtype[Any]] | None]
    settings: dict[str, Any]
    trial: Trial | None = None

    def samples(self) -> list[Any]:
        """Arrays of the slots' shapes and dtypes that take no memory."""
        return [None if form is None else np.broadcast_to(np.zeros((), form[1]), form[0]) for form in self.forms]

    def trace(self) -> JobTrace:
        """Rebuild the part of the trace that is lowered."""
        nodes = nodes_of(self.nodes)
        outcomes = [Outcome(nodes[index], expected, where) for index, expected, where in self.outcomes]
        outputs = Outputs(**with_values(self.outputs, nodes.__getitem__))
        draws = [refilled(draw, lambda ref: nodes[ref.index], Ref) for draw in self.draws]
        return JobTrace(Tape(nodes, outcomes), outputs, self.pinned, draws)


def samples_of(trace: Lowerable) -> list[Any]:
    """A value for each slot up to the last array: for an array one of its shape and dtype without memory, else None."""
    found = {
        node.args[0]: np.broadcast_to(np.zeros((), node.dtype), node.shape)
        for node in trace.tape.nodes
        if node.is_input and not node.host
    }
    return [found.get(slot) for slot in range(max(found, default=-1) + 1)]


@dataclass(slots=True)
class JobTrace:
    """The part of a trace that is lowered, as the worker has it."""

    tape: Tape
    outputs: Outputs
    pinned: dict[int, Any]
    draws: list[Draw]


class Trial(Protocol):
    """A first run of a program; see accel.dispatch.comparing.first_run. It can be pickled."""

    def problem(
        self, executable: Executable, trace: JobTrace, limited: Callable[[float], AbstractContextManager[None]]
    ) -> str:
        """Return why the program must not be used, or "". limited: ends this process after a number of seconds."""


def describe(trace: Lowerable, known: Known, samples: Sequence[Any], threads: int | None) -> Job:
    """The job of compiling a trace for the CPU. Arguments as of `compile_trace`; threads: of XLA, None for all."""
    return Job(
        nodes=[row_of(node) for node in trace.tape.nodes],
        outcomes=[(outcome.node.index, outcome.expected, outcome.where) for outcome in trace.tape.outcomes],
        outputs=Outputs(**with_values(trace.outputs, lambda node: node.index)),
        pinned=dict(trace.pinned),
        draws=[refilled(draw, lambda node: Ref(node.index)) for draw in trace.draws],
        known=Known(dict(known.scalars), dict(known.arrays)),
        forms=[(each.shape, each.dtype) if isinstance(each, np.ndarray) else None for each in samples],
        settings={
            "platform": "cpu",
            "threads": threads,
            "precision": config.current().precision,
            "kernels": config.current().kernels,
            "exact": config.current().exact,
        },
    )


_ABOUT = ("shape", "dtype", "scalar", "host", "where", "site")


def row_of(node: Node) -> tuple[Any, ...]:
    """The arguments of a node, with `Ref`s in place of nodes."""
    args, kwargs = fill((node.args, node.kwargs), lambda operand: Ref(operand.index), Node)
    return node.rule, args, kwargs, {name: getattr(node, name) for name in _ABOUT}


def nodes_of(rows: Iterable[tuple[Any, ...]]) -> list[Node]:
    """The nodes of a tape, from what `row_of` gives of each."""
    nodes: list[Node] = []
    for index, (rule, args, kwargs, about) in enumerate(rows):
        args, kwargs = fill((args, kwargs), lambda ref: nodes[ref.index], Ref)
        nodes.append(Node(index, rule, args, kwargs, **about))
    return nodes


def path_key_of(job: Job) -> str:
    """The key on disk of a job's path: the same whichever inputs are folded. Raises Indescribable."""
    describer = Describer(_no_argument)
    rules: dict[Rule, bytes] = {}
    sites: dict[int, int] = {}  # in the order of their first node: the numbers themselves are this process's own
    rows = []
    for rule, args, kwargs, about in job.nodes:
        if rule not in rules:
            rules[rule] = _described_rule(rule)
        plain = about["shape"], str(about["dtype"]), about["host"], sites.setdefault(about["site"], len(sites))
        rows.append((rules[rule], describer((args, kwargs, about["scalar"])), plain))
    rest = [
        [(index, describer(expected)) for index, expected, _ in job.outcomes],
        with_values(job.outputs, int),
        _contents(job.pinned, describer),
        [describer(draw) for draw in job.draws],
        [form and (form[0], str(form[1])) for form in job.forms],
    ]
    return digest(rows, rest)


@tuning.rare_garbage_collection()
def key_of_path(trace: KeyedTrace) -> str | None:
    """The key on disk of a recorded path; None where no other process could find it."""
    if trace.key is None:
        try:
            trace.key = path_key_of(describe(trace, Known(), samples_of(trace), None))
        except Indescribable as error:
            logs.LOGGER.info("a program cannot be found again on disk: %s", error)
    return trace.key


def key_of(path: str, job: Job) -> str:
    """The key on disk of a job's product, the same in every process. path: its path's key. Raises Indescribable."""
    describer = Describer(_no_argument)
    known = [_contents(each, describer) for each in (job.known.scalars, job.known.arrays)]
    return digest(path, known, sorted(job.settings.items()))


def _contents(values: Mapping[int, Any], describer: Describer) -> list[tuple[int, Any]]:
    return sorted((slot, describer(value)) for slot, value in values.items())


def _described_rule(rule: Rule) -> bytes:
    """A rule's name as bytes. Its code is not part of it: the cache folder's name depends on all of accel's code."""
    try:
        return pickle.dumps(rule, protocol=4)
    except Exception as error:
        interrupts.pass_on(error)
        raise Indescribable(f"{rule}: {error}") from error


def _no_argument(node: Node) -> Any:
    raise Indescribable(node)


# -- the product -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Product:
    """A compiled program as data.

    program: the fields of `LoweredProgram` without its function, with indices in place of nodes and outcomes.
    key: of the executable in the disk cache. If it is None, `unkept` says why, and payload holds the executable itself,
    if that can be serialized. seconds: the time of lowering and compiling. needs_jax: whether a part of it is XLA's.
    """

    program: dict[str, Any]
    key: str | None
    unkept: str
    payload: bytes | None
    seconds: float
    needs_jax: bool


_AS_THEY_ARE = ("slots", "constants", "numbers", "operations", "folded", "fingerprint", "indescribable", "written")
"""Fields of a program that hold neither nodes nor outcomes."""


def packed(program: LoweredProgram, trace: Any) -> dict[str, Any]:
    """A program's fields as data."""
    positions = {id(outcome): index for index, outcome in enumerate(trace.tape.outcomes)}
    return {
        "host": [node.index for node in program.host],
        "scalars": {pack: [node.index for node in nodes] for pack, nodes in program.scalars.items()},
        "outcomes": [positions[id(outcome)] for outcome in program.outcomes],
        "renewal": program.renewal.packed(),
        **{name: getattr(program, name) for name in _AS_THEY_ARE},
    }


def unpacked(fields: dict[str, Any], trace: Lowerable, known: Known) -> LoweredProgram:
    """Rebuild the program, on this process's own trace. It has no function, because it is compiled already."""
    nodes, outcomes = trace.tape.nodes, trace.tape.outcomes
    return LoweredProgram(
        function=None,
        for_kernels=None,
        is_rounded=False,  # nor can it be rounded again
        known=known,
        host=[nodes[index] for index in fields["host"]],
        scalars={pack: [nodes[index] for index in indices] for pack, indices in fields["scalars"].items()},
        outcomes=[outcomes[index] for index in fields["outcomes"]],
        # the last one is no value of the trace's, see `LoweredProgram`
        renewal=ConstantsAnew.unpacked(fields["renewal"], trace, fields["constants"][:-1]),
        **{name: fields[name] for name in _AS_THEY_ARE},
    )
