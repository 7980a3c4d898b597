"""Patching: `install` replaces a catalogue's functions in an unmodified program, and `uninstall` restores them."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

from accel import catalogue as catalogues
from accel.backend import devices
from accel.backend.disk import cache
from accel.catalogue import Catalogue, Row, Steps
from accel.entry.hook import installation
from accel.entry.hook.accelerating import Accelerating
from accel.entry.hook.attributes import find
from accel.entry.hook.imports import locate
from accel.entry.hook.installation import NUMPY, Installation, Wrap, keep_on_numpy, mark_absent
from accel.entry.hook.lifts import MAIN, TOP, WHY
from accel.entry.hook.misnamed import OwnRows
from accel.entry.hook.patterns import check_patterns, selected
from accel.entry.hook.watching import SHARE, Watch, keep_hopeless, known_hopeless
from accel.platform import config, freed, ledger, logs, ranks, variables, versions, warned
from accel.platform.ledger import State
from accel.platform.own_code import is_project_module
from accel.platform.reasons import Refusal, Refused
from accel.reports import last, summary
from accel.reports.advice import IN_PYTHON, IN_SHELL
from accel.reports.figures import figures_of_run

_current: Installation | None = None


def install(
    catalogue: Catalogue | str | None = None,
    *,
    only: Iterable[str] = (),
    exclude: Iterable[str] = (),
    mode: str | None = None,
    more: Iterable[Row] = (),
) -> None:
    """Accelerate the functions of `catalogue` under all their names.

    Without `catalogue`, use the one that `[tool.accel]` in the program's pyproject.toml names, or else every installed
    one.

    catalogue: a Catalogue, or the name of an installed one, such as "pygcm", or a Python file that defines CATALOGUE.

    only, exclude: patterns (see accel.entry.hook.patterns). Without `only`, all functions that are not excluded are
    accelerated. mode: "off", "auto", "verify" or "strict" for these functions; by default, the mode in the settings at
    each call. more: rows besides those of the catalogue.

    It may be called at any time and any number of times: a new choice replaces the one before. Unless QD_JAX_QUIET=1,
    one line at the end of the process says how much time was gained. If QD_USE_JAX=0 or the mode is off, it logs that
    and does nothing.

    Raises `SettingError` for an invalid setting, mode, pattern, or name of a catalogue.
    """
    if isinstance(catalogue, str):
        catalogue = catalogues.named(catalogue)
    if mode is not None:
        config.check("mode", mode)
    settings = config.current()
    logs.set_level(settings.log)
    logs.to_stderr_unless_configured()
    if not settings.enabled or (mode or settings.mode) == "off":
        _say_off("mode='off'" if mode == "off" else config.VARIABLES["mode" if settings.enabled else "enabled"])
        return
    versions.warn()
    variables.warn()
    cache.warn()
    devices.check(replace(settings, mode=mode or settings.mode))
    if not settings.quiet and ranks.is_first():
        _speak_at_exit()
    put_in_place(catalogue, Accelerating(mode), only=only, exclude=exclude, more=more)


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
    """Write the summary at the end of this process, not of its forked children, and only in MPI's first rank."""
    atexit.register(lambda process: _say_summary() if os.getpid() == process else None, os.getpid())


def _say_summary() -> None:
    """Keep the report, and write the summary line to standard error, unless that is closed."""
    look_back()
    figures = figures_of_run()
    kept = last.keep(figures, " ".join(sys.argv))
    refused = isinstance(getattr(sys, "last_value", None), Refused)
    advice = replace(IN_SHELL if kept else IN_PYTHON, refused=refused)
    logs.say_at_end(summary.summary_of(figures, advice) + "\n")


def say_summary_of_calls(process: int) -> None:
    """At the end of a process that has installed catalogues unasked: say what came of it, if anything was called."""
    if os.getpid() == process and ranks.is_first() and figures_of_run()["totals"]["calls"]:
        _say_summary()


def put_in_place(
    catalogue: Catalogue | None,
    wrap: Wrap,
    *,
    only: Iterable[str] = (),
    exclude: Iterable[str] = (),
    more: Iterable[Row] = (),
) -> None:
    """Install replacements made by `wrap`, whatever the settings are. Otherwise equivalent to `install`."""
    named, chosen = _in_force(catalogue)
    rows = [row for each in chosen for row in each.rows]
    only, exclude = tuple(only), tuple(exclude)
    _check(named, rows, only=only, exclude=exclude)
    steps = steps_of(chosen)
    ledger.current_run().step = None if steps is None else steps.step
    holds = [hold for each in chosen for hold in each.holds]
    _switch_to(Installation([*_open_books(rows, only, exclude), *more], holds, wrap, OwnRows(named)))
    if named is None:
        _close_books_of_others(chosen)


def _in_force(catalogue: Catalogue | None) -> tuple[Catalogue | None, tuple[Catalogue, ...]]:
    """The catalogue that is named, if one is, and those that are used. Raises SettingError."""
    named = catalogues.named_by_project() if catalogue is None else catalogue
    return named, catalogues.discover() if named is None else (named,)


def check_choice(catalogue: Catalogue | None, *, only: Iterable[str], exclude: Iterable[str]) -> None:
    """Raise SettingError where `install` would, for what another process is to install."""
    named, chosen = _in_force(catalogue)
    _check(named, [row for each in chosen for row in each.rows], only=only, exclude=exclude)


def _check(named: Catalogue | None, rows: Iterable[Row], **patterns: Iterable[str]) -> None:
    """Raise SettingError for a pattern that selects none of `rows`. named: the catalogue that the user named."""
    try:
        check_patterns(rows, **patterns)
    except config.SettingError as error:
        if named is not None or is_catalogued():
            raise
        possible = "--catalogue FILE.py as well; `accel doctor` writes one"
        problem = "selects no function: no catalogue is for this program"
        raise config.SettingError(error.name, error.value, possible, problem) from None


def _close_books_of_others(installed: Iterable[Catalogue]) -> None:
    """Close the ledgers of catalogues that name no module of this program: they would only lengthen the report."""
    states = {book.target: book.state for book in ledger.ledgers()}
    for each in installed:
        targets = {row.target for row in each.rows}
        if all(states.get(target, ledger.State.ABSENT) is ledger.State.ABSENT for target in targets):
            ledger.close(targets)


def _say_off(variable: str) -> None:
    logs.LOGGER.info("not installed: acceleration is switched off by %s", variable)
    ledger.current_run().note(f"acceleration was switched off by {variable}: this run used NumPy only")


def _open_books(rows: Iterable[Row], only: tuple[str, ...], exclude: tuple[str, ...]) -> list[Row]:
    """Open a ledger for every row. Returns the rows to wrap."""
    there = functools.cache(lambda module: module == "__main__" or locate(module) is not None)
    wrapped = []
    for row in rows:
        choice = _choice(row, only, exclude)
        if choice is None:
            _reconsider(row)
            wrapped.append(row)
        elif there(row.module):
            keep_on_numpy(row, choice)
        else:
            mark_absent([row])
    return wrapped


def _choice(row: Row, only: tuple[str, ...], exclude: tuple[str, ...]) -> Refusal | None:
    """Return why `row` is left out by choice; None for a row to wrap."""
    if row.declined is not None:
        return Refusal("choice.declined", detail=row.declined)
    return None if selected(row, only, exclude) else Refusal("choice.excluded")


def _reconsider(row: Row) -> None:
    """Open the ledger of `row`, and remove entries of an earlier choice. Loops have their own ledgers."""
    if row.loops:
        return
    book = ledger.open_ledger(row.target)
    for refusal in [each for each in book.refusals if each.reason.startswith("choice.")]:
        del book.refusals[refusal]
    if not book.calls and book.state is State.NUMPY:
        book.state = State.UNCALLED


def _switch_to(new: Installation | None) -> None:
    """Replace the current installation, unless both are equivalent."""
    global _current
    with installation.lock:
        # the same targets stay in use, with their recordings and programs
        if new is not None and _current is not None and new.is_equivalent_to(_current):
            _current.replace_new_aliases()
            return
        before, _current = _current, new
        if before is not None:
            before.stop()
        if new is not None:
            warned.begin()
            new.start()
        else:
            warned.end()


def lifted(code: CodeType, names: dict[str, Any], *, auto: bool = False) -> CodeType:
    """Return the code of a program that is to run as `__main__`, with the loops that installed rows name outlined.

    Functions that rows name are accelerated as soon as it has defined them. names: the globals in which it will run.
    auto: outline all loops of its functions and at its top level. Functions that the program passes on, for example to
    a solver, are then accelerated first.
    """
    if _current is None:
        return code
    with ledger.current_run().loading():
        return _current.lift_program(code, names, functools.partial(_choose_passed, names) if auto else None)


def _choose_passed(names: dict[str, Any], module: str | None, qualname: str) -> None:
    """Accelerate a function that the program passes on. module: see `Passed`. names: the program's globals."""
    with suppress(Exception):  # the program goes on, and this function on NumPy
        if module is not None:
            module = importlib.util.resolve_name(module, names.get("__package__") or "")
        # replacing a function imports NumPy, which the program may still want to set up
        if NUMPY not in sys.modules or not (module is None or is_project_module(sys.modules.get(module))):
            return
        row = Row(module or MAIN, qualname, WHY)
        found = find(sys.modules[row.module], qualname)  # it may be a number, or a class
        is_function = found is not None and type(found.raw) is FunctionType
        if is_function and _current is not None and _current.add(row, is_new=module is None):
            logs.LOGGER.info("%s is accelerated: it is handed on", row.target)


def is_catalogued() -> bool:
    """Whether a catalogue is for this program: the project names one, or an installed one names a module that is here.

    Nothing is imported. Raises SettingError.
    """
    if catalogues.named_by_project() is not None:
        return True
    modules = {row.module for each in catalogues.discover() for row in each.rows}
    return any(locate(module) is not None for module in modules)


def watch() -> None:
    """Start to accelerate the functions in which this thread spends its time, unless an earlier run has chosen some.

    If an earlier run of this program has spent its time in compiled code, nothing is accelerated.
    """
    if _current is None or _current.has_chosen:
        return
    known = known_hopeless()
    if known is not None:
        _leave(f"{known}, in an earlier run")
    else:
        Watch(threading.get_ident(), _choose_one_more, WHY, _note_hopeless).start()


def _note_hopeless(name: str, share: float) -> None:
    sentence = f"{share:.0%} of the time is in {name}, which accel cannot make faster"
    keep_hopeless(sentence)
    _leave(sentence)


def _leave(sentence: str) -> None:
    """Put the program's own functions back, and say why."""
    ledger.current_run().note(sentence)
    logs.LOGGER.info("nothing more is accelerated: %s", sentence)
    _switch_to(None)


def _choose_one_more(row: Row) -> bool:
    if _current is None or not _current.add(row):
        return False
    logs.LOGGER.info("%s is accelerated: it holds the time", row.target)
    return True


def chosen() -> list[Row]:
    """Return rows for the loops and functions that `--auto` chose and accel compiled."""
    if _current is None:
        return []
    books = {book.target: book for book in ledger.ledgers()}
    names = [name for name in ledger.current_run().loops if name in books and books[name].compiled_calls]
    around = {name.rpartition(":")[0] for name in names if name.startswith(MAIN)}
    named = [row for row in _current.rows if row.why == WHY and row.target in books]
    functions = [row for row in named if books[row.target].compiled_calls]
    # a function that is compiled as a whole includes its loops
    around -= {row.target for row in functions}
    work_s = {name: sum(_work_s(books[each]) for each in names if each.rpartition(":")[0] == name) for name in around}
    work_s |= {row.target: _work_s(books[row.target]) for row in functions}
    # what soon became a part of another program need not be chosen again
    main = {name for name, seconds in work_s.items() if seconds >= SHARE * sum(work_s.values())}
    loops = [Row(MAIN, name.partition(":")[2] or TOP, WHY, loops=True) for name in sorted(around & main)]
    return [*loops, *(row for row in functions if row.target in main)]


def _work_s(book: ledger.Ledger) -> float:
    """NumPy's seconds for the compiled calls of a function, by estimate."""
    return max(book.compiled_total_s + book.gained_s, 0.0)


def held() -> list[str]:
    """The notes of functions of the program that are held to one answer."""
    notes = () if _current is None else (each.note for each in _current.holds)
    return [note for note in notes if note in ledger.current_run().notes]


def look_back() -> None:
    """Warn at the end of the program about rows of a user's own catalogue that named nothing."""
    if _current is not None:
        _current.own.look_back(_current.rows)


def slips() -> list[str]:
    """Return all warnings about a user's own catalogue as sentences, at the end of the program."""
    look_back()
    return [] if _current is None else list(_current.own.slips)


def uninstall() -> None:
    """Restore every name as it was before `install`. Does nothing if nothing is installed."""
    _switch_to(None)
    freed.give_back()


@contextmanager
def installed(
    catalogue: Catalogue | str | None = None,
    *,
    only: Iterable[str] = (),
    exclude: Iterable[str] = (),
    mode: str | None = None,
) -> Iterator[None]:
    """Accelerate during a `with` block, and restore the previous installation afterwards. Arguments: see `install`."""
    before = _current
    install(catalogue, only=only, exclude=exclude, mode=mode)
    try:
        yield
    finally:
        if _current is not before:
            # a copy, because an installation that has been stopped still lists what it had replaced
            _switch_to(before and before.copy())
