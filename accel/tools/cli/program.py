"""Run the user's program as Python would: the same `__main__`, `sys.argv`, `sys.path[0]` and traceback."""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from accel.platform.options import refuse
from accel.platform.tracebacks import entries, is_ours, linked
from accel.tools.cli import starts
from accel.tools.cli.starts import NoProgram, Start, StartCommand

_LAUNCHERS = (
    "<frozen runpy>",
    "<frozen zipimport>",
    "<frozen importlib._bootstrap>",
    "<frozen importlib._bootstrap_external>",
)
_LOADERS = (__file__, starts.__file__)
"""Files of accel whose frames may appear in the traceback of a syntax error in the program's source."""

_is_broken_off = False


def is_broken_off() -> bool:
    """Whether the program was interrupted or has failed, so that its time says nothing of its next run."""
    return _is_broken_off


def enter(command: StartCommand) -> Start:
    """Find the program and set `sys.path[0]` as Python would. Raises `SettingError` if there is no such program."""
    if command.folder is not None:
        _set_first_path(command.folder)
    start = starts.find(command)
    if start.first is not None:
        _set_first_path(*start.first)
    return start


def _set_first_path(*folders: str) -> None:
    """Put `folders` where Python puts the program's own folder. Under -P there is no entry to replace."""
    sys.path[: 0 if sys.flags.safe_path else 1] = folders


def _execute(
    start: Start,
    *,
    hooked: bool,
    auto: bool,
    ready: Callable[[], object] | None,
    change: Callable[[CodeType], CodeType],
) -> None:
    """Run the program as `__main__`. Tracebacks omit accel's frames. Arguments: see `execute`."""
    try:
        sys.argv = [start.argv0, *start.args]
        program = start.load()
        main = ModuleType("__main__")
        # Python before 3.14 makes the annotations at once; `exec` would take the names of builtins, not the module
        early: dict[str, Any] = {"__annotations__": {}} if sys.version_info < (3, 14) else {}
        vars(main).update(early, __builtins__=builtins, **program.names)
        sys.argv[0] = program.argv0
        # where `pickle` and `multiprocessing` look for it
        sys.modules["__main__"] = main
        if hooked:
            from accel.entry.hook import patching  # a run that is left alone does not import it

            program = program._replace(code=patching.lifted(program.code, vars(main), auto=auto))
        if ready is not None:
            ready()
        code = change(program.code)
        if hooked and auto:
            patching.watch()
        exec(code, vars(main))
    except NoProgram:
        raise
    except BaseException as error:
        global _is_broken_off
        _is_broken_off = not isinstance(error, SystemExit) or bool(error.code)
        # not before: the program may set a hook of its own, which is called with the stripped traceback
        sys.excepthook = functools.partial(_show_users_traceback, sys.excepthook)
        raise


def _show_users_traceback(hook_in_force: Callable[..., Any], kind: object, error: BaseException, _: object) -> None:
    """Pass the error to the program's excepthook or Python's, without the frames that started the program."""
    _strip(error, set())
    hook_in_force(kind, error, error.__traceback__)


def _strip(error: BaseException | None, seen: set[int]) -> None:
    """Remove accel's frames from the tracebacks of `error` and of its causes and contexts."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = _without_ours(error.__traceback__, by_user=isinstance(error, KeyboardInterrupt))
    _strip(error.__cause__, seen)
    _strip(error.__context__, seen)


def _without_ours(traceback: TracebackType | None, *, by_user: bool) -> TracebackType | None:
    """Return `traceback` without accel's frames and those of the program's start.

    If the error was raised inside accel, all frames are kept, because they are needed to report it. by_user: it was
    Ctrl-C, which comes anywhere.
    """
    frames = entries(traceback)
    # above it stand frames of accel and of the script that is called `accel`, a file of the environment
    executing = [place for place, frame in enumerate(frames) if frame.tb_frame.f_code is _execute.__code__]
    frames = frames[executing[0] :] if executing else frames
    started = [not is_ours(frame) and frame.tb_frame.f_code.co_filename not in _LAUNCHERS for frame in frames]
    first = started.index(True) if True in started else len(frames)
    # an error of accel's own
    if frames and not by_user and is_ours(frames[-1]) and _raised_by_accel(frames[-1]):
        return traceback
    return linked(_seen_by_user(frames[first:]))


def _seen_by_user(frames: Sequence[TracebackType]) -> list[TracebackType]:
    """Return the frames without accel's, and without those of JAX that accel has called, as when Ctrl-C came there."""
    seen, inside = [], False
    for frame in frames:
        package = Path(frame.tb_frame.f_code.co_filename).parts
        if is_ours(frame):
            inside = True
        elif not (inside and {"jax", "jaxlib"}.intersection(package)):
            seen.append(frame)
            inside = False
    return seen


def _raised_by_accel(traceback: TracebackType) -> bool:
    """Return whether the innermost frame is accel's own code, rather than the compilation of the user's source."""
    return traceback.tb_frame.f_code.co_filename not in _LOADERS


def execute(
    start: Start,
    *,
    hooked: bool = True,
    auto: bool = False,
    ready: Callable[[], object] | None = None,
    change: Callable[[CodeType], CodeType] = lambda code: code,
) -> int:
    """Run the program that `enter` found as `__main__`. Returns 0, or 2 if the target contains no code.

    hooked: False if nothing is installed, nor will be.
    auto: outline every loop, not only those that installed rows name, and accelerate the functions with the most time.
    ready: called after the loops
    are outlined and before the program begins; may raise NoProgram. change: returns the code that runs in place of the
    program's own.
    """
    try:
        _execute(start, hooked=hooked, auto=auto, ready=ready, change=change)
    except NoProgram as error:
        return refuse(error)
    return 0
