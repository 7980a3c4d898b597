"""Interrupts: what the handlers of signals raise reaches the program, and leaves nothing half done."""

from __future__ import annotations

import ast
import functools
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import accel
from accel.backend.underway.pending import PendingProgram
from accel.dispatch.replay import Variant
from accel.platform import config, gain, interrupts
from accel.platform.ledger import open_ledger
from accel.record import Raised, record
from accel.record.values.arrays import RecordedValue

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs signals of the program's own")

ROOT = Path(__file__).resolve().parents[2]


class Alarm(Exception):
    """What a program's handler raises: no BaseException, and so no interrupt by its type."""


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise Alarm

    before = signal.signal(signal.SIGUSR1, ring)
    yield
    signal.signal(signal.SIGUSR1, before)


def ring() -> None:
    signal.raise_signal(signal.SIGUSR1)


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_handlers_wait_for_the_end_and_then_all_run() -> None:
    log: list[str] = []
    before = signal.signal(signal.SIGUSR2, lambda number, frame: log.append("second"))
    try:
        with pytest.raises(Alarm), interrupts.Deferral():
            ring()
            signal.raise_signal(signal.SIGUSR2)
            signal.raise_signal(signal.SIGUSR2)
            log.append("work")
        assert log == ["work", "second"]
        signal.raise_signal(signal.SIGUSR2)
        assert log == ["work", "second", "second"]
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_handlers_run_where_the_wait_is_lifted() -> None:
    log = []
    with interrupts.Deferral() as deferral:
        with pytest.raises(Alarm), deferral.lifted():
            log.append("in")
            ring()
            log.append("not reached")
        with pytest.raises(Alarm):
            ring_later = interrupts.Deferral()
            with ring_later:
                ring()
                log.append("inner")
            with deferral.lifted():
                log.append("not reached")
    assert log == ["in", "inner"]


def test_a_handler_that_the_program_sets_meanwhile_stays() -> None:
    def other(number: int, frame: Any) -> None: ...

    with interrupts.Deferral() as deferral:
        with deferral.lifted():
            signal.signal(signal.SIGUSR1, other)
        assert signal.getsignal(signal.SIGUSR1) is not other
    assert signal.getsignal(signal.SIGUSR1) is other


def test_other_threads_have_nothing_to_wait_for() -> None:
    found = []

    def work() -> None:
        with interrupts.Deferral() as deferral, deferral.lifted():
            found.append(signal.getsignal(signal.SIGUSR1))

    before = signal.getsignal(signal.SIGUSR1)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork:")
def test_a_forked_child_of_another_thread_has_the_programs_handlers() -> None:
    statuses = []

    def fork() -> None:
        process = os.fork()
        if process == 0:
            status = 1
            try:
                ring()
            except Alarm:
                status = 0
            os._exit(status)
        statuses.append(os.waitpid(process, 0)[1])

    with interrupts.Deferral():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert statuses == [0]


def test_who_raised_is_known_of_all_kinds_of_handlers() -> None:
    def raises(extra: Any, number: int = 0, frame: Any = None) -> None:
        raise Alarm

    class Handler:
        def method(self, number: int, frame: Any) -> None:
            raise Alarm

        def __call__(self, number: int, frame: Any) -> None:
            raise Alarm

    for handler in (raises, functools.partial(raises, 1), Handler().method, Handler()):
        signal.signal(signal.SIGUSR1, handler)
        with pytest.raises(Alarm) as caught:
            ring()
        assert interrupts.raised_by_handler(caught.value)
    with pytest.raises(ZeroDivisionError) as other:
        1 / 0  # noqa: B018
    assert not interrupts.raised_by_handler(other.value)
    interrupts.pass_on(other.value)


# -- in a call ---------------------------------------------------------------------------------------------------------


def wrappers() -> list[Any]:
    gc.collect()
    return [each for each in gc.get_objects() if issubclass(type(each), RecordedValue)]


@pytest.mark.parametrize("caught", [False, True])
def test_what_a_handler_raises_in_recorded_code_is_the_programs(caught: bool) -> None:
    """It is raised once: a second run of the function would not see it."""

    def work(x: Any, found: list[Any]) -> Any:
        x += 1.0
        found.append(x * 2.0)
        try:
            ring()
        except Alarm:
            if not caught:
                raise
            return "caught"
        return "missed"

    x, found = np.zeros(3), []
    recorded = record(work, (x, found), {}, max_nodes=100)
    if caught:
        assert recorded.result == "caught"
    else:
        assert isinstance(recorded, Raised) and type(recorded.error) is Alarm
    assert x.tolist() == [1.0] * 3
    assert [type(each) for each in found] == [np.ndarray] and found[0].tolist() == [2.0] * 3


@pytest.mark.usefixtures("foreground")
def test_what_a_handler_raises_in_the_recorder_is_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    from accel.record.state.recording import Recording

    plain, rung = Recording.write_down, []

    def interrupted(self: Any, action: Any, value: Any) -> Any:
        def act() -> Any:
            if not rung:
                rung.append(True)
                ring()
            return action()

        return plain(self, act, value)

    monkeypatch.setattr(Recording, "write_down", interrupted)
    fast = accel.accelerate(lambda x: np.sin(x) + 1.0, name="rung")
    with pytest.raises(Alarm):
        for _ in range(3):
            fast(np.ones(3))
    assert rung
    assert np.array_equal(fast(np.ones(3)), np.sin(np.ones(3)) + 1.0)


@pytest.mark.usefixtures("foreground")
@pytest.mark.parametrize("which", ["run", *range(9)])
def test_an_interrupted_replay_is_whole_or_has_not_begun(monkeypatch: pytest.MonkeyPatch, which: Any) -> None:
    """which: while the program runs, or after so many steps of the commit."""
    from accel.dispatch.replay import commit

    class Model:
        def __init__(self) -> None:
            self.a, self.b = np.zeros(3), np.zeros(3)
            self.log: list[Any] = []
            self.queue, self.counts = deque(np.zeros(2)), {"n": 0}

        @accel.accelerate(name="step")
        def step(self, x: Any) -> None:
            self.a += x
            self.b = self.a * 2.0
            self.log.append(self.a.sum())
            self.queue.append(self.a.sum())
            self.queue.popleft()
            self.counts["last"] = self.counts.pop("n") + 1
            self.counts["n"] = self.counts.pop("last")

    owner: Any = Variant if which == "run" else commit
    name = "run" if which == "run" else "store"
    plain, rung = getattr(owner, name), []

    def interrupted(*args: Any) -> Any:
        if not rung:
            rung.append(True)
            if which != "run":
                steps, done = args
                assert len(steps) > 6
                plain(steps[:which], done)
            ring()
        return plain(*args)

    model = Model()
    for _ in range(12):
        model.step(np.ones(3))
    assert open_ledger("step").compiled_calls > 3
    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(Alarm):
        model.step(np.ones(3))
    steps = 12 if which == "run" else 13
    assert model.a.tolist() == [steps] * 3 and model.b.tolist() == [2.0 * steps] * 3
    assert model.log == [3.0 * n for n in range(1, steps + 1)]
    assert list(model.queue) == model.log[-2:] and model.counts == {"n": steps}
    model.step(np.ones(3))
    assert model.a.tolist() == [steps + 1.0] * 3 and len(model.log) == steps + 1
    assert open_ledger("step").compiled_calls >= 5


# -- after each call that accel makes ----------------------------------------------------------------------------------


class Countdown:
    """Rings when the n-th C function that is called inside accel has returned, before Python can note what it gave.

    Code that accel generates is accel's, too.
    """

    def __init__(self, n: int) -> None:
        self._left = n
        self.has_rung = False

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        file = frame.f_code.co_filename
        if event == "c_return" and (file.startswith("<accel ") or Path(file).is_relative_to(ROOT / "accel")):
            self._left -= 1
            if self._left == 0:
                self.has_rung = True
                sys.setprofile(None)
                ring()


def interrupted_at_each(work: Callable[[], Any]) -> Iterator[bool]:
    """Do the work again and again, interrupted after its first, second, ... call. Yields each time."""
    for n in range(1, 400):
        countdown = Countdown(n)
        sys.setprofile(countdown)
        try:
            work()
            was = False
        except Alarm:
            was = True
        finally:
            sys.setprofile(None)
        assert was == countdown.has_rung, f"what the handler raised at {n} is lost"
        yield was
        if not was:
            return
    raise AssertionError("it never came to its end")


@pytest.mark.usefixtures("foreground")
def test_a_call_that_was_interrupted_anywhere_keeps_no_later_one_from_its_program() -> None:
    x = np.zeros(3)

    def step(y: Any) -> Any:
        x[...] += y
        return x * 2.0

    fast = accel.accelerate(step, name="turns")
    for _ in range(8):
        fast(np.ones(3))
    interrupted = 0
    for was in interrupted_at_each(lambda: fast(np.ones(3))):
        interrupted += was
        before, compiled = x[0], open_ledger("turns").compiled_calls
        assert fast(np.ones(3)).tolist() == [2.0 * before + 2.0] * 3
        assert open_ledger("turns").compiled_calls == compiled + 1
    assert interrupted > 10
    assert not {each.reason for each in open_ledger("turns").refusals} & {"environment.busy", "accel.fault"}


@pytest.mark.usefixtures("foreground")
def test_what_a_handler_raises_while_guards_are_checked_is_not_taken_for_another_path() -> None:
    """Of one path, of several in one program, and of inputs that some of these paths read."""

    def step(y: Any, options: dict[str, Any]) -> Any:
        return np.sin(y) * options.get("scale", 1.0) if y[0] > 0.0 else np.cos(y) - options["shift"]

    fast = accel.accelerate(step, name="guarded")
    for value, options in [(1.0, {"scale": 2.0}), (-1.0, {"shift": 3.0})]:
        y = np.full(3, value)
        for _ in range(8):
            fast(y, options)
        assert sum(interrupted_at_each(lambda y=y, options=options: fast(y, options))) > 10
        np.testing.assert_array_equal(fast(y, options), step(y, options))
    assert any(path.program.is_merged for path in fast._self_target.paths) and open_ledger("guarded").compiled_calls


@pytest.mark.usefixtures("foreground")
def test_what_a_handler_raises_in_a_comparison_is_no_mismatch() -> None:
    def step(y: Any) -> Any:
        return np.sin(y) * len(y)

    def rings_in_it(frame: FrameType, event: str, arg: object) -> None:
        if event == "c_return" and frame.f_code is step.__code__:
            sys.setprofile(None)
            ring()

    fast, y = accel.accelerate(step, name="compared"), np.ones(3)
    with config.override(mode="verify"):
        for _ in range(6):
            fast(y)
        before = open_ledger("compared").compiled_calls
        sys.setprofile(rings_in_it)
        with pytest.raises(Alarm):
            fast(y)
        np.testing.assert_array_equal(fast(y), step(y))
    assert before and "verify.mismatch" not in {each.reason for each in open_ledger("compared").refusals}


def test_who_waits_for_a_reason_to_import_jax_is_told_though_telling_was_interrupted() -> None:
    def told() -> None:
        potential.add(10.0)

    potential = gain.PotentialGain()
    waiting = threading.Thread(target=potential.wait_for_import, daemon=True)
    for _ in interrupted_at_each(told):
        potential.add(10.0)
    potential.seconds = 0.0  # so that it waits to be told
    waiting.start()
    waiting.join(10.0)
    assert not waiting.is_alive()


def test_a_pending_program_that_is_asked_and_interrupted_can_still_be_ended() -> None:
    pending = PendingProgram(((), (), ()))  # type: ignore[arg-type]
    for _ in interrupted_at_each(pending.done):
        pass
    ender = threading.Thread(target=pending.fail, args=(ValueError(),), daemon=True)
    ender.start()
    ender.join(10.0)
    assert pending.done()


# -- at any moment -----------------------------------------------------------------------------------------------------

AT_ANY_MOMENT = """
import os, signal, sys
import numpy as np

class Alarm(Exception): ...
def ring(number, frame): raise {raised}
signal.signal(signal.SIGALRM, ring)

import accel

class Model:
    def __init__(self): self.a, self.seen = np.zeros(3), []
    @accel.accelerate(name="step")
    def step(self, x):
        self.a += x
        self.seen = [self.a * 2.0, *self.seen[:2]]
        return np.sin(self.a)

def check(model):
    assert type(model.a) is np.ndarray and set(map(type, model.seen)) <= {{np.ndarray}}, model.seen
    assert (model.a == np.round(model.a)).all() and np.ptp(model.a) == 0.0

model, rung, calls = Model(), 0, 0
delay = {first}
while calls < 4000 and rung < 150:
    calls += 1
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        before = model.a[0]
        result = model.step(np.ones(3))
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert model.a[0] == before + 1 and np.array_equal(result, np.sin(model.a))
    except {raised}:
        rung += 1
        delay *= 1.05
        assert model.a[0] in (before, before + 1)
    check(model)
    if rung > 20 and delay > {most}: delay = {first}
signal.setitimer(signal.ITIMER_REAL, 0)
for _ in range(10):
    before = model.a[0]
    assert np.array_equal(model.step(np.ones(3)), np.sin(model.a)) and model.a[0] == before + 1
from accel.platform.ledger import open_ledger
reasons = {{each.reason for each in open_ledger("step").refusals}}
assert not reasons & {{"accel.fault", "recorder.gap", "compile.failed"}}, open_ledger("step").refusals
print(rung > 10, sys.gettrace())
"""


@pytest.mark.parametrize("raised", ["Alarm", "KeyboardInterrupt"])
@pytest.mark.parametrize(("first", "most"), [(2e-4, 3e-2), (1e-3, 3.0)])
def test_an_interrupt_at_any_moment_leaves_everything_in_order(raised: str, first: float, most: float) -> None:
    """While modules are imported, a call is recorded, compiled in the foreground, and replayed."""
    environ = {**os.environ, "QD_JAX_AOT": "0", "QD_JAX_CACHE_DIR": "off", "PYTHONPATH": str(ROOT)}
    code = textwrap.dedent(AT_ANY_MOMENT.format(raised=raised, first=first, most=most))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "None"], done.stdout


COMPILED = ("program.code", "_code(shell, tree, name, mode)", "made", "code", "change(code)")
"""Code objects."""


def test_no_text_is_executed_as_it_stands() -> None:
    """Python ends a process as interrupted if text that it executed was, even where the program handled that."""
    for path in (ROOT / "accel").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "exec":
                text = ast.unparse(node.args[0])
                assert text.startswith("compile(") or text in (*COMPILED, "'raise KeyboardInterrupt'"), path
