"""The crew without processes: what rank 0 does where a rank fails or is gone, and what is printed meanwhile."""

from __future__ import annotations

import os
import threading
from multiprocessing.connection import Connection, Pipe
from typing import Any

import jax
import numpy as np
import pytest

from accel.backend.shards import COLUMNS, shards_of
from accel.machines import chatter
from accel.machines.crew import BUILDS, CONNECTIONS, RUNS, Crew, Member, RankLost
from accel.machines.pieces import Layout, first_copies, whole


def crew_of(size: int) -> tuple[Crew, list[dict[str, Connection]]]:
    """A crew, and the other ends of its connections."""
    members, ends = [], []
    for rank in range(1, size):
        pipes = {name: Pipe() for name in CONNECTIONS}
        members.append(Member(rank, f"process {rank}", {name: pipe[0] for name, pipe in pipes.items()}))
        ends.append({name: pipe[1] for name, pipe in pipes.items()})
    return Crew(members, size), ends


def waits() -> Any:
    threading.Event().wait(60)


def test_answers_come_from_those_that_take_part() -> None:
    crew, ends = crew_of(3)
    ends[1][RUNS].send(("made by 2", ""))
    assert crew.run({2: "told"}, lambda: "made here") == ("made here", {2: "made by 2"})
    assert ends[1][RUNS].recv() == "told" and not ends[0][RUNS].poll()
    for end, problem in zip(ends, ("", "no kernel"), strict=True):
        end[BUILDS].send(problem)
    assert crew.build({1: "a", 2: "b"}, lambda: 7) == (7, "no kernel")


def test_a_failed_build_leaves_no_answers_to_the_next() -> None:
    crew, ends = crew_of(2)
    for problem in ("of the first", "of the second"):
        ends[0][BUILDS].send(problem)
    with pytest.raises(ZeroDivisionError):
        crew.build({1: "first"}, lambda: 1 / 0)
    assert crew.build({1: "second"}, lambda: 7) == (7, "of the second")


@pytest.mark.parametrize("what", ["gone", "failed", "here"])
def test_a_run_that_cannot_end_ends_the_job_with_one_line(what: str, capfd: pytest.CaptureFixture[str]) -> None:
    crew, ends = crew_of(3)
    own = waits
    if what == "gone":
        ends[1][RUNS].close()
        said = "rank 2 of 3 (process 2) is gone"
    elif what == "failed":
        ends[1][RUNS].send((None, "RuntimeError: no memory\nand more"))
        said = "rank 2 of 3 (process 2) has failed: RuntimeError: no memory"
    else:
        said, own = "rank 0 of 3 has failed: ZeroDivisionError: division by zero", lambda: 1 / 0
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
