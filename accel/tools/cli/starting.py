"""The start of a Python in an environment that `accel enable` has prepared, where QD_USE_JAX is set.

A line of a `.pth` file calls `begin` while the interpreter starts. A program of the user's own (a script, or a module)
starts anew in the same process, as `accel run` would start it. In any other process (a child of `multiprocessing`, a
worker of joblib, a tool, an interactive session) catalogues are installed once it imports NumPy.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from accel.tools.cli.broken import without

MARK = "ACCEL_STARTED_AS"
"""The environment variable with the id of the process that has begun already."""

BOOT = "from accel.tools.cli.starting import main; main()"
"""The code that a process runs in place of the program: it is told of the program by its arguments."""

NUMPY = "numpy"


class Words(NamedTuple):
    """A command line of Python. options: those of the interpreter. program: what it runs, and its arguments."""

    options: list[str]
    program: list[str]


def begin() -> None:
    """Start accel in this process, which has not run anything yet."""
    if os.environ.get(MARK) == str(os.getpid()):
        return
    words = split(sys.orig_argv)
    if _is_of_accel(words.program):
        return
    apart = sys.flags.interactive or sys.flags.safe_path  # which a second start would not have in the same way
    if os.name == "posix" and not apart and _is_python() and is_own(words.program):
        os.environ[MARK] = str(os.getpid())
        os.execv(sys.executable, [sys.orig_argv[0], *words.options, "-c", BOOT, *words.program])
    sys.meta_path.insert(0, StartingFinder())


def main() -> None:
    """Run the program of this process as `accel run` would, or plainly if accel cannot be imported."""
    words = split(sys.orig_argv)
    program = words.program[2:]
    try:
        from accel.platform import files
        from accel.tools.cli.run import main as run
    except Exception as error:
        sys.stderr.write(without(error))
        sys.stderr.flush()
        os.execv(sys.executable, [sys.orig_argv[0], *words.options, *program])
    del os.environ[MARK]
    if sys.path[:1] == [""]:  # as -c has it, and neither -m nor a script
        sys.path[0] = files.current_folder()
    # a script's name must not be taken for a module's
    script = os.path.join(".", program[0]) if program[0].isidentifier() else program[0]
    sys.exit(run([script, *program[1:]], unasked=True))


def split(words: Sequence[str]) -> Words:
    """Split a command line of Python. Of an interactive session `program` is empty.

    >>> split(["python", "-W", "error", "-um", "model.run", "-x"])
    Words(options=['-W', 'error', '-u'], program=['-m', 'model.run', '-x'])
    """
    at = 1
    while at < len(words):
        word = words[at]
        if word == "-" or not word.startswith("-"):
            return Words([*words[1:at]], [*words[at:]])
        for place, letter in enumerate(word[1:], 1) if not word.startswith("--") else ():
            rest = word[place + 1 :]
            if letter in "cm":
                options = [*words[1:at], *([word[:place]] if place > 1 else [])]
                return Words(options, [f"-{letter}", *([rest] if rest else []), *words[at + 1 :]])
            if letter in "WX":
                at += not rest
                break
        at += 2 if word == "--check-hash-based-pycs" else 1
    return Words([*words[1:]], [])


def _is_of_accel(program: Sequence[str]) -> bool:
    """Whether accel starts itself: its command, or a process of its own."""
    first, named = [*program, "", ""][:2]
    if first == "-c":
        words = named.replace(";", " ").split()  # a folder in it may have accel's name, too
        pairs = itertools.pairwise(words)
        return any(word in ("from", "import") and name.partition(".")[0] == "accel" for word, name in pairs)
    name = named if first == "-m" else os.path.basename(first).partition(".")[0]
    return name.partition(".")[0] == "accel"


def _is_python() -> bool:
    """Whether this is Python's own executable, and no program that has Python inside."""
    return bool(sys.executable) and os.path.basename(sys.orig_argv[0]).startswith("python")


def is_own(program: Sequence[str]) -> bool:
    """Whether a program is the user's: a script or module that is neither Python's nor installed."""
    if not program or program[0] in ("-c", "-"):
        return False
    path = _origin(program[1]) if program[0] == "-m" and program[1:] else program[0]
    if path is None or not os.path.exists(path):
        return False
    import sysconfig

    names = ("scripts", "stdlib", "platstdlib", "purelib", "platlib")
    folders = {os.path.realpath(sysconfig.get_path(name)) for name in names}
    folders |= {os.path.realpath(os.path.join(prefix, "bin")) for prefix in (sys.prefix, sys.base_prefix)}
    inside = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(path))), "")
    return not any(inside.startswith(os.path.join(folder, "")) for folder in folders)


def _origin(name: str) -> str | None:
    """A file or folder of the package or module that a dotted name begins with; None if there is none."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    root = name.partition(".")[0]
    # Python has not yet put the current folder on the path
    spec: Any = None if sys.flags.safe_path else PathFinder.find_spec(root, [""])
    spec = spec or find_spec(root)
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    return os.path.join(places[0], "") if places else spec.origin


class StartingFinder:
    """A finder that installs catalogues when the process imports NumPy, unless accel is in use already."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the other finders' spec for NumPy; None for all else."""
        if name != NUMPY:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if "accel.entry.hook.patching" not in sys.modules:
            _install()
        # the finders have changed while Python asks them
        found = (each.find_spec(name, path, target) for each in tuple(sys.meta_path))
        return next((spec for spec in found if spec is not None), None)


def _install() -> None:
    """Install the catalogues. Raises nothing. At its end, a process that called accelerated functions says so."""
    try:
        import atexit
        from dataclasses import replace

        from accel.entry.hook import patching
        from accel.platform import config

        config.set_current(replace(config.current(), quiet=True))
        patching.install()
        if not any(each in word for each in ("multiprocessing", "loky") for word in sys.orig_argv):
            atexit.register(patching.say_summary_of_calls, os.getpid())
    except Exception as error:
        sys.stderr.write(f"accel: {error}: nothing is accelerated\n")
