"""Write: the doctor's results as text or JSON, and its rows as a catalogue in Python."""

from __future__ import annotations

import json
import os
import shlex
import textwrap
from collections.abc import Callable, Iterable, Mapping

from accel.reports.layout import Column, by_owner, counted_by_owner, flow, text_table
from accel.reports.words import in_ms, plural
from accel.tools.inspect.doctor.advise import SMALLEST_MS, VERDICTS, DoctorAdvice
from accel.tools.inspect.doctor.measure import Answer
from accel.tools.inspect.explain.text import why_lines

SHOWN = 20
"""Maximum functions of one verdict in the text. The JSON has all."""

_COLUMNS: tuple[Column, ...] = (
    ("calls", lambda each: str(each["calls"])),
    ("ms/call", lambda each: in_ms(each["ms_per_call"])),
    ("own ms", lambda each: in_ms(each["own_ms"])),
    ("share %", lambda each: in_ms(100.0 * each["share"])),
    ("ops", lambda each: "-" if each["operations"] is None else str(each["operations"])),
)
_LEGEND = (
    "share: of the time in all functions, with what each calls: a function that others of these call becomes part of "
    "their programs. ops: operations recorded"
)
_WITH_TABLE = (DoctorAdvice.ROW, DoctorAdvice.STOPPED, DoctorAdvice.UNREACHABLE)


def rows_of(account: Answer) -> list[Answer]:
    """Return the functions that are worth a row."""
    return [each for each in account["functions"] if each["verdict"] == DoctorAdvice.ROW]


def _by_verdict(account: Answer) -> list[tuple[DoctorAdvice, list[Answer]]]:
    groups = [
        (verdict, [each for each in account["functions"] if each["verdict"] == verdict]) for verdict in DoctorAdvice
    ]
    return [(verdict, members) for verdict, members in groups if members]


def _heading(account: Answer) -> list[str]:
    """Return the sentences that say which program was analysed, and how."""
    how = (
        f"measured while {account['run']} ran: {in_ms(account['inside_s'])} s in these functions, of "
        f"{in_ms(account['wall_s'])} s in all, including the profiler's overhead"
    )
    lines = [f"accel doctor: {account['target']} ({plural(len(account['functions']), 'function')} called), {how}"]
    if account["ending"]:
        lines.append(f"note: the program {account['ending']}; the results are those until then")
    if not account["tried"]:
        lines.append("note: functions were timed, but not recorded: that needs os.fork, which this platform lacks")
    return lines


# -- text -------------------------------------------------------------------------------------------------------------


def as_text(account: Answer, catalogue: str | None) -> str:
    """Return the results as text, within 100 columns. catalogue: the file that was written, or None."""
    lines = [line for sentence in _heading(account) for line in flow(sentence, "", "  ")]
    for verdict, members in _by_verdict(account):
        lines += ["", *flow(f"{VERDICTS[verdict]} ({len(members)})")]
        show = counted_by_owner if len(members) > SHOWN else by_owner
        lines += _table(members) if verdict in _WITH_TABLE else show([each["target"] for each in members])
        if verdict == DoctorAdvice.ROW:
            lines += [*flow(_LEGEND, "  "), *_notes(members)]
        elif verdict == DoctorAdvice.STOPPED:
            lines += _stops(members)
    lines += ["", "next", *(line for step in _next(account, catalogue) for line in flow(step, "  - "))]
    return "\n".join(lines) + "\n"


def _table(members: list[Answer]) -> list[str]:
    shown = members[:SHOWN]
    lines = text_table(_COLUMNS, shown, lambda each: f"{each['target']}{' *' if each['catalogued'] else ''}")
    if len(members) > SHOWN:
        lines.append(f"  ... and {len(members) - SHOWN} more: the JSON has all")
    if any(each["catalogued"] for each in shown):
        lines.append("  * an installed catalogue names it already")
    return lines


def _stops(members: list[Answer]) -> list[str]:
    """Return the line that stops each function. Functions that stop at the same line share an entry."""
    shared: dict[tuple[str, str], tuple[Answer, list[str]]] = {}
    for each in members[:SHOWN]:
        for stop in each["stops"]:
            shared.setdefault((stop["id"], stop["where"]), (stop, []))[1].append(each["target"])
    lines = ["", "  what stops them:"]
    for stop, targets in shared.values():
        lines += [*why_lines(stop), *flow(", ".join(targets), "  stops  "), ""]
    return lines[:-1]


def _notes(members: list[Answer]) -> list[str]:
    """Return what is to be known of recordable functions before they get a row."""
    lines = []
    unasked = [each["target"] for each in members[:SHOWN] if each["jax"] is False]
    if unasked:
        what = "recorded, but JAX was not asked whether it takes all their operations; accel explain asks"
        lines += flow(f"{', '.join(unasked)}: {what}", "  note   ")
    for each in members[:SHOWN]:
        lines += [line for note in each["notes"] for line in flow(f"{each['target']}: {note}", "  note   ")]
    return lines


def _next(account: Answer, catalogue: str | None) -> Iterable[str]:
    """Yield the next steps for the user."""
    rows, run = rows_of(account), account["run"]
    package = shlex.quote(account["target"])
    is_elsewhere = not rows and account["inside_s"] < 0.5 * account["wall_s"]
    if catalogue is not None:
        yield f"{catalogue} has {plural(len(rows), 'row')}: check it, and delete rows that you do not want"
        # a callable of a module is no program
        program = run if ":" not in run.partition(" ")[0] else "PROGRAM"
        yield f"run with it: accel run --catalogue {shlex.quote(catalogue)} {program}"
    elif rows:
        yield f"catalogue: accel doctor {package} --catalogue NAME.py --run {run} writes these rows as one"
    if rows and all(each["catalogued"] for each in rows):
        yield f"an installed catalogue names all of these: accel run {run} accelerates them"
    if is_elsewhere or any(each["module"] == "__main__" for each in rows):
        yield (
            f"without a catalogue: accel run --auto {run} compiles the iterations of the script's loops, with the "
            "functions that they call"
        )
    stopped = [each for each in account["functions"] if each["verdict"] == DoctorAdvice.STOPPED and not each["local"]]
    if stopped:
        yield f"details of a stop: accel explain {shlex.quote(stopped[0]['target'])} --run {run}"
    if not rows:
        yield (
            f"nothing is worth a row here: a function must take more than {SMALLEST_MS:g} ms a call, "
            "be called a few times, and be recordable; larger arrays, or a longer run, may change that"
        )


# -- JSON -------------------------------------------------------------------------------------------------------------


def as_json(account: Answer, catalogue: str | None) -> str:
    return json.dumps({**account, "catalogue": catalogue}, indent=2) + "\n"


VIEWS: Mapping[str, Callable[[Answer, str | None], str]] = {"text": as_text, "json": as_json}


# -- the catalogue ----------------------------------------------------------------------------------------------------

_MODULE = '''\
"""The functions of {name} that accel accelerates, as data: a start, made by `accel doctor`; edit it freely.

{basis}

Use it from Python, before or after {name} is imported:

    import accel
    from {module} import CATALOGUE

    accel.install(CATALOGUE)

or run the program with `accel run --catalogue {module}.py PROGRAM`, or name this file in the pyproject.toml beside the
program, as `catalogue` in the table [tool.accel]. An installed distribution names it by an entry point:

    [project.entry-points."accel.catalogues"]
    {name} = "{module}:CATALOGUE"
"""

from accel.catalogue import Catalogue, Row

ROWS = (
{rows}
)

CATALOGUE = Catalogue(name="{name}", rows=ROWS)
'''


def as_catalogue(account: Answer, module: str) -> str:
    """Return the rows as the source of a Python module named `module`."""
    name = os.path.basename(os.path.abspath(account["target"])).partition(".")[0]
    # one row for each name: both branches of an `if` may define it
    chosen = list({each["target"]: each for each in reversed(rows_of(account))}.values())[::-1]
    basis = f"Measured while {account['run']} ran; shares are of the {in_ms(account['inside_s'])} s in {name}."
    rows = [_row(each, _why(each)) for each in chosen]
    return _MODULE.format(
        name=name,
        module=module,
        basis="\n".join(textwrap.wrap(basis, 116)),
        rows=textwrap.indent("\n".join(rows), "    "),
    )


def _why(each: Answer) -> str:
    told = f"{in_ms(each['ms_per_call'])} ms a call, {in_ms(100 * each['share'])} % of the time"
    return told + (f"; {plural(each['operations'], 'operation')}" if each["operations"] is not None else "")


def _row(each: Answer, why: str) -> str:
    """Return the source of one row, on one line where it fits."""
    parts = [_quoted(each["module"]), _quoted(each["qualname"]), _quoted(why)]
    line = f"Row({', '.join(parts)}),"
    return line if len(line) <= 116 else "Row(\n" + "".join(f"    {part},\n" for part in parts) + "),"


def _quoted(text: object) -> str:
    return json.dumps(text, ensure_ascii=False)
