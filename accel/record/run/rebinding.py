"""Functions that recorded code has made and that outlive it: they get the program's own variables.

Recorded code has cells of its own in the place of the program's (see accel.record.names.cells). A function that it
defines captures those. If the call cannot be undone, somebody may hold such a function, and what it captured would stay
as it was at the end of the call, whatever the program assigns later.
"""

from __future__ import annotations

import gc
from types import CellType, FunctionType

from accel.record.names.cells import links_of
from accel.record.names.namespaces import SubstitutedGlobals
from accel.record.recording import Recording
from accel.record.run.escapes import DEPTH, replace_everywhere


def rebind_functions(recording: Recording) -> None:
    """Put functions over the program's cells in the place of those that are over cells of the recording."""
    links = list(links_of(recording))
    if not links or not recording.makes_functions:
        return
    cells = {id(link.inner): link.cell for link in links}
    followed = set(map(id, recording.registry.functions.values()))
    # one look at all objects, as each takes long
    closures = [each for each in gc.get_referrers(*(link.inner for link in links)) if type(each) is tuple]
    holders = gc.get_referrers(*closures) if closures else []
    for function in holders:
        if type(function) is not FunctionType or id(function) in followed:
            continue
        if type(function.__globals__) is SubstitutedGlobals and function.__closure__ is not None:
            made = _rebound(function, function.__globals__, cells)
            replace_everywhere(function, made, DEPTH)


def _rebound(function: FunctionType, scope: SubstitutedGlobals, cells: dict[int, CellType]) -> FunctionType:
    assert function.__closure__ is not None
    closure = tuple(cells.get(id(cell), cell) for cell in function.__closure__)
    made = FunctionType(
        function.__code__,
        scope.namespace,
        function.__name__,
        function.__defaults__,
        closure,
    )
    for name in ("__kwdefaults__", "__qualname__", "__doc__", "__module__", "__annotations__"):
        setattr(made, name, getattr(function, name))
    made.__dict__.update(function.__dict__)
    return made
