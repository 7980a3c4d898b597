"""A recording: one NumPy call on tape, its inputs, and the way back if something goes wrong.

Order matters everywhere: an intercepted operation first runs the real function on plain values and returns, or
raises, exactly that. Only then is it written to the tape, inside its own `try`; that part can only break the tape.
Once broken, wrappers are passive: they compute on plain values and give plain values.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, FunctionType, GeneratorType
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from accel.ir.tape import Node, Outcome, Place, Storage, Tape, frozen_static, nodes_in
from accel.ir.views import Chain, is_window, seen_through
from accel.process import interrupts
from accel.reasons import Refusal, source_line
from accel.record.decided import element_of
from accel.record.inputs import (
    CALL_SHAPE,
    MISSING,
    Check,
    Fetch,
    Inputs,
    has_code,
    is_equal,
    is_writeable,
    of_constant,
    satisfies,
)
from accel.rules import core, scalars
from accel.rules.rule import Rule, Unsupported

LOOK_AT = 8192
"""Operations after which a recording that cannot lead to a program is given up."""

NEEDED_AS = "a value computed from an array is needed as {}"
"""Why a recording ends where Python takes a value."""

MAX_OUTCOMES = 4096
"""Outcomes on the device: a path that assumes so much of its arrays' values is hardly ever taken again."""

RECORDABLE_KINDS = frozenset("biufc")

_EMPTY: tuple[Any, ...] = ((), [], {}, set())
ITERATORS = frozenset({map, zip, filter, enumerate, reversed, functools.partial, *(type(iter(e)) for e in _EMPTY)})
"""Types whose objects may hold recorded values where nothing can take them out."""


Entering = Callable[["Recording", Any, int], tuple[Check | None, Any]]


class _Current(threading.local):
    recording: Recording | None = None


CURRENT = _Current()


def current() -> Recording | None:
    """This thread's recording, if one is under way."""
    return CURRENT.recording


class Unwound(BaseException):
    """Leaves the recorded code where the tape breaks: the call is undone and run plainly. Never seen by the program."""


class Wrapper:
    """Base of everything that stands for a plain value while recording."""

    __slots__ = ("__weakref__", "_plain_", "_recording_")

    _plain_: Any
    _recording_: Recording

    def as_operand(self) -> Any:
        """What a NumPy function is given in its place; a guard holds it. Raises Unsupported where none does."""
        return self._plain_


class Recording:
    """The state of one recording.

    package, module: root package whose functions are followed, and the target's own module. start: the target's
    first line. max_nodes: the tape breaks beyond. refusal: why the tape is broken, or None. touched: something
    outside was changed in a way that cannot be undone. raised: an exception passed through recorded code. leaked:
    something that holds recorded values, and that cannot be made plain, left the recorded code. entered: gives the
    guard and the recorded form of a value that comes in through a slot. watcher: told of the first exception, of the
    break and of the end, while everything is still there (accel.explain). worth: whether it makes sense to go on, from
    the nodes so far; asked at LOOK_AT of them.
    """

    def __init__(
        self,
        package: str,
        module: str,
        max_nodes: int,
        start: Place,
        entered: Entering,
        worth: Callable[[list[Node]], bool] = lambda nodes: True,
    ) -> None:
        self._worth = worth
        self._assumed = 0
        self._again = 0  # operations whose node was there already
        self._entered = entered
        self.start = start
        self.package = package
        self.module = module
        self.max_nodes = max_nodes
        self.tape = Tape()
        self.inputs = Inputs()
        self.refusal: Refusal | None = None
        self.closed = False
        self.touched = False
        self.leaked = False
        self.on_break: Callable[[], None] | None = None
        self.watcher: Callable[[], None] | None = None
        self.compares_identity = False
        self.raised: tuple[str, Place] | None = None
        self.inlined: set[Any] = set()
        self.values: dict[int, Any] = {}  # id of a plain object -> its one wrapper
        self.arrays: WeakValueDictionary[int, Any] = WeakValueDictionary()  # the same for arrays
        self.storages: list[Storage] = []  # those of inputs
        self.attributes: dict[tuple[int, str], AttributeState] = {}
        self.entered: dict[int, tuple[Any, Any]] = {}  # slot -> plain value and its recorded form
        self.aliases: list[tuple[int, int]] = []  # slots that hold the same array, as now
        self.overlapping: set[tuple[int, int]] = set()  # slots of arrays that share memory
        self.same: list[tuple[int, int]] = []  # slots that lead to the same object
        self.tuples: dict[int, EnteredTuple] = {}  # by id of its recorded form
        self.containers: list[Any] = []  # lists, dicts and sets that the program stored, wrappers in them
        self.stand_ins: dict[int, tuple[Any, Any]] = {}  # id of a function, module, class ... -> it and its stand-in
        self.changed: dict[int, Any] = {}  # containers of the program's that are journalled, by id
        self.absent: dict[int, set[str]] = {}  # slot of an object -> names that it must not have of its own
        self.namespaces: dict[int, Any] = {}
        self.functions: dict[Any, Any] = {}
        self.builtins: dict[str, Any] = {}
        self._alive: list[Any] = []
        self._foreseen: list[Exception] = []
        self._born: list[weakref.ref[Wrapper]] = []
        self.journal: list[Callable[[], None]] = []  # what puts back all that the recorded call wrote, the last first
        self._rebuilt: dict[int, tuple[Any, Any]] = {}  # id of a tuple with wrappers -> it and the plain one
        self._forced: dict[int, Any] = {}
        self._within: dict[tuple[int, int], bool] = {}
        self._numbered: dict[Any, Node] = {}  # value numbering: the same computation is one node

    # -- life ---------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Recording:
        self._outer, CURRENT.recording = CURRENT.recording, self
        return self

    def __exit__(self, *exc: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Be this thread's recording no longer."""
        if CURRENT.recording is self:
            CURRENT.recording = self._outer

    def born(self, wrapper: Wrapper) -> None:
        """Know of a wrapper without holding on to it."""
        self._born.append(weakref.ref(wrapper))

    def survivors(self) -> list[Any]:
        """The wrappers that something outside holds on to, once the recording itself has let go of all."""
        self._let_go()
        found = self._now_alive()
        if found:
            del found
            gc.collect()  # a nested function that calls itself is freed no sooner
            found = self._now_alive()
        return found

    def _let_go(self) -> None:
        self.closed = True
        for held in (
            self.values,
            self.attributes,
            self.entered,
            self.tuples,
            self.namespaces,
            self.functions,
            self.stand_ins,
            self._rebuilt,
        ):
            held.clear()
        for listed in (self.storages, self._alive, self._foreseen):
            listed.clear()

    def _now_alive(self) -> list[Any]:
        return [wrapper for wrapper in (reference() for reference in self._born) if wrapper is not None]

    def close(self) -> None:
        """End the recording: what of it outlives it is passive from now on, and holds on to nothing."""
        self._let_go()
        self.journal.clear()
        self._born.clear()

    @property
    def active(self) -> bool:
        return self.refusal is None and not self.closed

    def break_(self, reason: str, detail: str = "", *, touched: bool = False) -> None:
        """Break the tape, for good. touched: what comes next has effects that cannot be undone.

        May raise Unwound: nothing that cannot be undone has happened yet.
        """
        if self.refusal is None:
            self.refuse(Refusal(reason, self.where_text(), detail))
        elif self.refusal.detail == NEEDED_AS.format("text") and reason.startswith("effect."):
            self.refusal = Refusal(reason, self.where_text(), detail)  # what the text was for
        self.touched |= touched

    def meddled(self, detail: str) -> None:
        """Break the tape: something that it did not see has had an effect, which cannot be undone."""
        self.touched = True
        self.break_("guard.unstable", detail)

    @property
    def can_be_undone(self) -> bool:
        """Whether the call may be undone where its tape breaks. What a text is for shows only later."""
        is_for_text = self.refusal is not None and self.refusal.detail == NEEDED_AS.format("text")
        return not self.touched and not is_for_text

    def refuse(self, refusal: Refusal) -> None:
        """Break the tape because of `refusal`."""
        if self.refusal is None:
            self.refusal = refusal
            self.tell_watcher()
            if self.on_break is not None:
                self.on_break()

    def tell_watcher(self) -> None:
        if self.watcher is not None:
            self.watcher()

    def keep(self, value: Any) -> Any:
        """Hold on to a value, so that its id stays its own."""
        self._alive.append(value)
        return value

    def guard_function(self, function: Any) -> None:
        """Let replays check that a followed function still has this code and these defaults."""
        key = ("function", id(self.keep(function)))
        self.inputs.add(key, f"{function.__qualname__}'s code", of_constant(function), has_code(function))

    def guard_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let replays check that the call has as many arguments, and the same keywords in the same order."""
        shape = len(args), tuple(kwargs)
        self.inputs.add(("call",), "the number of arguments", CALL_SHAPE, is_equal(shape))

    def guard_missing(self, namespace: Any, name: str, text: str) -> None:
        """Let replays check that a module's or class's namespace still has no such name."""
        key = ("missing", id(namespace), name)
        if self.active and self.inputs.find(key) is None:
            self.keep(namespace)
            self.inputs.add(key, text, of_constant(namespace), satisfies(lambda now: name not in now))

    # -- what comes in ------------------------------------------------------------------------------------------------

    def enter(self, value: Any, key: Any, name: str, fetch: Fetch) -> Any:
        """The recorded form of a plain value from outside.

        key: what makes it the same input when read again. name: as the user would write it. fetch: how a later call
        reads it from the slots before.
        """
        if not self.active:
            return value
        slot = self.inputs.find(key)
        if slot is None:
            slot = self.inputs.add(key, name, fetch)
            return self.write_down(lambda: self._enter_first(value, slot), value)
        return self.write_down(lambda: self._enter_again(value, slot), value)

    def _enter_first(self, value: Any, slot: int) -> Any:
        guard, wrapped = self._entered(self, value, slot)
        if guard is not None:
            self.inputs.narrow(slot, guard)
        self.entered[slot] = (value, wrapped)
        return wrapped

    def _enter_again(self, value: Any, slot: int) -> Any:
        before, wrapped = self.entered.get(slot, (None, None))
        if before is value:
            return wrapped
        self.meddled(f"{self.inputs.name(slot)} changed while it was recorded")
        return value

    # -- the way back -------------------------------------------------------------------------------------------------

    def on_undo(self, action: Callable[[], None]) -> None:
        self.journal.append(action)

    def undo(self) -> None:
        """Put back everything that the recorded call wrote."""
        while self.journal:
            self.journal.pop()()

    @contextlib.contextmanager
    def foreseen(self) -> Iterator[None]:
        """Errors raised in here follow from guarded inputs alone, so that a replay's path has them too."""
        try:
            yield
        except Exception as error:
            self._foreseen.append(error)
            raise

    def is_foreseen(self, error: Any) -> bool:
        return any(error is each for each in self._foreseen)

    def note_exception(self, error: BaseException, place: Place) -> None:
        """One passed through the recorded code. What a signal handler raised, it does not raise in a second run."""
        if interrupts.raised_by_handler(error):
            self.touched = True
            self.break_("path.exception", "a signal handler raised it")
        if self.raised is None:
            self.raised = (f"{type(error).__name__}: {error}", place)
            self.tell_watcher()

    # -- places -------------------------------------------------------------------------------------------------------

    def where(self) -> Place:
        """The line of the user's program that is running."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if getattr(frame.f_globals, "recording", None) is self:
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        return self.start

    def _standing(self) -> tuple[Place, int]:
        """The line of the user's program that is running, and the site: the instructions of all its frames."""
        frame: FrameType | None = sys._getframe(1)
        where, site = None, 0
        while frame is not None:
            if getattr(frame.f_globals, "recording", None) is self:
                where = where or (frame.f_code.co_filename, frame.f_lineno)
                site = hash((site, id(frame.f_code), frame.f_lasti))
            frame = frame.f_back
        return where or self.start, site

    def where_text(self) -> str:
        return place_text(self.where())

    # -- nodes --------------------------------------------------------------------------------------------------------

    def node(self, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, *, host: bool) -> Node:
        """Write one operation down. result: the real value, for its shape, dtype and type."""
        if len(self.tape.nodes) + self._again >= self.max_nodes:
            raise Unsupported("limit.nodes", f"more than {self.max_nodes} operations")
        if len(self.tape.nodes) == LOOK_AT and not self._worth(self.tape.nodes):
            raise Unsupported("limit.nodes", f"{LOOK_AT} operations, too few of them in equal rounds")
        key = (rule.name, id(rule), frozen(args), frozen(kwargs))
        known = self._numbered.get(key)
        if known is not None:
            self._again += 1
            if not known.host and rule is not core.READ and rule is not core.SCALAR:
                known.repeat(len(self.tape.nodes), self._standing()[1])
            return known
        shape, dtype, scalar = describe(result)
        where, site = self._standing()
        node = self.tape.add(
            rule, args, kwargs, shape=shape, dtype=dtype, scalar=scalar, host=host, where=where, site=site
        )
        self._numbered[key] = node
        return node

    def input_node(self, slot: int, value: Any) -> Node:
        host = not isinstance(value, np.ndarray)
        return self.node(core.INPUT, (slot,), {}, value, host=host)

    def outcome(self, node: Node, expected: Any) -> None:
        """Let replays check that `node` is `expected`, as it is now."""
        if node.index in self._forced:
            return
        if not node.host and isinstance(expected, int) and abs(expected) > scalars.LARGEST_EXACT:
            raise Unsupported("value.forced", f"an integer as large as {expected} is needed as a plain number")
        self._forced[node.index] = expected
        if not node.constant:
            self.tape.outcomes.append(Outcome(node, expected, self.where()))
            self._assumed += not node.host and element_of(node) is None
            if self._assumed > MAX_OUTCOMES:
                raise Unsupported("limit.nodes", f"more than {MAX_OUTCOMES} branches that depend on arrays' values")

    def forced(self, node: Node) -> Any:
        """The value that an outcome fixed `node` to, or MISSING."""
        return self._forced.get(node.index, MISSING)

    def assume_in_bounds(self, storage: Storage, chain: Chain, size: int) -> None:
        """Let replays check that an index array stays within an axis of `size`.

        At once for all of the array that it is a part of, where that does: a program takes its parts one by one.
        """
        key = storage.version.index, size
        if key not in self._within:
            is_index = storage.base.dtype.kind in "iu"
            self._within[key] = not chain or (is_index and bool(core.in_bounds(storage.base, size)))
        whole = self._within[key]
        self.assume(core.IN_BOUNDS, (storage.version if whole else self.read_view(storage, chain), size))

    def assume_distinct(self, rule: Rule, args: tuple[Any, ...], distinct: bool) -> None:
        """Let replays check that no two indices name the same place. Unsupported where some do now."""
        self.outcome(self.node(rule, args, {}, True, host=False), distinct)
        if not distinct:
            raise Unsupported("rule.parameter", "assignment through indices that repeat")

    def assume(
        self, rule: Rule, args: tuple[Any, ...], values: tuple[Any, ...] | None = None, *, host: bool = False
    ) -> None:
        """Let replays check that a truth about values holds, as it does now.

        values: the plain arguments, where it might not hold; then it is Unsupported.
        """
        node = self.node(rule, args, {}, True, host=host)
        with np.errstate(all="ignore"):
            holds = values is None or bool(np.all(rule.function(*plain(values))))
        self.outcome(node, holds)  # other calls may well be able to go on where this one cannot
        if not holds:
            raise Unsupported("rule.parameter", f"a value for which Python and JAX differ ({rule.name})")

    # -- writing down -------------------------------------------------------------------------------------------------

    def write_down(self, action: Callable[[], Any], plain: Any) -> Any:
        """`action()`, which writes to the tape and wraps `plain`; `plain` itself if the tape is or gets broken.

        No code of the program's runs in it, so the watch for exceptions, which slows every call, rests.
        """
        if not self.active:
            return plain
        watch = sys.gettrace()
        sys.settrace(None)
        try:
            made = action()
            if self.active:
                return made
        except Unsupported as gap:
            self.break_(gap.reason, gap.detail)
        except Exception as error:  # a fault of ours must never reach the user's handlers
            interrupts.pass_on(error)
            self.break_("recorder.gap", gap_text(error))
        finally:
            sys.settrace(watch)
        return plain

    # -- storages -----------------------------------------------------------------------------------------------------

    def before_write(self, storage: Storage) -> None:
        """Journal a storage of an input at its first write, and refuse where other inputs overlap it."""
        base = storage.base
        if storage.before is not None or storage.origin is None or not base.flags.writeable:
            return  # what may not be written to will not be, and could not be put back either
        before = storage.before = base.copy()
        self.on_undo(lambda: np.copyto(base, before))
        if self.refusal is not None:
            return
        if overlaps_itself(base):
            self.break_("alias.overlap", "an array that is written holds elements that share memory")
        for other in self.storages:
            if other is not storage and np.may_share_memory(other.base, base):
                self.break_("alias.overlap", "two inputs share memory and one of them is written")

    def read_view(self, storage: Storage, chain: Chain) -> Node:
        """The node of a view's present value."""
        if not chain:
            return storage.version
        known = storage.cached(chain)
        if known is None:
            inner = self.read_view(storage, chain[:-1])
            view = seen_through(storage.base, chain)
            known = self.node(core.READ, (inner, chain[-1]), {}, view, host=False)
            if not isinstance(view, np.ndarray):
                known.scalar = None
            storage.remember(chain, known)
        elif not is_window(chain[-1]):
            known.repeat(len(self.tape.nodes), self._standing()[1])
        return known

    def write_view(self, storage: Storage, chain: Chain, value: Node) -> None:
        """A new version of the storage with `value`, cast to its dtype and broadcast, stored through the view."""
        if storage.origin is not None and not storage.written:
            self.inputs.narrow(storage.origin.args[0], is_writeable)
        value = self._fitted(value, seen_through(storage.base, chain))
        for depth in range(len(chain) - 1, -1, -1):
            inner = self.read_view(storage, chain[:depth])
            shape, dtype = inner.shape, inner.dtype
            where, site = self._standing()
            value = self.tape.add(
                core.WRITE,
                (inner, chain[depth], value),
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
            sample = np.broadcast_to(np.zeros((), view.dtype), value.shape)
            value = self.node(core.CAST, (value, view.dtype), {}, sample, host=False)
        if value.shape != view.shape:
            sample = np.broadcast_to(np.zeros((), view.dtype), view.shape)
            value = self.node(core.BROADCAST, (value, view.shape), {}, sample, host=False)
        return value

    # -- what outlives the recorded code ------------------------------------------------------------------------------

    def hold(self, value: Any) -> Any:
        """`value` as an object of the program's may keep it from now on.

        Wrappers become what they stand for. Lists, dicts and sets stay the very objects; they are made plain when the
        recording ends, or at once where the tape is broken.
        """
        if isinstance_wrapper(value):
            return value._plain_
        kind = type(value)
        if kind in (list, dict, set):
            self.containers.append(value)
            return value if self.active else self.settle(value)
        if issubclass(kind, tuple):
            return self._plain_tuple(value, self.hold)
        self._note_leak(value)
        return value

    def _plain_tuple(self, value: Any, made_plain: Callable[[Any], Any]) -> Any:
        """The tuple as the program may keep it: the one that came in, or one for all places that hold it."""
        entered = self.entered_tuple(value)
        if entered is not None:
            return entered.plain
        before, made = self._rebuilt.get(id(value), (None, None))
        if before is not value:
            made = rebuilt(value, map(made_plain, value))
            self._rebuilt[id(value)] = value, made
        return made

    def entered_tuple(self, value: Any) -> EnteredTuple | None:
        """What is known of a tuple that came in from outside: its recorded form is another object."""
        entered = self.tuples.get(id(value))
        return entered if entered is not None and entered.made is value else None

    def settle(self, value: Any, seen: set[int] | None = None) -> Any:
        """`value` as the program may keep it: lists, dicts and sets changed in place, tuples rebuilt."""
        seen = set() if seen is None else seen
        kind = type(value)
        if kind in (list, dict, set):
            if id(value) not in seen:
                seen.add(id(value))
                self._settle_in_place(value, seen)
            return value
        if issubclass(kind, tuple) and not isinstance_wrapper(value):
            return self._plain_tuple(value, lambda part: self.settle(part, seen))
        self._note_leak(value)
        return plain(value)

    def _settle_in_place(self, value: Any, seen: set[int]) -> None:
        if type(value) is dict:
            items = [(plain(key), self.settle(part, seen)) for key, part in value.items()]
            if any(map(has_wrapper, value)):
                value.clear()
            value.update(items)
        elif type(value) is list:
            value[:] = [self.settle(part, seen) for part in value]
        elif any(map(has_wrapper, value)):
            parts = [plain(part) for part in value]
            value.clear()
            value.update(parts)

    def _note_leak(self, value: Any) -> None:
        kind = type(value)
        if kind in (FunctionType, GeneratorType):
            scope = value.__globals__ if kind is FunctionType else getattr(value.gi_frame, "f_globals", None)
            self.leaked |= getattr(scope, "recording", None) is self
        elif kind in ITERATORS:
            self.leaked = True


class EnteredTuple(NamedTuple):
    """A tuple that came in from outside. made: its recorded form, of wrappers. plain: itself."""

    made: Any
    plain: Any
    slot: int


class AttributeState:
    """What an attribute that the recording read or wrote holds now.

    owner: the object's wrapper. wrapped: the recorded value, or MISSING. written: whether the recording set it.
    held: what the real object holds, by identity.
    """

    __slots__ = ("held", "name", "owner", "wrapped", "written")

    def __init__(self, owner: Any, name: str, wrapped: Any, written: bool, held: Any) -> None:
        self.held = held
        self.owner = owner
        self.name = name
        self.wrapped = wrapped
        self.written = written


def gap_text(error: BaseException) -> str:
    """A fault of the recorder's, with the line of accel where it arose."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} [{source_line(frame.filename, frame.lineno or 0)}]"


def frozen(template: Any) -> Any:
    """A hashable key that tells templates apart as their values do (1, 1.0 and True; 0.0 and -0.0)."""
    kind = type(template)
    if kind is Node:
        return template.index
    if kind is tuple or kind is list:
        return (kind, *map(frozen, template))
    if kind is dict:
        return tuple([(key, frozen(part)) for key, part in template.items()])
    if kind is slice:
        return (slice, frozen(template.start), frozen(template.stop), frozen(template.step))
    if isinstance(template, tuple):  # a namedtuple
        return (kind, *map(frozen, template))
    return frozen_static(template)


def place_text(place: Place) -> str:
    return source_line(*place)


def describe(value: Any) -> tuple[tuple[int, ...], np.dtype[Any] | None, type | None]:
    """Shape, dtype and scalar type of a plain value; dtype None for what is neither array nor number."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, None
    if isinstance(value, np.generic):
        return (), value.dtype, type(value)
    if isinstance(value, (bool, int, float, complex)):
        return (), _python_dtype(value), type(value)
    return (), None, type(value)


def _python_dtype(value: Any) -> np.dtype[Any] | None:
    try:
        return np.dtype(bool) if isinstance(value, bool) else np.asarray(value).dtype
    except OverflowError:
        return None


def overlaps_itself(array: np.ndarray[Any, Any]) -> bool:
    """Whether elements of one array may share memory, as in a window that slides over another array."""
    axes = sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True) if size > 1)
    reach = array.itemsize
    for stride, size in axes:
        if stride < reach:
            return array.size > 0
        reach += stride * (size - 1)
    return False


def recordable(array: Any) -> bool:
    """Whether XLA has the array's dtype."""
    dtype = array.dtype
    return dtype.kind in RECORDABLE_KINDS and dtype.isnative and dtype.itemsize <= (16 if dtype.kind == "c" else 8)


def all_host(template: Any) -> bool:
    return all(node.host for node in nodes_in(template))


def plain(value: Any) -> Any:
    """The value with every wrapper in it replaced by what it stands for."""
    if isinstance_wrapper(value):
        return value._plain_
    if not has_wrapper(value):
        return value
    kind = type(value)
    if issubclass(kind, tuple):
        return rebuilt(value, map(plain, value))
    if kind is dict:
        return {plain(key): plain(part) for key, part in value.items()}
    if kind is slice:
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    return kind(map(plain, value))


def rebuilt(value: tuple[Any, ...], parts: Iterable[Any]) -> Any:
    """The tuple or namedtuple with other parts; itself where they are its own."""
    parts = list(parts)
    if all(new is old for new, old in zip(parts, value, strict=True)):
        return value
    kind = type(value)
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def isinstance_wrapper(value: Any) -> bool:
    """Whether a value is a wrapper; `isinstance` would be misled by its `__class__`."""
    return issubclass(type(value), Wrapper)


def has_wrapper(value: Any) -> bool:
    """Whether there is a wrapper in a value, or in the containers that it is made of."""
    if isinstance_wrapper(value):
        return True
    kind = type(value)
    if kind in (list, set, frozenset) or issubclass(kind, tuple):
        return any(map(has_wrapper, value))
    if kind is dict:
        return any(map(has_wrapper, value)) or any(map(has_wrapper, value.values()))
    return kind is slice and any(map(has_wrapper, (value.start, value.stop, value.step)))
