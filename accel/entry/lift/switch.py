"""Switches: what decides, in each iteration of an outlined loop, which of its two bodies runs.

A switch is a constant of the lifted code, so that asking it costs one attribute read while it is off.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Literal

from accel.entry.lift.tracebacks import amended, translated
from accel.entry.lift.transform import GONE_ON, NOT_RUN
from accel.platform import interrupts
from accel.platform.spelling import function_name

if TYPE_CHECKING:
    from accel.entry.lift.between import Iterated

Call = Callable[[FunctionType], Any]
"""Runs a body."""

Beside = Callable[[FunctionType, Call | None], Any]
"""Runs a body by what is given, and does something else in each iteration. None: this iteration cannot run as a
function."""


def run_plainly(body: FunctionType) -> Any:
    """Run a body as the program's own Python does."""
    return body()


def _nothing() -> None:
    """Do nothing: there is no tracer, or nobody to tell."""


def _residents() -> Any:
    """Return the device-resident arrays; None before any program has run. Imports nothing: NumPy may be missing."""
    resident = sys.modules.get("accel.backend.resident")
    return None if resident is None else resident.current


@dataclass(eq=False)
class Switch:
    """State that one outlined loop, or run of statements, checks. Each run of such statements is an iteration.

    on: whether iterations run the body as a function. tracer: gives the trace function in force: a debugger or coverage
    tool sees the program's own loop. result: of the last iteration, in a module's loop. call: runs a body. beside: what
    happens in each iteration besides, or None. statement: the loop as it is written.

    read: what `knows` has given for the loop that runs; None if it is not known. left: all its iterations to come; None
    if nobody knows, as where it is entered again. when_off: called when the switch is turned off. keep: takes the
    iterable of a loop at the top of a module, where no other name may be seen; `knows_kept` looks at it, and `given`
    gives it back. holds: whether iterations have left arrays on a device.

    line: the loop's, or the first of a run of statements. lines: all of the body. column: of the first of these
    statements; None for a loop. around: the code that they stand in, as it was before. code: the body's. recorded: the
    same for recordings, with variables of its own. codes: all codes that the body has had. free: the variables of the
    body's code. owned: those of the function's own variables that the body shares; all others of its free variables
    belong to functions around it. own: variables of one iteration alone.
    unsure: variables that have to be bound for the body to see what it would see in its place. uncertain: their places
    in the body's closure.
    """

    line: int
    around: CodeType | None = None
    unsure: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    statement: ast.For | ast.While | None = None
    lines: range = range(0)
    column: int | None = None

    def __post_init__(self) -> None:
        self.on = False
        self.tracer = sys.gettrace
        self.result: Any = NOT_RUN
        self.call: Call = run_plainly
        self.beside: Beside | None = None
        self.code: CodeType | None = None
        self.recorded: CodeType | None = None
        self.codes: list[CodeType] = []
        self.owned: frozenset[str] = frozenset()
        self.uncertain: tuple[int, ...] = ()
        self.read: Iterated | None = None
        self.left: int | None = None
        self._entered = 0
        self._kept: deque[Any] = deque(maxlen=1)
        # in C: no tracer sees them
        self.keep = functools.partial(max, key=self._kept.append)
        self.given = self._kept.pop
        self.holds = False
        self.when_off: Callable[[], object] = _nothing
        self._made: FunctionType | None = None

    def __reduce__(self) -> Any:
        """Code that is sent to another process runs the program's own loops there."""
        return Switch, (self.line,)

    def set_body(self, code: CodeType) -> None:
        """Give the switch its body's code."""
        self.code = code
        free = code.co_freevars
        self.owned = frozenset(free) - set(self.around.co_freevars if self.around is not None else ())
        # the end of a name suffices: those of classes are mangled
        found = {place for place, name in enumerate(free) for each in self.unsure if name.endswith(each)}
        self.uncertain = tuple(sorted(found))

    @property
    def place(self) -> str:
        """The line of the loop, or the lines of the statements, in words."""
        return f"{self.line}" if self.column is None else f"{self.line}-{self.lines[-1]}"

    @property
    def free(self) -> tuple[str, ...]:
        return () if self.code is None else self.code.co_freevars

    def wait(self, is_time: Callable[[], bool], begin: Callable[[], object]) -> None:
        """Run iterations plainly until `is_time`, and then call `begin`, which sets `call`."""

        def call(body: FunctionType) -> Any:
            if self.call is call and is_time():
                begin()
            return body() if self.call is call else self.call(body)

        self.call = call
        self.on = True

    def go_beside(self, beside: Beside) -> None:
        """Do something else in each iteration. No iteration is skipped then, not even under a debugger."""
        self.beside = beside
        self.tracer = _nothing
        self.on = True

    def turn_off(self) -> None:
        """Let iterations be the program's own."""
        if self.holds:
            self.release()
        self.call = run_plainly
        self.on = self.beside is not None
        self.when_off()

    def knows(self, iterable: Any) -> Iterated | None:
        """Return the arrays and bars behind a loop's iterable, as far as known (see accel.entry.lift.between)."""
        if "numpy" not in sys.modules:  # the program's first import of it is not to be accel's
            return None
        from accel.entry.lift.between import iterated, iterations_of

        self.left = None
        self._entered += 1
        try:
            if self._entered == 1:
                self.left = iterations_of(iterable)
            return iterated(iterable)
        except Exception as error:
            interrupts.pass_on(error)
            return None

    def knows_kept(self) -> None:
        """Do as `knows` for a loop at the top of a module."""
        iterable = self._kept.pop()
        self.read = self.knows(iterable)
        self._kept.append(iterable if self.read is None else self.read.given(iterable))

    def release(self) -> None:
        """Bring all arrays up to date: the loop goes on as the program's own, or has come to its end."""
        self.holds = False
        residents = _residents()
        if residents is not None:
            residents.bring_up_to_date()

    def run(self, body: FunctionType | None, read: Iterated | Literal[False] | None = None) -> Any:
        """Run one iteration. body: None for a loop at the top of a module. read: what `knows` has given, or False.

        Returns NOT_RUN, GONE_ON, BROKEN or a tuple.
        """
        if self.left is not None:
            self.left -= 1
        if body is None:
            body = self._in_module(sys._getframe(1).f_globals)
        else:
            self.read = read or None
            if self.column is not None:  # what it is given only holds the variables
                assert self.code is not None
                body = FunctionType(self.code, body.__globals__, self.code.co_name, None, body.__closure__)
        if self.uncertain and not self._are_bound(body):
            residents = _residents()
            if residents is not None and residents.is_held:
                self.release()
            return NOT_RUN if self.beside is None else self.beside(body, None)
        try:
            result = self.call(body) if self.beside is None else self.beside(body, self.call)
            return GONE_ON if result is None else result
        except NameError as error:
            made = translated(error, self.codes, self.owned)
            if made is None:
                raise
        # outside the handler, so that it gets no context that it would not have
        raise made

    def amend(self) -> None:
        """Let the exception that is handled look as if the iteration had run in its place."""
        error = sys.exc_info()[1]
        assert error is not None
        try:
            amended(error, self.codes, self.line)
        except Exception as fault:  # the program gets its own error, if with accel's lines in its traceback
            interrupts.pass_on(fault)

    def _are_bound(self, body: FunctionType) -> bool:
        assert body.__closure__ is not None
        try:
            for place in self.uncertain:
                body.__closure__[place].cell_contents  # noqa: B018  # raises if it is unbound
        except ValueError:
            return False
        return True

    def _in_module(self, names: dict[str, Any]) -> FunctionType:
        if self._made is None or self._made.__globals__ is not names:
            assert self.code is not None
            self._made = FunctionType(self.code, names)
        return self._made


def when_all_off(switches: Sequence[Switch], act: Callable[[], object]) -> None:
    """Call `act` once the last of these switches is turned off: code without them is quicker."""

    def look() -> None:
        if not any(each.on for each in switches):
            act()

    for each in switches:
        each.when_off = look


def name_of(switch: Switch, module: str) -> str:
    """The name of a body's target in the report."""
    assert switch.around is not None
    qualname = switch.around.co_qualname
    where = module if qualname == "<module>" else function_name(module, qualname)
    return f"{where}:{switch.place}"
