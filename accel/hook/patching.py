"""Patching: replaces a catalogue's functions by wrappers in an unmodified program, and puts them back.

A function can have several names: its module's, and aliases made by `from module import function`. All are replaced,
whether they were made before or after `install`, and `uninstall` puts all of them back. Modules that are not imported
yet are patched right after their import, and again after every reload.

The wrappers are wrapt's. Its post-import hooks are not used: they fire once per process, skip reloads, and cannot be
removed. Instead, a finder of accel's is in `sys.meta_path` until `uninstall`.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import wrapt

from accel import catalogue as catalogues
from accel import config, logs, versions
from accel.backend import devices
from accel.catalogue import Catalogue, Hold, Row, Steps
from accel.config import SettingError
from accel.process import forks, tuning
from accel.reasons import Refusal
from accel.reports import ledger, reporting
from accel.reports.ledger import State

_ABSENT = object()


# -- choosing rows ---------------------------------------------------------------------------------------------------


def matches(target: str, pattern: str) -> bool:
    """Whether `pattern` selects `target`.

    A pattern with `*`, `?` or `[` is a shell pattern for the whole name. Any other pattern must be the first or the
    last dotted parts of the name.

    >>> [matches("pygcm.ocean.Ocean.step", pattern) for pattern in ("pygcm.ocean", "step", "*Ocean*", "ocean")]
    [True, True, True, False]
    """
    if any(sign in pattern for sign in "*?["):
        return fnmatchcase(target, pattern)
    return f"{target}.".startswith(f"{pattern}.") or f".{target}".endswith(f".{pattern}")


def _selected(row: Row, only: Iterable[str], exclude: Iterable[str]) -> bool:
    wanted = not only or any(matches(row.target, pattern) for pattern in only)
    return wanted and not any(matches(row.target, pattern) for pattern in exclude)


def _check_patterns(rows: Iterable[Row], **patterns: Iterable[str]) -> None:
    """Raise `SettingError` for a pattern that selects no row: a misspelt one would go unnoticed."""
    rows = tuple(rows)
    for option, values in patterns.items():
        for pattern in values:
            if not any(matches(row.target, pattern) for row in rows):
                example = rows[0].target if rows else "none: no catalogue is installed"
                raise SettingError(f"--{option}", pattern, f"patterns such as {example}", "selects no function")


# -- finding and replacing one attribute ------------------------------------------------------------------------------


class _Attribute(NamedTuple):
    """An attribute of a module or class. raw: its value in the owner's namespace, or (inherited) in a base class's."""

    owner: Any
    name: str
    raw: Any
    inherited: bool


class _Patch(NamedTuple):
    """One replaced attribute, with what is needed to put it back exactly."""

    attribute: _Attribute
    replacement: Any

    def undo(self) -> None:
        """Put the original back, unless other code has replaced the attribute meanwhile."""
        owner, name, raw, inherited = self.attribute
        if _namespace(owner).get(name, _ABSENT) is not self.replacement:
            return
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, raw)


def _namespace(owner: Any) -> Any:
    """Return the namespace of a module (a dict) or class (a view). Does not trigger modules that are loaded lazily."""
    if isinstance(owner, type):
        return type.__dict__["__dict__"].__get__(owner)
    return ModuleType.__getattribute__(owner, "__dict__")


def _find(module: ModuleType, qualname: str) -> _Attribute | None:
    """Return the attribute `qualname` of `module`; None if this revision of the program does not have it."""
    *path, name = qualname.split(".")
    owner: Any = module
    for part in path:
        owner = _namespace(owner).get(part)
        if not isinstance(owner, type):
            return None
    for depth, place in enumerate(owner.__mro__ if isinstance(owner, type) else (owner,)):
        raw = _namespace(place).get(name, _ABSENT)
        if raw is not _ABSENT:
            return _Attribute(owner, name, raw, inherited=depth > 0)
    return None


def _rebuild_property(original: property, wrap: Callable[[Any], Any]) -> property:
    getter = original.fget and wrap(original.fget)
    return property(getter, original.fset, original.fdel, original.__doc__)


_DESCRIPTORS: tuple[tuple[type, Callable[[Any], Any], Callable[[Any, Callable[[Any], Any]], Any]], ...] = (
    # the type in the namespace, how to get the Python function inside it, and how to rebuild it around a wrapper
    (staticmethod, lambda raw: raw.__func__, lambda raw, wrap: staticmethod(wrap(raw.__func__))),
    (classmethod, lambda raw: raw.__func__, lambda raw, wrap: classmethod(wrap(raw.__func__))),
    (property, lambda raw: raw.fget, _rebuild_property),
    (FunctionType, lambda raw: raw, lambda raw, wrap: wrap(raw)),
)


class _Replacement(NamedTuple):
    """A new attribute value, and the functions inside the old value and the new one, by which aliases are replaced."""

    value: Any
    old: Any
    new: Any


def _replace(raw: Any, wrap: Callable[[Any], Any]) -> _Replacement | None:
    """Return `raw` with the function inside it wrapped; None if there is no Python function inside.

    Checks `type`, not `isinstance`: a wrapper pretends to be an instance of the class that it wraps.
    """
    for kind, inner, rebuild in _DESCRIPTORS:
        if issubclass(type(raw), kind) and type(inner(raw)) is FunctionType:
            value = rebuild(raw, wrap)
            return _Replacement(value, inner(raw), inner(value))
    return None


def wrappable(module: ModuleType, qualname: str) -> bool:
    """Whether a row may name `qualname` of `module`: a Python function, or one that is accelerated already."""
    attribute = _find(module, qualname)
    if attribute is None:
        return False
    raw = attribute.raw
    return issubclass(type(raw), wrapt.CallableObjectProxy) or _replace(raw, lambda each: each) is not None


def _swap_aliases(swaps: Iterable[tuple[Any, Any]]) -> None:
    """In every imported module, bind each name of a pair's first object to the pair's second object."""
    by_id = {id(old): (old, new) for old, new in swaps}
    if not by_id:
        return
    for module in tuple(sys.modules.values()):
        if not issubclass(type(module), ModuleType):
            continue
        names = _namespace(module)
        aliases = [(name, by_id[id(value)]) for name, value in tuple(names.items()) if id(value) in by_id]
        for name, (_, new) in aliases:
            names[name] = new


# -- modules that are imported later ---------------------------------------------------------------------------------


class _PatchingLoader(wrapt.ObjectProxy):  # type: ignore[type-arg]
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


class _Finder:
    """A finder for `sys.meta_path` that has watched modules patched after each execution. Others find the modules."""

    def __init__(self, watched: Iterable[str], loaded: Callable[[ModuleType], None]) -> None:
        self.watched = frozenset(watched)
        self.loaded = loaded

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        """Return the other finders' spec with a loader that patches; None for modules that are not watched."""
        if name not in self.watched:
            return None
        spec = _ask_finders(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _PatchingLoader(spec.loader, self.loaded)
        return spec


def _ask_finders(name: str, path: Any, target: ModuleType | None = None) -> Any:
    """Return the first spec for `name` of a finder other than accel's, or None."""
    for finder in tuple(sys.meta_path):
        find_spec = None if isinstance(finder, _Finder) else getattr(finder, "find_spec", None)
        spec = find_spec and find_spec(name, path, target)
        if spec is not None:
            return spec
    return None


def locate(name: str) -> Any:
    """Return the spec of module `name`, or None. Imports neither the module nor the packages around it."""
    path: Any = None
    spec: Any = None
    for end in (index for index, sign in enumerate(f"{name}.") if sign == "."):
        spec = getattr(sys.modules.get(name[:end]), "__spec__", None) or _ask_finders(name[:end], path)
        if spec is None or (end < len(name) and spec.submodule_search_locations is None):
            return None
        path = spec.submodule_search_locations
    return spec


def find_module(name: str) -> Any:
    """`locate` for a name that a user typed. None also for what no import statement can name, such as a file's path."""
    return locate(name) if all(part.isidentifier() for part in name.split(".")) else None


# -- an installation -------------------------------------------------------------------------------------------------


class _Installation:
    """Everything that one `install` changes, and how to undo it. jobs: rows and holds by module."""

    def __init__(self, rows: Iterable[Row], holds: Iterable[Hold], wrap: Wrap) -> None:
        self.wrap = wrap
        self.rows, self.holds = tuple(rows), tuple(holds)
        self.jobs: dict[str, list[Row | Hold]] = {}
        every: tuple[Row | Hold, ...] = self.rows + self.holds
        for job in every:
            self.jobs.setdefault(job.module, []).append(job)
        self.patches: list[_Patch] = []
        self.swaps: list[tuple[Any, Any]] = []
        self.finder = _Finder(self.jobs, self.patch_module)

    def start(self) -> None:
        """Patch the modules that are imported, watch for the others, and mark those that do not exist as absent."""
        sys.meta_path.insert(0, self.finder)
        for name, jobs in self.jobs.items():
            module = sys.modules.get(name)
            if module is not None:
                self.patch_module(module)
            elif locate(name) is None:
                _mark_absent(jobs)

    def copy(self) -> _Installation:
        """Return a new installation of the same jobs."""
        return _Installation(self.rows, self.holds, self.wrap)

    def is_equivalent_to(self, other: _Installation) -> bool:
        """Whether both replace the same functions in the same way."""
        return (self.jobs, self.wrap) == (other.jobs, other.wrap)

    def replace_new_aliases(self) -> None:
        """Replace aliases that were made since the start."""
        _swap_aliases(self.swaps)

    def stop(self) -> None:
        """Put everything back."""
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        for patch in self.patches:
            patch.undo()
        _swap_aliases((new, old) for old, new in self.swaps)

    def patch_module(self, module: ModuleType) -> None:
        """Replace the catalogue's functions in `module`, and all their aliases, unless that was done before."""
        with _lock:
            replaced = [self._patch(module, job) for job in self.jobs.get(module.__name__, ())]
            fresh = [(replacement.old, replacement.new) for replacement in replaced if replacement is not None]
            self.swaps += fresh
            _swap_aliases(fresh)

    def _patch(self, module: ModuleType, job: Row | Hold) -> _Replacement | None:
        attribute = _find(module, job.qualname)
        if attribute is None:
            _mark_absent([job])
            return None
        owner, raw = attribute.owner, attribute.raw
        if any(raw is patch.replacement and owner is patch.attribute.owner for patch in self.patches):
            return None
        replacement = _replace(self._unpatched(raw), self._wrapper_for(job))
        if replacement is None:
            _refuse_callable(job, raw)
            return None
        setattr(owner, attribute.name, replacement.value)
        self.patches.append(_Patch(attribute, replacement.value))
        return replacement

    def _wrapper_for(self, job: Row | Hold) -> Callable[[Any], Any]:
        """Return the function that makes the replacement for the function of `job`."""
        if isinstance(job, Hold):
            ledger.current_run().note(job.note)
            return functools.partial(_held, value=job.value)
        _mark_present(job)
        return functools.partial(self.wrap, job)

    def _unpatched(self, raw: Any) -> Any:
        """Return the original if `raw` is one of accel's replacements, such as an inherited one, else `raw`."""
        return next((patch.attribute.raw for patch in self.patches if patch.replacement is raw), raw)


Wrap = Callable[[Row, FunctionType], Any]
"""Makes the replacement for a row's function."""


@dataclass(frozen=True)
class _Accelerating:
    """The usual replacement: the accelerated function. mode: None for the mode in the settings."""

    mode: str | None

    def __call__(self, row: Row, function: FunctionType) -> Any:
        from accel.dispatch import accelerated

        return accelerated(function, name=row.target, rtol=row.rtol, mode=self.mode)


def _held(original: Callable[..., Any], value: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def held(*args: Any, **kwargs: Any) -> Any:
        return value

    return held


def _mark_present(row: Row) -> None:
    book = ledger.open_ledger(row.target)
    if book.state is State.ABSENT:
        book.state = State.UNCALLED


def _mark_absent(jobs: Iterable[Row | Hold]) -> None:
    for job in jobs:
        if isinstance(job, Row):
            book = ledger.open_ledger(job.target)
            if book.state is State.UNCALLED:
                book.state = State.ABSENT


def _refuse_callable(job: Row | Hold, raw: Any) -> None:
    """Enter that a row does not name a Python function, unless it is one that a decorator accelerates already."""
    if isinstance(job, Row) and not issubclass(type(raw), wrapt.CallableObjectProxy):
        _stay(job, Refusal("choice.callable", detail=f"a {type(raw).__name__}"))


def _stay(row: Row, refusal: Refusal) -> None:
    """Enter into the ledger that `row` stays on NumPy by choice."""
    book = ledger.open_ledger(row.target)
    book.state = State.NUMPY
    if refusal not in book.refusals:
        book.refuse(refusal)


# -- the public functions --------------------------------------------------------------------------------------------

_lock = threading.RLock()
_installation: _Installation | None = None


@forks.in_child
def _renew_lock() -> None:
    """In a forked child: another thread may have held the lock when the process was forked."""
    global _lock
    _lock = threading.RLock()


def install(
    catalogue: Catalogue | None = None,
    *,
    only: Iterable[str] = (),
    exclude: Iterable[str] = (),
    mode: str | None = None,
) -> None:
    """Accelerate the functions of `catalogue` (default: of every installed one) under all their names.

    only, exclude: patterns as in `matches`; without `only`, all functions that are not excluded are accelerated. mode:
    "off", "auto", "verify" or "strict" for these functions; by default, the mode in the settings at each call.

    It may be called at any time and any number of times: a new choice replaces the one before. Unless QD_JAX_QUIET=1,
    one line at the end of the process says what was gained. If QD_USE_JAX=0 or the mode is off, it only logs that.

    Raises `SettingError` for an invalid setting, mode or pattern.
    """
    if mode is not None:
        config.check("mode", mode)
    settings = config.current()
    logs.set_level(settings.log)
    logs.to_stderr_unless_configured()
    if not settings.enabled or (mode or settings.mode) == "off":
        _say_off("mode='off'" if mode == "off" else config.VARIABLES["mode" if settings.enabled else "enabled"])
        return
    versions.warn()
    devices.check(replace(settings, mode=mode or settings.mode))
    from accel import dispatch  # noqa: F401  # now, so that no import of accel's can fail during one of the program's

    if not settings.quiet:
        _speak_at_exit()
    put_in_place(catalogue, _Accelerating(mode), only=only, exclude=exclude)


def steps_of(chosen: Iterable[Catalogue]) -> Steps | None:
    """Return the steps of the first catalogue whose step can be imported, or None."""
    for each in chosen:
        if each.steps is not None:
            modules = [row.module for row in each.rows if row.target == each.steps.step]
            if modules and locate(modules[0]) is not None:
                return each.steps
    return None


@functools.cache
def _speak_at_exit() -> None:
    """Write the summary at the end of this process, but not at the end of its forked children."""
    atexit.register(lambda process: reporting.say_summary() if os.getpid() == process else None, os.getpid())


def put_in_place(
    catalogue: Catalogue | None, wrap: Wrap, *, only: Iterable[str] = (), exclude: Iterable[str] = ()
) -> None:
    """As `install`, but with replacements made by `wrap`, and whatever the settings are."""
    chosen = catalogues.discover() if catalogue is None else (catalogue,)
    rows = [row for each in chosen for row in each.rows]
    only, exclude = tuple(only), tuple(exclude)
    _check_patterns(rows, only=only, exclude=exclude)
    steps = steps_of(chosen)
    ledger.current_run().step = None if steps is None else steps.step
    holds = [hold for each in chosen for hold in each.holds]
    _switch_to(_Installation(_open_books(rows, only, exclude), holds, wrap))


def _say_off(variable: str) -> None:
    logs.LOGGER.info("not installed: acceleration is switched off by %s", variable)
    ledger.current_run().note(f"acceleration was switched off by {variable}: this run used NumPy only")


def _open_books(rows: Iterable[Row], only: tuple[str, ...], exclude: tuple[str, ...]) -> list[Row]:
    """Open a ledger for every row. Returns the rows to wrap."""
    there = functools.cache(lambda module: locate(module) is not None)
    wrapped = []
    for row in rows:
        choice = _choice(row, only, exclude)
        if choice is None:
            _reconsider(row)
            wrapped.append(row)
        elif there(row.module):
            _stay(row, choice)
        else:
            _mark_absent([row])
    return wrapped


def _choice(row: Row, only: tuple[str, ...], exclude: tuple[str, ...]) -> Refusal | None:
    """Return why `row` is left out by choice; None for a row to wrap."""
    if row.declined is not None:
        return Refusal("choice.declined", detail=row.declined)
    return None if _selected(row, only, exclude) else Refusal("choice.excluded")


def _reconsider(row: Row) -> None:
    """Open the ledger of `row`, and remove what an earlier choice entered there."""
    book = ledger.open_ledger(row.target)
    for refusal in [each for each in book.refusals if each.reason.startswith("choice.")]:
        del book.refusals[refusal]
    if not book.calls and book.state is State.NUMPY:
        book.state = State.UNCALLED


def _switch_to(installation: _Installation | None) -> None:
    """Replace the current installation, unless both are equivalent."""
    global _installation
    with _lock:
        if installation is not None and _installation is not None and installation.is_equivalent_to(_installation):
            _installation.replace_new_aliases()
            return
        before, _installation = _installation, installation
        if before is not None:
            before.stop()
        if installation is not None:
            installation.start()


def uninstall() -> None:
    """Put back every name as it was before `install`. Does nothing if nothing is installed."""
    _switch_to(None)
    tuning.give_back_freed()


@contextmanager
def installed(
    catalogue: Catalogue | None = None,
    *,
    only: Iterable[str] = (),
    exclude: Iterable[str] = (),
    mode: str | None = None,
) -> Iterator[None]:
    """Accelerate during a `with` block, and restore the previous installation afterwards. Arguments: see `install`."""
    before = _installation
    install(catalogue, only=only, exclude=exclude, mode=mode)
    try:
        yield
    finally:
        if _installation is not before:
            _switch_to(before and before.copy())
