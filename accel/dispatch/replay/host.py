"""Host nodes: what Python itself computes from scalars, before the program is launched."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np

from accel.compiler.merge import ABSENT
from accel.ir.tape import Node, nodes_in
from accel.platform import interrupts


class Expressions:
    """Generates functions that compute host nodes.

    of_some: indices of nodes that only some of several merged paths compute. Where that fails, they are ABSENT.
    """

    def __init__(self, of_some: Container[int] = ()) -> None:
        self._of_some = of_some
        self._globals: dict[str, Any] = {"absent": ABSENT, "pass_on": interrupts.pass_on, "errstate": np.errstate}

    def compiled(self, name: str, lines: list[str]) -> Callable[..., Any]:
        """The function of that name that these lines define."""
        # The text holds only names and numbers that accel made up. It is compiled first: if Ctrl-C interrupts text that
        # is executed, Python ends the process as interrupted, even if the program handles that.
        exec(compile("\n".join(lines), "<accel host tape>", "exec"), self._globals)
        made: Callable[..., Any] = self._globals[name]
        return made

    def assignment(self, node: Node) -> list[str]:
        """Lines that compute a node, and give its variable the value."""
        line = f"v{node.index} = {self.expression(node)}"
        if node.index not in self._of_some:
            return [f"    {line}"]
        lines = ["    try:", f"        {line}", "    except Exception as error:"]
        return [*lines, "        pass_on(error)", f"        v{node.index} = absent"]

    def silent(self, lines: list[str]) -> list[str]:
        """The lines without NumPy's warnings: numbers of NumPy's would warn where compiled arrays do not."""
        return ["    with errstate(all='ignore'):", *(f"    {line}" for line in lines)] if lines else []

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The arguments of a call."""
        parts = [self._argument(part) for part in args]
        return ", ".join(parts + [f"{name}={self._argument(part)}" for name, part in kwargs.items()])

    def expression(self, node: Node) -> str:
        """A node's value, by the variables of its operands."""
        if node.is_input:
            return f"values[{node.args[0]}]"
        return f"{self.name(node.rule.function)}({self.arguments(node.args, node.kwargs)})"

    def _argument(self, part: object) -> str:
        if isinstance(part, Node):
            return f"v{part.index}"
        if isinstance(part, tuple):
            return "(" + "".join(self._argument(inner) + ", " for inner in part) + ")"
        if isinstance(part, list):
            return "[" + ", ".join(self._argument(inner) for inner in part) + "]"
        assert not nodes_in(part), "nodes elsewhere than in tuples and lists"
        return self.name(part)

    def name(self, value: object) -> str:
        """A new global name for a constant. Constants have no text that would give the same object again."""
        name = f"c{len(self._globals)}"
        self._globals[name] = value
        return name


class HostTape(Expressions):
    """Host nodes as one generated function. nodes: in the order of the tape, with all host nodes that they need.

    Each call of a path evaluates them. To walk the nodes in Python would take several times as long.
    """

    def __init__(self, nodes: list[Node], of_some: Container[int] = ()) -> None:
        super().__init__(of_some)
        computed = [line for node in nodes for line in self.assignment(node)]
        lines = ["def compute(values):", *self.silent(computed)]
        results = ", ".join(f"{node.index}: v{node.index}" for node in nodes)
        lines.append(f"    return {{{results}}}")
        self._compute: Callable[[list[Any]], Mapping[int, Any]] = self.compiled("compute", lines)
        inputs = [node for node in nodes if node.is_input]
        self._read = sorted({node.args[0] for node in inputs})
        # containers may hold something else in the next call
        self._reads_objects = any(node.dtype is None for node in inputs)
        self._last: tuple[list[Any], Mapping[int, Any]] | None = None

    def evaluate(self, values: list[Any]) -> Mapping[int, Any]:
        """The nodes' values, by index, for those of the slots: those of the last time if it read the same objects.

        Errors of their computation are passed on.
        """
        read, last = [values[slot] for slot in self._read], self._last
        # numbers are immutable: the same objects have the same values
        if last is not None and all(map(operator.is_, read, last[0])):
            return last[1]
        computed = self._compute(values)
        self._last = None if self._reads_objects else (read, computed)
        return computed
