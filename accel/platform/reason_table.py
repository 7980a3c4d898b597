"""The table of reasons for which a target, or one path through it, stays on NumPy.

A reason's id is stable: users search for it, tests assert on it, and docs/report.md is printed from this table (`accel
reasons`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Reason:
    """One row: a stable dotted id, why code stays on NumPy, and what the user can do about it."""

    id: str
    why: str
    hint: str


_ROWS = (
    # -- effects: what a replay could not repeat -------------------------------------------------------------------
    Reason(
        "effect.print",
        "this path shows text that a compiled replay could not show as NumPy does",
        "print or log numbers in a format with few digits, such as f'{x:.3f}'; none needed if rare",
    ),
    Reason(
        "effect.file",
        "this path reads or writes a file; a compiled replay would not",
        "none needed if rare; otherwise move the file access to the caller, or collect the lines in a list and write "
        "them after the loop",
    ),
    Reason(
        "effect.clock",
        "this path reads the clock; a compiled replay would always see the recorded time",
        "pass the time in as an argument",
    ),
    Reason(
        "effect.random",
        "this path draws random numbers in a way that a replay cannot repeat",
        "draw by a generator's method with its parameters as plain numbers or inputs, or in the caller",
    ),
    Reason(
        "effect.global",
        "this path changes a module's or class's state in a way that a replay cannot repeat",
        "keep the state on an object that the function receives",
    ),
    # -- calls that cannot be followed -----------------------------------------------------------------------------
    Reason(
        "call.opaque",
        "a recorded value was passed to a function that accel has no rule for and cannot record",
        "write this step with functions that `accel docs coverage` lists, or call it outside the accelerated function",
    ),
    Reason(
        "object.opaque",
        "an object that accel does not look into was asked for an attribute",
        "keep what is needed of it in a class of your own with ordinary attributes, or pass it as an argument",
    ),
    Reason(
        "call.generator",
        "generators and coroutines are suspended half-way, which a recording cannot be",
        "iterate it in `for`, or return a list",
    ),
    Reason(
        "code.unsupported",
        "the function's code contains a statement that cannot be recorded",
        "move that statement to a helper that is called before or after this function",
    ),
    # -- values ----------------------------------------------------------------------------------------------------
    Reason(
        "value.forced",
        "Python needed an array element as a plain number, which the recording would turn into a constant",
        "keep it an array, or use float(), int(), min() and max(), which can be recorded; make texts in the caller",
    ),
    Reason(
        "array.unknown",
        "an array came from a place from which accel cannot fetch it in the next call",
        "pass it as an argument or keep it in an attribute",
    ),
    Reason(
        "array.records",
        "what is done here with an array of records is not recorded; its fields are",
        'take the fields first, as in `x = a["x"]`: those are arrays, and views of its memory',
    ),
    Reason(
        "array.masked",
        "masked arrays (numpy.ma) are not recorded",
        "keep values and mask as two arrays, and use np.where, or the functions for NaN such as np.nanmean",
    ),
    Reason("alias.overlap", "two inputs share memory and one of them is written", "pass a copy of one of them"),
    Reason(
        "escape.object",
        "what the call returns or stores holds an object that a replay could not make or find again",
        "return and store arrays, numbers, containers of them, or objects of classes of your own",
    ),
    Reason(
        "shape.dynamic",
        "the shape of a result depends on values, and a compiled program has fixed shapes",
        "use np.where with a fill value, or assign back under the same mask",
    ),
    Reason(
        "shape.scattered",
        "Python needed a number that the arrays decide, such as a length, and it is another one in each call",
        "only compute with the length of a selection, and use sums or np.where over whole arrays instead of sorting it",
    ),
    # -- rules -----------------------------------------------------------------------------------------------------
    Reason(
        "rule.missing",
        "accel has no rule for this NumPy or SciPy function",
        "use a function that has one (`accel docs coverage` lists them), or ask for this one by name",
    ),
    Reason(
        "rule.parameter",
        "accel has a rule for this function, but not for this parameter or combination of arguments",
        "leave the parameter at its default, or write the step out with simpler functions",
    ),
    # -- surroundings ----------------------------------------------------------------------------------------------
    Reason(
        "path.exception",
        "an exception was raised on this path, and whether it is may depend on values",
        "none needed if rare: other paths of this function are compiled",
    ),
    Reason(
        "fp.errstate",
        "np.errstate or a warning filter turns floating-point events into errors, which compiled programs cannot raise",
        "leave np.geterr() at ignore or warn around accelerated functions",
    ),
    Reason(
        "environment.traced",
        "a debugger, a tracer or an outer JAX transformation watches this call",
        "none needed: calls are compiled again once it is gone",
    ),
    Reason(
        "environment.busy",
        "another call of this function was in progress, in another thread or around this one",
        "none needed if rare; otherwise give each thread a function of its own",
    ),
    Reason(
        "environment.versions",
        "a package that accel depends on is missing or too old",
        "upgrade the packages named here",
    ),
    Reason(
        "environment.forked",
        "this is a forked child process, which does not have JAX's threads",
        "none needed; to compile here too, start processes by spawn (multiprocessing.set_start_method), and mark "
        "functions with @accel.accelerate",
    ),
    Reason(
        "environment.memory",
        "the limit on this process's address space (ulimit -v, RLIMIT_AS) is too low for JAX and its compiler",
        "raise the limit, or limit resident memory (cgroups) instead of address space",
    ),
    Reason(
        "guard.unstable",
        "an input that selects the path is different in almost every call",
        "pass numbers that change as floats or arrays, and keep inputs that select the path constant",
    ),
    Reason(
        "code.elements",
        "a loop over single elements: Numba compiles these",
        "compile this loop by Numba, or write it with operations on whole arrays",
    ),
    # -- limits ----------------------------------------------------------------------------------------------------
    Reason(
        "limit.nodes",
        "the recording exceeded accel's limits on operations or on time",
        "loop over fewer cells in Python, or raise QD_JAX_MAX_NODES",
    ),
    Reason(
        "limit.compile",
        "the program is too large, or compiling it took longer than accel's limit",
        "accelerate the functions inside this one instead; for the time limit, raise QD_JAX_MAX_COMPILE_S",
    ),
    Reason(
        "limit.variants",
        "this function takes more different paths than accel keeps compiled programs for",
        "none needed: the most recently used paths stay compiled; to keep more, raise QD_JAX_MAX_VARIANTS",
    ),
    Reason(
        "device.missing",
        "the platform that the settings name is no longer available",
        "unset QD_JAX_PLATFORM, or name a platform that is available",
    ),
    Reason(
        "device.memory",
        "the device has too little memory for the program and its arrays",
        "use smaller arrays, or another device; on a GPU, other programs may hold its memory",
    ),
    # -- faults and checks of accel's own --------------------------------------------------------------------------
    Reason(
        "lower.mismatch",
        "JAX's result of this operation has another shape or dtype than NumPy's",
        "please report it with this line: it is a gap in accel's rules",
    ),
    Reason(
        "lower.failed",
        "this operation could not be translated to JAX",
        "please report it with this line: it is a gap in accel's rules",
    ),
    Reason(
        "compile.failed",
        "JAX could not compile or run the program",
        "please report it with the detail of the whole report",
    ),
    Reason(
        "compile.trial",
        "another process tried the program: it crashed, or gave other values than NumPy",
        "please report it with the detail of the whole report; the calls stay on NumPy, in later runs too",
    ),
    Reason(
        "compile.unfinished",
        "another process tried the program: it was killed, took too long, or had too little memory",
        "free memory or processors; the calls stay on NumPy, and the next run tries once more",
    ),
    Reason(
        "compile.exact",
        "QD_JAX_EXACT asks for NumPy's bits, and the compiled program would have others",
        "none needed: NumPy is used; without QD_JAX_EXACT it is compiled, with other last places",
    ),
    Reason(
        "recorder.gap",
        "accel's recorder failed, and the call ran on NumPy without it",
        "please report it with the detail of the whole report; results are NumPy's",
    ),
    Reason(
        "accel.fault",
        "accel itself failed, and NumPy answered the call",
        "please report it with the detail of the whole report; the function stays on NumPy, and results are NumPy's",
    ),
    Reason(
        "verify.mismatch",
        "the compiled result differed from NumPy's by more than the tolerance; NumPy's was returned",
        "please report it; if the difference is acceptable, give this function a larger rtol",
    ),
    Reason(
        "speed.slower",
        "by measurement, the compiled program is no faster than NumPy here",
        "none needed: NumPy is used; with larger arrays the program may be faster",
    ),
    Reason(
        "speed.small",
        "a call takes less time on NumPy than launching a compiled program would",
        "none needed: larger arrays are compiled; or accelerate the function that calls it",
    ),
    # -- not yet ---------------------------------------------------------------------------------------------------
    Reason(
        "wait.calls",
        "too few of its calls or iterations have run to repay compiling",
        "none needed: in a longer run it is compiled",
    ),
    Reason(
        "wait.budget",
        "this run was too short to repay recording and compiling it",
        "none needed: in a longer run it is compiled; `accel compile TARGET` does it beforehand",
    ),
    Reason(
        "wait.compile",
        "its program was not compiled yet when the function was last called",
        "none needed: a longer run uses it; so does the next run, if `accel compile TARGET` has compiled it before",
    ),
    Reason(
        "wait.path",
        "no call has followed a compiled path yet",
        "calls that repeat a path use its program; where a loop makes another number of iterations each time, "
        "`QD_JAX_LOG=debug` says what changes between them",
    ),
    # -- loops -----------------------------------------------------------------------------------------------------
    Reason(
        "lift.source",
        "a loop is lifted by its source, and this code is not what its source file says",
        "restart the program if the file was edited; code without a file, or rewritten by a tool, keeps its loops",
    ),
    Reason(
        "lift.code",
        "the loop holds a statement that would not work, or work otherwise, in a function of its own",
        "move that statement out of the loop, or into a function that the loop calls",
    ),
    # -- pure functions of JAX's (accel.to_jax): raised as accel.Refused, since nobody else could answer -------------
    Reason(
        "pure.example",
        "an example call has other flags, shapes or types than the first one",
        "make a pure function for each set of flags, shapes and types",
    ),
    Reason(
        "pure.paths", "the recorded paths share too little to be one function", "make a pure function for each of them"
    ),
    Reason(
        "pure.inputs",
        "the function reads nothing that JAX could differentiate or map over",
        "pass numbers and arrays as arguments, or as attributes of an argument",
    ),
    Reason(
        "pure.result",
        "the function returns something that is no array or number, or another structure on each path",
        "wrap the function in one that returns arrays and numbers alone",
    ),
    Reason(
        "pure.state",
        "the function changes a list, dict or set whose elements have no names to return them by",
        "keep arrays in attributes, or in items of dicts with text as keys",
    ),
    Reason(
        "pure.static",
        "the function changes a flag or object that decides its path: its next call would take another one",
        "call the function once before making a pure function of it",
    ),
    Reason(
        "pure.alias",
        "two names hold one array before or after a call, and one is changed: the next call sees it in both",
        "store a copy, or call the function once before",
    ),
    Reason(
        "pure.host",
        "Python computes this number from an input in a way that JAX cannot",
        "leave the input out of wrt, so that it is a constant",
    ),
    Reason(
        "pure.derivative",
        "JAX has no derivative of this operation",
        "leave what it is computed from out of wrt, so that it is a constant",
    ),
    Reason(
        "pure.unrecorded",
        "the call takes a path that could not be recorded",
        "simplify the branches, or pass each member by itself",
    ),
    # -- ensembles (accel.ensemble) ----------------------------------------------------------------------------------
    Reason(
        "ensemble.copy",
        "the objects of the call cannot be copied for the members",
        "keep locks, files and the like out of them, or give the classes a __deepcopy__",
    ),
    Reason(
        "ensemble.place",
        "what differs between members has to live in an argument of the call, or in an object below one",
        "make it an argument, or an attribute of one",
    ),
    Reason(
        "ensemble.test",
        "what the loop's test calls may change something, and it is asked for each member, too",
        "compute it in the loop's body, and test a variable",
    ),
    Reason(
        "ensemble.rounds",
        "a member leaves the loop in another iteration than the program",
        "give the loop a fixed number of iterations, or perturb less",
    ),
    # -- choices ---------------------------------------------------------------------------------------------------
    Reason("mode.off", "acceleration is switched off", "unset QD_USE_JAX=0, and choose another mode than off"),
    Reason(
        "choice.excluded", "this function was left out by `only` or `exclude`", "change those patterns to include it"
    ),
    Reason("choice.declined", "the catalogue declines this function", "none needed: the catalogue says why"),
    Reason("choice.callable", "the name is not bound to a Python function", "accelerate the Python function behind it"),
)

REASONS: Mapping[str, Reason] = MappingProxyType({row.id: row for row in _ROWS})
"""Every reason, by id."""
