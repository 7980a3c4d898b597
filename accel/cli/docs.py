"""`accel docs [PAGE]`: the documents, which are installed with accel."""

from __future__ import annotations

import pydoc
import re
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from accel.cli.options import Parser, refuse
from accel.config import SettingError

_INSTALLED = "share/doc/pygcm-accel"


def folder() -> Path | None:
    """The folder of the pages: that of the checkout that accel runs from, or the installed one. None if neither is."""
    checkout = Path(__file__).parents[2] / "docs"
    installed = Path(sysconfig.get_path("data")) / _INSTALLED
    return next((each for each in (checkout, installed) if (each / "command-line.md").is_file()), None)


def pages() -> dict[str, Path]:
    """The pages by name, in order."""
    found = folder()
    return {} if found is None else {path.stem: path for path in sorted(found.glob("*.md"))}


def _title(path: Path) -> str:
    """The page's first heading."""
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return path.stem if found is None else found[1]


def main(args: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 2 for a page that does not exist."""
    parser = Parser(
        prog="accel docs",
        description="Print a page of the documentation; without PAGE, list the pages.",
        usage="accel docs [PAGE]",
    )
    parser.add_argument("page", metavar="PAGE", nargs="?", help="such as command-line, settings, report, reasons")
    wanted = parser.parse_args(args).page
    found = pages()
    if wanted is None:
        sys.stdout.write("".join(f"{name:<14}{_title(path)}\n" for name, path in found.items()))
        sys.stdout.write(f"\naccel docs PAGE prints one. The files are in {folder() or 'no folder: reinstall accel'}\n")
        return 0
    path = found.get(wanted.removesuffix(".md"))
    if path is None:
        return refuse(SettingError("PAGE", wanted, ", ".join(found) or "accel to be installed with its documents"))
    text = path.read_text(encoding="utf-8")
    if sys.stdout.isatty():
        pydoc.pager(text)
    else:
        sys.stdout.write(text)
    return 0
