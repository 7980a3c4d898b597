"""The loader of a watched module. It needs wrapt, which takes longer to import than finding a program."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt


class PatchingLoader(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """The loader of a watched module, which also patches the module once its code has run."""

    def __init__(self, loader: Any, loaded: Callable[[ModuleType], None]) -> None:
        super().__init__(loader)
        self._self_loaded = loaded

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code by its own loader, under whose name it stays, and then patch the module."""
        for holder, name in ((module, "__loader__"), (module.__spec__, "loader")):
            if getattr(holder, name, None) is self:
                setattr(holder, name, self.__wrapped__)
        self.__wrapped__.exec_module(module)
        self._self_loaded(module)
