"""Put wrappers around a catalogue's functions in a program that knows nothing of it, and take them off again.

A function can be reachable by several names: its module's, and those that other modules made with
`from module import function`. Each is replaced, whether made before or after `install`, and each is put back by
`uninstall`. Modules that are not there yet are patched right after they are imported, and again after every reload.

wrapt supplies the wrappers. Its post-import hooks fire once per process, skip reloads and cannot be withdrawn, so the
import side is a finder of our own, which leaves `sys.meta_path` at `uninstall`.
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
    """Say whether `pattern` selects `target`.

    With `*`, `?` or `[` it is a shell pattern for the whole name; without, a run of whole parts at either end of it.

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
    """Raise `SettingError` for a pattern that selects no row: it is a typing error, and would go unnoticed."""
    rows = tuple(rows)
    for option, given in patterns.items():
        for pattern in given:
            if not any(matches(row.target, pattern) for row in rows):
                example = rows[0].target if rows else "none: no catalogue is installed"
                raise SettingError(f"--{option}", pattern, f"patterns such as {example}", "selects no function")


# -- finding and replacing one attribute ------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where an attribute lives: `owner` is a module or class; `raw` is what its namespace, or a base class's, holds."""

    owner: Any
    name: str
    raw: Any
    inherited: bool


class _Patch(NamedTuple):
    """One replaced attribute: enough to put it back exactly."""

    place: _Place
    replacement: Any

    def undo(self) -> None:
        """Put the original back, unless somebody replaced ours meanwhile."""
        owner, name, raw, inherited = self.place
        if _namespace(owner).get(name, _ABSENT) is not self.replacement:
            return
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, raw)


def _namespace(owner: Any) -> Any:
    """Return the namespace of a module (a dict) or class (a view), without waking modules that load on access."""
    if isinstance(owner, type):
        return type.__dict__["__dict__"].__get__(owner)
    return ModuleType.__getattribute__(owner, "__dict__")


def _find(module: ModuleType, qualname: str) -> _Place | None:
    """Return where `qualname` lives in `module`; None where this revision of the program does not have it."""
    *path, name = qualname.split(".")
    owner: Any = module
    for part in path:
        owner = _namespace(owner).get(part)
        if not isinstance(owner, type):
            return None
    for depth, place in enumerate(owner.__mro__ if isinstance(owner, type) else (owner,)):
        raw = _namespace(place).get(name, _ABSENT)
        if raw is not _ABSENT:
            return _Place(owner, name, raw, inherited=depth > 0)
    return None


def _rebuild_property(original: property, wrap: Callable[[Any], Any]) -> property:
    getter = original.fget and wrap(original.fget)
    return property(getter, original.fset, original.fdel, original.__doc__)


_DESCRIPTORS: tuple[tuple[type, Callable[[Any], Any], Callable[[Any, Callable[[Any], Any]], Any]], ...] = (
    # what stands in the namespace, the Python function inside it, and how to build it again around a wrapper
    (staticmethod, lambda raw: raw.__func__, lambda raw, wrap: staticmethod(wrap(raw.__func__))),
    (classmethod, lambda raw: raw.__func__, lambda raw, wrap: classmethod(wrap(raw.__func__))),
    (property, lambda raw: raw.fget, _rebuild_property),
    (FunctionType, lambda raw: raw, lambda raw, wrap: wrap(raw)),
)


class _Replacement(NamedTuple):
    """A new attribute value and, for the aliases, the function inside the old value and the one inside the new."""

    value: Any
    old: Any
    new: Any


def _replace(raw: Any, wrap: Callable[[Any], Any]) -> _Replacement | None:
    """Return `raw` with the function inside it wrapped; None where there is no Python function inside.

    By `type`, not `isinstance`: a wrapper claims to be of the class of what it wraps.
    """
    for kind, inner, rebuild in _DESCRIPTORS:
        if issubclass(type(raw), kind) and type(inner(raw)) is FunctionType:
            value = rebuild(raw, wrap)
            return _Replacement(value, inner(raw), inner(value))
    return None


def wrappable(module: ModuleType, qualname: str) -> bool:
    """Say whether a row may name `qualname` of `module`: a Python function, or one that is accelerated already."""
    place = _find(module, qualname)
    if place is None:
        return False
    return issubclass(type(place.raw), wrapt.FunctionWrapper) or _replace(place.raw, lambda each: each) is not None


def _swap_aliases(swaps: Iterable[tuple[Any, Any]]) -> None:
    """Replace, in the namespace of every imported module, each name bound to a pair's first object by its second."""
    by_id = {id(old): (old, new) for old, new in swaps}
    if not by_id:
        return
    for module in tuple(sys.modules.values()):
        if not issubclass(type(module), ModuleType):
            continue
        names = _namespace(module)
        found = [(name, by_id[id(value)]) for name, value in tuple(names.items()) if id(value) in by_id]
        for name, (_, new) in found:
            names[name] = new


# -- modules as they come --------------------------------------------------------------------------------------------


class _PatchingLoader(wrapt.ObjectProxy):
    """The loader of a watched module: as before, and patches the module once its code has run."""

    def __init__(self, loader: Any, loaded: Callable[[ModuleType], None]) -> None:
        super().__init__(loader)
        self._self_loaded = loaded

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code under its own loader, which stays recorded as such, then patch it."""
        for holder, name in ((module, "__loader__"), (module.__spec__, "loader")):
            if getattr(holder, name, None) is self:
                setattr(holder, name, self.__wrapped__)
        self.__wrapped__.exec_module(module)
        self._self_loaded(module)


class _Finder:
    """A finder for `sys.meta_path` that finds nothing itself: it has watched modules patched after each execution."""

    def __init__(self, watched: Iterable[str], loaded: Callable[[ModuleType], None]) -> None:
        self.watched = frozenset(watched)
        self.loaded = loaded

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        """Return the spec that the other finders give, with a loader that patches; None for modules not watched."""
        if name not in self.watched:
            return None
        spec = _ask_finders(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _PatchingLoader(spec.loader, self.loaded)
        return spec


def _ask_finders(name: str, path: Any, target: ModuleType | None = None) -> Any:
    """Return the first spec that a finder other than ours gives for `name`, or None."""
    for finder in tuple(sys.meta_path):
        find_spec = None if isinstance(finder, _Finder) else getattr(finder, "find_spec", None)
        spec = find_spec and find_spec(name, path, target)
        if spec is not None:
            return spec
    return None


def locate(name: str) -> Any:
    """Return the spec of module `name` without importing it or the packages around it; None where there is none."""
    path: Any = None
    spec: Any = None
    for end in (index for index, sign in enumerate(f"{name}.") if sign == "."):
        spec = getattr(sys.modules.get(name[:end]), "__spec__", None) or _ask_finders(name[:end], path)
        if spec is None or (end < len(name) and spec.submodule_search_locations is None):
            return None
        path = spec.submodule_search_locations
    return spec


def find_module(name: str) -> Any:
    """`locate` for what a user typed: None also where no import statement could say it, such as a file's path."""
    return locate(name) if all(part.isidentifier() for part in name.split(".")) else None


# -- an installation -------------------------------------------------------------------------------------------------


class _Installation:
    """Everything one `install` changed, and how to change it back."""

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
        """Patch the modules that are there, watch for the others, and say which ones there cannot be."""
        sys.meta_path.insert(0, self.finder)
        for name, jobs in self.jobs.items():
            module = sys.modules.get(name)
            if module is not None:
                self.patch_module(module)
            elif locate(name) is None:
                _mark_absent(jobs)

    def copy(self) -> _Installation:
        """Return a fresh installation of the same jobs."""
        return _Installation(self.rows, self.holds, self.wrap)

    def is_equivalent_to(self, other: _Installation) -> bool:
        """Whether it changes the same in the same way."""
        return (self.jobs, self.wrap) == (other.jobs, other.wrap)

    def replace_new_aliases(self) -> None:
        """Catch aliases that were made behind the scenes since."""
        _swap_aliases(self.swaps)

    def stop(self) -> None:
        """Put everything back as it was."""
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        for patch in self.patches:
            patch.undo()
        _swap_aliases((new, old) for old, new in self.swaps)

    def patch_module(self, module: ModuleType) -> None:
        """Replace what `module` holds of the catalogue, and every alias of it. What is replaced already, stays."""
        with _lock:
            replaced = [self._patch(module, job) for job in self.jobs.get(module.__name__, ())]
            fresh = [(replacement.old, replacement.new) for replacement in replaced if replacement is not None]
            self.swaps += fresh
            _swap_aliases(fresh)

    def _patch(self, module: ModuleType, job: Row | Hold) -> _Replacement | None:
        place = _find(module, job.qualname)
        if place is None:
            _mark_absent([job])
            return None
        if any(place.raw is patch.replacement and place.owner is patch.place.owner for patch in self.patches):
            return None
        replacement = _replace(self._unpatched(place.raw), self._wrapper_for(job))
        if replacement is None:
            _refuse_callable(job, place.raw)
            return None
        setattr(place.owner, place.name, replacement.value)
        self.patches.append(_Patch(place, replacement.value))
        return replacement

    def _wrapper_for(self, job: Row | Hold) -> Callable[[Any], Any]:
        """Return what turns the function of `job` into its replacement."""
        if isinstance(job, Hold):
            ledger.current_run().note(job.note)
            return functools.partial(_held, value=job.value)
        _mark_present(job)
        return functools.partial(self.wrap, job)

    def _unpatched(self, raw: Any) -> Any:
        """Return the original behind one of our own replacements (an inherited one, say), else `raw`."""
        return next((patch.place.raw for patch in self.patches if patch.replacement is raw), raw)


Wrap = Callable[[Row, FunctionType], Any]
"""Makes a row's function into what takes its place."""


@dataclass(frozen=True)
class _Accelerating:
    """The usual way: an accelerated function, in a mode of its own or in the one in force."""

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
    """Say that a row names no Python function. An accelerated one (by decorator) is fine as it is."""
    if isinstance(job, Row) and not issubclass(type(raw), wrapt.FunctionWrapper):
        _stay(job, Refusal("choice.callable", detail=f"a {type(raw).__name__}"))


def _stay(row: Row, refusal: Refusal) -> None:
    """Enter into the books that `row` stays on NumPy by choice."""
    book = ledger.open_ledger(row.target)
    book.state = State.NUMPY
    if refusal not in book.refusals:
        book.refuse(refusal)


# -- the public functions --------------------------------------------------------------------------------------------

_lock = threading.RLock()
_installation: _Installation | None = None


@forks.in_child
def _renew_lock() -> None:
    """Another thread may have held it when the process was forked."""
    global _lock
    _lock = threading.RLock()


def install(
    catalogue: Catalogue | None = None,
    *,
    only: Iterable[str] = (),
    exclude: Iterable[str] = (),
    mode: str | None = None,
) -> None:
    """Accelerate the functions of `catalogue` (default: of every installed one), wherever they are reachable.

    only, exclude: patterns as `matches` reads them; without `only`, every function that is not excluded.
    mode: "off", "auto", "verify" or "strict" for these functions; default: the mode in force at each call.
    Safe to call at any time and any number of times: another choice replaces the one before. Unless QD_JAX_QUIET=1,
    one line at the end of the process says what was gained.
    Does nothing but say so where QD_USE_JAX=0 or the mode is off.
    Raises `SettingError` for a setting, a mode, or a pattern, that cannot be used.
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
    from accel import dispatch  # noqa: F401  # not later: an import must not fail in the midst of the program's own

    if not settings.quiet:
        _speak_at_exit()
    put_in_place(catalogue, _Accelerating(mode), only=only, exclude=exclude)


def steps_of(chosen: Iterable[Catalogue]) -> Steps | None:
    """Return what the first catalogue says of steps whose program is the one at hand; None where none does."""
    for each in chosen:
        if each.steps is not None:
            modules = [row.module for row in each.rows if row.target == each.steps.step]
            if modules and locate(modules[0]) is not None:
                return each.steps
    return None


@functools.cache
def _speak_at_exit() -> None:
    """Say at the end of this process, but of none that was forked off, what was gained."""
    atexit.register(lambda process: reporting.say_summary() if os.getpid() == process else None, os.getpid())


def put_in_place(
    catalogue: Catalogue | None, wrap: Wrap, *, only: Iterable[str] = (), exclude: Iterable[str] = ()
) -> None:
    """Replace the chosen functions by what `wrap` makes of them, whatever the settings say; else as `install`."""
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
    ledger.current_run().note(f"acceleration was switched off by {variable}: a plain NumPy run")


def _open_books(rows: Iterable[Row], only: tuple[str, ...], exclude: tuple[str, ...]) -> list[Row]:
    """Open a ledger for every row and return those to wrap."""
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
    """Return why `row` is left alone on purpose; None for a row to wrap."""
    if row.declined is not None:
        return Refusal("choice.declined", detail=row.declined)
    return None if _selected(row, only, exclude) else Refusal("choice.excluded")


def _reconsider(row: Row) -> None:
    """Open the ledger of `row`, and strike out what an earlier choice entered there."""
    book = ledger.open_ledger(row.target)
    for refusal in [each for each in book.refusals if each.reason.startswith("choice.")]:
        del book.refusals[refusal]
    if not book.calls and book.state is State.NUMPY:
        book.state = State.UNCALLED


def _switch_to(installation: _Installation | None) -> None:
    """Put `installation` in the place of the one in force, if it differs."""
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
    """Put every name back to what it was before `install`. Safe to call when nothing is installed."""
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
    """Accelerate for the length of a `with` block, after which what was in force before is so again; see `install`."""
    before = _installation
    install(catalogue, only=only, exclude=exclude, mode=mode)
    try:
        yield
    finally:
        if _installation is not before:
            _switch_to(before and before.copy())
