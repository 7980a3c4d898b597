"""Escapes: recorded values, functions and generators that something outside holds after the recording ended.

Where nothing irreversible happened, the call is undone and run plainly instead; this is for the other case.

Recorded code has cells of its own in the place of the program's (see accel.record.objects.names.cells). A function or
generator that it makes captures those. What it captured would stay as it was at the end of the call, whatever the
program assigns later, and what it assigns would be lost. So it gets the program's own cells.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterable, Sequence
from types import CellType, FunctionType, GeneratorType
from typing import Any

from accel.platform.tracebacks import without_ours
from accel.record.objects.names.cells import Link, links_of
from accel.record.objects.names.namespaces import SubstitutedGlobals
from accel.record.objects.names.variables import contents_of, fill
from accel.record.state.instructions import SUSPENDED
from accel.record.state.recording import Recording
from accel.record.state.wrapper import unwrap

DEPTH = 3
"""Maximum nesting of tuples that are replaced. Guess."""


def unwrap_everywhere(wrapper: object) -> None:
    """Put the plain value in a wrapper's place wherever a list, dict, set, attribute or closure holds it."""
    replace_everywhere(wrapper, unwrap(wrapper), DEPTH)


def replace_everywhere(old: object, new: object, depth: int) -> None:
    """Put `new` in the place of `old` in all lists, dicts, sets, attributes, closures, and tuples up to `depth`."""
    # The last resort: a replay is not wanted any more, and the program must not find a wrapper among its own objects.
    for holder in gc.get_referrers(old):
        kind = type(holder)
        if kind is list:
            holder[:] = _swapped(holder, old, new)
        elif kind is dict:
            for key, part in list(holder.items()):
                if part is old:
                    holder[key] = new
        elif kind is set:
            holder.discard(old)
            holder.add(new)
        # Tuples cannot be changed: a new one takes the place of the old one wherever that is held, and so on upwards.
        elif kind is tuple and depth:
            replace_everywhere(holder, tuple(_swapped(holder, old, new)), depth - 1)
        elif kind.__name__ == "cell" and holder.cell_contents is old:
            holder.cell_contents = new
        elif not isinstance(holder, type):
            _replace_attribute(holder, old, new)


def _swapped(parts: Iterable[Any], old: object, new: object) -> list[Any]:
    # a function of its own: a comprehension beside the loop above would hold `old` in a cell, which is a holder too
    return [new if part is old else part for part in parts]


def _replace_attribute(holder: object, old: object, new: object) -> None:
    names = [*getattr(holder, "__dict__", ()), *(slot for kind in type(holder).__mro__ for slot in _slots(kind))]
    for name in names:
        if getattr(holder, name, None) is old:
            object.__setattr__(holder, name, new)


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def rebind(recording: Recording) -> None:
    """Put functions over the program's cells in the place of those that are over cells of the recording.

    Generators, whose cells nobody can exchange, get others around them.
    """
    links = list(links_of(recording))
    if not links or not recording.code.makes_functions:
        return
    cells = {id(link.inner): link.cell for link in links}
    followed = set(map(id, recording.registry.functions.values()))
    # one look at all objects, as each takes long
    referrers = gc.get_referrers(*(link.inner for link in links))
    closures = [each for each in referrers if type(each) is tuple]
    generators = [each for each in referrers if type(each) is GeneratorType and not each.gi_running]
    del referrers
    holders = gc.get_referrers(*closures) if closures else []
    for function in holders:
        if type(function) is not FunctionType or id(function) in followed:
            continue
        if type(function.__globals__) is SubstitutedGlobals and function.__closure__ is not None:
            made = _rebound(function, function.__globals__, cells)
            replace_everywhere(function, made, DEPTH)
            _forward(function, made)
    for generator in generators:
        replace_everywhere(generator, _refreshed(generator, links), DEPTH)


def _rebound(function: FunctionType, scope: SubstitutedGlobals, cells: dict[int, CellType]) -> FunctionType:
    """Return the function over the program's own cells and globals."""
    assert function.__closure__ is not None
    closure = tuple(cells.get(id(cell), cell) for cell in function.__closure__)
    made = FunctionType(function.__code__, scope.namespace, function.__name__, function.__defaults__, closure)
    for name in ("__kwdefaults__", "__qualname__", "__doc__", "__module__", "__annotations__"):
        setattr(made, name, getattr(function, name))
    made.__dict__.update(function.__dict__)
    return made


def _forward(function: FunctionType, made: FunctionType) -> None:
    """Let a function call the one that is in its place: a `functools.partial`, or C code, may hold it all the same."""
    kind = function.__code__.co_flags & SUSPENDED
    if kind not in _CALLS:
        return  # of an asynchronous generator; the program's own containers hold the other function by now
    names = {name: getattr(function.__code__, name) for name in ("co_name", "co_qualname", "co_freevars")}
    function.__code__ = _CALLS[kind].replace(**names)
    function.__defaults__, function.__kwdefaults__ = None, {"_made_": made}
    function.__wrapped__ = made  # type: ignore[attr-defined]  # for `inspect.signature`


def _call(*args: Any, _made_: Any, **kwargs: Any) -> Any:
    return _made_(*args, **kwargs)


def _call_generator(*args: Any, _made_: Any, **kwargs: Any) -> Any:
    return (yield from _made_(*args, **kwargs))


async def _call_coroutine(*args: Any, _made_: Any, **kwargs: Any) -> Any:
    return await _made_(*args, **kwargs)


_CALLS = {each.__code__.co_flags & SUSPENDED: each.__code__ for each in (_call, _call_generator, _call_coroutine)}
"""By the kind of function, code that calls another one: a function's code must stay of its kind."""


def _refreshed(generator: GeneratorType[Any, Any, Any], links: Sequence[Link]) -> GeneratorType[Any, Any, Any]:
    """A generator that goes on as another does, whose cells get the variables' values before it does."""
    made: Any = _going_on(generator, links)
    made.__name__, made.__qualname__ = generator.__name__, generator.__qualname__
    next(made)  # to where it can be asked
    return made  # type: ignore[no-any-return]


def _going_on(generator: GeneratorType[Any, Any, Any], links: Sequence[Link]) -> Generator[Any, Any, Any]:
    """Go on as the generator does; before each step its cells get the present values of the program's variables."""
    given: Any = None
    resume: Callable[[Any], Any]
    while True:
        try:
            given = yield given
        except GeneratorExit:
            generator.close()
            raise
        except BaseException as error:
            given, resume = error, generator.throw
        else:
            resume = generator.send
        for link in links:
            fill(link.inner, contents_of(link.cell))
        try:
            given = resume(given)
        except StopIteration as end:
            return end.value
        except BaseException as error:
            error.__traceback__ = without_ours(error.__traceback__)
            raise
