"""Show errors of notebook cells at the line that raised them.

A notebook's kernel reads line numbers from the frames of a traceback, not from the traceback's entries. The frame of an
outlined loop then points at the call of its body.
"""

from __future__ import annotations

import ast
from types import TracebackType

from accel.platform.tracebacks import entries, linked


def with_lines_of_frames(traceback: TracebackType | None, cell: str) -> TracebackType | None:
    """Return a traceback in which the cell's own frame is at the line that its entry names. cell: the source's name."""
    return linked([_stand_in(each) if _is_elsewhere(each, cell) else each for each in entries(traceback)])


def _is_elsewhere(entry: TracebackType, cell: str) -> bool:
    code = entry.tb_frame.f_code
    return (code.co_filename, code.co_name) == (cell, "<module>") and entry.tb_frame.f_lineno != entry.tb_lineno


def _stand_in(entry: TracebackType) -> TracebackType:
    """Return a traceback entry for the same source line, with a new frame at that line."""
    code = entry.tb_frame.f_code
    line, *columns = list(code.co_positions())[entry.tb_lasti // 2]
    end, start, stop = columns if line == entry.tb_lineno and None not in columns else (entry.tb_lineno, -1, -1)
    name = ast.Name("Exception", ast.Load())
    raising = ast.Raise(name)
    place = ast.Pass(lineno=entry.tb_lineno, end_lineno=end, col_offset=start, end_col_offset=stop)  # type: ignore[arg-type]
    for node in (raising, name):
        ast.copy_location(node, place)
    made = compile(ast.Module([raising], []), code.co_filename, "exec", dont_inherit=True)
    try:
        exec(made, entry.tb_frame.f_globals, {"Exception": Exception})
    except Exception as error:
        return entries(error.__traceback__)[-1]
    raise AssertionError("the code raises")
