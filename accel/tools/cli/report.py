"""`accel report`: the report of the last run, after its process has ended."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from accel.platform import config
from accel.platform.clocks import time
from accel.platform.config import SettingError
from accel.platform.options import Parser, refuse
from accel.reports import last, reporting
from accel.reports.advice import IN_SHELL
from accel.reports.figures import SCHEMA
from accel.reports.last import Last

FORMATS = (*reporting.FORMATS, "html")


def _parser() -> Parser:
    parser = Parser(
        prog="accel report",
        description="Show what happened to each function in the last run that ended.",
        usage="accel report [--full] [--format F]",
    )
    parser.add_argument("--full", action="store_true", help="all functions, reasons, programs and differences")
    what = f"{', '.join(FORMATS)}; default text"
    parser.add_argument("--format", metavar="F", choices=FORMATS, default="text", help=what)
    return parser


def main(args: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 1 if there is no such report, 2 for bad input."""
    options = _parser().parse_args(args)
    try:
        kept = _kept()
    except SettingError as error:
        return refuse(error)
    if isinstance(kept, str):
        return _fail(kept)
    if options.format == "html":
        return _page(kept)
    if options.format == "text":
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(kept.ended))
        sys.stdout.write(f"{kept.program}, in {kept.folder}, ended {when}\n\n")
    sys.stdout.write(reporting.render(kept.figures, options.format, full=options.full, advice=IN_SHELL))
    return 0


def _kept() -> Last | str:
    """Return the last report, or a sentence why there is none."""
    if last.place() is None:
        return f"no report is kept, as the disk cache is off ({config.VARIABLES['cache_dir']})"
    kept = last.load()
    if kept is None:
        return f"no report of a run was found in {last.place()}; accel run TARGET leaves one"
    if kept.figures.get("schema") != SCHEMA:
        return "the last report is of another version of accel; run the program again"
    return kept


def _page(kept: Last) -> int:
    if kept.profile is None:
        return _fail("the last run drew no page; accel run --profile FILE.html draws one")
    try:
        sys.stdout.write(Path(kept.profile).read_text(encoding="utf-8"))
    except OSError as error:
        return _fail(f"the page of the last run cannot be read: {kept.profile}: {error.strerror}")
    return 0


def _fail(message: str) -> int:
    sys.stderr.write(f"accel: {message}\n")
    return 1
