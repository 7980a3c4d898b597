"""The commands and options by which the user follows a report's advice, or the Python calls in a program that
reports."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Advice:
    """Phrases for advice in one way of using accel.

    report, full: the command for the brief report, and for the whole one. compile_first: the command that compiles
    beforehand, or None. off: how to run a program on NumPy alone. start: advice if no accelerated function was called;
    start_brief: the same in a few words, for the summary line, or None. refused: True if mode strict ended the run by
    accel.Refused, whose message has the advice.
    """

    report: str
    full: str
    compile_first: str | None
    off: str
    start: str
    start_brief: str | None
    refused: bool = False


IN_SHELL = Advice(
    report="accel report",
    full="accel report --full",
    compile_first="`accel compile ...`",
    off="`--mode off`",
    start="accel doctor finds functions that are worth it, and writes a catalogue; @accel.accelerate marks those of a "
    "script; accel run --auto chooses loops and functions itself",
    start_brief="`accel run --auto ...` needs no catalogue",
)

UNKEPT = replace(IN_SHELL, report="--report -", full="--report -")
"""`IN_SHELL` for runs whose report is not kept on disk: the next run can print one."""

IN_PYTHON = Advice(
    report="accel.report()",
    full="accel.report(full=True)",
    compile_first=None,
    off='`accel.override(mode="off")`',
    start="@accel.accelerate marks a function, %%accel a cell of a notebook, accel.install(CATALOGUE) what a catalogue "
    "names; `accel doctor`, in a shell, writes one",
    start_brief=None,
)

IN_FRONT = "a longer run, or QD_JAX_AOT=0"
"""Advice for a run that ended before its programs were compiled."""
