"""Iterations: the target of an outlined loop, or of outlined statements, answers them, one call each.

A target that is refused at certain lines is split: the statements between these lines get targets of their own.

Each outlined part is timed first. Only a part that takes enough of a call gets a target.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from accel.backend import resident
from accel.dispatch import accelerated
from accel.entry.lift.holding import Holding
from accel.entry.lift.lifting import LiftedFunction, lift_function, split
from accel.entry.lift.regions import Stops
from accel.entry.lift.source import NotLiftable
from accel.entry.lift.switch import Switch, run_plainly, when_all_off
from accel.platform import logs
from accel.platform.bodies import add_body, add_call
from accel.platform.clocks import time
from accel.platform.interrupts import pass_on
from accel.platform.ledger import current_run, open_ledger
from accel.platform.reasons import Refusal
from accel.policy import rest

LOOK_AFTER = 32
"""Number of iterations after which accel asks again whether a loop can gain anything."""

COUNTED_S = 3e-4
"""Seconds of an iteration from which iterations go on being counted although the loop's programs were slower than
NumPy. The programs are tried again later, as those of functions are."""


MOST_SPLITS = 4
"""Maximum number of lines at which one function or loop is split. Guess."""

_NO_LINE = ("limit.", "environment.", "fp.", "accel.")
"""Beginnings of the reasons that no single statement causes."""


@dataclass(slots=True)
class Splits:
    """The splits of one function or loop. left: the number of lines at which it may still be split."""

    left: int = MOST_SPLITS

    def lines(self, refusals: Sequence[Refusal], filename: str, within: range) -> Stops:
        """Return the lines at which to split the statements in these lines of a file, and count them."""
        reasons = {
            _line_of(each, filename, within): each.reason for each in refusals if not each.reason.startswith(_NO_LINE)
        }
        chosen = sorted(line for line in reasons if line is not None)[: self.left]
        self.left -= len(chosen)
        return {line: reasons[line] for line in chosen}


def _line_of(refusal: Refusal, filename: str, within: range) -> int | None:
    """The line of a target at which its recording stopped: its own, not that of a function that it calls."""
    return next((line for file, line in reversed(refusal.stack) if file == filename and line in within), None)


class Iterations:
    """Answers the iterations of one loop, or the runs of outlined statements.

    accelerated: a function that runs the body that it is given. Each call of the program's function makes a new body.

    Turns the loop's switch off where no program can gain anything: the program's own loop costs nothing.
    """

    def __init__(self, switch: Switch, accelerated: Any) -> None:
        self._switch = switch
        self._accelerated = accelerated
        self._target = accelerated._self_target
        self._held = functools.partial(Holding(switch, self._target).run, accelerated)
        self._target.parts.calls_left = lambda: switch.left
        self._left = LOOK_AFTER
        self._since = time.perf_counter()

    def __call__(self, body: FunctionType) -> Any:
        try:
            run, given = self._prepared(body)
        except Exception as error:  # no target is around this: the program must not see it
            pass_on(error)
            logs.LOGGER.warning("%s stays on NumPy: %s: %s", self._target.name, type(error).__name__, error)
            self._switch.turn_off()
            run, given = run_plainly, body
        return run(given)

    def _prepared(self, body: FunctionType) -> tuple[Callable[[FunctionType], Any], FunctionType]:
        """Return what runs the next iteration, and the body that it is given."""
        self._left -= 1
        if self._left <= 0:
            self._look()
        if self._switch.column is not None:
            return self._accelerated, self._recorded(body)
        if resident.current.possible:
            return self._held, body
        return self._accelerated, body

    def _recorded(self, body: FunctionType) -> FunctionType:
        """The body of statements as it is recorded. It knows the one that runs plainly: `plain`.

        Variables that nothing else mentions are its own there, so that no program has to store them. Run plainly, they
        are the function's, which holds on to what they hold until it ends.
        """
        code = self._switch.recorded
        assert code is not None
        cells = dict(zip(body.__code__.co_freevars, body.__closure__ or (), strict=True))
        closure = tuple(cells[name] for name in code.co_freevars)
        made = FunctionType(code, body.__globals__, code.co_name, None, closure)
        made.plain = body  # type: ignore[attr-defined]
        return made

    def _look(self) -> None:
        """Turn the switch off if the target stays on NumPy, or if iterations are too short or too varied."""
        now, target = time.perf_counter(), self._target
        iteration_s = (now - self._since) / LOOK_AFTER
        self._left, self._since = LOOK_AFTER, now
        state, paths = target.state, target.paths
        is_small = iteration_s < rest.SMALL_CALL_S and not paths
        stays = state.final and not (state.may_try_again and iteration_s >= COUNTED_S)
        if state.mode != "strict" and (stays or (state.may_rest and (is_small or paths.keep_changing))):
            self._switch.turn_off()


def calling(switch: Switch, names: dict[str, Any], how: Callable[[Any], Any] = lambda body: body()) -> FunctionType:
    """The target's function, which runs the body that it is given. It belongs to the program's module and line."""
    assert switch.around is not None
    code: CodeType = how.__code__.replace(
        co_filename=switch.around.co_filename,
        co_firstlineno=switch.line,
        co_name=switch.around.co_name,
        co_qualname=switch.around.co_qualname,
    )
    add_call(code)
    made = FunctionType(code, names, switch.around.co_name)
    made.__module__ = names.get("__name__", "")
    made.__qualname__ = switch.around.co_qualname
    return made


def start(
    switch: Switch,
    names: dict[str, Any],
    name: str,
    *,
    rtol: float | None = None,
    mode: str | None = None,
    effects: bool = True,
    splits: Splits | None = None,
) -> None:
    """Give an outlined loop, or outlined statements, a target of this name, and turn its switch on.

    names: the globals of its module. rtol, mode, effects: see `accel.accelerate`. splits: those of the function or loop
    that it is a part of.
    """
    code = switch.recorded
    if code is None:
        return  # Python's compiler has left the loop out: it is never reached
    add_body(code)
    function = calling(switch, names)
    made = accelerated(function, name=name, rtol=rtol, mode=mode, effects=effects, in_parts=code)
    target = made._self_target
    if switch.column is not None:
        target.function = calling(switch, names, lambda body: body.plain())
    again = functools.partial(start, rtol=rtol, mode=mode, effects=effects, splits=splits or Splits())
    target.recordings.on_refused = functools.partial(_split_body, switch, name, names, again)
    switch.call = Iterations(switch, made)
    switch.on = True


def _split_body(
    switch: Switch,
    name: str,
    names: dict[str, Any],
    again: functools.partial[None],
    refusals: Sequence[Refusal],
    call_s: float,
) -> bool:
    """Run a body in parts that have targets of their own. Returns whether that is possible.

    again: `start` for a part. refusals: of its recordings. call_s: seconds that one iteration takes.
    """
    assert switch.around is not None
    try:
        lines = again.keywords["splits"].lines(refusals, switch.around.co_filename, switch.lines)
        made = split(switch, lines)
    except NotLiftable as error:
        logs.LOGGER.info("%s is not split: %s", name, error.refusal.why)
        return False
    except Exception as error:
        pass_on(error)
        logs.LOGGER.warning("%s is not split: %s: %s", name, type(error).__name__, error)
        return False
    run = _InParts(made.code)
    switch.codes.append(made.code)
    when_all_off(made.switches, switch.turn_off)
    weigh(made.switches, name, lines, lambda: run.iterations, call_s, lambda part, title: again(part, names, title))
    switch.call = run
    return True


class _InParts:
    """Runs a body that has been split. iterations: their number so far."""

    def __init__(self, code: CodeType) -> None:
        self.iterations = 0
        self._code = code

    def __call__(self, body: FunctionType) -> Any:
        self.iterations += 1
        code = self._code
        return FunctionType(code, body.__globals__, code.co_name, None, body.__closure__)()


def weigh(
    switches: Sequence[Switch],
    whole: str,
    stops: Stops,
    calls: Callable[[], int],
    call_s: float,
    begin: Callable[[Switch, str], object],
) -> None:
    """Time the parts of a function or loop, and begin those that take enough of its calls.

    whole: its name. stops: the lines at which it has been split. calls, call_s: see `Weighed`.
    """
    lines = f"line {', '.join(map(str, stops))}" if stops else "its loops"
    logs.LOGGER.info("%s is split at %s into %d parts", whole, lines, len(switches))

    def decide(switch: Switch, share: float) -> None:
        measured[whole, switch.place] = share
        what = f"{whole} is split at {lines}: {share:.0%} of its time is in {in_words(switch.place)}"
        if share < LEAST_SHARE:
            switch.turn_off()
            current_run().note(f"{what}, too little to be compiled")
        else:
            current_run().note(what)
            begin(switch, f"{_LINES.sub('', whole)}:{switch.place}")

    for each in switches:
        if each.code is not None:
            Weighed(each, calls, call_s, decide)


_LINES = re.compile(r":\d+(-\d+)?$")


def stops_of(code: CodeType, refusals: Sequence[Refusal], splits: Splits) -> Stops:
    """The lines at which to split a function of this code that has had these refusals."""
    last = max((line for *_, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    return splits.lines(refusals, code.co_filename, range(code.co_firstlineno, last + 1))


def lift_refused(
    function: FunctionType,
    name: str,
    refusals: Sequence[Refusal],
    call_s: float,
    begin: Callable[[Switch, str, Splits], object],
) -> LiftedFunction:
    """Outline parts of a function that is refused as a whole: what stands between the lines that stop it, or its loops.

    name: its target's. refusals: of its recordings. call_s: seconds that one call takes. begin: gives a part its target
    of this name. Raises NotLiftable.
    """
    splits = Splits()
    lines = stops_of(function.__code__, refusals, splits)
    made = lift_function(function, stops=lines)
    book = open_ledger(name)

    def calls() -> int:
        book.settle()
        return book.calls

    def begin_part(switch: Switch, title: str) -> None:
        begin(switch, title, splits)

    weigh(made.lifted.switches, name, lines, calls, call_s, begin_part)
    return made


# -- the share of a call that each part takes -------------------------------------------------------------------------


LEAST_SHARE = 0.1
"""Minimum share of a call from which a part gets a target. Guess: the program of a smaller part could save less."""

WEIGHED_CALLS = 3
"""Number of calls after which a part that has not taken its share is left alone. Guess."""


def in_words(place: str) -> str:
    """A part's place in words.

    >>> in_words("17-23"), in_words("30-30"), in_words("30")
    ('lines 17-23', 'line 30', 'line 30')
    """
    first, _, last = place.partition("-")
    return f"line {first}" if last in ("", first) else f"lines {place}"


measured: dict[tuple[str, str], float] = {}
"""The share of a call, by the name of the whole and the place of the part."""


class Weighed:
    """Runs one part as it is, and times it.

    calls: gives the number of calls of the whole so far. call_s: seconds that one takes. decide: is told the part's
    share of call_s, once that is known to be enough or too little. It must set the switch's `call`, or turn the switch
    off.
    """

    def __init__(
        self, switch: Switch, calls: Callable[[], int], call_s: float, decide: Callable[[Switch, float], object]
    ) -> None:
        self._switch = switch
        self._calls = calls
        self._call_s = call_s
        self._decide = decide
        self._spent_s = 0.0
        self._before = calls()
        switch.call = self
        switch.on = True

    def __call__(self, body: FunctionType) -> Any:
        started = time.perf_counter()
        try:
            return body()
        finally:
            self._spent_s += time.perf_counter() - started
            if self._switch.call is self:  # not where it has been decided inside the body
                self._look()

    def _look(self) -> None:
        try:
            calls = self._calls() - self._before
            # with the call that is under way
            share = min(1.0, self._spent_s / max((calls + 1) * self._call_s, 1e-9))
            if share >= LEAST_SHARE or calls >= WEIGHED_CALLS:
                self._decide(self._switch, share)
        except Exception as error:  # the part has run: the program must see no error of accel's
            pass_on(error)
            self._switch.turn_off()
