"""Replay: fetch the inputs, check the guards, run the program, check the outcomes, and only then commit."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from accel.backend.compile import Executable, shared
from accel.ir.tape import Node, fill, needed_by, nodes_in
from accel.ir.views import seen_through
from accel.lower import PACKS, Program, agrees
from accel.process import interrupts
from accel.record import Trace
from accel.record.inputs import MISSING, Content, same_scalar
from accel.record.outputs import FromSlot, Leaf, Literal, Made, Number, Shared


@dataclass(slots=True)
class GuardFailure:
    """Why a call does not match a path: a guard, in words."""

    why: str


class HostTape:
    """The nodes that Python evaluates before the program is launched, as one generated function."""

    def __init__(self, nodes: list[Node]) -> None:
        self._names: dict[int, str] = {}
        self._globals: dict[str, Any] = {}
        lines = ["def evaluate(values):"]
        for node in nodes:
            lines.append(f"    v{node.index} = {self._expression(node)}")
        results = ", ".join(f"{node.index}: v{node.index}" for node in nodes)
        lines.append(f"    return {{{results}}}")
        # The text holds only names and numbers that accel made up. It is compiled first: if Ctrl-C interrupts text that
        # is executed, Python ends the process as interrupted, even if the program handles that.
        exec(compile("\n".join(lines), "<accel host tape>", "exec"), self._globals)
        self.evaluate: Callable[[list[Any]], dict[int, Any]] = self._globals["evaluate"]

    def _expression(self, node: Node) -> str:
        if node.is_input:
            return f"values[{node.args[0]}]"
        function = self._name(node.rule.function)
        parts = [self._argument(part) for part in node.args]
        parts += [f"{name}={self._argument(part)}" for name, part in node.kwargs.items()]
        return f"{function}({', '.join(parts)})"

    def _argument(self, part: Any) -> str:
        if isinstance(part, Node):
            return f"v{part.index}"
        if isinstance(part, tuple):
            return "(" + "".join(self._argument(inner) + ", " for inner in part) + ")"
        if isinstance(part, list):
            return "[" + ", ".join(self._argument(inner) for inner in part) + "]"
        assert not nodes_in(part), "nodes elsewhere than in tuples and lists"
        return self._name(part)

    def _name(self, value: Any) -> str:
        name = f"c{len(self._globals)}"
        self._globals[name] = value
        return name


class Guards:
    """Guards that concern several inputs: aliases, identities, and overlapping memory.

    Each slot's own guards are in accel.record.inputs.
    """

    def __init__(self, trace: Trace) -> None:
        self._same = [*trace.aliases, *trace.same]
        self._changed = [slot for slot, _ in trace.outputs.changed]
        self._others = trace.array_slots
        objects = set(trace.objects) if trace.outputs.writes or trace.identity else set()
        if trace.identity:
            objects |= set(trace.array_slots)
        self._objects = sorted(objects) if len(objects) > 1 else []

    def hold(self, values: list[Any]) -> bool:
        """Whether the slots' values satisfy all of them."""
        for left, right in self._same:
            if values[left] is not values[right]:
                return False
        if self._objects and len({id(values[slot]) for slot in self._objects}) != len(self._objects):
            return False
        for slot in self._changed:
            written = values[slot]
            for other in self._others:
                if other != slot and np.may_share_memory(written, values[other]):
                    return False
        return True


class Matcher:
    """Decides whether a call matches a trace: slots, guards, host outcomes. It does not need a compiled program."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._guards = Guards(trace)
        outcomes = [outcome for outcome in trace.tape.outcomes if outcome.node.host]
        self._outcomes = [(outcome.node.index, outcome.expected, outcome.where) for outcome in outcomes]
        self._host = HostTape(needed_by([outcome.node for outcome in outcomes]))

    def match(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any] | GuardFailure:
        """The slots' values if the call matches, else the guard that failed."""
        values, failed = self.trace.inputs.fetch(args, kwargs)
        if failed is not None:
            return GuardFailure(f"{failed.name} differs from the recording")
        if not self._guards.hold(values):
            return GuardFailure("which arguments are identical or share memory differs from the recording")
        if self._outcomes:
            try:
                host_values = self._host.evaluate(values)
            except Exception as error:  # not answered here: the program's own code raises it when it runs
                interrupts.pass_on(error)
                return GuardFailure(f"{type(error).__name__} while evaluating scalars")
            for index, expected, where in self._outcomes:
                if not agrees(host_values[index], expected):
                    return GuardFailure(f"a value at line {where[1]} was {host_values[index]!r}, not {expected!r}")
        return values


class Constants:
    """Checks that inputs which were folded as constants still have the same values."""

    def __init__(self, program: Program) -> None:
        self._scalars = list(program.known.scalars.items())
        self._arrays = [(slot, Content(array)) for slot, array in program.known.arrays.items()]

    def changed_scalars(self, values: list[Any]) -> tuple[int, ...]:
        """Slots of scalars that differ from the folded value in type or bits."""
        return tuple([slot for slot, known in self._scalars if not same_scalar(values[slot], known)])

    def changed_arrays(self, values: list[Any]) -> tuple[int, ...]:
        """The same for arrays. All of their memory is read."""
        return tuple([slot for slot, known in self._arrays if not known.is_same(values[slot])])


@dataclass(slots=True)
class Attempt:
    """One run of a program that is not committed yet.

    values: of the slots. made: new arrays. changed: new contents of the arrays that the call changes in place. numbers:
    the trace's numbers, in order. shared: objects that occur several times in the outputs, as far as they are built.
    """

    values: list[Any]
    made: list[Any]
    changed: list[Any]
    numbers: list[Any]
    shared: dict[Shared, Any] = field(default_factory=dict)


@dataclass(slots=True)
class SideExit:
    """A run whose outcomes differ from those that the path assumed: its call takes another path.

    place: index of the first outcome that differs. outcomes: the values of all of them in this run.
    """

    place: int
    outcomes: list[Any]


@dataclass(slots=True)
class StaleConstants:
    """A run that the program is not valid for: inputs in these slots were folded as constants, and have changed."""

    slots: tuple[int, ...]


class PendingCall(Protocol):
    """A call that waits for its result. done: the result is final and all effects have been made."""

    result: Any
    done: bool


class HostError(Exception):
    """Computing the program's scalars from this call's numbers raised, or gave an integer of more than 64 bits."""


class Variant:
    """A compiled program, with the checks that a run needs and the outputs that it commits."""

    def __init__(self, trace: Trace, executable: Executable) -> None:
        self.trace = trace
        self.executable = executable
        program = executable.program
        self._program = program
        self._constants = Constants(program)
        host = needed_by(program.host)  # with the fixed nodes that they need
        self._host = HostTape(host)
        self._read = sorted({node.args[0] for node in host if node.is_input})
        self._prepared: tuple[list[Any], dict[int, Any], dict[str, Any]] | None = None
        self._expected = [outcome.expected for outcome in program.outcomes]
        self._vector = np.array([float(value) for value in self._expected])
        self._made = [(node.shape, np.dtype(node.dtype).str) for node in trace.outputs.arrays]

    def run(self, values: list[Any]) -> Attempt | SideExit | StaleConstants:
        """Run the program on the slots' values. Raises HostError.

        Folded arrays are compared while the device computes, which costs no time of its own: the program does not read
        them, and its results are discarded if they have changed.
        """
        program = self._program
        changed = self._constants.changed_scalars(values)
        if changed:
            return StaleConstants(changed)
        host, scalars = self._prepare(values)
        made, packs = self.executable([values[slot] for slot in program.slots], scalars)
        changed = self._constants.changed_arrays(values)
        if changed:
            _wait_for([*made, *packs.values()])  # until then it reads the caller's arrays
            return StaleConstants(changed)
        packed = {pack: np.asarray(vector) for pack, vector in packs.items()}
        if len(self._expected):
            outcomes = packed["f"][: len(self._expected)]
            differs = outcomes != self._vector
            if differs.any():
                _wait_for(made)
                return SideExit(int(differs.argmax()), outcomes.tolist())
        _wait_for(made)
        count = len(self._made)
        return Attempt(
            values,
            self._own(made[:count]),
            [np.asarray(array) for array in made[count:]],
            [self._number(place, packed, host) for place in program.numbers],
        )

    def _prepare(self, values: list[Any]) -> tuple[dict[int, Any], dict[str, Any]]:
        """The values of the host nodes, and the same packed by dtype for the program. Raises HostError.

        Those of the last run are reused if it read the same objects.
        """
        read = [values[slot] for slot in self._read]
        if self._prepared is not None and all(map(operator.is_, read, self._prepared[0])):
            return self._prepared[1:]
        try:
            host = self._host.evaluate(values) if self._program.host else {}
            scalars = {
                pack: np.array([host[node.index] for node in nodes], PACKS[pack])
                for pack, nodes in self._program.scalars.items()
                if nodes
            }
        except Exception as error:
            interrupts.pass_on(error)
            raise HostError(f"{type(error).__name__}: {error}") from error
        self._prepared = read, host, scalars
        return host, scalars

    def _own(self, made: list[Any]) -> list[Any]:
        """The new arrays as ndarrays that the caller may write to."""
        if not self.executable.on_cpu:
            return [np.array(array) for array in made]
        return [shared(array, *form) for array, form in zip(made, self._made, strict=True)]

    def _number(self, place: Any, packed: Mapping[str, Any], host: Mapping[int, Any]) -> Any:
        kind, where = place
        if kind == "host":
            return host[where]
        return where if kind == "fixed" else packed[kind][where]

    # -- outputs ------------------------------------------------------------------------------------------------------

    def commit(self, attempt: Attempt, call: PendingCall | None = None) -> Any:
        """Store the attempt's outputs in the caller's arrays and objects, and return the call's result.

        call: marked as done as soon as everything is stored. All values are built before the first is stored. If an
        interrupt arrives while storing, everything is stored again before it is raised, so that no call is left half
        done.
        """
        outputs, values = self.trace.outputs, attempt.values
        copies = [(values[slot], array) for (slot, _), array in zip(outputs.changed, attempt.changed, strict=True)]
        writes = [(values[write.owner], write, _build(attempt, write.value)) for write in outputs.writes]
        result = _build(attempt, outputs.result)
        try:
            _store(copies, writes)
        except BaseException:
            with interrupts.Deferral():
                _store(copies, writes)  # an error that was not an interrupt occurs again here
            raise
        if call is not None:
            call.result, call.done = result, True
        return result


def _wait_for(results: list[Any]) -> None:
    """Wait until the program has written its results. Before that, it may still read the caller's arrays."""
    for array in results:
        array.block_until_ready()


def _build(attempt: Attempt, template: Any) -> Any:
    """Fill the leaves of a result, or of a value to be stored, from the attempt."""
    return fill(template, lambda leaf: _build_leaf(attempt, leaf), Leaf)


def _build_leaf(attempt: Attempt, leaf: Any) -> Any:
    kind = type(leaf)
    if kind is Made:
        return seen_through(attempt.made[leaf.index], leaf.chain)
    if kind is FromSlot:
        return seen_through(attempt.values[leaf.slot], leaf.chain)
    if kind is Number:
        return as_scalar(attempt.numbers[leaf.index], leaf.kind)
    if kind is Shared:
        if leaf not in attempt.shared:
            attempt.shared[leaf] = _build(attempt, leaf.template)
        return attempt.shared[leaf]
    assert kind is Literal
    return leaf.value


def as_scalar(value: Any, kind: type) -> Any:
    """The number, converted to the type that NumPy or Python gave it in the recording."""
    return value if type(value) is kind else kind(value)


def _store(copies: Any, writes: Any) -> None:
    for target, array in copies:
        np.copyto(target, array)
    for owner, write, value in writes:
        if value is MISSING:
            try:
                object.__delattr__(owner, write.name)
            except AttributeError:  # the call itself created it; or it was deleted before an interrupt
                pass
        elif write.is_item:
            owner[write.name] = value
        else:
            object.__setattr__(owner, write.name, value)  # the class's own __setattr__ may do more, or refuse
