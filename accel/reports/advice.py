"""The commands and options by which the user follows a report's advice, or the Python calls in a program that
reports."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace

from accel.platform import config
from accel.platform.own_code import is_project_file

LONGEST = 200
"""Maximum characters of a command to print: one with -c may hold a whole program."""


@dataclass(frozen=True)
class Advice:
    """Phrases for advice in one way of using accel.

    report, full: the command for the brief report, and for the whole one. compile_first: the command that compiles
    beforehand, or None. off: how to run a program on NumPy alone. until: when the figures end. start: advice if no
    accelerated function was called; start_brief: the same in a few words, for the summary line, or None. refused: True
    if mode strict ended the run by accel.Refused, whose message has the advice.
    """

    report: str
    full: str
    compile_first: str | None
    off: str
    until: str
    start: str
    start_brief: str | None
    refused: bool = False


IN_SHELL = Advice(
    report="accel report",
    full="accel report --full",
    compile_first="`accel compile ...`",
    off="`--mode off`",
    until="before it ended",
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
    until="so far",
    start="@accel.accelerate marks a function, %%accel a cell of a notebook, accel.install(CATALOGUE) what a catalogue "
    "names; `accel doctor`, in a shell, writes one",
    start_brief=None,
)

IN_FRONT = "a longer run, or QD_JAX_AOT=0"
"""Advice for a run that ended before its programs were compiled."""


def compile_command(words: Iterable[str]) -> str | None:
    """Return the `accel compile` command with these words, for advice. A command too long to print is shortened to
    dots."""
    command = shlex.join(["accel", "compile", *words])
    return f"`{command}`" if len(command) <= LONGEST and "\n" not in command else IN_SHELL.compile_first


def compile_this() -> str | None:
    """Return the command that compiles the running program beforehand; None if that is no file of the user's.

    None also in a notebook or a test, and where programs are for several devices: those are not kept.
    """
    main = sys.modules.get("__main__")
    if config.current().divides or not is_project_file(str(getattr(main, "__file__", None))):
        return None
    spec = getattr(main, "__spec__", None)
    start = sys.argv[:1] if spec is None else [spec.name.removesuffix(".__main__")]
    return compile_command(map(str, [*start, *sys.argv[1:]]))


def in_python() -> Advice:
    """Return `IN_PYTHON`, with the command that compiles the program that is running."""
    return replace(IN_PYTHON, compile_first=compile_this())
