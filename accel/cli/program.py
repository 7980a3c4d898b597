"""The user's program, run as Python itself would: the same `__main__`, `sys.argv`, `sys.path[0]` and traceback."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any, NamedTuple

from accel.cli.options import refuse
from accel.config import SettingError
from accel.hook import patching
from accel.hook.imports import find_module

_HERE = str(Path(__file__).parents[1]) + os.sep
_LAUNCHERS = ("<frozen runpy>", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
TARGETS = "a dotted module such as scripts.run_simulation, or a script file"


class Command(NamedTuple):
    """A program, its arguments, and the folder that it is in (None: it is found on `sys.path`)."""

    target: str
    args: list[str]
    folder: str | None


class _Program(NamedTuple):
    """The code of a program, its `sys.argv[0]`, and the names that `__main__` starts with."""

    code: CodeType
    argv0: str
    names: dict[str, Any]


class _NoProgram(SettingError):
    """The target holds no code to run. A type of its own, because the user's program could raise SettingError."""


def enter(command: Command) -> str | None:
    """Set `sys.path[0]` as Python itself would. Return the script's path, or None if the target is a module.

    Raises `SettingError` if there is no such program.
    """
    if command.folder is not None:
        _set_first_path(command.folder)
    if _is_module(command.target):
        return None
    script = next((path for path in _script_paths(command) if os.path.isfile(path)), None)
    if script is None:
        raise SettingError("TARGET", command.target, TARGETS, "does not exist")
    _set_first_path(os.path.dirname(os.path.realpath(script)), *([command.folder] if command.folder else []))
    return script


def _is_module(target: str) -> bool:
    return find_module(target) is not None


def _script_paths(command: Command) -> list[str]:
    """Return the possible paths of a script: as the user wrote it, or in the folder that the user named."""
    target, folder = command.target, command.folder
    return [target] + ([os.path.join(folder, target)] if folder is not None else [])


def _set_first_path(*folders: str) -> None:
    """Put `folders` where Python puts the program's own folder. Under -P there is none to replace."""
    sys.path[: 0 if sys.flags.safe_path else 1] = folders


def _load_module(name: str) -> _Program:
    """Return the module as `python -m` would run it. Imports the packages around it: the user's code."""
    spec: Any = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        # `python -m package` runs package/__main__.py
        return _load_module(f"{name}.__main__")
    code = spec.loader.get_code(spec.name) if hasattr(getattr(spec, "loader", None), "get_code") else None
    if code is None:
        raise _NoProgram("TARGET", name, TARGETS, "holds no Python code to run")
    names = {"__loader__": spec.loader, "__package__": spec.parent, "__spec__": spec, "__cached__": spec.cached}
    return _Program(code, str(spec.origin), {"__file__": spec.origin, **names})


def _load_script(path: str) -> _Program:
    """Return the script as `python path` would run it."""
    full = os.path.join(os.getcwd(), path)  # not abspath: Python does not normalise the name either
    loader = SourceFileLoader("__main__", full)
    code = loader.source_to_code(loader.get_data(full), full)
    names = {"__loader__": loader, "__package__": None, "__spec__": None, "__cached__": None}
    return _Program(code, path, {"__file__": full, **names})


def _execute(load: Callable[[], _Program], args: list[str], *, auto: bool) -> None:
    """Run the program as `__main__`. What it raises is shown without accel's frames. auto: see `execute`."""
    try:
        program = load()
        main = ModuleType("__main__")
        vars(main).update(program.names)
        sys.argv = [program.argv0, *args]
        # where `pickle` and `multiprocessing` look for it
        sys.modules["__main__"] = main
        program = program._replace(code=patching.lifted(program.code, vars(main), auto=auto))
        patching.hook_main(main)
        if auto:
            patching.watch()
        exec(program.code, vars(main))
    except _NoProgram:
        raise
    except BaseException:
        # not before: the program may set a hook of its own, which is called with the stripped traceback
        sys.excepthook = functools.partial(_show_users_traceback, sys.excepthook)
        raise


def _show_users_traceback(hook_in_force: Callable[..., Any], kind: object, error: BaseException, _: object) -> None:
    """Pass the error to the program's excepthook, or Python's, without the frames that started the program."""
    _strip(error, set())
    hook_in_force(kind, error, error.__traceback__)


def _strip(error: BaseException | None, seen: set[int]) -> None:
    """Remove accel's frames from the tracebacks of `error` and of its causes and contexts."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = _without_ours(error.__traceback__)
    _strip(error.__cause__, seen)
    _strip(error.__context__, seen)


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Return `traceback` without accel's frames and those of the program's start.

    If the error was raised inside accel, all frames are kept, because they are needed to report it.
    """
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    started = [not _is_ours(frame) and frame.tb_frame.f_code.co_filename not in _LAUNCHERS for frame in frames]
    first = started.index(True) if True in started else len(frames)
    kept = [frame for frame in frames[first:] if not _is_ours(frame)]
    # an error of accel's own
    if frames and _is_ours(frames[-1]) and _raised_by_accel(frames[-1]):
        kept = frames
    following: TracebackType | None = None
    for frame in reversed(kept):
        following = TracebackType(following, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return following


def _is_ours(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(_HERE)


def _raised_by_accel(traceback: TracebackType) -> bool:
    """Whether the innermost frame is in accel proper, and not in this file, which compiles the user's source."""
    return traceback.tb_frame.f_code.co_filename != __file__


def execute(command: Command, script: str | None, *, auto: bool = False) -> int:
    """Run the program that `enter` has found as `__main__`. Returns 0, or 2 if the target holds no code to run.

    auto: whether all its loops are lifted, and not only those that installed rows name; and what holds the time is
    accelerated.
    """
    load = (
        functools.partial(_load_module, command.target) if script is None else functools.partial(_load_script, script)
    )
    try:
        _execute(load, command.args, auto=auto)
    except _NoProgram as error:
        return refuse(error)
    return 0
