"""Random programs whose paths meet again: any number of them, by one command, with no time spent on what tests nothing.

    python -m tests.random_programs --count 20000 --seed 1 --workers 2

Each program is tried as the tests of the same kind do (in tests/compiler): paths are recorded,
one program is compiled of them, and every replay is compared with NumPy. A mismatch is printed with its source and with
the command that repeats it. Calls that go a way that is known are not recorded again, and nine programs of ten are
compiled without LLVM's optimizations, as operations by themselves: XLA's own passes, and every part of accel, are the
same.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import multiprocessing
import random
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np

from accel.backend import compile as compiling
from accel.backend.options import options_for
from accel.compiler.merge import NotMergeable
from accel.platform import config
from tests.compiler.kernels.merging import try_body
from tests.compiler.loops import programs as loop_programs
from tests.compiler.loops import runs as loop_runs
from tests.compiler.merge import programs as branch_programs
from tests.compiler.merge.joining import Joining, joining, joining_calls
from tests.compiler.merge.runs import Call, Merged, Replayed, State, assert_agrees, traces_of
from tests.xla_options import quickest_options_for

USUAL_EVERY = 10
"""One program of so many is compiled with accel's usual options."""

BRANCH_CALLS = 24, 40
JOIN_CALLS = 10, 60
LOOP_CALLS = 6, 24
"""How many calls are recorded, and how many replayed."""
LOOPS_COMPILED = 3
CHUNK = 25
CHUNKS_OF_PROCESS = 40
"""After so many chunks a process makes room for another: JAX keeps something of each program."""


def try_branches(draw: random.Random) -> Counter[str]:
    """One program of all the recorded paths of a function with branches gives NumPy's results, or none."""
    source = branch_programs.Writer(draw).program()
    function = branch_programs.program_of(source)
    recorded, replayed = BRANCH_CALLS
    with _merged(function, branch_programs.calls(1, recorded)) as program:
        if program is None:
            return Counter()
        taken = assert_agrees(function, program, branch_programs.calls(2, replayed), source)
    return Counter(merged=1, replayed=taken)


def try_joins(draw: random.Random) -> Counter[str]:
    """One program of recorded paths whose sides meet again gives NumPy's results, or none."""
    source = Joining(draw).program()
    function = joining(source)
    recorded, replayed = JOIN_CALLS
    seed = draw.randrange(2**30)
    with _merged(function, joining_calls(seed, recorded)) as program:
        if program is None:
            return Counter()
        taken = assert_agrees(function, program, copy.deepcopy(list(joining_calls(seed + 1, replayed))), source)
    return Counter(merged=1, replayed=taken)


def try_loops(draw: random.Random) -> Counter[str]:
    """Whatever number of iterations a loop by data takes, a replay gives NumPy's results, or none."""
    source = loop_programs.Writer(draw).program()
    function = loop_runs.program_of(source)
    recorded, replayed = LOOP_CALLS
    seed = draw.randrange(2**30)
    # the first few paths that have loops
    found: dict[str, Any] = {}
    tally: Counter[str] = Counter()
    for trace in loop_runs.traces_of(function, loop_calls(seed, recorded)):
        if loop_runs.loops_of(trace):
            found.setdefault(str([(node.rule.name, node.where) for node in trace.tape.nodes]), trace)
            if len(found) == LOOPS_COMPILED:
                break
    for trace in found.values():
        program = Replayed(trace)
        taken = assert_agrees(function, program, loop_calls(seed + 1, replayed), source)
        tally.update(rolled=1, replayed=taken)
    return tally


def loop_calls(seed: int, count: int) -> list[Call]:
    """Arguments of calls of a program with loops."""
    generator = np.random.default_rng(seed)
    made: list[Any] = []
    for _ in range(count):
        x, y = (generator.normal(size=4) * generator.choice((0.3, 1.0, 3.0)) for _ in range(2))
        state = State(u=generator.normal(size=4), w=np.zeros(4), n=0)
        made.append((x, y, float(generator.choice((0.01, 0.1, 1.0, 5.0))), state))
    return made


KINDS: dict[str, Callable[[random.Random], Counter[str]]] = {
    "branches": try_branches,
    "joins": try_joins,
    "loops": try_loops,
    "bodies": try_body,
}
TURNS = (*("branches", "joins") * 4, "bodies", "loops")
"""Whose turn it is, over and over: a program with loops takes several times as long as another."""


@contextlib.contextmanager
def _merged(function: Callable[..., Any], calls: Iterable[Call]) -> Iterator[Merged | None]:
    """The program of the paths that calls take; None if there is none. Nobody minds floating-point warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traces = traces_of(function, calls_of_new_ways(function, calls))
        program = None
        if traces:
            with contextlib.suppress(NotMergeable):
                program = Merged(traces)
        yield program


def calls_of_new_ways(function: Callable[..., Any], calls: Iterable[Call]) -> Iterator[Call]:
    """Those of the calls that execute a sequence of instructions that none before them has."""
    known_ways = set()
    for call in calls:
        way = way_of(function, copy.deepcopy(call))
        if way not in known_ways:
            known_ways.add(way)
            yield call


def way_of(function: Callable[..., Any], call: Call) -> tuple[tuple[int, int], ...]:
    """The instructions of the program's own that a call executes."""
    executed: list[tuple[int, int]] = []
    of_program = function.__code__.co_filename

    def note(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            executed.append((id(frame.f_code), frame.f_lasti))
        return note

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != of_program:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return note

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        function(*call)
    except Exception:
        pass  # the program's own: where it is raised is part of the way
    finally:
        sys.settrace(before)
    return tuple(executed)


# -- the command -------------------------------------------------------------------------------------------------------


def kind_of(number: int) -> str:
    """The kind of a program, by its number."""
    return TURNS[number % len(TURNS)]


def try_number(seed: int, number: int) -> tuple[Counter[str], str | None]:
    """Try one program. Returns what it counted, and what went wrong."""
    kind = kind_of(number)
    # of each kind's programs one of USUAL_EVERY
    options = options_for if number // len(TURNS) % USUAL_EVERY == 0 else quickest_options_for
    try:
        with mock.patch.object(compiling, "options_for", options), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tally = KINDS[kind](random.Random(f"{seed} {kind} {number}"))
    except Exception:
        again = f"python -m tests.random_programs --seed {seed} --first {number} --count 1"
        return Counter({kind: 1}), f"program {number} ({kind}); again with: {again}\n{traceback.format_exc()}"
    return Counter({kind: 1, **tally}), None


def try_chunk(seed: int, numbers: range) -> tuple[Counter[str], list[str]]:
    """Try some programs, in a process that does nothing else."""
    config.set_current(config.Settings(quiet=True, cache_dir=None))
    gc.collect()
    gc.freeze()  # JAX's own objects need not be looked through again and again
    tally: Counter[str] = Counter()
    mismatches = []
    started = time.process_time()
    for number in numbers:
        counted, wrong = try_number(seed, number)
        tally.update(counted)
        if wrong:
            mismatches.append(wrong)
    tally["processor_ms"] = round(1000.0 * (time.process_time() - started))
    return tally, mismatches


def _tried(seed: int, chunks: Sequence[range], workers: int) -> Iterator[tuple[Counter[str], list[str]]]:
    # new processes now and then, as LLVM lets go of nothing. By `max_tasks_per_child`, Python 3.11 may hang
    context, together = multiprocessing.get_context("spawn"), workers * CHUNKS_OF_PROCESS
    for at in range(0, len(chunks), together):
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            under_way = [pool.submit(try_chunk, seed, chunk) for chunk in chunks[at : at + together]]
            yield from (future.result() for future in as_completed(under_way))


def try_all(seed: int, numbers: range, workers: int) -> tuple[Counter[str], int]:
    """Try all programs, and print how far it is, and each mismatch. Returns the counts and the number of mismatches."""
    started = time.monotonic()
    tally: Counter[str] = Counter()
    done = wrong = 0
    chunks = [numbers[at : at + CHUNK] for at in range(0, len(numbers), CHUNK)]
    for counted, mismatches in _tried(seed, chunks, workers):
        tally.update(counted)
        done += sum(counted[kind] for kind in KINDS)
        wrong += len(mismatches)
        for each in mismatches:
            print(f"MISMATCH: {each}", flush=True)
        rate = 60.0 * done / (time.monotonic() - started)
        print(f"{done} of {len(numbers)} programs, {wrong} mismatches, {rate:.0f} a minute", flush=True)
    return tally, wrong


def commit() -> str:
    """The commit of the tree that this file lies in, and whether it was changed since."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    here = Path(__file__).parent
    try:
        found = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def main(arguments: list[str] | None = None) -> int:
    """Try programs as the command line says; 1 if there was a mismatch."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="others for each seed")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--workers", type=int, default=1, help="how many processes")
    chosen = parser.parse_args(arguments)
    numbers = range(chosen.first, chosen.first + chosen.count)
    tally, wrong = try_all(chosen.seed, numbers, chosen.workers)
    kinds = ", ".join(f"{tally[kind]} {kind}" for kind in KINDS)
    print(f"{kinds}; {tally['merged']} merged programs and {tally['rolled']} with loops by data were compiled;")
    print(f"{tally['replayed']} calls replayed")
    print(f"{tally['processor_ms'] / 1000.0 / max(1, chosen.count):.3f} s of a processor for each")
    print(f"{chosen.count:,} programs, {wrong} mismatches, commit {commit()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
