"""Host nodes: what Python itself computes from scalars, before the program is launched."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from accel.ir.tape import Node, nodes_in
from accel.merge import ABSENT
from accel.process import interrupts


class HostTape:
    """Host nodes as one generated function. nodes: in the order of the tape, with all host nodes that they need.

    of_some: indices of nodes that only some of several merged paths compute. Where that fails, they are ABSENT.

    Each call of a path evaluates them. To walk the nodes in Python would take several times as long.
    """

    def __init__(self, nodes: list[Node], of_some: Container[int] = ()) -> None:
        self._globals: dict[str, Any] = {"absent": ABSENT, "pass_on": interrupts.pass_on}
        lines = ["def evaluate(values):"]
        for node in nodes:
            line = f"v{node.index} = {self._expression(node)}"
            if node.index in of_some:
                lines += ["    try:", f"        {line}", "    except Exception as error:"]
                lines += ["        pass_on(error)", f"        v{node.index} = absent"]
            else:
                lines.append(f"    {line}")
        results = ", ".join(f"{node.index}: v{node.index}" for node in nodes)
        lines.append(f"    return {{{results}}}")
        # The text holds only names and numbers that accel made up. It is compiled first: if Ctrl-C interrupts text that
        # is executed, Python ends the process as interrupted, even if the program handles that.
        exec(compile("\n".join(lines), "<accel host tape>", "exec"), self._globals)
        self.evaluate: Callable[[list[Any]], dict[int, Any]] = self._globals["evaluate"]

    def _expression(self, node: Node) -> str:
        if node.is_input:
            return f"values[{node.args[0]}]"
        function = self._name(node.rule.function)
        parts = [self._argument(part) for part in node.args]
        parts += [f"{name}={self._argument(part)}" for name, part in node.kwargs.items()]
        return f"{function}({', '.join(parts)})"

    def _argument(self, part: object) -> str:
        if isinstance(part, Node):
            return f"v{part.index}"
        if isinstance(part, tuple):
            return "(" + "".join(self._argument(inner) + ", " for inner in part) + ")"
        if isinstance(part, list):
            return "[" + ", ".join(self._argument(inner) for inner in part) + "]"
        assert not nodes_in(part), "nodes elsewhere than in tuples and lists"
        return self._name(part)

    def _name(self, value: object) -> str:
        """A new global name for a constant. Constants have no text that would give the same object again."""
        name = f"c{len(self._globals)}"
        self._globals[name] = value
        return name
