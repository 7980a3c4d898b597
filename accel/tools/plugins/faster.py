"""Changes that make a program faster, for its author to make: from where its time went, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import shorten
from typing import Any

from accel.platform.ledger import Ledger, ledgers
from accel.platform.reasons import place_of, source_line
from accel.reports.words import as_factor, in_s
from accel.tools.plugins.lines import NUMPY, PYTHON, Line, LineProfile

MOST = 3
"""Maximum number of lines to name."""

LEAST_SHARE, LEAST_SAMPLES = 0.02, 5
"""Lines that take a smaller share of the run, or were seen in fewer samples, are not named. Guesses."""

FIXED = {
    "imports": re.compile(r"^\s*(?:import|from)\s"),
    "FFT": re.compile(r"\bi?[hr]?fft[n2]?\(|\bfft\."),
    "random numbers": re.compile(r"\b(?:rng|random|generator)\.\w+\("),
    "plotting": re.compile(r"\b(?:plt|ax|axes|fig|figure)\.\w+\(|savefig|imshow"),
    "input and output": re.compile(
        r"\bopen\(|\bprint\(|\bnp\.(?:save|load)\w*\(|netcdf|Dataset\(|\.write\(|\.read\w*\("
    ),
    "linear algebra": re.compile(r"\blinalg\.\w+\("),
}
"""Work that accel does not make faster, mostly a library's compiled code: by how a line that asks for it is written."""

_NO_REASON = "it ran before its program was there, or too rarely for one: a longer run helps"
_UNCHOSEN = "no accelerated function or loop runs it"
_IN_PYTHON = "Python runs it element by element: one operation on the whole array"


def advice(profile: LineProfile) -> list[str]:
    """Return sentences: how much faster the run could become at most, and the lines that cost most on NumPy."""
    total = profile.seconds
    lines = [line for line in profile.lines() if line.on_numpy > 0.0]
    fixed = [line for line in lines if kind_of(line) is not None]
    fixed_s = sum(line.on_numpy for line in fixed)
    if total <= 0.0:
        return []
    kinds = dict.fromkeys(str(kind_of(line)) for line in sorted(fixed, key=lambda line: -line.on_numpy))
    told, least_s = [], max(LEAST_SHARE * total, LEAST_SAMPLES * profile.interval_s)
    if fixed_s >= least_s:
        told.append(
            f"{fixed_s / total:.0%} of the run is in work that accel cannot help ({', '.join(kinds)}): "
            f"at most {as_factor(total / fixed_s)}, with everything else free"
        )
    books = sorted(ledgers(), key=lambda book: -book.compiled_total_s)[:MOST]
    # a target may have dropped all programs that took its time
    compiled = [(book, book.describe() if book.describe is not None else []) for book in books]
    told += [_inside(book, kept) for book, kept in compiled if book.compiled_total_s >= least_s and kept]
    others = sorted((line for line in lines if line not in fixed), key=lambda line: -line.on_numpy)
    told += [_told(line, total) for line in others[:MOST] if line.on_numpy >= least_s]
    waits = [each for each in told if each.endswith(_NO_REASON)]
    # one hint is enough for all lines that have no other
    return [each.removesuffix(f": {_NO_REASON}") if each in waits[1:] else each for each in told]


def _inside(book: Ledger, programs: Sequence[dict[str, Any]]) -> str:
    """Name the operations that take most of a target's compiled time, by estimate, in the program that ran most."""
    program = max(programs, key=lambda each: each["replays"])
    groups = (each for each in program["work"] if each["share"] >= LEAST_SHARE)
    parts = ", ".join(f"{each['group']} {each['share']:.0%} (most at {each['where']})" for each in groups)
    return f"{book.target}: {in_s(book.compiled_total_s)} compiled, by estimate in {parts}"


def kind_of(line: Line) -> str | None:
    """The kind of work, if accel does not make it faster; None for a line that accel may help."""
    found: Iterator[str] = (kind for kind, pattern in FIXED.items() if pattern.search(line.text))
    return next(found, None)


def _told(line: Line, total: float) -> str:
    where = source_line(line.filename, line.number)
    python = line.seconds.get(PYTHON, 0.0) > line.seconds.get(NUMPY, 0.0)
    book = _target_of(line)
    why = (book and _refused(line, book)) or (_IN_PYTHON if python else _NO_REASON if book else _unchosen(line))
    text = shorten(line.text.strip(), 50, placeholder="...")
    return f"{where}: {in_s(line.on_numpy)} ({line.on_numpy / total:.0%}), {text}: {why}"


def _target_of(line: Line) -> Ledger | None:
    """The innermost accelerated function or loop that ran the line, if any was called."""
    called = [(_LOOP.search(book.target), book) for book in ledgers() if book.calls]
    parts = [(book.target[: at.start()] if at else book.target, int(at[1]) if at else 0, book) for at, book in called]
    for function, number in line.functions:
        found = [(first, book) for name, first, book in parts if name == function and first <= number]
        if found:
            return max(found, key=lambda each: each[0])[1]
    return None


_LOOP = re.compile(r":(\d+)(?:-\d+)?$")
"""Pattern of the lines that the name of a loop or part of a function ends with."""


def _unchosen(line: Line) -> str:
    """Say that nothing accelerated ran the line, and which command shows what could."""
    named = next((name for name, _ in line.functions if ":" in name), None)
    return f"{_UNCHOSEN}: accel explain {named} shows whether {named} can be" if named else _UNCHOSEN


def _refused(line: Line, book: Ledger) -> str:
    """Why a target that ran the line stays on NumPy, and what helps: the line's own refusal, or the most frequent."""
    found = [
        ((file, number) == (line.filename, line.number), count, refusal)
        for refusal, count in book.refusals.items()
        for file, number in [place_of(refusal.where)]
        if number
    ]
    if not found:
        return ""
    own, _, refusal = max(found, key=lambda each: each[:2])
    return f"{'' if own else f'{refusal.where} keeps it on NumPy: '}{refusal.why}; {refusal.hint}"
