"""The crew: rank 0's connections to the other ranks.

Each rank has three connections to rank 0: for *builds*, which take seconds; for *runs*; and a *pulse*, whose end tells
the rank that rank 0 is gone. JAX's own messages would serve for none of them. Its key-value store cannot hold large
values, and a rank that waits in a collective cannot be told that another rank is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from queue import SimpleQueue
from typing import Any, NoReturn, TypeVar

from accel.backend.machines import chatter
from accel.platform import forks, interrupts
from accel.platform.clocks import time

T = TypeVar("T")

_Task = tuple[Callable[[], Any], list[Any], Connection]
"""A task for the thread: the function, the list for its result, and the connection that signals its completion."""

BUILDS, RUNS, PULSE = CONNECTIONS = ("builds", "runs", "pulse")

END, LOST = "end", "lost"
"""Messages of a pulse: the program has ended; another rank is gone."""

PATIENCE_S = 10.0
"""Seconds that rank 0 waits at its end for the other ranks. After a signal to end, it waits as long for a run."""

NOTICE_S = 60.0
"""Seconds without an answer after which rank 0 says so, once per job. It waits on: a rank may be stopped."""

_STEP_S = 1.0
"""Seconds between two checks for signals and lost ranks during a wait."""


class RankLost(Exception):
    """A rank is lost, so the ranks cannot run anything together any more."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Another rank. about: its machine and process, in words. lines: its connections, by name."""

    rank: int
    about: str
    lines: Mapping[str, Connection]


class Crew:
    """All ranks but 0. size: the number of ranks, including rank 0."""

    def __init__(self, members: Iterable[Rank], size: int) -> None:
        self.members = tuple(members)
        self.size = size
        self.lost = ""
        self._building = threading.RLock()
        self._builds = itertools.count()
        self._built: dict[tuple[int, int], str] = {}
        self._has_said_that_it_waits = False
        self._reporting = threading.Lock()
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def build(self, message: Mapping[int, Any], own: Callable[[], T]) -> tuple[T, str]:
        """Build a program on all ranks. Returns the result of `own` here, and a problem elsewhere, or "".

        message: to each rank that takes part. If a rank is lost, the job ends as in `run`.
        """
        with self._building, self._ending_the_job():
            number = next(self._builds)
            with interrupts.Deferral():  # else half a message may be sent
                self._send(BUILDS, {rank: (number, each) for rank, each in message.items()})
            made = own()
            problems = [self._answer(member, number) for member in self.members if member.rank in message]
            return made, next((problem for problem in problems if problem), "")

    def _answer(self, member: Rank, number: int) -> str:
        """Return a rank's answer to a build. Skips answers to earlier builds that were interrupted or failed here."""
        began, line = time.monotonic(), member.lines[BUILDS]
        while (member.rank, number) not in self._built:
            if not line.poll(_STEP_S):
                self._say_that_it_waits(began, [member])
                continue
            with interrupts.Deferral():
                if line.poll():
                    answered, problem = self._heard(member, BUILDS)
                    self._built[member.rank, answered] = problem
        return self._built.pop((member.rank, number))

    def run(self, message: Mapping[int, Any], own: Callable[[], T]) -> tuple[T, dict[int, Any]]:
        """Run a program on all ranks. Returns the result of `own` here, and the answers by rank.

        message: to each rank that takes part. The caller must ensure that one program runs at a time.

        own: runs in another thread, because it may wait forever once a rank is lost. If a rank is lost or has failed,
        the job ends (SystemExit): the remaining ranks may wait in a collective forever. Outside the main thread
        RankLost is raised instead, and the main thread ends the job at its next program.
        """
        with self._ending_the_job(), interrupts.Deferral() as deferral:  # the next must not find answers to this one
            try:
                return self._together(message, own, deferral)
            except Exception as error:
                self._lose(f"rank 0 of {self.size} has failed: {type(error).__name__}: {error}")  # else it was said
                raise RankLost(self.lost) from None

    @contextlib.contextmanager
    def _ending_the_job(self) -> Iterator[None]:
        """End the job if a rank is lost within the block, or was before."""
        self.check()
        try:
            yield
        except RankLost:
            self.check()
            raise

    def check(self) -> None:
        """End the job if a rank is lost: SystemExit in the main thread, else RankLost. Call before programs run."""
        if self.lost:
            is_main = threading.current_thread() is threading.main_thread()
            raise (SystemExit(1) if is_main else RankLost(self.lost)) from None

    def _together(
        self, message: Mapping[int, Any], own: Callable[[], T], deferral: interrupts.Deferral
    ) -> tuple[T, dict[int, Any]]:
        done, finished = Pipe(duplex=False)
        results: list[Any] = []
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="accel-rank-0", daemon=True)
            self._thread.start()

        def sent_and_run() -> T:
            self._send(RUNS, message)  # which may take for ever, too
            return own()

        self._tasks.put((sent_and_run, results, finished))
        awaited = {member.lines[RUNS]: member for member in self.members if member.rank in message}
        answers: dict[int, Any] = {}
        waiting: set[Any] = {done, *awaited}
        began = time.monotonic()
        with done:
            while waiting:
                for each in self._ready(waiting, awaited, began, deferral):
                    waiting.discard(each)
                    whom, problem = f"rank 0 of {self.size}", ""
                    if each is not done:
                        whom = self._names([awaited[each]])
                        answers[awaited[each].rank], problem = self._heard(awaited[each], RUNS)
                    elif isinstance(results[0], BaseException):
                        problem = f"{type(results[0]).__name__}: {results[0]}"
                    if problem:
                        self._fail(whom, problem, [awaited[other] for other in waiting if other in awaited])
        return results[0], answers

    def _fail(self, whom: str, problem: str, others: Sequence[Rank]) -> NoReturn:
        """End the job: a rank's part of a run has failed. others: ranks that have not answered.

        If one of these is gone, the other ranks' parts fail as well, perhaps before. The message then names that rank.
        """
        left: dict[Any, Rank] = {member.lines[RUNS]: member for member in others}
        ends = time.monotonic() + _STEP_S
        while left and (ready := wait(left, max(0.0, ends - time.monotonic()))):
            for each in ready:
                self._heard(left.pop(each), RUNS)
        self._lose(f"{whom} has failed: {problem.splitlines()[0]}")
        raise RankLost

    def _ready(
        self, waiting: set[Any], awaited: Mapping[Any, Rank], began: float, deferral: interrupts.Deferral
    ) -> list[Any]:
        """Wait until one of these connections has a message. awaited: their ranks. began: start time of the run.

        Ends the job if a signal asks for it and no message comes.
        """
        members = [awaited[each] for each in waiting if each in awaited]
        asked: float | None = None
        while not (found := wait(waiting, _STEP_S)):
            self._say_that_it_waits(began, members)
            if deferral.is_asked_to_end:
                asked = asked or time.monotonic()
                if time.monotonic() - asked > PATIENCE_S:
                    whom = self._names(members) or f"rank 0 of {self.size}"
                    self._lose(f"interrupted, and {whom} did not answer within {PATIENCE_S:g} s")
                    raise RankLost
        return found

    def _say_that_it_waits(self, began: float, members: Sequence[Rank]) -> None:
        if members and not self._has_said_that_it_waits and time.monotonic() - began > NOTICE_S:
            self._has_said_that_it_waits = True
            chatter.say(f"{self._names(members)} has not answered for {NOTICE_S:g} s: rank 0 waits on")

    def _names(self, members: Iterable[Rank]) -> str:
        return ", ".join(f"rank {each.rank} of {self.size} ({each.about})" for each in members)

    def _work(self) -> None:
        """Run rank 0's own parts. The main function of that thread."""
        while True:
            own, results, finished = self._tasks.get()
            try:
                results.append(own())
            except BaseException as error:
                results.append(error)
            with finished, contextlib.suppress(OSError):  # closed: nobody waits any more
                finished.send_bytes(b".")

    def _send(self, line: str, message: Mapping[int, Any]) -> None:
        for member in self.members:
            if member.rank in message:
                try:
                    member.lines[line].send(message[member.rank])
                except OSError:
                    self._gone(member)

    def _heard(self, member: Rank, line: str) -> Any:
        try:
            return member.lines[line].recv()
        except (OSError, EOFError):
            return self._gone(member)

    def _gone(self, member: Rank) -> None:
        self._lose(f"{self._names([member])} is gone")
        raise RankLost(self.lost)

    def _lose(self, why: str) -> None:
        """Say once that the job ends, and why. It ends at the next program that runs or is built."""
        with self._reporting:
            if self.lost:
                return
            self.lost = why
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"accel: {why}: the job ends; what the program has written stays as it is\n")
            sys.stderr.flush()

    def end(self) -> None:
        """Let the other ranks end, at the end of rank 0's process. After a loss this ends the process, with exit code
        1."""
        for member in self.members:
            with contextlib.suppress(OSError):
                member.lines[PULSE].send(LOST if self.lost else END)
        if self.lost:  # a thread may wait for the lost rank for ever, and JAX for the thread
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(1)
        for member in self.members:  # they need this process's part of JAX until they are gone
            member.lines[PULSE].poll(PATIENCE_S)

    def leave(self) -> None:
        """Close this process's end of all connections. For a forked child of rank 0, which is no part of the crew."""
        for member in self.members:
            for line in member.lines.values():
                line.close()


current: Crew | None = None
"""The crew of this process, if it is rank 0 of several; else None."""


@forks.in_child
def _in_child() -> None:
    global current
    if current is not None:
        current.leave()
        current = None
