"""An installation: everything that one `install` changes in the program's modules, and how to undo it.

A function can have several names: its module's, aliases made by `from module import function`, and other functions'
default values. All are replaced, whether they were made before or after `install`, and `uninstall` restores all of
them. Modules that are not imported yet are patched right after their import, and again after every reload.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import wrapt

from accel.catalogue import Hold, Row
from accel.entry.hook.aliases import is_running, swap_aliases
from accel.entry.hook.attributes import Patch, Replacement, find, replace
from accel.entry.hook.imports import Finder, locate
from accel.entry.hook.lifts import MAIN, WHY, Lifts, rows_of_all, rows_of_program
from accel.entry.hook.misnamed import OwnRows
from accel.entry.lift.passed import After
from accel.platform import forks, ledger, logs, own_code
from accel.platform.clocks import time
from accel.platform.ledger import State
from accel.platform.reasons import Refusal

if TYPE_CHECKING:
    from accel.entry.lift.passed import Bound

Wrap = Callable[[Row, FunctionType], Any]
"""Returns the replacement for a row's function."""

NUMPY = "numpy"

INTERVAL_S, LONGEST_S = 0.001, 60.0
"""Seconds between two looks whether a module's code has run, and for how long there are looks. Guesses."""

lock = threading.RLock()
"""Held while names are changed, because several threads may import modules, install or uninstall at once.

Reentrant: switching installations takes it, and so does patching each module meanwhile.
"""


@forks.in_child
def _renew_lock() -> None:
    """Replace the lock in a forked child: another thread may have held it at the fork."""
    global lock
    lock = threading.RLock()


class Installation:
    """Everything that one `install` changes, and how to undo it.

    jobs: rows and holds by module. own: rows of the user's own catalogue, which must name existing functions.
    """

    def __init__(self, rows: Iterable[Row], holds: Iterable[Hold], wrap: Wrap, own: OwnRows | None = None) -> None:
        self.wrap = wrap
        self.own = OwnRows() if own is None else own
        self.rows, self.holds = tuple(rows), tuple(holds)
        self.jobs: dict[str, list[Row | Hold]] = {}
        every: tuple[Row | Hold, ...] = self.rows + self.holds
        for job in every:
            self.jobs.setdefault(job.module, []).append(job)
        self.patches: list[Patch] = []
        self.swaps: list[tuple[Any, Any]] = []
        self.finder = Finder([*self.jobs, NUMPY], self._imported)
        self.lifts = Lifts(getattr(wrap, "start_loop", None))
        self._has_lifted_program = False

    def start(self) -> None:
        """Patch the imported modules, watch for the others, and mark modules that do not exist as absent."""
        # first, so that a module that another thread imports meanwhile is not missed
        sys.meta_path.insert(0, self.finder)
        own_code.name_packages(row.module for row in self.rows)
        if NUMPY in sys.modules:
            self._prepare()
        for name, jobs in self.jobs.items():
            module = sys.modules.get(name)
            if module is not None and is_running(module):
                threading.Thread(target=self._patch_once_run, args=(module,), name="accel-hook", daemon=True).start()
            elif module is not None:
                self.patch_module(module)
            elif locate(name) is None:
                mark_absent(jobs)

    def _patch_once_run(self, module: ModuleType) -> None:
        """Patch a module that was being imported at the start: in a thread, as nobody tells when its code has run."""
        ends = time.monotonic() + LONGEST_S
        while is_running(module) and time.monotonic() < ends:
            time.sleep(INTERVAL_S)
        if self.finder in sys.meta_path:
            self.patch_module(module)

    def _imported(self, module: ModuleType) -> None:
        """Handle the import of a watched module, which may be NumPy."""
        with ledger.current_run().loading():
            self._patch_imported(module)

    def _patch_imported(self, module: ModuleType) -> None:
        try:
            if module.__name__ == NUMPY:
                self._prepare()
                self._patch_main()
        except Exception as error:  # it must not come out of the program's import: the program runs on NumPy
            logs.LOGGER.warning("nothing is accelerated: %s: %s", type(error).__name__, error)
            self.stop()
            return
        self.patch_module(module, is_new=True)

    def _prepare(self) -> None:
        """Let `wrap` import its dependencies, which need NumPy.

        This runs right after the program's own import of NumPy. Earlier, variables that the program sets first, such as
        OMP_NUM_THREADS, would have no effect. Later, the import would fall into one of the program's calls.
        """
        prepare = getattr(self.wrap, "prepare", None)
        if prepare is not None:
            prepare()

    @property
    def has_chosen(self) -> bool:
        """Whether it has a function or loop that accel has chosen itself."""
        return any(row.why == WHY for row in self.rows)

    def add(self, row: Row, *, is_new: bool = False) -> bool:
        """Accelerate one more function of an imported module, from its next call on. Returns whether that was possible.

        is_new: True if it has just been defined, so that it has no other name yet.
        """
        with lock:
            module = sys.modules.get(row.module)
            known = any((each.module, each.qualname) == (row.module, row.qualname) for each in self.rows)
            if module is None or known or find(module, row.qualname) is None:
                return False
            self.rows = (*self.rows, row)
            self.jobs.setdefault(row.module, []).append(row)
            replacement = self._patch(module, row)
            if replacement is not None:
                self.swaps.append((replacement.old, replacement.new))
                if not is_new:
                    swap_aliases(self.swaps[-1:])
            return replacement is not None

    def _patch_main(self) -> None:
        """Replace the functions that the program itself has defined so far."""
        # replacing a function imports NumPy, which the program may still want to set up
        if NUMPY in sys.modules and self.finder in sys.meta_path:
            with suppress(Exception):  # the program goes on, and these functions on NumPy
                self.patch_module(sys.modules[MAIN])

    def copy(self) -> Installation:
        """Return a new installation of the same jobs."""
        return Installation(self.rows, self.holds, self.wrap, self.own)

    def is_equivalent_to(self, other: Installation) -> bool:
        """Return whether both replace the same functions in the same way."""
        return (self.jobs, self.wrap) == (other.jobs, other.wrap)

    def replace_new_aliases(self) -> None:
        """Replace aliases that were made since the start."""
        swap_aliases(self.swaps)

    def stop(self) -> None:
        """Restore every name."""
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        for patch in self.patches:
            patch.undo()
        swap_aliases((new, old) for old, new in self.swaps)
        self.lifts.undo()
        own_code.name_packages(())

    def lift_program(self, code: CodeType, names: dict[str, Any], on_bound: Bound | None) -> CodeType:
        """Return the code of the program that is to run as `__main__`, with the loops that rows name outlined.

        It accelerates each function that rows name, once it has defined it.

        on_bound: for `--auto`, which outlines all loops. It is called with functions that the program passes on.
        """
        rows, auto = rows_of_program(self.rows, code.co_filename), on_bound is not None
        every = rows_of_all(code, rows) if auto and not self.has_chosen else ()
        functions = [row for row in self.rows if row.module == MAIN and not row.loops]
        defines = {row.qualname.partition(".")[0] for row in functions}
        self._has_lifted_program = True
        made = self.lifts.lift_program([*rows, *every], code, names, on_bound, After(defines, self._patch_main))
        if isinstance(made, CodeType):
            return made
        if auto:
            ledger.current_run().note(f"no loop is outlined: {made.why} [{made.reason}]")
        for row in (*rows, *functions):
            keep_on_numpy(row, made)
        return code

    def patch_module(self, module: ModuleType, *, is_new: bool = False) -> None:
        """Replace the catalogue's functions in `module`, with all their aliases, unless that was done before.

        is_new: whether it has only just been imported.
        """
        with lock:
            replaced = [self._patch(module, job) for job in self.jobs.get(module.__name__, ())]
            fresh = [(replacement.old, replacement.new) for replacement in replaced if replacement is not None]
            self.swaps += fresh
            swap_aliases(fresh, module if is_new else None)

    def _patch(self, module: ModuleType, job: Row | Hold) -> Replacement | None:
        is_of_program = module.__name__ == MAIN
        if is_of_program and self._has_lifted_program and isinstance(job, Row) and job.loops:
            return None
        attribute = find(module, job.qualname)
        if attribute is not None and is_of_program and _is_ours(attribute.raw):  # the program is not loaded yet
            attribute = None
        if attribute is None:
            if not (isinstance(job, Row) and job.loops and job.module == MAIN):  # lifted when the program is loaded
                mark_absent([job])
            if isinstance(job, Row) and job.module != MAIN:
                self.own.warn_of_missing(module, job)
            return None
        owner, raw = attribute.owner, attribute.raw
        if isinstance(job, Row) and job.loops:
            self._lift(job, self._unpatched(raw))
            return None
        # patched already. A module that was reloaded has new functions, and is patched again
        if any(raw is patch.replacement and owner is patch.attribute.owner for patch in self.patches):
            return None
        replacement = replace(self._unpatched(raw), self._wrapper_for(job))
        if replacement is None:
            _refuse_callable(job, raw)
            return None
        if isinstance(job, Row):
            self._lift_once_refused(job, replacement)
        setattr(owner, attribute.name, replacement.value)
        self.patches.append(Patch(attribute, replacement.value))
        return replacement

    def _lift_once_refused(self, row: Row, replacement: Replacement) -> None:
        """Outline parts of a function once the function as a whole is refused."""
        target = getattr(replacement.new, "_self_target", None)
        if target is not None:
            target.recordings.on_refused = functools.partial(self.lifts.lift_refused, row, replacement.old)

    def _lift(self, row: Row, raw: object) -> None:
        inner = replace(raw, lambda function: function)
        if inner is None:
            _refuse_callable(row, raw)
            return
        refusal = self.lifts.lift(row, inner.old)
        if refusal is not None:
            keep_on_numpy(row, refusal)

    def _wrapper_for(self, job: Row | Hold) -> Callable[[Any], Any]:
        """Return the function that builds the replacement for the function of `job`."""
        if isinstance(job, Hold):
            ledger.current_run().note(job.note)
            return functools.partial(_held, value=job.value)
        _mark_present(job)
        return functools.partial(self.wrap, job)

    def _unpatched(self, raw: object) -> Any:
        """Return the original if `raw` is one of accel's replacements, such as an inherited one, else `raw`."""
        return next((patch.attribute.raw for patch in self.patches if patch.replacement is raw), raw)


def _held(original: Callable[..., Any], value: object) -> Callable[..., Any]:
    """Return a function that returns `value`. The value is a constant of its code, so that recordings can be cached on
    disk."""
    constants = tuple(value if each == _give() else each for each in _give.__code__.co_consts)
    made = FunctionType(_give.__code__.replace(co_consts=constants), globals())
    return functools.wraps(original)(made)


def _give(*args: object, **kwargs: object) -> object:
    return "the value that is held"


def _mark_present(row: Row) -> None:
    book = ledger.open_ledger(row.target)
    if book.state is State.ABSENT:
        book.state = State.UNCALLED


def mark_absent(jobs: Iterable[Row | Hold]) -> None:
    """Record in the ledger that this revision of the program lacks these functions."""
    for job in jobs:
        if isinstance(job, Row):
            book = ledger.open_ledger(job.target)
            if book.state is State.UNCALLED:
                book.state = State.ABSENT


def _is_ours(raw: object) -> bool:
    """Whether it is a function of accel's, such as that of the command that will run the program."""
    return isinstance(raw, FunctionType) and str(raw.__module__).partition(".")[0] == "accel"


def _refuse_callable(job: Row | Hold, raw: object) -> None:
    """Record that a row does not name a Python function, unless a decorator accelerates it already."""
    if isinstance(job, Row) and not issubclass(type(raw), wrapt.CallableObjectProxy):
        keep_on_numpy(job, Refusal("choice.callable", detail=f"a {type(raw).__name__}"))


def keep_on_numpy(row: Row, refusal: Refusal) -> None:
    """Record in the ledger that `row` stays on NumPy by choice."""
    book = ledger.open_ledger(row.target)
    book.state = State.NUMPY
    if refusal not in book.refusals:
        book.refuse(refusal)
