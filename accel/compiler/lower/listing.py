"""Listings: a program's operations as text, as `accel explain --passes` prints them.

%7 = multiply float64[121,240] (%3, 0.5)  dynamics.py:210
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from accel.compiler.lower.passes.arrange import Part
from accel.compiler.lower.passes.branches import Conditional
from accel.ir.loop import LoopBody, body_of
from accel.ir.tape import Node
from accel.ir.views import Extent, Index
from accel.platform.reasons import source_line

LONGEST = 40
"""Characters of a static argument that are shown."""

_INDENT = "    "


def listing(parts: Sequence[Part], name_of: Callable[[int], str] = "slot {}".format) -> list[str]:
    """A line for each operation; those of a loop's iteration are indented, and stand for all iterations.

    name_of: an input's name, by its slot.
    """
    return [line for part in parts for line in _lines(part, name_of)]


def _lines(part: Part, name_of: Callable[[int], str]) -> Iterator[str]:
    if isinstance(part, Node) and part.is_input:
        yield f"%{part.index} = input {_type(part)} {name_of(part.args[0])}"
    elif isinstance(part, Node):
        yield _operation(part)
        body = body_of(part)
        if body is not None:
            yield from _iterations(body)
    elif isinstance(part, Conditional):
        yield from _conditional(part, name_of)
    else:
        yield f"loop, {len(part.iterations)} iterations"
        for node in part.iterations[0]:
            yield _INDENT + _operation(node)


def _iterations(body: LoopBody) -> Iterator[str]:
    """List a loop by data: the operations of one iteration, and the condition of its end.

    The values of the iteration have numbers of their own.
    """
    moving = ", ".join(f"%{node.index}" for node in body.parameters[: len(body.updates)])
    after = ", ".join(f"%{node.index}" for node in body.updates)
    yield f"{_INDENT}iterations with ({moving}), then with ({after}), while %{body.asked.index} is {body.stay}"
    for node in body.operations:
        yield from (2 * _INDENT + line for line in _lines(node, str))


def _conditional(conditional: Conditional, name_of: Callable[[int], str]) -> Iterator[str]:
    decision, cases = conditional.choice.args
    yield f"branch on %{decision.index}  {source_line(*conditional.choice.where)}"
    for case, side in zip(cases, conditional.sides, strict=True):
        yield f"{_INDENT}{' or '.join(map(repr, case))}:"
        for line in listing(side, name_of):
            yield 2 * _INDENT + line
    for phi in conditional.phis:
        yield f"{_INDENT}{_operation(phi)}"


def _operation(node: Node) -> str:
    arguments = [_argument(each) for each in node.args]
    # "loop" is a ufunc's choice of dtypes, which operands and result show
    arguments += [f"{name}={_argument(value)}" for name, value in node.kwargs.items() if name != "loop"]
    about = "  host" * node.host + "  copied" * node.endangered
    name = node.rule.name.removeprefix(f"{np.__name__}.")
    return f"%{node.index} = {name} {_type(node)} ({', '.join(arguments)}){about}  {source_line(*node.where)}"


def _type(node: Node) -> str:
    if node.dtype is None:
        return node.scalar.__name__ if node.scalar is not None else "several"
    return f"{node.dtype}{list(node.shape)}".replace(" ", "")


def _argument(value: object) -> str:
    if isinstance(value, Node):
        return f"%{value.index}"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(_argument, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, Index):
        return f"[{', '.join(map(_entry, value.key))}]"
    if isinstance(value, LoopBody):
        return f"{value.size} operations, at most {value.limit} iterations"
    if isinstance(value, Extent):
        return f"[{', '.join('.' if each is None else str(each) for each in value.axes)}]"
    if isinstance(value, np.ndarray):
        return f"<{value.dtype}{list(value.shape)}>"
    text = getattr(value, "__qualname__", None) or (str if isinstance(value, np.dtype) else repr)(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _entry(entry: object) -> str:
    if not isinstance(entry, slice):
        return "..." if entry is Ellipsis else repr(entry)
    bounds = ["" if bound is None else repr(bound) for bound in (entry.start, entry.stop, entry.step)]
    return ":".join(bounds[:2] if not bounds[2] else bounds)
