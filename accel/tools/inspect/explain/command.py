"""`accel explain FUNCTION`: the recording of one call of a function, or of one iteration of a loop.

FUNCTION is module:function or module:Class.method; the module is found as `python -m` finds it. A loop is named by its
line, after the function or the module: module:function:12, as in the report.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

from accel.entry.callables import TARGETS, PlainCall, split_loop, split_target
from accel.entry.hook.imports import locate, split_name
from accel.entry.hook.lifts import TOP
from accel.platform import config
from accel.platform.config import SettingError
from accel.platform.options import Parser, count, refuse
from accel.tools.cli.starts import Start
from accel.tools.inspect.explain import explain_call
from accel.tools.inspect.explain.capture import nth_call, profiled
from accel.tools.inspect.explain.iterations import LoopOf, nth_iteration
from accel.tools.inspect.programs import Change, found, output_to_stderr, run
from accel.tools.inspect.sources import Source, functions_of, nearest, parse

_EPILOG = """examples:
  accel explain heat:Plate.step --run simulate.py 10
  accel explain pygcm.dynamics:SpectralModel.time_step --nth 3 --run scripts.run_simulation
  accel explain __main__:13 --run simulate.py 10
"""


_LOOPS = "or a loop, as the report names it: module:function:12, module:12"


def _parser() -> Parser:
    parser = Parser(
        prog="accel explain",
        usage="accel explain FUNCTION [--nth N] [--passes] [--format text|json] --run PROGRAM [ARGS...]",
        description="Show what accel would record of one call, or where and why it stops. Nothing is changed.",
        epilog=_EPILOG,
    )
    parser.add_argument("target", metavar="FUNCTION", help=f"{TARGETS}; {_LOOPS}")
    what = "which call or iteration; default: first"
    parser.add_argument("--nth", metavar="N", type=count, default=1, help=what)
    parser.add_argument("--passes", action="store_true", help="print the program, and what each pass of accel changes")
    parser.add_argument(
        "--format", metavar="F", choices=("text", "json"), default="text", help="text (default) or json"
    )
    what = "run this program (module, script, or module:callable) until it makes the call; must come last"
    parser.add_argument("--run", metavar="PROGRAM [ARGS...]", nargs=argparse.REMAINDER, default=[], help=what)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command. Ends the process, or returns the exit code: 2 for invalid input."""
    options = _parser().parse_args(argv)
    try:
        config.current()  # report invalid settings now
        _run_until_call(options)
    except SettingError as error:
        return refuse(error)


def _run_until_call(options: argparse.Namespace) -> NoReturn:
    """Run the program until it makes the call: `_explain_and_end` then ends the process. Raises SettingError if not."""
    start = found(options.run)
    source, qualname, line = _find(options.target, start)
    config.set_current(replace(config.current(), mode="off"))  # functions that the program accelerates run on NumPy
    with output_to_stderr() as real:
        end = functools.partial(_explain_and_end, options, real)
        with _watched(options.target, source, qualname, line, options.nth, end) as change:
            ending = run(start, change)
    done = "called" if line is None else "run"
    often = f"not {done}" if options.nth == 1 else f"{done} fewer than {options.nth} times"
    what_is = "a function that this program calls" if line is None else "a loop that this program runs"
    possible = what_is + ("" if options.nth == 1 else ", or a smaller --nth")
    raise SettingError("FUNCTION", options.target, possible, f"was {often} before the program {ending or 'ended'}")


@contextmanager
def _watched(
    target: str, source: Source, qualname: str, line: int | None, nth: int, found: Callable[[PlainCall], None]
) -> Iterator[Change]:
    """Within the block, pass the nth call of the function, or iteration of its loop at this line, to `found`.

    Yields a function that transforms the program's code before it runs.
    """
    if line is None:
        with profiled(nth_call(source.file, qualname, nth, found)):
            yield lambda code: code
    else:
        loop = LoopOf(target, source, qualname, line)
        loop.lifted(source.code)  # tells now if it cannot be
        with nth_iteration(loop, nth, found) as change:
            yield change


_AGAIN = "first calls often print or set things up: --nth 2 explains the next one"


def _explain_and_end(options: argparse.Namespace, real: int, call: PlainCall) -> None:
    """Write the explanation to the real standard output, and end the process: the program need not go on."""
    code = 0
    try:
        explanation = explain_call(call, in_thread=True, passes=options.passes)
        if options.nth == 1 and not explanation.recorded:
            explanation.data["notes"].append(_AGAIN)
        sys.stdout.flush()
        with os.fdopen(real, "w", encoding="utf-8") as stream:
            stream.write(explanation.json() if options.format == "json" else explanation.text)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stderr.flush()
        os._exit(code)


def _find(target: str, start: Start) -> tuple[Source, str, int | None]:
    """Return the file that defines the target, the qualified name of its code, and the line of a loop in it, or None.

    Nothing is imported. start: of the program that runs, which the report calls `__main__`.
    """
    module, qualname, line = _split(target)
    if module == "__main__":
        program, args = start.elsewhere
        module = args[0] if program == "-m" else program
    if module.endswith(".py"):
        file = os.path.realpath(module) if os.path.isfile(module) else None
    else:
        file = getattr(locate(module), "origin", None)
    if file is None or not file.endswith(".py"):
        raise SettingError("FUNCTION", target, f"{TARGETS}, or file.py:function", "does not exist")
    try:
        source = parse(file)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise SettingError("FUNCTION", target, "a file that Python can read", f"cannot be parsed: {error}") from None
    if qualname == TOP and line is None:
        problem = "is a module: accel run --auto compiles its loops, and accel report --full says what stops them"
        possible = "a function, or one of those loops, as the report names them"
        raise SettingError("FUNCTION", target, possible, problem)
    names = functions_of(source)
    if qualname != TOP and qualname not in names:
        raise SettingError("FUNCTION", target, nearest(qualname, names), f"is not defined in {os.path.basename(file)}")
    return source, qualname, line


def _split(target: str) -> tuple[str, str, int | None]:
    """Return the module or file, the qualified name of the code in it, and the line of a loop in that code, or None."""
    owner, line = split_loop(target)
    if line is None:
        return *split_target(target), None
    module, qualname = (owner, "") if owner.endswith(".py") else split_name(owner)
    return module, qualname or TOP, line
