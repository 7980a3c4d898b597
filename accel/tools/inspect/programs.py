"""Programs that explain and doctor run to observe their calls: a module, a script file, or a function of a module.

`accel run` starts programs exactly as Python would, including tracebacks. Here `runpy` is close enough.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import NamedTuple

from accel.entry.hook.imports import find_module, split_name
from accel.platform.config import SettingError
from accel.platform.tracebacks import entries, is_ours, linked
from accel.tools.inspect.sources import bound_names, nearest, parse

Change = Callable[[CodeType], CodeType]
"""Transforms a module's code into the code that runs in its place."""

PROGRAMS = "a dotted module such as scripts.run_simulation, a script file, or module:callable"


class ProgramToRun(NamedTuple):
    """A program to run. kind: "module", "script" or "callable"."""

    kind: str
    target: str
    args: tuple[str, ...] = ()

    def run(self, change: Change | None = None) -> None:
        """Run the program in this process. Raises what it raises. change: transforms a script's code before it runs."""
        if change is not None and self.kind == "script" and self.target.endswith(".py"):
            _run_changed(self, change)
        else:
            _RUNNERS[self.kind](self)


def print_error(error: BaseException) -> None:
    """Print a program's exception, without the frames that started it."""
    kept = [
        each
        for each in entries(error.__traceback__)
        if not is_ours(each) and not each.tb_frame.f_code.co_filename.startswith("<frozen ")
    ]
    traceback.print_exception(error.with_traceback(linked(kept)))


def program_of(target: str, args: tuple[str, ...] = (), option: str = "--run") -> ProgramToRun:
    """Return the program that `target` names. Raises SettingError if there is none."""
    if target == "-m" and args:
        target, *rest = args
        args = tuple(rest)
    if os.path.isfile(target):
        return ProgramToRun("script", target, args)
    module, name = split_name(target)
    colon = bool(name)
    found = find_module(module)
    if found is not None:
        if not colon:
            return ProgramToRun("module", target, args)
        known = bound_names(parse(getattr(found, "origin", None) or ""))
        if known is not None and name not in known:
            raise SettingError(option, target, nearest(name, sorted(known)), f"names nothing in {module}")
        return ProgramToRun("callable", f"{module}:{name}", args)
    if os.path.isfile(os.path.join(target, "__main__.py")):
        return ProgramToRun("script", target, args)
    raise SettingError(option, target, PROGRAMS, "does not exist")


def _run_module(program: ProgramToRun) -> None:
    sys.argv = [program.target, *program.args]
    runpy.run_module(program.target, run_name="__main__", alter_sys=True)


def _run_script(program: ProgramToRun) -> None:
    _set_up_script(program)
    runpy.run_path(program.target, run_name="__main__")


def _run_changed(program: ProgramToRun, change: Change) -> None:
    _set_up_script(program)
    main = ModuleType("__main__")
    main.__file__ = program.target
    sys.modules["__main__"] = main
    loader = SourceFileLoader("__main__", program.target)
    code = loader.source_to_code(loader.get_data(program.target), program.target)
    exec(change(code), vars(main))


def _set_up_script(program: ProgramToRun) -> None:
    sys.argv = [program.target, *program.args]
    folder = os.path.dirname(os.path.realpath(program.target))
    sys.path[: 0 if sys.flags.safe_path else 1] = [folder]


def _run_callable(program: ProgramToRun) -> None:
    module, _, name = program.target.partition(":")
    sys.argv = [program.target, *program.args]
    function = getattr(importlib.import_module(module), name, None)
    if not callable(function):
        raise SettingError("--run", program.target, PROGRAMS, "names no callable")
    function()


_RUNNERS = {"module": _run_module, "script": _run_script, "callable": _run_callable}


@contextmanager
def output_to_stderr() -> Iterator[int]:
    """Redirect the process's standard output to standard error. Yields a descriptor of the real standard output."""
    sys.stdout.flush()
    # descriptors, and not `sys.stdout` alone: C libraries and child processes print too
    real = os.dup(1)
    os.dup2(2, 1)
    try:
        yield real
    finally:
        sys.stdout.flush()
        os.dup2(real, 1)
        os.close(real)
