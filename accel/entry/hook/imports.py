"""Imports: finding modules without importing them, and patching a module as soon as it is imported.

wrapt's post-import hooks are not used: they fire once per process, skip reloads, and cannot be removed.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any


class Finder:
    """A finder for `sys.meta_path` that patches watched modules after each execution. Other finders locate the modules.

    It stays there until `uninstall`, so that a reloaded module is patched again.
    """

    def __init__(self, watched: Iterable[str], loaded: Callable[[ModuleType], None]) -> None:
        self.watched = frozenset(watched)
        self.loaded = loaded

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        """Return the other finders' spec with a patching loader; None for a module that is not watched."""
        if name not in self.watched:
            return None
        spec = ask_finders(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            from accel.entry.hook.loader import PatchingLoader  # wrapt takes long to import

            spec.loader = PatchingLoader(spec.loader, self.loaded)
        return spec


def ask_finders(name: str, path: object, target: ModuleType | None = None) -> Any:
    """Return the first spec for `name` of a finder other than accel's, or None."""
    for finder in tuple(sys.meta_path):
        find_spec = None if isinstance(finder, Finder) else getattr(finder, "find_spec", None)
        try:
            spec = find_spec and find_spec(name, path, target)
        except KeyError:  # CPython's, for a package without __init__.py inside one that is not imported
            spec = _in_folders(name, path)
        if spec is not None:
            return spec
    return None


def _in_folders(name: str, folders: Any) -> Any:
    """Return the first spec for `name` in one of these folders, or None."""
    finders = filter(None, map(pkgutil.get_importer, folders))
    return next(filter(None, (finder.find_spec(name) for finder in finders)), None)


def locate(name: str) -> Any:
    """Return the spec of module `name`, or None. Imports neither the module nor the packages around it."""
    path: Any = None
    spec: Any = None
    # from the outermost package inwards: each says where the next one is looked for
    for end in (index for index, sign in enumerate(f"{name}.") if sign == "."):
        spec = getattr(sys.modules.get(name[:end]), "__spec__", None) or ask_finders(name[:end], path)
        if spec is None or (end < len(name) and spec.submodule_search_locations is None):
            return None
        path = spec.submodule_search_locations
    return spec


def find_module(name: str) -> Any:
    """Return `locate` for a name that a user typed; None also for a name that cannot be imported, such as a file's
    path."""
    return locate(name) if all(part.isidentifier() for part in name.split(".")) else None


def split_name(name: str) -> tuple[str, str]:
    """Split a function's name into its module's and its own: "package.module:Class.method", or with dots alone.

    With dots alone, the module is the longest prefix that can be found; nothing is imported. If no prefix can be found,
    it is the first part. The second result is "" if the name has no function part.
    """
    module, colon, own = name.partition(":")
    if colon:
        return module, own
    parts = name.split(".")
    found = (end for end in range(len(parts), 0, -1) if find_module(".".join(parts[:end])) is not None)
    end = next(found, 1)
    return ".".join(parts[:end]), ".".join(parts[end:])
