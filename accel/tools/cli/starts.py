"""The ways in which Python starts a program: a module, a script, `-m`, `-c`, `-`, a folder, a zip file, a `.pyc` file.

Each gives the code, `sys.argv[0]`, `sys.path[0]` and the names of `__main__` that Python itself would give.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import BuiltinImporter, PathFinder, SourceFileLoader, SourcelessFileLoader
from importlib.util import MAGIC_NUMBER, find_spec
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from accel.entry.hook.imports import find_module
from accel.platform import files, tracebacks
from accel.platform.config import SettingError

TARGETS = "a module such as scripts.run_simulation, a script, a folder or zip file with __main__.py, -c CODE, or -"


class StartCommand(NamedTuple):
    """A program, its arguments, and its folder (None: found on `sys.path`).

    target: the word that the user wrote, or "-m", "-c" or "-". With "-m" or "-c", the first of `args` is the module or
    the code.
    """

    target: str
    args: list[str]
    folder: str | None


class MainProgram(NamedTuple):
    """The code of a program, its `sys.argv[0]`, and the extra names that `__main__` has at the start."""

    code: CodeType
    argv0: str
    names: dict[str, Any]


class Start(NamedTuple):
    """A program that was found. load: returns its code; may import the packages around it, which are the user's code.

    args: the program's own arguments. argv0: the value of `sys.argv[0]` while it is loaded. first: the first entry of
    `sys.path`, or None to leave it. elsewhere: target and arguments by which a process in another folder finds it.
    """

    load: Callable[[], MainProgram]
    args: list[str]
    argv0: str
    first: list[str] | None
    elsewhere: tuple[str, list[str]]


class NoProgram(SettingError):
    """The target contains no code to run. A separate type, because the user's program could raise SettingError."""


def find(command: StartCommand) -> Start:
    """Return how to start a program, without running or importing any of it.

    Raises `SettingError` if the program does not exist.
    """
    by_flag = BY_FLAG.get(command.target)
    if by_flag is not None:
        return by_flag(command)
    if find_module(command.target) is not None:
        return _module(command, command.target, command.args)
    path = next((path for path in _possible_paths(command) if os.path.exists(path)), None)
    if path is None:
        raise SettingError("TARGET", command.target, TARGETS, "does not exist")
    return _file(command, path)


def home_of(command: StartCommand) -> str:
    """Return the program's folder, where its `pyproject.toml` may be; the current folder if it is unknown."""
    if command.folder is not None:
        return command.folder
    if command.target in BY_FLAG or find_module(command.target) is not None:
        return files.current_folder()
    path = files.resolved(command.target)
    return path if os.path.isdir(path) else os.path.dirname(path)


def _possible_paths(command: StartCommand) -> list[str]:
    """Return the paths at which a file may be: as the user wrote it, or inside the folder that the user named."""
    target, folder = command.target, command.folder
    return [target] + ([os.path.join(folder, target)] if folder is not None else [])


# -- modules ----------------------------------------------------------------------------------------------------------


def _by_name(command: StartCommand) -> Start:
    name, args = _first_argument(command, "a module")
    if find_module(name) is None:
        raise SettingError("-m", name, "a module that can be imported from here", "does not exist")
    return _module(command, name, args)


def _module(command: StartCommand, name: str, args: list[str]) -> Start:
    first = None if command.folder is None else [command.folder]
    return Start(functools.partial(_load_module, name), args, "-m", first, ("-m", [name, *args]))


def _load_module(name: str) -> MainProgram:
    """Return the module as `python -m` would run it. Imports the packages around it, which are the user's code."""
    spec: Any = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        # `python -m package` runs package/__main__.py
        return _load_module(f"{name}.__main__")
    return MainProgram(_code_of(spec, name), str(spec.origin), _names_of(spec))


def _code_of(spec: Any, name: str) -> CodeType:
    code = spec.loader.get_code(spec.name) if hasattr(getattr(spec, "loader", None), "get_code") else None
    if not isinstance(code, CodeType):
        raise NoProgram("TARGET", name, TARGETS, "holds no Python code to run")
    return code


def _names_of(spec: Any) -> dict[str, Any]:
    names = {"__package__": spec.parent, "__loader__": spec.loader, "__spec__": spec}
    return {**names, "__file__": spec.origin, "__cached__": spec.cached}


# -- files and folders ------------------------------------------------------------------------------------------------


def _file(command: StartCommand, path: str) -> Start:
    full = os.path.join(files.current_folder(), path)  # not abspath: Python does not normalise the name either
    elsewhere = (files.absolute(path), command.args)
    # as Python does: an importer takes it if it is a folder or a zip file
    if pkgutil.get_importer(path) is not None:
        spec = PathFinder.find_spec("__main__", [full])
        if spec is None:
            raise SettingError("TARGET", command.target, TARGETS, "holds no __main__.py")
        load = functools.partial(_load_container, path, spec)
        return Start(load, command.args, path, _first(command, full), elsewhere)
    load = functools.partial(_load_file, path, full)
    return Start(load, command.args, path, _first(command, os.path.dirname(files.resolved(path))), elsewhere)


def _first(command: StartCommand, own: str) -> list[str]:
    """Return the program's own folder and the folder that the user named."""
    return [own, *([command.folder] if command.folder is not None else [])]


def _load_container(path: str, spec: Any) -> MainProgram:
    return MainProgram(_code_of(spec, path), path, _names_of(spec))


def _load_file(path: str, full: str) -> MainProgram:
    """Return the script or compiled file as `python path` would run it."""
    loader: SourcelessFileLoader | SourceFileLoader
    if _is_compiled(full):
        loader = SourcelessFileLoader("__main__", full)
        code = _compiled_code(loader, path)
    else:
        loader = SourceFileLoader("__main__", full)
        code = loader.source_to_code(loader.get_data(full), full)
    names = {"__package__": None, "__loader__": loader, "__spec__": None, "__file__": full, "__cached__": None}
    return MainProgram(code, path, names)


def _is_compiled(full: str) -> bool:
    if full.endswith(".pyc"):
        return True
    with open(full, "rb") as file:
        return file.read(len(MAGIC_NUMBER)) == MAGIC_NUMBER


def _compiled_code(loader: SourcelessFileLoader, path: str) -> CodeType:
    try:
        code = loader.get_code("__main__")
    except (ImportError, EOFError, ValueError, TypeError) as error:
        raise NoProgram("TARGET", path, TARGETS, f"was not compiled by this Python ({error})") from None
    assert code is not None
    return code


# -- text -------------------------------------------------------------------------------------------------------------


def _text(command: StartCommand) -> Start:
    text, args = _first_argument(command, "code")
    return Start(functools.partial(_load_text, text), args, "-c", _first(command, ""), ("-c", [text, *args]))


def _load_text(text: str) -> MainProgram:
    code = compile(text, "<string>", "exec", dont_inherit=True)
    tracebacks.show_lines_of(code, text)
    return MainProgram(code, "-c", _without_a_file())


def _standard_input(command: StartCommand) -> Start:
    if sys.stdin is None or sys.stdin.closed:
        raise SettingError("TARGET", "-", TARGETS, "cannot be read: standard input is closed")
    return Start(_load_standard_input, command.args, "-", _first(command, ""), ("-", command.args))


def _load_standard_input() -> MainProgram:
    # bytes, of which the compiler finds the encoding as in a file
    code = compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True)
    return MainProgram(code, "-", {**_without_a_file(), "__file__": "<stdin>", "__cached__": None})


def _without_a_file() -> dict[str, Any]:
    return {"__package__": None, "__loader__": BuiltinImporter, "__spec__": None}


def _first_argument(command: StartCommand, what: str) -> tuple[str, list[str]]:
    if not command.args:
        raise SettingError(command.target, "", what, "is missing its argument")
    return command.args[0], command.args[1:]


BY_FLAG: Mapping[str, Callable[[StartCommand], Start]] = {"-m": _by_name, "-c": _text, "-": _standard_input}
"""Words that Python accepts in place of a file, each with the function that finds the program."""


def source(start: Start) -> bytes:
    """The text of the program's main file; b"" for what has none."""
    target, args = start.elsewhere
    if target == "-c":
        return args[0].encode("utf-8", "replace")
    spec = None if target != "-m" else find_module(f"{args[0]}.__main__") or find_module(args[0])
    with contextlib.suppress(OSError):
        return Path(target if spec is None else str(spec.origin)).read_bytes()
    return b""
