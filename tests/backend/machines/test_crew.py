"""The crew without processes: what rank 0 does where a rank fails or is gone, and what is printed meanwhile."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
from multiprocessing.connection import Connection, Pipe
from typing import Any

import jax
import numpy as np
import pytest

from accel.backend.machines import chatter, joining
from accel.backend.machines.crew import BUILDS, CONNECTIONS, RUNS, Crew, Rank, RankLost
from accel.backend.machines.pieces import Layout, first_copies, whole
from accel.backend.shards import COLUMNS, shards_of


def crew_of(size: int) -> tuple[Crew, list[dict[str, Connection]]]:
    """A crew, and the other ends of its connections."""
    members, ends = [], []
    for rank in range(1, size):
        pipes = {name: Pipe() for name in CONNECTIONS}
        members.append(Rank(rank, f"process {rank}", {name: pipe[0] for name, pipe in pipes.items()}))
        ends.append({name: pipe[1] for name, pipe in pipes.items()})
    return Crew(members, size), ends


def waits() -> Any:
    threading.Event().wait(60)


def fails() -> Any:
    return 1 / 0


def test_answers_come_from_those_that_take_part() -> None:
    crew, ends = crew_of(3)
    ends[1][RUNS].send(("made by 2", ""))
    assert crew.run({2: "told"}, lambda: "made here") == ("made here", {2: "made by 2"})
    assert ends[1][RUNS].recv() == "told" and not ends[0][RUNS].poll()
    for end, problem in zip(ends, ("", "no kernel"), strict=True):
        end[BUILDS].send((0, problem))
    assert crew.build({1: "a", 2: "b"}, lambda: 7) == (7, "no kernel")
    assert ends[0][BUILDS].recv() == (0, "a")


def test_a_failed_build_leaves_no_answers_to_the_next() -> None:
    crew, ends = crew_of(2)
    for number, problem in enumerate(("of the first", "of the second", "of the third")):
        ends[0][BUILDS].send((number, problem))

    def within() -> Any:  # a handler of the program's, while a program is built
        return crew.build({1: "third"}, lambda: 7)

    with pytest.raises(ZeroDivisionError):
        crew.build({1: "first"}, lambda: 1 / 0)
    assert crew.build({1: "second"}, within) == ((7, "of the third"), "of the second")


def test_a_rank_that_is_gone_in_a_build_ends_the_job(capfd: pytest.CaptureFixture[str]) -> None:
    crew, ends = crew_of(2)
    ends[0][BUILDS].close()
    for attempt in (lambda: crew.build({1: "a"}, lambda: 7), crew.check, lambda: crew.run({}, lambda: 7)):
        with pytest.raises(SystemExit):
            attempt()
    assert capfd.readouterr().err.startswith("accel: rank 1 of 2 (process 1) is gone: the job ends;")


def test_a_rank_that_does_not_answer_is_named_and_does_not_keep_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("PATIENCE_S", "NOTICE_S", "_STEP_S"):
        monkeypatch.setattr(f"accel.backend.machines.crew.{name}", 0.05)
    crew, _ = crew_of(3)
    large = np.ones(10**6)  # sending it takes until the rank reads it
    sent_at = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    sent_at.start()
    with chatter.held_back(), pytest.raises(KeyboardInterrupt):
        crew.run({2: large}, lambda: 7)
    with pytest.raises(SystemExit):
        crew.check()
    waits_on, ended = capfd.readouterr().err.splitlines()
    assert waits_on == "accel: rank 2 of 3 (process 2) has not answered for 0.05 s: rank 0 waits on"
    assert ended.startswith(
        "accel: interrupted, and rank 2 of 3 (process 2) did not answer within 0.05 s: the job ends"
    )


@pytest.mark.parametrize("what", ["gone", "failed", "here", "here, as one is gone", "failed, as one is gone"])
def test_a_run_that_cannot_end_ends_the_job_with_one_line(what: str, capfd: pytest.CaptureFixture[str]) -> None:
    crew, ends = crew_of(3)
    own = fails if what.startswith("here") else waits
    if what == "failed, as one is gone":
        ends[0][RUNS].send((None, "RuntimeError: connection reset"))
    if what == "failed":
        ends[1][RUNS].send((None, "RuntimeError: no memory\nand more"))
        said = "rank 2 of 3 (process 2) has failed: RuntimeError: no memory"
    elif what == "here":
        said = "rank 0 of 3 has failed: ZeroDivisionError: division by zero"
    else:
        threading.Timer(0.0 if what == "gone" else 0.3, ends[1][RUNS].close).start()
        said = "rank 2 of 3 (process 2) is gone"
    message = {1: "told", 2: "told"}
    for _ in range(2):  # nothing is run afterwards
        with pytest.raises(SystemExit) as caught:
            crew.run(message, own)
        assert caught.value.code == 1
    assert capfd.readouterr().err == f"accel: {said}: the job ends; what the program has written stays as it is\n"
    raised: list[BaseException] = []

    def beside() -> None:
        try:
            crew.run(message, own)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert [type(error) for error in raised] == [RankLost], "the main thread ends the job"


# -- joining -----------------------------------------------------------------------------------------------------------


class Store:
    """JAX's store of keys and values. As soon as rank 0's place is known, a stranger comes, and then a rank."""

    def __init__(self) -> None:
        self.lines: dict[str, Connection] = {}

    def key_value_set_bytes(self, key: str, value: bytes) -> None:
        self.place = value
        self.other = threading.Thread(target=self._come)
        self.other.start()

    def _come(self) -> None:
        host, port, _ = pickle.loads(self.place)
        with socket.create_connection((host, port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
        self.lines = joining._serving_lines(1)

    def blocking_key_value_get_bytes(self, key: str, limit: int) -> bytes:
        return self.place


def test_who_is_no_rank_is_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    monkeypatch.setattr("accel.platform.jax_internals.distributed_state", lambda: (store, "127.0.0.1:1"))
    crew = joining._assembled(2)
    store.other.join()
    (member,) = crew.members
    assert member.rank == 1 and member.about.startswith(f"process {os.getpid()} on ")
    for name in CONNECTIONS:
        store.lines[name].send(name)
        assert member.lines[name].recv() == name


# -- pieces and chatter ------------------------------------------------------------------------------------------------


def test_an_array_is_cut_and_put_together() -> None:
    layout = Layout((3, 4), shards_of(jax.devices()[:1], COLUMNS, 4).of((3, 4)), 0)
    array = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    placed = layout.placed(layout.cut(array))
    np.testing.assert_array_equal(np.asarray(placed), array)
    np.testing.assert_array_equal(whole((3, 4), np.float32, first_copies(placed)), array)
    halves = [(((0, 3), (2, 4)), array[:, 2:]), (((0, 3), (0, 2)), array[:, :2])]
    np.testing.assert_array_equal(whole((3, 4), np.float32, halves), array)
    number = Layout((), shards_of(jax.devices()[:1], COLUMNS, 4).everywhere, 0)
    assert [part.shape for part in number.cut(np.array(True))] == [()]


def test_chatter_alone_is_held_back(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), chatter.held_back():
        os.write(1, b"[Gloo] Rank 0 is connected to 1 peer ranks.\nthe program's [Gloo] line\nand half a li")
        os.write(1, b"ne")
        os.write(2, b"W1125 14:38:16.371795   21364 coordination_service.cc:185] [1] Using it.\nan error\n")
        raise ZeroDivisionError
    with chatter.held_back(False):
        os.write(1, b"\n[Gloo] later\n")
    out, err = capfd.readouterr()
    assert out == "the program's [Gloo] line\nand half a line\n[Gloo] later\n" and err == "an error\n"
