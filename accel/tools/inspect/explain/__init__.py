"""Explain: record one call in a forked child, and show the recording, or where it stops and why.

The child ends at the first line that stops the recording, before that line's effect. So nothing changes in this
process: no argument, no object, no global name, no ledger. Nothing is printed, and no file is written.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from html import escape
from typing import Any

from accel.dispatch.preconditions import unmet_precondition
from accel.entry.callables import PlainCall, call_of, check_arguments
from accel.platform import config
from accel.platform.config import SettingError
from accel.platform.reasons import source_line
from accel.tools.inspect.explain import apart
from accel.tools.inspect.explain.text import as_text

SCHEMA = 1
SECONDS = 120.0
"""The default time limit of the child process, in seconds."""


class Explanation:
    """The result of recording one call.

    text: for people, within 100 columns; also `str()`. data: for programs, with more details; also `json()`. Its keys:

    schema (1), target, where; verdict: "recorded", "stopped" or "unknown"; notes
    stop: null, or id, where, function, source, column, end_column, why, hint, detail, via (how the program got there),
        parts: null, or lines (of what accel compiles apart), shares (of a call, if measured), between (lines)
    operations: count, host (on plain numbers), rules (how often each); inlined: targets inside
    lowered: null, or operations, foldable, host, whether JAX went through them, and passes: where asked for, the
        operations as recorded and after each pass of the lowering
    inputs: path, kind, is, guard of each; aliases: pairs of paths; outcomes: where, source, value
    outputs: null, or result, changed (arrays written in place), writes (attributes and items set)

    recorded: whether the call could be compiled, as far as is known without compiling it.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def recorded(self) -> bool:
        return bool(self.data["verdict"] == "recorded")

    @property
    def text(self) -> str:
        return as_text(self.data)

    def json(self) -> str:
        """The explanation as JSON, schema 1."""
        return json.dumps(self.data, indent=2) + "\n"

    def __str__(self) -> str:
        return self.text

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # IPython's representation in a terminal

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"

    def __repr__(self) -> str:
        return f"<explanation of {self.data['target']}: {self.data['verdict']}>"


def explain(fn: Callable[..., Any] | str, /, *args: object, **kwargs: object) -> Explanation:
    """Explain what accel records of `fn(*args, **kwargs)`: operations, guards and outcomes, or where and why it stops.

    fn: a function, method, static method or class method, accelerated or not, or its name as "module:Class.method".

    Nothing changes in this process: the call is recorded in a forked child, on its own copy of all memory. It ends
    before the first line that stops it. There are two exceptions. Files that the function *reads* are read. And memory
    that processes share on purpose (shared_memory, mmap) may show the child's writes while it runs.

    Raises TypeError if `fn` is not a Python function or does not take the arguments. Raises SettingError if a name does
    not exist, and RuntimeError if the platform cannot fork (Windows).

    >>> import accel, numpy as np
    >>> def swap(x):
    ...     print(x.sum())
    ...     return x[::-1]
    >>> accel.explain(swap, np.ones(3)).data["stop"]["id"]
    'effect.print'
    """
    try:
        call = call_of(fn, args, kwargs)
    except SettingError as error:  # the command line calls it FUNCTION
        raise error.renamed("fn") from None
    check_arguments(call)
    return explain_call(call)


def explain_call(
    call: PlainCall, *, seconds: float = SECONDS, in_thread: bool = False, jax: bool = True, passes: bool = False
) -> Explanation:
    """`explain` for a `PlainCall`.

    in_thread: see `run_apart`. jax: False leaves out the check of the lowering. passes: list the operations after each
    pass of the lowering.
    """
    if not apart.available():
        raise RuntimeError("accel.explain needs os.fork, which this platform does not have; on Windows, use WSL")
    from accel.rules import load
    from accel.tools.inspect.explain.examine import examine

    load(everything=True)
    fresh = "jax" not in sys.modules  # its threads do not survive a fork
    max_nodes = config.current().max_nodes
    job = functools.partial(examine, call, max_nodes, jax and fresh, passes)
    obstacle = unmet_precondition(config.current().mode)
    answer = apart.run_apart(job, seconds=seconds, in_thread=in_thread)
    data = _assembled(call, answer)
    if obstacle is not None and not in_thread:
        data["notes"].append(f"at present every call stays on NumPy: {obstacle.why}  [{obstacle.reason}]")
    if data["verdict"] == "recorded" and jax and not fresh:
        data["notes"].append("JAX's acceptance of the operations was not checked: JAX already runs in this process")
    return Explanation(data)


def _assembled(call: PlainCall, answer: apart.Answer) -> dict[str, Any]:
    """Merge the child's messages into one dict."""
    code = call.function.__code__
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "target": call.name,
        "where": source_line(code.co_filename, code.co_firstlineno),
        "verdict": "unknown",
        "stop": None,
        "operations": {"count": 0, "host": 0, "rules": {}},
        "lowered": None,
        "inputs": [],
        "aliases": [],
        "outcomes": [],
        "inlined": [],
        "outputs": None,
        "notes": [],
    }
    faults = []
    for message in answer.messages:
        faults += [message.pop("fault")] if "fault" in message else []
        data["notes"] += message.pop("notes", [])
        data.update(message)
    if answer.trouble:
        data["notes"].append(answer.trouble)
    data["notes"] += [f"a fault in accel, please report it: {fault}" for fault in faults]
    return data
