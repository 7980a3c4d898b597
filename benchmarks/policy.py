"""Policy: what accel decides in runs of known programs, played in seconds on machines that do not exist.

`python -m benchmarks.policy [SCORE ...] [--machine NAME] [--without NAME]` plays each score in `benchmarks/scores`: a
program's loop and functions, with the seconds that their calls take on NumPy and compiled, and the operations of their
recordings, measured once in a real run or made up: `about` says which. accel's own targets answer the calls, on
functions that are as long but compute next to nothing, and on a clock that moves by the score's seconds. So nothing is
disturbed by the machine that this runs on, and every run gives the same figures.

Each row is one machine: the program's time with accel as a multiple of NumPy's, in a first, a second and a third run,
beside the best that hindsight could do (see `hindsight_s`). A run is within its bound if it takes no more than MOST
times NumPy's time and MOST_S seconds. `--without` takes one mechanism out (see WITHOUT), to show what it is worth.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCORES = Path(__file__).parent / "scores"

MOST, MOST_S = 1.05, 0.5
"""Bound on a run's time with accel: a multiple of its time on NumPy, and seconds on top."""

LONG_S, HAD = 60.0, 0.85
"""Runs of LONG_S seconds on NumPy are to have this share of the gain that hindsight has."""

SCALE = 10
"""Operations of a score that one operation of the functions played stands for."""

IMPORT_S = 0.1
"""Seconds of the import that recording needs."""

WORKER_S = 1.0
"""Seconds until a worker can compile."""


@dataclass(frozen=True)
class Machine:
    """A machine.

    compiler: seconds of a compile, as a multiple of the scores'. wall: seconds of all work, as a multiple of processor
    time. given: the program's share of its processor while something is compiled. taken: the compiler's. processors:
    those that the process may use.
    """

    compiler: float = 1.0
    wall: float = 1.0
    given: float = 0.97
    taken: float = 1.0
    processors: int = 2


MACHINES = {
    "two": Machine(),
    "one": Machine(given=0.5, taken=0.5, processors=1),
    "slow compiler": Machine(compiler=3.0),
    "busy": Machine(wall=2.0),
}


@dataclass(frozen=True)
class Played:
    """A function or a loop's iteration of a score.

    own_s: seconds on NumPy, without functions inside. compiled_s: of its program. operations: of its recording. calls:
    in each iteration. kinds: the kind of each iteration, in turns. longer: operations that kinds but 0 have more.
    """

    name: str
    own_s: float
    compiled_s: float
    operations: int
    calls: int = 1
    kinds: Sequence[int] = (0,)
    longer: int = 0


@dataclass(frozen=True)
class Score:
    """A program. setup_s: before its loop. first_s: of the first iteration, beyond a usual one. times: iterations.

    counted: whether the loop knows how many. loop: its iteration; None where the program calls functions itself. plain:
    iterations that print, or "all": no recording of theirs succeeds. record_s, describe_s, load_s, compile_s: for each
    operation.
    """

    name: str
    setup_s: float
    times: int
    functions: Sequence[Played]
    loop: Played | None = None
    counted: bool = True
    first_s: float = 0.0
    plain: Sequence[int] | str = ()
    record_s: float = 1.5e-4
    describe_s: float = 6e-5
    load_s: float = 4e-5
    compile_s: float = 5e-4

    @property
    def numpy_s(self) -> float:
        """Seconds of the whole program on NumPy."""
        return self.setup_s + self.first_s + self.times * self.iteration_s

    @property
    def units(self) -> list[Played]:
        """All that may be compiled: the functions, and the loop's iteration."""
        return [*self.functions, *([] if self.loop is None else [self.loop])]

    @property
    def iteration_s(self) -> float:
        own_s = 0.0 if self.loop is None else self.loop.own_s
        return own_s + sum(each.calls * each.own_s for each in self.functions)


def read(path: Path) -> Score:
    """Read a score."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    if "like" in fields:
        fields = json.loads((path.parent / fields.pop("like")).read_text(encoding="utf-8")) | fields
    del fields["about"]
    functions = [Played(**each) for each in fields.pop("functions")]
    loop = fields.pop("loop", None)
    return Score(path.stem, functions=functions, loop=None if loop is None else Played("loop", **loop), **fields)


def hindsight_s(score: Score, machine: Machine, *, second: bool) -> float:
    """Seconds of the best run: NumPy alone; or the loop or the functions, recorded at their first calls, used once
    compiled, one after the other where that gains most. A second run only loads."""
    loop = [] if score.loop is None or score.plain == "all" else [(score.loop, score.iteration_s)]
    functions = [(each, each.calls * each.own_s) for each in score.functions]
    return min(score.numpy_s, *(_of(units, score, machine, second) for units in (loop, functions) if units))


def _of(units: list[tuple[Played, float]], score: Score, machine: Machine, second: bool) -> float:
    busy_s = 0.0 if second else WORKER_S / machine.taken
    gained_s = -busy_s * (1.0 - machine.given)
    for unit, numpy_s in sorted(units, key=lambda each: -each[1]):
        each_s = score.load_s if second else score.record_s + score.describe_s
        compile_s = 0.0 if second else machine.compiler / machine.taken * score.compile_s * unit.operations
        left = max(0.0, score.times - (busy_s + compile_s) * machine.given / score.iteration_s)
        gain_s = left * (numpy_s - unit.calls * unit.compiled_s) - each_s * unit.operations
        gain_s -= compile_s * (1.0 - machine.given)
        if gain_s > 0.0:
            gained_s += gain_s
            busy_s += compile_s
    return score.numpy_s + IMPORT_S - gained_s


# -- one run, in a process of its own ----------------------------------------------------------------------------------


@dataclass
class Clock:
    """The played time. wall, worked: seconds, and those of the processor. free_at: when the compiler is done."""

    machine: Machine
    wall: float = 1000.0
    worked: float = 0.0
    free_at: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_busy(self) -> bool:
        return self.free_at > self.wall

    def work(self, seconds: float) -> None:
        """Let the program work."""
        self.worked += seconds
        seconds *= self.machine.wall
        while seconds > 1e-12:
            share = self.machine.given if self.is_busy else 1.0
            part = min(seconds, (self.free_at - self.wall) * share) if self.is_busy else seconds
            self.wall += part / share
            seconds -= part

    def compile(self, seconds: float) -> float:
        """Let the compiler work, after what it has to do already. Returns the seconds that this takes it."""
        whole_s = seconds * self.machine.compiler * self.machine.wall / self.machine.taken
        self.free_at = max(self.free_at, self.wall) + whole_s
        return whole_s


def play(score: Score, machine: Machine, folder: Path, without: str | None = None) -> dict[str, Any]:
    """Play a score once, with accel's own targets. folder: of the disk cache, which a second run finds filled.

    without: the name of a mechanism to take out first.
    """
    clock = Clock(machine)
    _set_the_clock(clock)
    from accel.platform import processors

    processors.usable = lambda: machine.processors
    if without is not None:
        _take_out(without)  # which imports more of accel
    from accel.dispatch import accelerated
    from accel.platform import config
    from accel.platform.ledger import current_run

    played = {each.name: each for each in score.units}
    _price(clock, score, played)
    source = folder.parent / "played.py"
    source.write_text(_source(score), encoding="utf-8")
    os.utime(source, (0, 0))  # a recording is not kept of what may have changed since it was imported
    sys.path.insert(0, str(folder.parent))
    space = vars(importlib.import_module("played"))
    left = [score.times]

    def timed(own: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            clock.work(seconds)
            return own(*given)

        return run

    with config.override(cache_dir=folder, ahead_of_time=True, finish_s=60.0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in played.values():
            own = space[each.name]
            of_loop = each is score.loop
            made = accelerated(own, name=each.name, in_parts=own.__code__ if of_loop else None)
            made._self_target.function = timed(own, each.own_s)
            if of_loop and score.counted:
                made._self_target.parts.calls_left = lambda: left[0]
            space[each.name] = made
        began = clock.wall
        clock.work(score.setup_s + score.first_s)
        _run(score, space, left)
        for each in played.values():
            space[each.name]._self_target.let_go()
    return {
        "seconds": clock.wall - began,
        "costs": {name: round(seconds, 3) for name, seconds in current_run().costs.items()},
        "counts": clock.counts,
    }


def _run(score: Score, space: dict[str, Any], left: list[int]) -> None:
    import numpy as np

    x = np.ones(4)
    for number in range(score.times):
        left[0] -= 1
        kinds = [each.kinds[number % len(each.kinds)] for each in score.functions]
        if score.loop is not None:
            prints = score.plain == "all" or number in score.plain
            space["loop"](x, score.loop.kinds[number % len(score.loop.kinds)], prints, *kinds)
            continue
        for each, kind in zip(score.functions, kinds, strict=True):
            for _ in range(each.calls):
                space[each.name](x, kind)


def _source(score: Score) -> str:
    """The functions that are played: as many operations as the score says, and a branch for each kind."""
    lines = []
    for each in score.units:
        of_loop = each is score.loop
        names = [f"kind{place}" for place, _ in enumerate(score.functions)]
        parameters = ["x", "kind", *(["prints", *names] if of_loop else [])]
        lines += ["", f"def {each.name}({', '.join(parameters)}):", "    y = x"]
        for kind in sorted(set(each.kinds))[1:]:
            more = [f"        y = y * {kind + 1.5 + place / 64}" for place in range(1 + each.longer // SCALE)]
            lines += [f"    if kind == {kind}:", *more]
        own = each.operations - (sum(other.operations for other in score.functions) if of_loop else 0)
        lines += [f"    y = y * {1.0 + place / 64} + x" for place in range(max(1, own // SCALE // 2))]
        if of_loop:
            for name, other in zip(names, score.functions, strict=True):
                lines += [f"    y = y + {other.name}(x, {name})"] * other.calls
            lines += ["    if prints:", "        print(end='', file=open('/dev/null', 'w'))"]
        lines += ["    return y"]
    return "\n".join(lines) + "\n"


def _set_the_clock(clock: Clock) -> None:
    import time

    time.perf_counter = time.monotonic = lambda: clock.wall
    time.thread_time = time.process_time = lambda: clock.worked


def _price(clock: Clock, score: Score, played: Mapping[str, Played]) -> None:
    """Let what accel does take the score's seconds: recording, describing, compiling, loading, launching."""
    from accel import record as recorder
    from accel.backend.disk import recordings
    from accel.backend.underway import queues
    from accel.backend.underway.pending import PendingProgram
    from accel.dispatch import late
    from accel.dispatch.compiling import Compiling
    from accel.dispatch.replaying import Answered, Replaying
    from accel.platform.ledger import current_run
    from accel.policy import account, prices

    for price in (prices.recording, prices.describing, prices.compiling, prices.loading):
        price._each_s *= SCALE
    account.recorded._last[0] = account.GUESSED_OPERATIONS / SCALE, account.GUESSED_IN_S
    prices.worker_s = WORKER_S * prices.ALONE

    def count(name: str) -> None:
        clock.counts[name] = clock.counts.get(name, 0) + 1

    def after(owner: Any, name: str, seconds_of: Callable[..., float]) -> None:
        """Let a function take seconds, after it has run."""
        own = getattr(owner, name)

        def run(*given: Any, **options: Any) -> Any:
            result = own(*given, **options)
            clock.work(seconds_of(result, *given))
            return result

        setattr(owner, name, run)

    def nodes(trace: Any) -> int:
        return SCALE * len(trace.tape.nodes)

    def record_s(result: Any, *_: Any) -> float:
        count("recordings")
        trace = getattr(result, "trace", None)
        return 0.05 if trace is None else score.record_s * nodes(trace)

    def imported_s(_: Any) -> float:
        first = "imports" not in clock.counts
        count("imports")
        return IMPORT_S if first else 0.0

    after(recorder, "record", record_s)
    after(late, "import_now", imported_s)
    late.prestart = lambda: None
    Compiling._trial = lambda *_: None  # type: ignore[method-assign]

    read = recordings.read

    def read_all(*given: Any) -> Iterator[Any]:
        for trace in read(*given):
            clock.work(score.load_s * nodes(trace))
            yield trace

    recordings.read = read_all  # type: ignore[assignment]
    compile_now = queues.compile_now

    def compile_in_background(pending: PendingProgram) -> PendingProgram:
        made, trace = compile_now(pending), pending._arguments[0]
        if made.found_on_disk:
            clock.work(score.load_s * nodes(trace))
            made.there_at = clock.wall  # type: ignore[attr-defined]
        else:
            if "compiles" not in clock.counts:
                clock.compile(WORKER_S)
            count("compiles")
            clock.work(score.describe_s * nodes(trace))
            made.result().seconds = clock.compile(0.02 + score.compile_s * nodes(trace))
            made.there_at = clock.free_at  # type: ignore[attr-defined]
        return made

    queues.compile_in_background = compile_in_background
    queues.busy = lambda: clock.is_busy

    def done(made: PendingProgram) -> bool:
        return clock.wall >= float(getattr(made, "there_at", 0.0))

    PendingProgram.done = done  # type: ignore[assignment, method-assign]
    replay, as_before = Replaying.replay, Replaying.answer_as_before

    def launch(program: Any) -> None:
        seconds = played[program.name].compiled_s
        clock.work(seconds)
        current_run().launched_s += seconds * clock.machine.wall

    def replayed(self: Replaying, program: Any, values: Any, call: Any) -> Any:
        launch(program)
        given = replay(self, program, values, call)
        count("compiled calls" if isinstance(given, Answered) else "discarded runs")
        return given

    def answered_as_before(self: Replaying, program: Any, call: Any) -> bool:
        launch(program)
        is_answered = as_before(self, program, call)
        count("compiled calls" if is_answered else "discarded runs")
        return is_answered

    Replaying.replay = replayed  # type: ignore[method-assign]
    Replaying.answer_as_before = answered_as_before  # type: ignore[method-assign]


# -- the table ---------------------------------------------------------------------------------------------------------

WITHOUT: dict[str, tuple[str, object]] = {
    "certain gains": ("accel.policy.prices:CERTAIN", math.inf),
    "measured prices": ("accel.policy.prices:Price.note", lambda *_: None),
    "later runs": ("accel.platform.config:Settings.finishes", False),
    "parts": ("accel.policy.parts:Parts.come_first", False),
    "prediction": ("accel.dispatch.paths.prediction:PathPredictor.predicted", lambda _: None),
    "one program for several": ("accel.dispatch.paths.joining:may_join", lambda _: False),
}
"""Mechanisms that may be taken out, by name: where each is, and what stands in its place."""


def _take_out(name: str) -> None:
    """Take a mechanism out of this process."""
    place, value = WITHOUT[name]
    module, path = place.split(":")
    *owners, attribute = path.split(".")
    owner: Any = importlib.import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    setattr(owner, attribute, value)


def runs_of(score: Path, machine: str, without: str | None = None) -> list[dict[str, Any]]:
    """A first, a second and a third run, each in a process of its own."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.policy", str(score), "--machine", machine]
        command += ["--folder", str(Path(folder) / "cache"), *(["--without", without] if without else [])]
        environment = {**os.environ, "QD_JAX_QUIET": "1"}
        for _ in range(3):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode:
                raise RuntimeError(done.stderr)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    return found


def row(score: Score, machine: Machine, runs: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """A row of the table, and whether both runs are within their bounds."""
    numpy_s = score.numpy_s * machine.wall
    cells, holds = [], True
    for place, run in enumerate(runs):
        best_s = hindsight_s(score, machine, second=bool(place)) * machine.wall
        seconds = run["seconds"]
        had = (numpy_s - seconds) / (numpy_s - best_s) if numpy_s - best_s > 0.01 else 1.0
        is_held = seconds <= MOST * numpy_s + MOST_S and (numpy_s < LONG_S or had >= HAD)
        holds = holds and is_held
        cells.append(f"{seconds / numpy_s:5.2f} {best_s / numpy_s:5.2f}{' ' if is_held else '*'}")
    return f"{numpy_s:8.1f} s   {'   '.join(cells)}", holds


def main(args: Sequence[str] | None = None) -> int:
    """Play the scores that are named, or all of them. Returns 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scores", nargs="*", type=Path, help="files; default: all of benchmarks/scores")
    parser.add_argument("--machine", choices=MACHINES, help="one machine alone")
    parser.add_argument("--without", choices=WITHOUT, help="take this out")
    parser.add_argument("--folder", type=Path, help="play one run with this disk cache, and print its figures")
    options = parser.parse_args(args)
    scores = options.scores or sorted(SCORES.glob("*.json"))
    if options.folder is not None:
        machine = MACHINES[options.machine or "two"]
        print(json.dumps(play(read(scores[0]), machine, options.folder, options.without)))
        return 0
    names = [options.machine] if options.machine else list(MACHINES)
    print(f"{'':44}{'NumPy':>8}     first best   second best    third best")
    broken = 0
    for path, name in itertools.product(scores, names):
        score = read(path)
        text, holds = row(score, MACHINES[name], runs_of(path, name, options.without))
        broken += not holds
        print(f"{score.name:28} {name:14} {text}", flush=True)
    print(f"{broken} of {len(scores) * len(names)} rows are beyond their bounds (*)")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
