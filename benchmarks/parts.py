"""The parts of a long run of benchmarks: what each found is kept as it is found, and a part that fails ends no other.

A part is a command that writes one JSON file, by its name, into the folder of the results. `parts.json` beside it says
of each how it ended, and on which commit, machine and versions. A run that was broken off is taken up again from there:
what was measured to its end with the same command, on the same three, is not measured again.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import harness

LEDGER = "parts.json"

PATIENCE, LEAST_LIMIT_S = 4.0, 240.0
"""A part is ended after so many times what it is expected to take, and not before so many seconds: it hangs."""


@dataclass(frozen=True)
class Part:
    """One command. command: what follows `python -m`, but for `--out`. expected_s: on two cores of its own."""

    name: str
    command: tuple[str, ...]
    expected_s: float

    @property
    def limit_s(self) -> float:
        """After how long it is ended."""
        return max(LEAST_LIMIT_S, PATIENCE * self.expected_s)


@dataclass(frozen=True)
class Ended:
    """How a part ended. why: it failed, in words; "" where all went well. seconds, processor_s: what it took."""

    why: str
    seconds: float
    processor_s: float


class Ledger:
    """What is known of the parts in a folder. resume: go on from what an earlier run has left there."""

    def __init__(self, folder: Path, resume: bool) -> None:
        self._folder, self._resume = folder, resume
        self.commit = harness.commit()  # now: what is published later may change files
        self._here = {"commit": self.commit, "machine": harness.machine(), "versions": harness.versions()}
        self._known: dict[str, Any] = self._read() if resume else {}

    def _read(self) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError):  # none yet, or written when the machine went down
            return dict(json.loads((self._folder / LEDGER).read_text()))
        return {}

    def path(self, name: str) -> Path:
        """Where a part leaves its result."""
        return self._folder / f"{name}.json"

    def ended(self, part: Part) -> Ended | None:
        """How a part ended in the run that is gone on with; None where it has to be measured."""
        entry = self._known.get(part.name)
        if not self._resume or entry is None or entry["command"] != list(part.command):
            return None
        same = all(entry[what] == value for what, value in self._here.items())
        certain = self.commit and not self.commit.endswith("-dirty")  # else nobody knows whether the trees are the same
        found = Ended(**entry["ended"])
        return found if same and certain and not found.why and self.path(part.name).is_file() else None

    def forget(self, name: str) -> None:
        """Remove what an earlier run has left of a part: nobody is to take it for this one's."""
        for path in (self.path(name), *self._folder.glob(f"{name}-*.png")):
            path.unlink(missing_ok=True)
        self._known.pop(name, None)

    def run(self, part: Part) -> Ended:
        """Measure a part, unless that is done; never raises but where the user ends it."""
        if (known := self.ended(part)) is not None:
            return known
        self.forget(part.name)
        logs = self._folder / "logs"
        logs.mkdir(exist_ok=True)
        ended = _run(part, self.path(part.name), logs / f"{part.name}.txt")
        self._known[part.name] = {**self._here, "command": list(part.command), "ended": asdict(ended)}
        _replace(self._folder / LEDGER, json.dumps(self._known, indent=1) + "\n")
        return ended

    def plan(self, parts: Iterable[Part]) -> str:
        """What is going to be measured, and about how long that takes."""
        rows, rest_s = [], 0.0
        for part in parts:
            known = self.ended(part)
            rest_s += 0.0 if known else part.expected_s
            rows.append([part.name, "measured before" if known else f"{part.expected_s:.0f} s"])
        table = harness.markdown_table(["part", "about"], rows)
        return f"{table}\n\nAbout {rest_s / 60.0:.0f} minutes, where nothing else runs on two cores."


def _run(part: Part, out: Path, log: Path) -> Ended:
    """Run a command to its end or its limit. All that it says goes to `log`."""
    began, spent_before = time.monotonic(), _children_s()
    with log.open("wb") as said:
        child = subprocess.Popen(
            [sys.executable, "-m", *part.command, "--out", str(out.resolve())],
            cwd=harness.REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that all that it has started can be ended with it
        )
        try:
            code: int | None = child.wait(part.limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    seconds, spent_s = time.monotonic() - began, _children_s() - spent_before
    return Ended(_why(code, part, out, log), round(seconds, 1), round(spent_s, 1))


def _why(code: int | None, part: Part, out: Path, log: Path) -> str:
    if code is None:
        return f"not done after {part.limit_s:.0f} s"
    if not out.is_file():
        return (log.read_text(errors="replace").strip() or "it said nothing").splitlines()[-1]
    return f"ended with exit code {code}, as where results were wrong" if code else ""


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all: a run may be broken off at any time."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


def took(ended: Ended) -> str:
    """The time that a part took, for the reader."""
    return f"{ended.seconds:.0f} s, {ended.processor_s:.0f} s of the processor"
