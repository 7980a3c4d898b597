"""Usage: python -m accel COMMAND ...

python -m accel run ...    the same as python -m accel.run ...
python -m accel compile ...
                           compile, before the first real run, what a program's runs need
python -m accel explain ...
                           what recording one call of a function would give, and where it stops
python -m accel doctor ... which functions of a program are worth accelerating, and what stops the others
python -m accel reasons    print every reason for which code stays on NumPy, as a Markdown table
python -m accel cache ...  info: what the disk cache of compiled programs holds; clear: empty it
python -m accel coverage   print which of NumPy's and SciPy's functions are compiled, as Markdown
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from accel.cli.options import BAD_INPUT
from accel.versions import shortfall


def _run(args: Sequence[str]) -> int:
    from accel.cli.run import main

    return main(args)


def _compile(args: Sequence[str]) -> int:
    from accel.precompile.command import main

    return main(args)


def _reasons(args: Sequence[str]) -> int:
    from accel.reports.markdown import reasons_table

    sys.stdout.write(reasons_table())
    return 0


def _coverage(args: Sequence[str]) -> int:
    from accel.inspect.coverage import table

    sys.stdout.write(table())
    return 0


def _cache(args: Sequence[str]) -> int:
    from accel.backend.cache import main

    return main(args)


def _explain(args: Sequence[str]) -> int:
    from accel.inspect.explain.command import main

    return main(args)


def _doctor(args: Sequence[str]) -> int:
    from accel.inspect.doctor.command import main

    return main(args)


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "run": _run,
    "compile": _compile,
    "explain": _explain,
    "doctor": _doctor,
    "reasons": _reasons,
    "cache": _cache,
    "coverage": _coverage,
}

_RECORDING = ("explain", "doctor", "coverage")
"""Commands that need packages without which nothing can be recorded."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names. Returns its exit code; 2 for an unknown command."""
    name, *args = (sys.argv[1:] if argv is None else list(argv)) or [""]
    short = shortfall() if name in _RECORDING else None
    if short is not None:
        sys.stderr.write(f"accel: {short}\n")
        return BAD_INPUT
    if name in _COMMANDS:
        return _COMMANDS[name](args)
    if name in ("-h", "--help"):
        sys.stdout.write(f"{__doc__}\n")
        return 0
    sys.stderr.write(f"accel: unknown command {name!r}; expected: {', '.join(_COMMANDS)}\n")
    return 2
