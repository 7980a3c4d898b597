"""Files of the program that hide Python's own modules from accel, as a script `queue.py` hides `queue`.

Python looks for modules in the script's folder first. So an import by accel, or by JAX for accel, would run that file:
the program would run twice, or run what it never imports.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import FrozenImporter
from types import FrameType
from typing import Any

_ACCEL = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
_LOADER = os.path.join(_ACCEL, "entry", "hook", "loader.py")
"""Its frames lie under the program's own import of a module that accel watches, such as NumPy."""
_STDLIB = os.path.join(os.path.dirname(os.__file__), "")
_INSTALLED = tuple(os.path.join(os.sep, name, "") for name in ("site-packages", "dist-packages"))
_NAMES = sys.stdlib_module_names - frozenset(sys.builtin_module_names)


class HiddenModules:
    """A finder that refuses imports of hidden modules by accel. The program's own imports go on as Python has them."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        """Raise ImportError if the module is accel's to import, and a file of the program has its name."""
        if path is not None or name not in _NAMES or not sys.path:
            return
        file = os.path.join(sys.path[0], f"{name}.py")
        if os.path.isfile(file) and FrozenImporter.find_spec(name) is None and _is_imported_by_accel():
            raise ImportError(
                f"{file} hides Python's module {name}, which accel needs: rename it", name=name, path=file
            )


def _is_imported_by_accel() -> bool:
    """Whether this is an import, and the first frame under it that is not a library's is accel's."""
    frame: FrameType | None = sys._getframe(2)
    assert frame is not None
    if not frame.f_code.co_filename.startswith("<frozen "):  # accel asks where the module is, and imports nothing
        return False
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_ACCEL) and file != _LOADER:
            return True
        is_library = file.startswith((_STDLIB, "<frozen ", _LOADER)) or any(name in file for name in _INSTALLED)
        if not is_library or frame.f_globals.get("__name__") == "__main__":
            return False
        frame = frame.f_back
    return False


def watch() -> None:
    """Refuse such imports from now on."""
    if not any(each is HiddenModules for each in sys.meta_path):
        sys.meta_path.insert(0, HiddenModules)
