"""Why a target, or one path through it, stays on NumPy: one table, and the refusal that points into it.

A reason's id is stable: users grep for it, tests assert on it, and the table in docs/reasons.md is printed from here
(`python -m accel reasons`). A refusal is never raised into the user's code; only the dispatcher decides what it
leads to.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Reason:
    """One row: a stable dotted id, why this keeps code on NumPy, and what the user can do about it."""

    id: str
    why: str
    hint: str


_ROWS = (
    # -- effects: what a replay could not repeat -------------------------------------------------------------------
    Reason(
        "effect.print",
        "this path prints; a compiled replay would lose the output",
        "none needed if rare: other paths of this function are compiled",
    ),
    Reason(
        "effect.file",
        "this path reads or writes a file; a compiled replay would not",
        "none needed if rare; otherwise move the file access to the caller",
    ),
    Reason(
        "effect.clock",
        "this path reads the clock; a compiled replay would see the recorded time for ever",
        "pass the time in as an argument",
    ),
    Reason(
        "effect.random",
        "this path draws random numbers; a compiled replay would repeat the recorded ones",
        "draw them in the caller and pass them in",
    ),
    Reason(
        "effect.global",
        "this path writes a module's global name, which a replay cannot undo",
        "keep the state on an object that the function receives",
    ),
    # -- calls that cannot be followed -----------------------------------------------------------------------------
    Reason(
        "call.opaque",
        "an array went into a function that accel neither has a rule for nor follows",
        "write this step with NumPy or scipy.ndimage functions, or call it outside the accelerated function",
    ),
    Reason(
        "call.generator",
        "generators and coroutines suspend half-way, and a recording cannot",
        "return a list or an array instead",
    ),
    Reason(
        "code.unsupported",
        "the function's code does something that a recording cannot substitute",
        "move that statement to a helper which is called before or after",
    ),
    # -- values ----------------------------------------------------------------------------------------------------
    Reason(
        "value.forced",
        "Python needed the plain number behind an array element, so the recording would bake it in",
        "keep it an array, or use float(), int(), min() and max(), which stay recorded",
    ),
    Reason(
        "array.unknown",
        "an array arrived from a place that accel cannot fetch it from again",
        "pass it as an argument or keep it in an attribute",
    ),
    Reason(
        "alias.overlap",
        "two inputs share memory and one of them is written",
        "pass a copy of one of them",
    ),
    Reason(
        "escape.object",
        "a recorded value was put into an object that outlives the call and that accel does not follow",
        "return the value, or store it in an attribute of an argument",
    ),
    Reason(
        "shape.dynamic",
        "the shape of a result depends on values, and a compiled program has fixed shapes",
        "use np.where with a fill value, or assign back under the same mask",
    ),
    # -- rules -----------------------------------------------------------------------------------------------------
    Reason(
        "rule.missing",
        "accel has no rule for this NumPy or SciPy function",
        "use a function that has one, or ask for this one by name",
    ),
    Reason(
        "rule.parameter",
        "accel has a rule for this function, but not for this parameter or combination of arguments",
        "leave the parameter at its default, or spell the step out",
    ),
    # -- surroundings ----------------------------------------------------------------------------------------------
    Reason(
        "path.exception",
        "an exception passed through this path, and it may depend on values",
        "none needed if rare: other paths of this function are compiled",
    ),
    Reason(
        "fp.errstate",
        "np.errstate or a warning filter turns floating-point events into errors, which a compiled program never sees",
        "leave np.geterr() at ignore or warn around accelerated functions",
    ),
    Reason(
        "environment.traced",
        "a debugger, a tracer or an outer JAX transformation watches this call",
        "none needed: calls are compiled again once it is gone",
    ),
    Reason(
        "environment.busy",
        "another call of this function was under way, in another thread or around this one",
        "none needed if rare; otherwise give each thread a function of its own",
    ),
    Reason(
        "environment.versions",
        "a package that accel stands on is missing or too old",
        "upgrade the packages named here; the README has the oldest versions that work",
    ),
    Reason(
        "environment.forked",
        "this is a forked child process, and JAX's threads are in its parent",
        "none needed; to have it compiled, start processes by spawn (multiprocessing.set_start_method)",
    ),
    Reason(
        "environment.memory",
        "the limit on this process's memory (ulimit -v, RLIMIT_AS) leaves JAX and its compiler too little",
        "raise the limit, or limit the resident memory (cgroups) instead of addresses",
    ),
    Reason(
        "guard.unstable",
        "an input that decides the path is different in almost every call",
        "pass numbers that change as floats or arrays, and keep what selects the path constant",
    ),
    # -- limits ----------------------------------------------------------------------------------------------------
    Reason(
        "limit.nodes",
        "the recording grew longer than accel's limits on operations",
        "loop over fewer cells in Python, or raise QD_JAX_MAX_NODES",
    ),
    Reason(
        "limit.compile",
        "compiling took longer than accel's limit",
        "accelerate the functions inside this one instead, or raise QD_JAX_MAX_COMPILE_S",
    ),
    Reason(
        "limit.variants",
        "this function takes more different paths than accel keeps compiled programs for",
        "none needed: the paths compiled so far stay compiled; or raise QD_JAX_MAX_VARIANTS",
    ),
    Reason(
        "device.missing",
        "the platform that the settings name is not there any more",
        "unset QD_JAX_PLATFORM, or name one that is there",
    ),
    # -- accel's own doubts ----------------------------------------------------------------------------------------
    Reason(
        "lower.mismatch",
        "JAX gives this operation another shape or dtype than NumPy did",
        "please report it with this line: it is a gap in accel's rules",
    ),
    Reason(
        "lower.failed",
        "this operation could not be written for JAX",
        "please report it with this line: it is a gap in accel's rules",
    ),
    Reason(
        "compile.failed",
        "JAX could not compile or run the program",
        "please report it with the detail given here",
    ),
    Reason(
        "recorder.gap",
        "accel's recorder failed, and the call was run plainly instead",
        "please report it with the detail given here; results are NumPy's",
    ),
    Reason(
        "accel.fault",
        "accel itself failed, and the call was answered by NumPy",
        "please report it with the detail given here; the function stays on NumPy, and results are NumPy's",
    ),
    Reason(
        "verify.mismatch",
        "the compiled result differed from NumPy's by more than the tolerance; NumPy's was returned",
        "please report it; if the difference is acceptable, give this function a larger rtol",
    ),
    Reason(
        "speed.slower",
        "measured, the compiled program is slower than NumPy here",
        "none needed: the faster one is used; larger arrays may tip the balance",
    ),
    Reason(
        "speed.small",
        "a call takes less time on NumPy than starting a compiled program would",
        "none needed: larger arrays are compiled; or accelerate the function that calls it",
    ),
    # -- not yet ---------------------------------------------------------------------------------------------------
    Reason(
        "wait.calls",
        "the function was called too few times: a program is compiled after one recorded call and some more",
        "none needed: in a longer run it is compiled",
    ),
    Reason(
        "wait.budget",
        "recording or compiling it would cost more than accel may cost a run as short as this one was until then",
        "none needed: in a longer run it is compiled; `python -m accel compile` does it beforehand",
    ),
    Reason(
        "wait.compile",
        "its program was not compiled yet when the function was last called",
        "none needed: a longer run uses it, and a next run finds it on disk, unless QD_JAX_CACHE_DIR is off",
    ),
    # -- choices ---------------------------------------------------------------------------------------------------
    Reason(
        "mode.off",
        "acceleration is switched off",
        "unset QD_USE_JAX=0, and choose another mode than off",
    ),
    Reason(
        "choice.excluded",
        "this function was left out by --only or --exclude",
        "change those patterns to include it",
    ),
    Reason(
        "choice.declined",
        "the catalogue declines this function",
        "none needed: the catalogue says why",
    ),
    Reason(
        "choice.callable",
        "the name is bound to something else than a Python function",
        "accelerate the Python function behind it",
    ),
)

REASONS: Mapping[str, Reason] = MappingProxyType({row.id: row for row in _ROWS})
"""Every reason, by id."""

_UNLISTED = Reason("", "a reason that accel's table does not list", "please report it: the table should have a row")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason at one place: what keeps a target, or one path through it, on NumPy.

    reason: an id of `REASONS`. where: "file:line", or "" where no line is to blame. detail: what is special here
    (a function's name, two dtypes), or "".
    """

    reason: str
    where: str = ""
    detail: str = ""

    @property
    def why(self) -> str:
        """The reason in words, with this refusal's detail."""
        why = REASONS.get(self.reason, _UNLISTED).why
        return f"{why} ({self.detail})" if self.detail else why

    @property
    def hint(self) -> str:
        """What the user can do about it."""
        return REASONS.get(self.reason, _UNLISTED).hint

    def message(self, target: str, what: str = "stayed on NumPy") -> str:
        """Say what happened to `target`, where, why, and what to do: a headline and three lines."""
        return (
            f"accel: {target} {what}  [{self.reason}]\n"
            f"  where  {self.where or 'no single line'}\n"
            f"  why    {self.why}\n"
            f"  hint   {self.hint}"
        )


def source_line(filename: str, line: int) -> str:
    """Return "file:line" with `filename` relative to the entry of sys.path that it was imported from.

    >>> source_line(os.path.join(sys.path[-1], "pkg", "mod.py"), 7)
    'pkg/mod.py:7'
    """
    roots = sorted((os.path.abspath(entry) + os.sep for entry in sys.path), key=len, reverse=True)
    root = next((root for root in roots if filename.startswith(root)), "")
    return f"{filename[len(root) :].replace(os.sep, '/')}:{line}"
