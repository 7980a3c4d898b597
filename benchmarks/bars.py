"""Progress bars that benchmarks put in the place of tqdm's, to count, time and end the steps of a program.

accel knows how long a loop over a bar of tqdm's goes on, and nothing of a loop over most other objects. These bars pass
for tqdm's own, so that a program is measured as its user would run it: they are a subclass, whose functions say that
they are from its module. Nothing but the standard library and tqdm is imported here.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_SOURCE = """
import sys

class Bar(tqdm):
    disable, total, n = True, None, 0

    def __new__(cls, *_, **__):
        cls.get_lock()
        return object.__new__(cls)

    def __init__(self, iterable=(), *_, **__):
        self.iterable, self.is_gated = begin(iterable, sys._getframe(1).f_globals)

    def __iter__(self):
        yield from through(self.iterable) if self.is_gated else self.iterable

    def __getattribute__(self, name):
        usual = callable(getattr(tqdm, name, None)) and not name.startswith("__")
        return nothing if usual else object.__getattribute__(self, name)

    def __del__(self):
        pass

def nothing(*_, **__):
    pass
"""


def bar_class(
    module: str,
    through: Callable[[Iterable[Any]], Iterator[Any]],
    steps: int | None = None,
    at_start: Callable[[dict[str, Any]], None] = lambda _: None,
) -> type[Iterable[Any]]:
    """Return a class that stands in for `tqdm.tqdm`: whatever its bars can do, but for iterating, does nothing.

    through: gives the elements of the first bar that a module makes, by its name; all others only iterate. steps: the
    most elements of that bar. at_start: is given the module's variables when that bar is made.
    """
    made = itertools.count()

    def begin(items: Any, names: dict[str, Any]) -> tuple[Any, bool]:
        if names["__name__"] != module or next(made):
            return items, False
        at_start(names)
        return items[:steps], True

    std = importlib.import_module("tqdm.std")
    names = {"__name__": std.__name__, "tqdm": std.tqdm, "begin": begin, "through": through}
    exec(compile(_SOURCE, __file__, "exec"), names)
    made_class: type[Iterable[Any]] = names["Bar"]
    return made_class
