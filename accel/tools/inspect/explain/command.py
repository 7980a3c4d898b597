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
from typing import Any

from accel.entry.callables import TARGETS, PlainCall, call_of, check_arguments, named, split_loop, split_target
from accel.entry.hook.imports import locate, split_name
from accel.entry.hook.lifts import TOP
from accel.platform import config
from accel.platform.config import SettingError
from accel.platform.options import Parser, count, refuse
from accel.tools.cli.program import execute
from accel.tools.cli.starts import Start
from accel.tools.inspect.explain import Explanation, explain_call
from accel.tools.inspect.explain.capture import nth_call, profiled
from accel.tools.inspect.explain.iterations import LoopOf, nth_iteration
from accel.tools.inspect.programs import Change, found, output_to_stderr
from accel.tools.inspect.sources import Source, functions_of, nearest, parse

_EPILOG = """examples:
  accel explain heat:Plate.step --setup 'import heat; p = heat.Plate(800)' --args '(p,)'
  accel explain pygcm.dynamics:SpectralModel.time_step --nth 3 --run scripts.run_simulation
  accel explain __main__:13 --run simulate.py 10
"""


_LOOPS = "with --run also a loop, as the report names it: module:function:12, module:12"


def _parser() -> Parser:
    parser = Parser(
        prog="accel explain",
        usage="accel explain FUNCTION [--setup CODE]... [--args TUPLE] [--passes] [--format text|json]\n"
        "       accel explain FUNCTION [--nth N] [--passes] --run PROGRAM [ARGS...]",
        description="Show what accel would record of one call, or where and why it stops. Nothing is changed.",
        epilog=_EPILOG,
    )
    parser.add_argument("target", metavar="FUNCTION", help=f"{TARGETS}; {_LOOPS}")
    parser.add_argument("--setup", metavar="CODE", action="append", default=[], help="statements to run first")
    parser.add_argument("--args", metavar="TUPLE", help="the call's arguments: an expression that gives a tuple")
    what = "with --run: which call or iteration; default: first"
    parser.add_argument("--nth", metavar="N", type=count, default=1, help=what)
    parser.add_argument("--passes", action="store_true", help="print the program, and what each pass of accel changes")
    parser.add_argument(
        "--format", metavar="F", choices=("text", "json"), default="text", help="text (default) or json"
    )
    what = "run this program (module, script, or module:callable) until it makes the call; must come last"
    parser.add_argument("--run", metavar="PROGRAM [ARGS...]", nargs=argparse.REMAINDER, help=what)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 1 if the platform cannot fork, 2 for invalid input."""
    options = _parser().parse_args(argv)
    try:
        config.current()  # report invalid settings now
        if options.run is not None and (options.args is not None or options.setup):
            problem = "cannot be combined with --args and --setup"
            raise SettingError("--run", " ".join(options.run), "one or the other", problem)
        explanation = _explain_in_program(options) if options.run is not None else _explain_call(options)
    except SettingError as error:
        return refuse(error)
    except RuntimeError as error:
        sys.stderr.write(f"accel: {error}\n")
        return 1
    sys.stdout.write(_shown(explanation, options.format))
    return 0


def _shown(explanation: Explanation, form: str) -> str:
    return explanation.json() if form == "json" else explanation.text


# -- a call that the user writes ---------------------------------------------------------------------------------------


def _explain_call(options: argparse.Namespace) -> Explanation:
    import numpy as np

    try:
        function = named(options.target)
    except SettingError:
        raise
    except Exception as error:
        raise SettingError("FUNCTION", options.target, TARGETS, f"cannot be imported ({_told(error)})") from None
    scope: dict[str, Any] = {"np": np}
    for statements in options.setup:
        try:
            exec(compile(statements, "--setup", "exec"), scope)
        except Exception as error:
            raise SettingError("--setup", statements, "statements that run", f"fails ({_told(error)})") from None
    try:
        call = call_of(function, _arguments(options.args, scope), {})
    except TypeError as error:
        raise SettingError("FUNCTION", options.target, TARGETS, f"cannot be used: {error}") from None
    _check_call(call, options.args)
    return explain_call(call, passes=options.passes)


def _arguments(text: str | None, scope: dict[str, Any]) -> tuple[Any, ...]:
    if text is None:
        return ()
    possible = "an expression that gives a tuple, such as (x, 0.5) or (x,)"
    try:
        value = eval(compile(text, "--args", "eval"), scope)
    except Exception as error:
        raise SettingError("--args", text, possible, f"fails ({_told(error)})") from None
    if not isinstance(value, tuple):
        raise SettingError("--args", text, possible, f"gives a {type(value).__name__}")
    return value


def _check_call(call: PlainCall, given: str | None) -> None:
    try:
        check_arguments(call)
    except TypeError as error:
        what = "--args '(...)' with --setup CODE, or --run PROGRAM to take a call from a running program"
        raise SettingError("--args", given or "()", what, f"does not fit: {error}") from None


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


# -- a call that a program makes ---------------------------------------------------------------------------------------


def _explain_in_program(options: argparse.Namespace) -> Explanation:
    """Run the program until it makes the call. `_explain_and_end` then ends the process."""
    start = found(options.run)
    source, qualname, line = _find(options.target, start)
    config.set_current(replace(config.current(), mode="off"))  # functions that the program accelerates run on NumPy
    with output_to_stderr() as real:
        end = functools.partial(_explain_and_end, options, real)
        with _watched(options.target, source, qualname, line, options.nth, end) as change:
            try:
                execute(start, hooked=False, change=change)
            except SettingError:
                raise
            except SystemExit as ending:
                what = "ended"
                if ending.code:
                    what = f"ended with exit code {ending.code}"
            except KeyboardInterrupt:
                what = "was interrupted"
            except BaseException as error:
                sys.excepthook(type(error), error, error.__traceback__)
                what = "failed"
            else:
                what = "ended"
    done = "called" if line is None else "run"
    often = f"not {done}" if options.nth == 1 else f"{done} fewer than {options.nth} times"
    what_is = "a function that this program calls" if line is None else "a loop that this program runs"
    possible = what_is + ("" if options.nth == 1 else ", or a smaller --nth")
    raise SettingError("FUNCTION", options.target, possible, f"was {often} before the program {what}")


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
        assert source.code is not None
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
            stream.write(_shown(explanation, options.format))
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
    source = parse(file)
    if source.problem:
        raise SettingError("FUNCTION", target, "a file that Python can read", f"cannot be parsed: {source.problem}")
    if qualname == TOP and line is None:
        problem = "is a module: accel run --auto compiles its loops, and accel report --full says what stops them"
        possible = "a function, or one of those loops, as the report names them"
        raise SettingError("FUNCTION", target, possible, problem)
    names = [each.qualname for each in functions_of(source)]
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
