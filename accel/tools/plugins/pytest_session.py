"""A test session with accel: a run without it, a run with it, and their differences.

The first run is a process of its own, with the same arguments. It returns its outcomes and times in a file. The second
run is this session. If pytest-xdist distributes it, each worker accelerates its own part, and sends its figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel.entry.hook import patching
from accel.platform import config as settings
from accel.platform.config import SettingError
from accel.reports.figures import figures_of_run
from accel.reports.words import plural

RECORD = "ACCEL_PYTEST_RECORD"
"""The environment variable that names the file for the outcomes of a run without accel."""

MAX_SHOWN = 20
"""Maximum number of tests and of functions to list."""

_WORSE_FACTOR, _WORSE_S = 1.5, 0.05
"""Minimum ratio and minimum difference in seconds for which a test is listed as slower or faster."""

Outcomes = dict[str, tuple[str, float]]
"""By test: its outcome, and the seconds of its call."""


def begin(config: pytest.Config) -> None:
    """Accelerate, and register the plugin that observes the session."""
    if RECORD in os.environ:  # a run without accel, started by `_plain_run`
        return
    try:
        chosen = replace(settings.current(), quiet=True)
        # calls wait for their programs: tests make few calls, and would be over before a program is there
        if not os.environ.get(settings.VARIABLES["ahead_of_time"]):
            chosen = replace(chosen, ahead_of_time=False)
        settings.set_current(chosen)
        patching.install(config.getoption("--accel-catalogue"), mode=config.getoption("--accel-mode"))
    except SettingError as error:
        raise pytest.UsageError(f"accel: {error}") from None
    config.pluginmanager.register(_Worker() if hasattr(config, "workerinput") else Session(), "accel-session")


class Recorder:
    """Records the outcome of each test, and the time of its call."""

    def __init__(self) -> None:
        self.outcomes: Outcomes = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record one of a test's three phases. A failure in setup or teardown is an error."""
        before, seconds = self.outcomes.get(report.nodeid, ("passed", 0.0))
        if report.when == "call":
            outcome, seconds = _outcome(report), report.duration
        elif report.outcome == "passed":
            outcome = before
        else:
            outcome = "skipped" if report.outcome == "skipped" else "error"
        self.outcomes[report.nodeid] = outcome, seconds


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.outcome == "skipped" else "xpassed"
    return report.outcome


class _Plain(Recorder):
    """Writes the recorded outcomes at the end of a run without accel."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not hasattr(session.config, "workerinput"):
            Path(os.environ[RECORD]).write_text(json.dumps(self.outcomes), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Register this module as the plugin of a run without accel."""
    if RECORD in os.environ:
        config.pluginmanager.register(_Plain(), "accel-plain")


class _Worker:
    """The plugin of a pytest-xdist worker: sends the worker's figures."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        session.config.workeroutput["accel"] = _told(figures_of_run())  # type: ignore[attr-defined]


class Session(Recorder):
    """The session with accel."""

    def __init__(self) -> None:
        super().__init__()
        self._plain: Outcomes | None = None
        self._trouble = ""
        self._of_workers: list[dict[str, Any]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Run all tests without accel first."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line("accel: first a run of the same tests without accel ...")
        self._plain, self._trouble = _plain_run(session.config)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Receive the figures of a pytest-xdist worker."""
        told = getattr(node, "workeroutput", {}).get("accel")
        if told is not None:
            self._of_workers.append(told)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail the session if accel changes an outcome or a result."""
        if exitstatus == pytest.ExitCode.OK and (self._plain is None or self._changed() or any(self._mismatches())):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print how accel changed outcomes, results and times."""
        terminalreporter.section("accel")
        for line in self._lines():
            terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Restore everything."""
        patching.uninstall()

    # -- what is said -------------------------------------------------------------------------------------------------

    def _changed(self) -> list[tuple[str, str, str]]:
        """Return the tests with another outcome: name, and outcomes without and with accel."""
        if self._plain is None:
            return []
        names = [*self._plain, *(name for name in self.outcomes if name not in self._plain)]
        nothing = ("not run", 0.0)
        found = [(name, self._plain.get(name, nothing)[0], self.outcomes.get(name, nothing)[0]) for name in names]
        return [each for each in found if each[1] != each[2]]

    def _told(self) -> list[dict[str, Any]]:
        return self._of_workers or [_told(figures_of_run())]

    def _mismatches(self) -> Iterator[str]:
        for told in self._told():
            yield from told["mismatches"]

    def _lines(self) -> Iterator[str]:
        yield from self._outcome_lines()
        yield from self._time_lines()
        mismatches = list(dict.fromkeys(self._mismatches()))
        yield f"mismatches with NumPy: {len(mismatches) or 'none'}"
        yield from _some(mismatches)
        called, compiled = (sum(told[key] for told in self._told()) for key in ("calls", "compiled_calls"))
        if not called:
            yield "no accelerated function was called: name some by --accel-catalogue, or by @accel.accelerate"
            return
        yield f"{compiled} of {plural(called, 'call')} of accelerated functions compiled"
        reasons: dict[str, None] = dict.fromkeys(reason for told in self._told() for reason in told["reasons"])
        if reasons:
            yield "what kept calls on NumPy:"
            yield from _some(list(reasons))

    def _outcome_lines(self) -> Iterator[str]:
        if self._plain is None:
            yield f"the run without accel has not ended as it should: {self._trouble}"
            return
        changed = self._changed()
        yield f"outcomes that accel changed: {len(changed) or 'none'} of {plural(len(self.outcomes), 'test')}"
        yield from _some([f"{name}: {without} without accel, {given} with it" for name, without, given in changed])

    def _time_lines(self) -> Iterator[str]:
        plain = self._plain or {}
        both = [(name, plain[name][1], self.outcomes[name][1]) for name in plain if name in self.outcomes]
        if both:
            without, given = sum(each[1] for each in both), sum(each[2] for each in both)
            yield f"time of the tests: {without:.2f} s without accel, {given:.2f} s with it, compiling included"
            other = [each for each in both if _differs(each[1], each[2])]
            other.sort(key=lambda each: -abs(each[2] - each[1]))
            yield from _some([f"{name}: {before:.2f} s, {after:.2f} s with accel" for name, before, after in other])


def _differs(before: float, after: float) -> bool:
    return abs(after - before) > _WORSE_S and max(before, after) > _WORSE_FACTOR * min(before, after)


def _some(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MAX_SHOWN
    return [f"  {line}" for line in lines[:MAX_SHOWN]] + ([f"  ... and {more} more"] if more > 0 else [])


def _told(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a process that the session reports."""
    functions = [each for each in figures["functions"] if each["calls"]]
    return {
        "calls": figures["totals"]["calls"],
        "compiled_calls": figures["totals"]["compiled_calls"],
        "mismatches": [
            f"{each['target']}: {difference['field']}: {difference['what']} ({difference['verdict']})"
            for each in functions
            for difference in each["differences"]
        ],
        "reasons": [
            f"{each['target']}: {reason['why']}  [{reason['id']}]" + (f", {reason['where']}" if reason["where"] else "")
            for each in functions
            for reason in each["reasons"]
        ],
    }


def _plain_run(config: pytest.Config) -> tuple[Outcomes | None, str]:
    """Run the same tests without accel. Returns the outcomes, or None and the reason if the run failed."""
    with tempfile.TemporaryDirectory(prefix="accel-pytest-") as folder:
        record = Path(folder, "outcomes.json")
        off = {settings.VARIABLES["enabled"]: "0", settings.VARIABLES["mode"]: "off", RECORD: str(record)}
        # `python -m` puts the folder on the path, and the command `pytest` does not
        here = () if {"", str(config.invocation_params.dir)} & set(sys.path) else ("-P",)
        command = [sys.executable, *here, "-m", "pytest", "-p", __name__, *map(str, config.invocation_params.args)]
        done = subprocess.run(
            command,
            cwd=config.invocation_params.dir,
            env={**os.environ, **off},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        try:
            return {name: (kept[0], kept[1]) for name, kept in json.loads(record.read_text("utf-8")).items()}, ""
        except (OSError, ValueError):
            said = (done.stderr or done.stdout).strip().splitlines()
            return None, f"exit code {done.returncode}" + (f", {said[-1]}" if said else "")
