"""How long runs of a program take: a run that is too short to gain anything is left alone, and costs nothing.

Known of a program, with its arguments and environment: the processor time that a run takes on NumPy, and what accel has
lost on it since a run last gained. They are numbers in one small file in the folder of the disk cache. A changed main
file, argument or environment makes another program of it, of which nothing is known.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

from accel.platform import config, files, freed, project
from accel.platform.ledger import BUSY, current_run
from accel.tools.cli.commandline import CommandLine
from accel.tools.cli.starts import Start, source

NAME = "lengths.json"

MOST = 300
"""Maximum number of programs whose lengths are kept, the newest ones. A guess: an entry takes some 120 bytes."""

START_S = 0.5
"""Processor seconds that accel's modules and the first program take to load. Measured: 0.5 to 0.9."""

GAIN_SHARE = 2 / 3
"""Maximum share of its time that a run is expected to gain; programs three times as fast as NumPy gain that."""

HOPED_S = 0.2
"""Maximum seconds beyond its budget that a run may spend of a gain that is only hoped for: with the 0.3 s that accel's
start takes, it loses no more than 1 s and 5 % then. Of six programs that hoped to gain all that they computed, second
runs of 6 s lost up to 4 s."""

PAYS_FACTOR = 20.0
"""Time of runs that are left alone before accel tries again, as a multiple of what it has lost: 5 % of their time."""

_OF_THE_SESSION = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "TERM", "COLUMNS", "LINES", "DISPLAY", "WINDOWID"})
"""Variables that differ from terminal to terminal, and decide about no run's length."""


@dataclass(frozen=True, slots=True)
class Length:
    """Times of one program's runs, in processor seconds.

    numpy_s: of the last run, on NumPy. lost_s: what accel has lost since it last gained. alone_s: of all runs on NumPy
    since then that were left alone. gain_s: what the next run is likely to gain by the programs on disk. freed: time of
    calls on NumPy without keeping freed memory, as a multiple of that with it; 0 if unknown. accel_s: of the last run
    under accel; 0 if there was none.
    """

    numpy_s: float
    lost_s: float = 0.0
    alone_s: float = 0.0
    gain_s: float = 0.0
    freed: float = 0.0
    accel_s: float = 0.0

    @property
    def is_short(self) -> bool:
        """Whether a run ends before accel could gain what loading its modules costs."""
        return GAIN_SHARE * self.numpy_s <= START_S

    @property
    def is_left_alone(self) -> bool:
        """Whether the next run is to stay on NumPy."""
        return self.is_short or self.alone_s < PAYS_FACTOR * self.lost_s


def counts(plan: CommandLine) -> bool:
    """Whether runs like this one may be left alone: nothing but speed was asked for."""
    settings = plan.settings
    asked = (plan.profile, plan.ensemble, plan.options.lines, settings.machines, settings.platform)
    plain = settings.enabled and settings.mode == "auto" and settings.ahead_of_time
    plain = plain and settings.policy == config.BUDGET
    told = any(each.format is not None for each in plan.reports)
    return plain and settings.cache_dir is not None and not (told or any(asked))


def forget() -> None:
    """Forget all programs: `accel compile` has put programs on disk that no run has found yet. Raises nothing."""
    root = config.current().cache_dir
    if root is not None:
        with contextlib.suppress(OSError):
            (root / NAME).unlink()


class History:
    """The known times of one program, made before it runs. last: None if there are none."""

    def __init__(self, plan: CommandLine, start: Start) -> None:
        root = plan.settings.cache_dir
        self._path = None if root is None else root / NAME
        environment = sorted(item for item in os.environ.items() if item[0] not in _OF_THE_SESSION)
        options = plan.auto, plan.catalogue_file, plan.options.only, plan.options.exclude
        text = json.dumps([project.home(), files.current_folder(), start.elsewhere, options, environment])
        self._key = hashlib.sha1(text.encode() + source(start), usedforsecurity=False).hexdigest()
        self.last: Length | None = None
        with contextlib.suppress(KeyError, TypeError, ValueError):
            self.last = Length(*map(float, files.known(self._path)[self._key]))

    def note_alone(self, *, whole: bool = True) -> str:
        """Note the end of a run that was left alone. Returns a sentence about it. Raises nothing.

        whole: False if it was interrupted or has failed; nothing is noted then.
        """
        known, took_s = self.last or Length(0.0), _spent_s()
        now = replace(known, numpy_s=took_s, alone_s=known.alone_s + took_s, gain_s=0.0) if whole else known
        # two whole runs tell more than the estimate of a loss, which leaves out what nobody could measure in the run
        is_refuted = whole and known.lost_s > 0.0 and 0.0 < known.accel_s < took_s
        if is_refuted:
            now = replace(now, lost_s=0.0, alone_s=0.0, gain_s=took_s - known.accel_s)
        if whole:
            self._keep(now)
        if not now.is_left_alone:
            why = "earlier runs were too short, or gained nothing"
            if is_refuted:
                why = f"it took {took_s:.1f} s of processor time, with accel {known.accel_s:.1f} s"
            return f"left to NumPy: {why}. The next run is accelerated."
        if now.is_short:
            times = f"this program takes {now.numpy_s:.1f} s of processor time"
            return f"left to NumPy: {times}, too short for accel to gain anything."
        return "left to NumPy: earlier runs gained nothing. QD_JAX_POLICY=eager accelerates it all the same."

    def note_accelerated(self, figures: Mapping[str, Any]) -> None:
        """Note the end of a run under accel. figures: of the run. Raises nothing."""
        from accel.reports.figures import GAINED, calls_s  # a run that is left alone has no figures

        took_s, totals = _spent_s(), figures["totals"]
        # shares of wall time: whatever slows the machine down slows all parts of a run
        saved_s = took_s * totals["saved_s"] / figures["wall_s"]
        by_programs_s = saved_s - took_s * totals["freed_s"] / figures["wall_s"]
        known = self.last or Length(0.0)
        on_numpy_s = calls_s(figures["functions"], figures["wall_s"])
        factor = 1.0 + totals["freed_s"] / on_numpy_s if freed.current.factor and on_numpy_s else known.freed
        numpy_s = max(known.numpy_s, took_s + saved_s)
        more_s = _more_s(figures, took_s)
        has_lost = _has_lost(figures)
        lost_s = known.lost_s + (max(0.0, -by_programs_s) if has_lost else 0.0)
        now = Length(numpy_s, lost_s, freed=factor, accel_s=took_s)
        if totals["net"] == GAINED and not has_lost:
            now = replace(now, lost_s=0.0, gain_s=max(by_programs_s, more_s))
        elif more_s > max(START_S, lost_s) and not (has_lost and known.gain_s):
            # what the next run may spend of that gain, it may spend once: the hope may come to nothing. On one
            # processor, three runs of 16 s in a row lost 2 to 4 s each where no loss ended it
            hoped_s = 0.0 if known.lost_s else min(more_s, HOPED_S)
            now = replace(now, alone_s=PAYS_FACTOR * lost_s, gain_s=hoped_s)
        elif not has_lost:
            now = replace(now, alone_s=known.alone_s)
        self._keep(now)

    def _keep(self, length: Length) -> None:
        known = files.known(self._path)
        known.pop(self._key, None)
        known[self._key] = list(astuple(length))  # unrounded: `is_left_alone` compares multiples
        if self._path is not None:
            files.keep_known(self._path, known, MOST)


def _spent_s() -> float:
    """Return the processor seconds of this process and of the children that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _has_lost(figures: Mapping[str, Any]) -> bool:
    """Whether a run has lost: a run that is left alone keeps freed memory, too. On a busy machine nobody can tell what
    compiled calls gain: if the costs were more than these calls take on NumPy, it has lost all the same."""
    from accel.reports.figures import LOST, UNKNOWN, verdict

    totals, functions = figures["totals"], figures["functions"]
    if totals["numpy_range_s"] is not None:
        least, most = (each - totals["freed_s"] for each in totals["numpy_range_s"])
        return verdict(figures["wall_s"], (least, most)) == LOST
    if totals["net"] != UNKNOWN or totals["stretch"] <= BUSY or any(each["unsampled_calls"] for each in functions):
        return bool(totals["net"] == LOST)
    most_s = totals["freed_range_s"][1] + sum(max(0.0, each["compiled_s"] + each["gained_s"]) for each in functions)
    return bool(sum(totals["costs_s"].values()) > most_s)


def _more_s(figures: Mapping[str, Any], took_s: float) -> float:
    """Return the seconds that the next run may gain by programs that this one has not found on disk."""
    functions = figures["functions"]
    fresh = [each for each in functions if _is_fresh(each, figures["finishing"])]
    # the program of a loop's iteration answers the calls of all functions inside
    if not {each["target"] for each in fresh}.isdisjoint(current_run().loops):
        fresh = functions
    numpy_s = sum(each["numpy_s"] + max(0.0, each["compiled_s"] + each["gained_s"]) for each in fresh)
    return float(GAIN_SHARE * numpy_s * took_s / figures["wall_s"])


def _is_fresh(function: Mapping[str, Any], finishing: int) -> bool:
    """Whether a function has a program that was not found on disk, or may get one: after the run's end, or by a later
    run, which finds its recordings."""
    if not function["programs"]:
        has_a_chance = finishing > 0 or function["costs_s"].get("recording", 0.0) > 0.0
        return has_a_chance and any(reason["id"].startswith("wait.") for reason in function["reasons"])
    return any(each["state"] != "given up" and not each.get("found_on_disk") for each in function["programs"])
