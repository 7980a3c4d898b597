"""A long run in parts: each kept, a failed one ends no other, and a run that was broken off goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import harness, parts
from benchmarks.parts import Ledger, Part

GOOD = "import sys, pathlib; p = pathlib.Path(sys.argv[-1]); p.write_text('[%d]' % len(sys.argv))"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a part of a few lines of code; of a clean tree at one commit."""
    monkeypatch.setattr(harness, "REPOSITORY", tmp_path)
    monkeypatch.setattr(harness, "commit", lambda: "abc")

    def make(name: str, code: str, expected_s: float = 1.0) -> Part:
        (tmp_path / f"{name}_part.py").write_text(code)
        return Part(name, (f"{name}_part",), expected_s)

    return make


def test_a_part_is_kept_and_not_measured_again(made, tmp_path):
    part = made("good", GOOD)
    assert Ledger(tmp_path, resume=False).run(part).why == ""
    written = tmp_path / "good.json"
    assert written.read_text() == "[3]"
    written.write_text("kept")
    assert Ledger(tmp_path, resume=True).run(part).why == ""
    assert written.read_text() == "kept"
    assert Ledger(tmp_path, resume=False).run(part).why == ""
    assert written.read_text() == "[3]"


@pytest.mark.parametrize("commit", ["def", "abc-dirty", ""])
def test_of_another_tree_nothing_is_kept(made, tmp_path, monkeypatch, commit):
    part = made("good", GOOD)
    Ledger(tmp_path, resume=False).run(part)
    monkeypatch.setattr(harness, "commit", lambda: commit)
    assert Ledger(tmp_path, resume=True).ended(part) is None


def test_of_another_machine_or_command_nothing_is_kept(made, tmp_path, monkeypatch):
    part = made("good", GOOD)
    Ledger(tmp_path, resume=False).run(part)
    assert Ledger(tmp_path, resume=True).ended(Part("good", (*part.command, "--more"), 1.0)) is None
    assert Ledger(tmp_path, resume=True).ended(part) is not None
    monkeypatch.setattr(harness, "machine", lambda: {"cpu": "another"})
    assert Ledger(tmp_path, resume=True).ended(part) is None


def test_a_part_that_fails_says_why_and_is_measured_again(made, tmp_path):
    ledger = Ledger(tmp_path, resume=False)
    assert ledger.run(made("bad", "print('1'); raise SystemExit('no such grid')")).why == "no such grid"
    assert ledger.run(made("mute", "")).why == "it said nothing"
    wrong = made("wrong", f"{GOOD}; sys.exit(1)")
    assert ledger.run(wrong).why == "ended with exit code 1, as where results were wrong"
    assert (tmp_path / "wrong.json").is_file()
    again = Ledger(tmp_path, resume=True)
    assert again.ended(wrong) is None
    assert "| wrong | 1 s   |" in again.plan([wrong])


def test_a_part_that_hangs_is_ended_with_all_that_it_started(made, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "LEAST_LIMIT_S", 3.0)
    child = "import os, time, pathlib; pathlib.Path('child').write_text(str(os.getpid())); time.sleep(600)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    assert Ledger(tmp_path, resume=False).run(made("hung", code, expected_s=0.5)).why == "not done after 3 s"
    pid = int((tmp_path / "child").read_text())
    for _ in range(50):
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
        if not state.stdout.strip() or state.stdout.strip().startswith("Z"):
            return
        time.sleep(0.1)
    pytest.fail("its child still runs")


def test_a_run_that_was_broken_off_goes_on(made, tmp_path):
    first, second = made("first", GOOD), made("second", GOOD)
    Ledger(tmp_path, resume=False).run(first)
    ledger = Ledger(tmp_path, resume=True)
    text = ledger.plan([first, second])
    assert "measured before" in text
    assert "About 0 minutes" in text
    assert ledger.ended(second) is None
    ledger.run(second)
    assert sorted(json.loads((tmp_path / "parts.json").read_text())) == ["first", "second"]


def test_a_ledger_that_cannot_be_read_is_an_empty_one(made, tmp_path):
    (tmp_path / "parts.json").write_text("{")
    assert Ledger(tmp_path, resume=True).ended(made("good", GOOD)) is None


def test_this_python_runs_the_parts(made, tmp_path):
    part = made("which", "import sys, pathlib; pathlib.Path(sys.argv[-1]).write_text(sys.executable)")
    Ledger(tmp_path, resume=False).run(part)
    assert (tmp_path / "which.json").read_text() == sys.executable
