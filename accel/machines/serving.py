"""Serving: what a rank other than 0 does, from its start to its end. It runs nothing of the user's program."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from accel import config
from accel.backend.shards import shards_of
from accel.machines import chatter
from accel.machines.common import Build, Run, built
from accel.machines.crew import BUILDS, PULSE, RUNS
from accel.machines.pieces import Layout, Piece, first_copies


@dataclass(frozen=True, slots=True)
class _Program:
    compiled: Any
    constants: list[Any]
    layouts: list[Layout]


def serve(lines: Mapping[str, Connection], rank: int, size: int) -> NoReturn:
    """Build and run programs as rank 0 says, until it ends or is gone. Ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what Ctrl-C is to do, rank 0 decides
    programs: dict[int, _Program] = {}

    def build(told: Build) -> str:
        programs[told.number] = _built(told, rank)
        return ""

    def run(told: Run) -> tuple[list[list[Piece]], str]:
        for number in told.dropped:
            programs.pop(number, None)
        return _ran(programs[told.number], told), ""

    for answered in ((lines[BUILDS], build, str), (lines[RUNS], run, lambda problem: (None, problem))):
        threading.Thread(target=_answer, args=answered, daemon=True).start()
    _await_end(lines[PULSE], rank, size, chatter.silence(config.current().log == "debug"))


def _answer(line: Connection, answer: Callable[[Any], Any], failed: Callable[[str], Any]) -> None:
    """Answer what comes on a connection, for ever; its end is that of the pulse, too."""
    try:
        while True:
            told = line.recv()
            try:
                found = answer(told)
            except Exception as error:
                found = failed(f"{type(error).__name__}: {error}")
            line.send(found)
    except (OSError, EOFError):
        pass


def _await_end(pulse: Connection, rank: int, size: int, spoken: int) -> NoReturn:
    """Wait for the program's end. A thread that waits in a collective does not keep the process. spoken: a stream."""
    try:
        word = pulse.recv()
    except (OSError, EOFError):
        word = ""
    if not word and rank == 1:  # one speaks for all
        os.write(spoken, f"accel: rank 0 of {size} is gone: the job ends\n".encode())
    os._exit(0 if word == "end" else 1)


def _built(told: Build, rank: int) -> _Program:
    import jax

    shards = shards_of(jax.devices()[: told.devices], told.axis, told.length)
    compiled, constants = built(told, shards)
    return _Program(compiled, constants, [Layout(shape, shards.of(shape), rank) for shape, _ in told.forms[1]])


def _ran(program: _Program, told: Run) -> list[list[Piece]]:
    """Run a program. Returns the parts of each result that no earlier rank has."""
    import jax

    with jax.enable_x64(True):
        given = [layout.placed(parts) for layout, parts in zip(program.layouts, told.parts, strict=True)]
        results = jax.block_until_ready(program.compiled(program.constants, given))
    return [first_copies(each) for each in results]
