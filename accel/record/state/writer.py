"""The writer: operations, outcomes and versions of storages as they go on the tape."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from accel.ir.fingerprint import code_number
from accel.ir.tape import Node, Outcome, Place, Storage, Tape
from accel.ir.template import form
from accel.ir.views import At, Chain, Step, StridedElements, seen_through
from accel.platform import config
from accel.platform.clocks import time
from accel.platform.reasons import source_line
from accel.record.state.inputs import MISSING, Inputs, is_writeable
from accel.record.state.on_behalf import frames_of
from accel.record.state.pinned import element_of
from accel.record.state.storages import is_in_c_order, overlaps_itself
from accel.record.state.wrapper import unwrap
from accel.rules import core, scalars
from accel.rules.columns import rounds_freely
from accel.rules.rule import Rule, Unsupported

LOOK_AT = 8192
"""Number of operations after which `Limits.worth` is asked. Guess."""

LOOK_EVERY = 64
"""Number of operations and outcomes between two looks at the clock. Guess."""

MAX_OUTCOMES = 4096
"""Maximum outcomes on the device: a path with more assumptions about arrays is hardly ever taken again. Guess."""

CHECKED_TOGETHER = range(9, 1 << 14)
"""Sizes of arrays all of whose elements are checked where one of them is an index. Fewer may be coordinates, each for
an axis of its own; more take too long. Chosen, not measured."""


class Limits(NamedTuple):
    """Bounds of one recording; beyond, its tape breaks.

    max_nodes: operations recorded. longest: operations on the tape, without those that were taken off. max_s: seconds
    of the thread's processor time. worth: whether to go on, from the nodes so far; asked at LOOK_AT of them.
    """

    max_nodes: float = math.inf
    longest: float = math.inf
    max_s: float = math.inf
    worth: Callable[[list[Node]], bool] = lambda nodes: True


NO_LIMITS = Limits()


class TapeWriter:
    """Writes one recording's tape. It raises Unsupported where it cannot go on, and knows nothing of wrappers.

    owner: the recording, as the frames of recorded code name it. start: the target's first line. on_truth: is told of
    each truth that becomes an outcome, and whether Python checks it before launch.
    """

    def __init__(
        self, owner: object, inputs: Inputs, start: Place, limits: Limits, on_truth: Callable[[bool, bool], None]
    ) -> None:
        self.tape = Tape()
        self._owner = owner
        self._inputs = inputs
        self._start = start
        self._limits, self._began = limits, time.thread_time()
        self._on_truth = on_truth
        self._looked_at = 0
        self._assumed = 0
        self._epoch = 0
        self._again = 0  # operations whose node was there already
        self._forced: dict[int, Any] = {}
        self._fresh_from = 0  # earlier nodes are not found again as equal ones (see Joins)
        self._assumed_since: set[int] = set()  # nodes that are outcomes, or were used as such, since the last join
        self._drawn: set[int] = set()  # what Python computes of random numbers
        self._is_exact = config.current().exact
        # nodes of arrays in another order of memory than C, if that matters: whether some axis goes backwards
        self._reordered: dict[int, bool] = {}
        self._within: dict[tuple[int, int], bool] = {}
        self._elements: dict[int, tuple[Storage, Chain, Node]] = {}
        self._numbered: dict[Any, Node] = {}  # value numbering: the same computation is one node
        self._codes: dict[int, tuple[CodeType, int]] = {}  # with the code, so that no other gets its id

    # -- places -------------------------------------------------------------------------------------------------------

    def frames(self) -> list[FrameType]:
        """The frames of recorded code on the stack, the innermost first."""
        return list(frames_of(self._owner))

    def where(self) -> Place:
        """The line of the user's program that is running."""
        return next(((frame.f_code.co_filename, frame.f_lineno) for frame in frames_of(self._owner)), self._start)

    def _standing(self) -> tuple[Place, int]:
        """The line of the user's program that is running, and the site: the instructions of all its frames."""
        where, site = None, 0
        for frame in frames_of(self._owner):
            where = where or (frame.f_code.co_filename, frame.f_lineno)
            site = hash((site, self.number_of(frame.f_code), frame.f_lasti))
        return where or self._start, site

    def number_of(self, code: CodeType) -> int:
        """The number of code of which a frame stands on the stack: the same in all processes (see `code_number`)."""
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = code, code_number(code)
        return known[1]

    def where_text(self) -> str:
        return source_line(*self.where())

    # -- nodes --------------------------------------------------------------------------------------------------------

    def node(
        self, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], result: object, *, host: bool = False
    ) -> Node:
        """Write one operation down. result: the real value, for its shape, dtype and type."""
        # Repeats count as well: a loop that computes the same again and again would be recorded for as long as it runs.
        limits = self._limits
        if len(self.tape.nodes) + self._again >= limits.max_nodes:
            raise Unsupported("limit.nodes", f"more than {limits.max_nodes} operations")
        if len(self.tape.nodes) >= limits.longest:
            raise Unsupported("limit.nodes", f"more than {limits.longest} operations, where other paths have fewer")
        self._look_at_time()
        # Asked once, early: a long tape whose operations do not form equal iterations takes longer to compile than it
        # can save.
        if len(self.tape.nodes) == LOOK_AT and not limits.worth(self.tape.nodes):
            raise Unsupported("limit.nodes", f"{LOOK_AT} operations, too few of them in equal iterations")
        key = (rule.name, id(rule), frozen(args), frozen(kwargs))
        # Value numbering while recording. It is sound since a write makes a new version of a storage, which is another
        # node.
        known = self._numbered.get(key)
        if known is not None and known.index >= self._fresh_from:
            self._again += 1
            self._refuse_order(known)
            return known
        shape, dtype, scalar = describe(result)
        where, site = self._standing()
        node = self.tape.add(
            rule, args, kwargs, shape=shape, dtype=dtype, scalar=scalar, host=host, where=where, site=site
        )
        self._refuse_order(node)
        self._numbered[key] = node
        if self._drawn and host and not self._drawn.isdisjoint(operand.index for operand in node.operands()):
            self._drawn.add(node.index)
        return node

    def note_order(self, node: Node, array: np.ndarray[Any, Any]) -> None:
        """Note which array of the call a node stands for: NumPy's last places depend on the order of its memory."""
        if self._is_exact and not is_in_c_order(array):
            self._reordered[node.index] = min(array.strides) < 0

    def _refuse_order(self, node: Node) -> None:
        if not self._reordered:
            return
        orders = [self._reordered[each.index] for each in node.operands() if each.index in self._reordered]
        # element by element, the order matters only where NumPy goes through memory backwards
        if orders and (any(orders) or not node.rule.locality.elementwise) and rounds_freely(node):
            raise Unsupported("compile.exact", f"{node.rule.name} of an array whose memory is not in C order")

    def _look_at_time(self) -> None:
        self._looked_at += 1
        if not self._looked_at % LOOK_EVERY and time.thread_time() - self._began > self._limits.max_s:
            raise Unsupported("limit.nodes", f"recording it took more than {self._limits.max_s:.1f} s")

    def forget(self) -> None:
        """Forget value numbers and assumptions: an equal computation is another node from now on, and assumed anew."""
        self._numbered.clear()
        self._elements.clear()  # a variable that holds an element now may hold something else in the next iteration
        self._epoch += 1
        self._forced.clear()

    def rewind(self, nodes: int, outcomes: int) -> None:
        """Cut the tape to its first `nodes` operations and `outcomes` outcomes. Call `forget` before.

        They count towards the limit on operations all the same.
        """
        gone = self.tape.outcomes[outcomes:]
        self._again += len(self.tape.nodes) - nodes
        self._assumed -= sum(map(self._is_counted, gone))
        del self.tape.nodes[nodes:], self.tape.outcomes[outcomes:]
        self._assumed_since = {index for index in self._assumed_since if index < nodes}
        self._drawn = {index for index in self._drawn if index < nodes}
        self._reordered = {index: back for index, back in self._reordered.items() if index < nodes}
        self._within = {key: whole for key, whole in self._within.items() if key[0] < nodes}

    @staticmethod
    def _is_counted(outcome: Outcome) -> bool:
        """Whether an outcome counts towards MAX_OUTCOMES.

        Elements of inputs do not: many of one array are compared as a whole instead (accel.record.state.pinned).
        """
        return not outcome.node.host and element_of(outcome.node) is None

    def input_node(self, slot: int, value: object) -> Node:
        """The node of an input slot's value."""
        host = not isinstance(value, np.ndarray)
        return self.node(core.INPUT, (slot,), {}, value, host=host)

    def drawn_node(self, slot: int, value: object) -> Node:
        """The node of an input that a draw fills."""
        node = self.input_node(slot, value)
        if node.host:
            self._drawn.add(node.index)
        return node

    def outcome(self, node: Node, expected: object) -> None:
        """Let replays check that `node` is `expected`, as it is now."""
        if self.forced(node) is not MISSING:
            return
        if node.index in self._drawn and isinstance(expected, float):
            raise Unsupported("effect.random", "a random number is needed as a plain number, and does not recur")
        if not node.host and isinstance(expected, int) and abs(expected) > scalars.LARGEST_EXACT:
            raise Unsupported("value.forced", f"an integer as large as {expected} is needed as a plain number")
        self._forced[node.index] = expected
        self._assumed_since.add(node.index)
        # A constant's value cannot differ in another call.
        if not node.constant:
            self._look_at_time()
            outcome = Outcome(node, expected, self.where())
            self.tape.outcomes.append(outcome)
            self._assumed += self._is_counted(outcome)
            if self._assumed > MAX_OUTCOMES:
                raise Unsupported("limit.nodes", f"more than {MAX_OUTCOMES} branches that depend on arrays' values")
            if type(expected) is bool:
                self._on_truth(expected, node.host)

    def counter(self, value: int | float) -> Node:
        """A plain number as a value that the device computes from now on: a loop may count with it."""
        node = self.node(core.COUNTER, (value,), {}, value)
        node.constant = False  # in another call the loop may have come further
        return node

    def on_device(self, node: Node, value: object) -> Node:
        """A number that Python computes as one that the device computes from now on."""
        if type(value) is int:
            self.assume(scalars.EXACT, (node,), (value,))
        return self.node(core.SCALAR, (node,), {}, value)

    def forced(self, node: Node) -> Any:
        """The value that an outcome fixed `node` to, or MISSING."""
        value = self._forced.get(node.index, MISSING)
        if value is not MISSING:
            self._assumed_since.add(node.index)
        return value

    def is_assumed(self, node: Node) -> bool:
        """Whether the value of `node` has been assumed, or used as such, since the last join."""
        return node.index in self._assumed_since

    def number_afresh(self) -> None:
        """From here on, what is computed again is another node: what stands for what at a join must be unambiguous."""
        self._fresh_from = len(self.tape.nodes)
        self._assumed_since.clear()

    def assume_in_bounds(self, storage: Storage, chain: Chain, size: int) -> None:
        """Let replays check that an index array stays within an axis of `size`.

        At once for all of the array that it is a part of, where that does: a program takes its parts one by one.
        """
        key = storage.version.index, size
        if key not in self._within:
            is_index = storage.base.dtype.kind in "iu"
            # The whole array may hold what is out of bounds in a part that nobody uses as an index: then each part is
            # checked.
            self._within[key] = not chain or (is_index and bool(core.in_bounds(storage.base, size)))
        whole = self._within[key]
        self.assume(core.IN_BOUNDS, (storage.version if whole else self.read_view(storage, chain), size))

    def note_element(self, node: Node, storage: Storage, chain: Chain) -> None:
        """Note that a number is an element of an array that came from outside and is not written to yet."""
        is_input = storage.origin is not None and not storage.written
        if is_input and storage.base.dtype.kind in "iu" and storage.base.size in CHECKED_TOGETHER:
            self._elements[node.index] = storage, chain, storage.version

    def element(self, node: Node) -> tuple[Storage, Chain] | None:
        """The array of integers, as it is now, that a number is an element of, and where in it that is."""
        while node.rule is core.CONVERT and node.args[1] is int and node.args[0].dtype.kind in "iu":
            node = node.args[0]
        storage, chain, version = self._elements.get(node.index, (None, (), None))
        return None if storage is None or storage.version is not version else (storage, chain)

    def assume_distinct(self, rule: Rule, args: tuple[Any, ...], distinct: bool) -> None:
        """Let replays check that no two indices name the same place. Unsupported where some do now."""
        self.outcome(self.node(rule, args, {}, True), distinct)
        if not distinct:
            raise Unsupported("rule.parameter", "assignment through indices that repeat")

    def assume(
        self, rule: Rule, args: tuple[Any, ...], values: tuple[Any, ...] | None = None, *, host: bool = False
    ) -> None:
        """Let replays check that a truth about values holds, as it does now.

        values: the plain arguments, where it might not hold; then it is Unsupported.
        """
        node = self.node(rule, args, {}, True, host=host)
        # The check is ours; its overflow or division by zero must not warn in the program's name.
        with np.errstate(all="ignore"):
            holds = values is None or bool(np.all(rule.function(*unwrap(values))))
        self.outcome(node, holds)  # other calls may well be able to go on where this one cannot
        if not holds:
            raise Unsupported("rule.parameter", f"a value for which Python and JAX differ ({rule.name})")

    # -- storages -----------------------------------------------------------------------------------------------------

    def read_view(self, storage: Storage, chain: Chain) -> Node:
        """The node of a view's present value."""
        if not chain:
            return storage.version
        known = storage.cached((self._epoch, chain))
        if known is None or known.index < self._fresh_from:
            inner = self.read_view(storage, chain[:-1])
            view = seen_through(storage.base, chain)
            known = self._read(inner, chain[-1], view)
            if not isinstance(view, np.ndarray):
                known.scalar = None
            storage.remember((self._epoch, chain), known)
        return known

    def _read(self, base: Node, step: Step, view: object) -> Node:
        if isinstance(step, At):
            return self.node(core.READ_AT, (base, step.extent, step.starts), {}, view)
        return self.node(core.READ, (base, step), {}, view)

    def write_view(self, storage: Storage, chain: Chain, value: Node) -> None:
        """A new version of the storage with `value`, cast to its dtype and broadcast, stored through the view."""
        if storage.origin is not None and not storage.written:
            # NumPy raises for a read-only array, and a replay must not write where it would.
            self._inputs.narrow(storage.origin.args[0], is_writeable)
        for depth, step in enumerate(chain, 1):
            if isinstance(step, StridedElements) and overlaps_itself(seen_through(storage.base, chain[:depth])):
                raise Unsupported("alias.overlap", "an array that is written holds elements that share memory")
        value = self._fitted(value, seen_through(storage.base, chain))
        # From the innermost view outwards: a write through `a[1:][::2]` is a write into `a[1:]`, and that one into `a`.
        for depth in range(len(chain) - 1, -1, -1):
            inner, step = self.read_view(storage, chain[:depth]), chain[depth]
            shape, dtype = inner.shape, inner.dtype
            where, site = self._standing()
            moves = isinstance(step, At)
            value = self.tape.add(
                core.WRITE_AT if moves else core.WRITE,
                (inner, step.extent, value, step.starts) if isinstance(step, At) else (inner, step, value),
                {},
                shape=shape,
                dtype=dtype,
                scalar=None,
                host=False,
                where=where,
                site=site,
            )
        storage.advance(value)

    def _fitted(self, value: Node, view: Any) -> Node:
        """`value` with the dtype and shape of the view that it is stored in."""
        if value.dtype != view.dtype:
            # Only its shape and dtype are looked at, so that no array is computed or allocated.
            sample = np.broadcast_to(np.zeros((), view.dtype), value.shape)
            value = self.node(core.CAST, (value, view.dtype), {}, sample)
        if value.shape != view.shape:
            sample = np.broadcast_to(np.zeros((), view.dtype), view.shape)
            value = self.node(core.BROADCAST, (value, view.shape), {}, sample)
        return value


def frozen(template: object) -> Any:
    """A hashable key that tells templates apart as their values do (1, 1.0 and True; 0.0 and -0.0)."""
    return form(template, _index, Node)


def _index(node: Node) -> int:
    return node.index


def describe(value: object) -> tuple[tuple[int, ...], np.dtype[Any] | None, type | None]:
    """Shape, dtype and scalar type of a plain value; dtype None for what is neither array nor number."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, None
    if isinstance(value, np.generic):
        return (), value.dtype, type(value)
    # After np.generic, since np.float64 is a float, and np.complex128 a complex.
    if isinstance(value, (bool, int, float, complex)):
        return (), _python_dtype(value), type(value)
    return (), None, type(value)


def _python_dtype(value: object) -> np.dtype[Any] | None:
    try:
        return np.dtype(bool) if isinstance(value, bool) else np.asarray(value).dtype
    except OverflowError:
        return None
