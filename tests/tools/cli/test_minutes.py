"""What is said while a program runs."""

from __future__ import annotations

import os
import threading
from types import ModuleType

import pytest

from accel.backend.underway import queues
from accel.platform import observers
from accel.tools.cli import minutes
from accel.tools.plugins import lines, notebook


def test_a_line_says_what_is_compiled_and_what_that_gains(books: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert minutes.state() == "0 functions compiled"
    books.open_ledger("model:step").count_compiled(1.0, 3.0)
    assert minutes.state() == "1 function compiled (model:step); +3.0 s so far"
    books.current_run().fair_s(4.0, 1.0)
    assert minutes.state() == "1 function compiled (model:step)", "nobody can tell the gain on a busy machine"
    monkeypatch.setattr(queues, "progress", lambda: "compiling 1 of 2, model:warm for 4 s")
    assert minutes.state() == "1 function compiled (model:step); compiling 1 of 2, model:warm for 4 s"


def test_a_line_is_written_only_when_something_has_changed(books: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    told = iter(["one", "one", "two"])
    monkeypatch.setattr(minutes, "INTERVAL_S", 0.0)
    monkeypatch.setattr(minutes, "state", lambda: next(told))
    monkeypatch.setattr(os, "write", lambda _, text: written.append(text))

    class Over(BaseException):
        pass

    def ends(*_: object) -> bool:
        if len(written) == 2:
            raise Over
        return False

    monkeypatch.setattr(threading.Event, "wait", ends)
    with pytest.raises(Over):
        minutes._work()
    assert [text.decode().rpartition(": ")[2] for text in written] == ["one\n", "two\n"]


def test_its_thread_keeps_no_arrays_from_staying_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", lambda self: started.append(self.name))
    minutes.start()
    monkeypatch.setattr(threading.Thread, "join", lambda self: None)
    lines.Looking().stop()
    assert set(started) <= observers.WAITING_THREADS and len(started) == 2


def test_a_cell_is_told_of_alone(books: ModuleType) -> None:
    book = books.open_ledger("f")
    book.count_compiled(1.0, 100.0)
    cell = notebook._Counts()
    assert cell.since() == "", "nothing was called in it"
    book.count_numpy(0.1)
    assert cell.since().endswith(" s; 0 of 1 call compiled")
    book.count_compiled(1.0, 3.0)
    told = cell.since()
    assert "on NumPy about 3.0 s (" in told and told.endswith("; 1 of 2 calls compiled")
    books.current_run().fair_s(4.0, 1.0)
    assert "on NumPy" not in cell.since(), "nobody can tell it on a busy machine"
