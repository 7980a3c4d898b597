"""How the user does what a report advises: by commands and options, or in Python where the program itself asks."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Advice:
    """The words for one way of using accel.

    report, full: what gives the report in brief, and whole. compile_first: what compiles beforehand, or None.
    off: what runs a program on NumPy alone. until: when the figures end. start: what to do if no accelerated function
    was called; start_brief: the same in a few words, for the summary line, or None.
    """

    report: str
    full: str
    compile_first: str | None
    off: str
    until: str
    start: str
    start_brief: str | None


IN_SHELL = Advice(
    report="accel report",
    full="accel report --full",
    compile_first="`accel compile ...`",
    off="`--mode off`",
    until="before it ended",
    start="accel doctor finds functions that are worth it, and writes a catalogue; @accel.accelerate marks those of a "
    "script; accel run --auto compiles the script's loops",
    start_brief="`accel run --auto ...` needs no catalogue",
)

UNKEPT = replace(IN_SHELL, report="--report -", full="--report -")
"""As `IN_SHELL`, where no report is kept on disk: the next run can print one."""

IN_PYTHON = Advice(
    report="accel.report()",
    full="accel.report(full=True)",
    compile_first=None,
    off='`accel.override(mode="off")`',
    until="so far",
    start="@accel.accelerate marks a function, %%accel a cell of a notebook, accel.install(CATALOGUE) what a catalogue "
    "names; `accel doctor`, in a shell, writes one",
    start_brief=None,
)

IN_FRONT = "a longer run, or QD_JAX_AOT=0, with which the program waits for what is compiled"
"""What has calls compiled that a short run ends before."""
