"""Serving: the main loop of a rank other than 0, which runs none of the user's program."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from accel.backend.machines import chatter
from accel.backend.machines.common import Build, RunOrder, built
from accel.backend.machines.crew import BUILDS, PULSE, RUNS
from accel.backend.machines.pieces import Layout, Piece, first_copies
from accel.backend.shards import shards_of
from accel.platform import config

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
"""Signals that terminals and launchers send to all ranks, to save the program's state or to end it.

Other ranks ignore them. Rank 0 receives them too, and its program decides: if it ends, all end.
"""


@dataclass(frozen=True, slots=True)
class _Program:
    compiled: Any
    constants: list[Any]
    layouts: list[Layout]


def serve(lines: Mapping[str, Connection], rank: int, size: int) -> NoReturn:
    """Build and run programs on rank 0's orders, until it ends or is lost. Ends the process."""
    for name in _SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    programs: dict[int, _Program] = {}

    def build(asked: tuple[int, Build]) -> tuple[int, str]:
        number, told = asked
        try:
            programs[told.number] = _built(told, rank)
        except Exception as error:
            return number, _said(error)
        return number, ""

    def run(told: RunOrder) -> tuple[list[list[Piece]] | None, str]:
        for number in told.dropped:
            programs.pop(number, None)
        try:
            return _ran(programs[told.number], told), ""
        except Exception as error:
            return None, _said(error)

    for answered in ((lines[BUILDS], build), (lines[RUNS], run)):
        threading.Thread(target=_answer, args=answered, daemon=True).start()
    _await_end(lines[PULSE], rank, size, chatter.silence(config.current().log == "debug"))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _answer(line: Connection, answer: Callable[[Any], Any]) -> None:
    """Answer the messages of a connection forever. The pulse handles its end."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            line.send(answer(line.recv()))


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


def _ran(program: _Program, told: RunOrder) -> list[list[Piece]]:
    """Run a program. Returns the parts of each result that no earlier rank has."""
    import jax

    with jax.enable_x64(True):
        given = [layout.placed(parts) for layout, parts in zip(program.layouts, told.parts, strict=True)]
        results = jax.block_until_ready(program.compiled(program.constants, given))
    return [first_copies(each) for each in results]
