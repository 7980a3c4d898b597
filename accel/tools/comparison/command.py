"""`accel compare TARGET [ARGS...]`: runs a program on NumPy, accelerated, and on perturbed NumPy, and compares."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accel.entry.hook import patching
from accel.platform import config, files, project
from accel.platform.config import SettingError
from accel.platform.options import Parser, refuse
from accel.tools.cli import choices, commandline, program
from accel.tools.cli.commandline import CommandLine
from accel.tools.comparison import runs

DEFAULT_FOLDER = "accel-comparison"


def _parser() -> Parser:
    parser = commandline.parser_with(
        "--platform --mode --catalogue --only --exclude --auto".split(),
        prog="accel compare",
        description="Run a program three times: on NumPy, accelerated, and on NumPy perturbed in the last place. "
        "Write times, memory and differences to DIR.",
        usage="accel compare [OPTION]... TARGET [ARGS...]",
    )
    what = f"the folder for the comparison; default: {DEFAULT_FOLDER}"
    parser.add_argument("--out", metavar="DIR", default=DEFAULT_FOLDER, help=what)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 1 if a run of the program fails, 2 for invalid input."""
    try:
        plan = commandline.parse(argv, _parser())
        spec, out = _spec(plan), _folder(plan.options.out)
    except SettingError as error:
        return refuse(error)
    try:
        result = runs.compare(spec, out)
    except runs.RunFailed as error:
        sys.stderr.write(f"accel: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("accel: interrupted: nothing was compared\n")
        return 128 + signal.SIGINT
    for slip in result["slips"]:
        sys.stderr.write(f"accel: {slip}\n")
    sys.stderr.write(runs.one_line_summary(result, out))
    return 0


def _spec(plan: CommandLine) -> dict[str, Any]:
    """Return what the three runs are told. Raises SettingError for what would fail in them."""
    if plan.command.target == "-":
        raise SettingError("TARGET", "-", "a program in a file, or -c CODE", "can be read once, and is run thrice")
    if plan.settings.machines is not None:
        name = config.VARIABLES["machines"]
        raise SettingError(name, plan.settings.machines, "a single run", "cannot be compared")
    start = program.enter(plan.command)
    patching.check_choice(plan.catalogue, only=plan.options.only, exclude=plan.options.exclude)
    target, args = start.elsewhere
    return {
        "target": target,
        "args": args,
        "folder": plan.command.folder or files.current_folder(),
        "home": project.home(),
        "settings": {name: getattr(plan.settings, name) for name in ("platform", "mode")},
        "catalogue": plan.catalogue_file,
        "only": plan.options.only,
        "exclude": plan.options.exclude,
        "auto": choices.chooses(start, named=plan.names_functions, asked=plan.auto),
    }


def _folder(name: str) -> Path:
    """Return the folder for the results, made if needed."""
    folder = Path(name).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot be created ({error.strerror})"
        raise SettingError("--out", str(folder), "a folder that can be created", problem) from None
    return folder
