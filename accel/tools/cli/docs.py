"""`accel docs [PAGE]`: the documents, which are installed with accel."""

from __future__ import annotations

import pydoc
import re
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from accel.platform.config import SettingError
from accel.platform.options import Parser, refuse
from accel.platform.spelling import did_you_mean

_INSTALLED = "share/doc/pygcm-accel"


def folder() -> Path | None:
    """Return the folder of the pages: that of the checkout that accel runs from, or the installed one. None if there is
    none."""
    checkout = Path(__file__).parents[3] / "docs"
    installed = Path(sysconfig.get_path("data")) / _INSTALLED
    return next((each for each in (checkout, installed) if (each / "command-line.md").is_file()), None)


def pages() -> dict[str, Path]:
    """Return the pages' paths by name, in order."""
    found = folder()
    return {} if found is None else {path.stem: path for path in sorted(found.glob("*.md"))}


def _title(path: Path) -> str:
    """Return the page's first heading."""
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return path.stem if found is None else found[1]


def main(args: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 2 for a page that does not exist."""
    parser = Parser(
        prog="accel docs",
        description="Print a page of the documentation; without PAGE, list the pages.",
        usage="accel docs [PAGE]",
    )
    parser.add_argument("page", metavar="PAGE", nargs="?", help="such as howto, command-line, settings, report")
    wanted = parser.parse_args(args).page
    found = pages()
    if wanted is None:
        sys.stdout.write("".join(f"{name:<14}{_title(path)}\n" for name, path in found.items()))
        sys.stdout.write(f"\naccel docs PAGE prints one. The files are in {folder() or 'no folder: reinstall accel'}\n")
        return 0
    path = found.get(wanted.removesuffix(".md"))
    if path is None:
        expected = ", ".join(found) or "accel to be installed with its documents"
        return refuse(SettingError("PAGE", wanted, expected, f"does not exist{did_you_mean(wanted, found)}"))
    text = path.read_text(encoding="utf-8")
    if sys.stdout.isatty():
        pydoc.pager(text)
    else:
        sys.stdout.write(text)
    return 0
