"""`accel compile TARGET [ARGS...]`: compiles the programs that later runs need, before the first real run.

The program runs in this process. It compiles at first need, without a budget, and keeps every program on disk.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from accel.backend.disk import cache
from accel.entry.hook import patching
from accel.platform import config, ledger, logs
from accel.platform.config import SettingError
from accel.platform.options import Parser, count, refuse
from accel.policy import budget
from accel.tools.cli import choices, commandline, lengths, program
from accel.tools.precompile import messages
from accel.tools.precompile.session import Session

SETTLED = 200
"""Steps without anything new after which the run ends. The default of --settled."""

MORE_VARIANTS = 4
"""Factor on the maximum number of programs per function: the next run may need other programs first."""

_EPILOG = """The program really runs: it reads and writes its files as usual. Once enough has been seen, it is
killed: what it would save at its end is not saved, and a file that it was writing may be
incomplete. Give it an output folder of its own, or a copy of the restart file that it
overwrites. Ctrl-C ends it early; what was compiled until then is kept."""


def _parser() -> Parser:
    parser = commandline.parser_with(
        "--platform --catalogue --only --exclude --auto --report --quiet".split(),
        prog="accel compile",
        usage="accel compile [OPTION]... TARGET [ARGS...]",
        description="Run a program until nothing new needs compiling, keep the compiled programs in the disk cache, "
        "and end the program. Its next run, started as usual, begins with compiled programs.",
        epilog=_EPILOG,
    )
    steps = parser.add_mutually_exclusive_group()
    what = f"end after N steps without anything new; default {SETTLED}"
    steps.add_argument("--settled", metavar="N", type=count, default=SETTLED, help=what)
    steps.add_argument("--steps", metavar="N", type=count, help="end after N steps in any case")
    return parser


def _check_settings(settings: config.Settings) -> None:
    """Raise SettingError if compiling is switched off, or if compiled programs could not be stored."""
    if not settings.enabled:
        raise SettingError(config.VARIABLES["enabled"], 0, "1, or unset", "compiles nothing")
    if settings.mode == "off":
        raise SettingError(config.VARIABLES["mode"], "off", "auto, or unset", "compiles nothing")
    config.set_current(settings)
    problem = cache.problem()
    if problem:
        value = "off" if settings.cache_dir is None else str(settings.cache_dir)
        possible = "a folder that only you can write to"
        raise SettingError(config.VARIABLES["cache_dir"], value, possible, f"keeps nothing: {problem}")


def settings_for_later(settings: config.Settings) -> config.Settings:
    """Return the settings for compiling ahead of time, for later runs that have `settings`."""
    # without ahead_of_time, each call waits for its program and no budget holds
    return replace(
        settings, mode="auto", ahead_of_time=False, quiet=True, max_variants=MORE_VARIANTS * settings.max_variants
    )


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 1 if nothing was stored or the program failed, 2 for invalid input."""
    try:
        plan = commandline.parse(argv, _parser())
        _check_settings(plan.settings)
        start = program.enter(plan.command)
        config.set_current(settings_for_later(plan.settings))
        logs.to_stderr()
        budget.for_later_runs = True
        chooses = choices.chooses(start, named=plan.names_functions, asked=plan.auto)
        choice = choices.RunChoice(start) if chooses else None
        more = [] if choice is None else choice.before
        patching.install(plan.catalogue, only=plan.options.only, exclude=plan.options.exclude, more=more)
    except SettingError as error:
        return refuse(error)
    ledger.current_run().beforehand = True
    if not plan.options.quiet:
        sys.stderr.write(messages.before(Path.cwd(), plan.options.settled, plan.options.steps))
    session = Session(plan, choice)
    # for a program that comes to its end by itself. First, so that it runs after the program's own handlers
    atexit.register(session.finish)
    session.begin()
    lengths.forget()
    try:
        code = program.execute(start, auto=choice is not None)
    except SystemExit as ended:
        session.code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise
    except BaseException:
        session.code = 1
        raise
    if code:  # nothing has run: the target holds no code
        atexit.unregister(session.finish)
    return code
