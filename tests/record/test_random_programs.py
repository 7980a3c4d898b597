"""Random programs: views, in-place writes, aliases and attributes in orders that nobody would think of."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import some


def compiled(lines: list[str], signature: str) -> Any:
    """A function of these lines."""
    namespace: dict[str, Any] = {"np": np, "__name__": __name__}
    exec(f"def work({signature}):\n" + "\n".join("    " + line for line in lines), namespace)
    return namespace["work"]


def array_program(seed: int, length: int = 14) -> list[str]:
    """Lines over arrays x, y of shape (2, 3): every name a0, a1 ... has that shape, whatever memory it looks at."""
    draw = random.Random(seed)
    names, lines = ["x", "y"], []

    def pick() -> str:
        return draw.choice(names)

    def views(name: str) -> str:
        return draw.choice(
            [
                f"{name}[::-1]",
                f"{name}[:, ::-1]",
                f"{name}.T.T",
                f"{name}.reshape(3, 2).T[:, :3] if False else {name}[:]",
                f"np.flip({name}, 1)",
                f"{name}[None].reshape(2, 3)",
                f"{name}.T[::-1].T",
                f"np.atleast_3d({name})[..., 0]",
                f"np.swapaxes({name}.T, 0, 1)",
                f"np.asarray({name})",
            ]
        )

    statements = [
        lambda: f"{pick()}[{draw.randrange(2)}] = {pick()}[{draw.randrange(2)}] * {draw.randint(1, 3)}.5",
        lambda: f"{pick()} += {pick()}",
        lambda: f"{pick()} *= 0.5",
        lambda: f"{pick()}[:, {draw.randrange(3)}] -= {pick()}[:, 0]",
        lambda: f"{pick()}[{draw.randrange(2)}, 1:] = {pick()}[0, :2]",
        lambda: f"np.add({pick()}, {pick()}, out={pick()})",
        lambda: f"np.multiply({pick()}, 2.0, out={pick()}, where={pick()} > 0)",
        lambda: f"m = {pick()} > 0; {pick()}[m] = 0.25",
        lambda: f"{pick()}[...] = {pick()}.sum(axis=0)",
        lambda: f"np.copyto({pick()}, {pick()})",
        lambda: f"{pick()}[[1, 0]] = {pick()}[[0, 0]] + 1",
        lambda: f"{pick()}[::1, 1] *= {pick()}.max()",
    ]
    for _ in range(length):
        kind = draw.random()
        if kind < 0.3:
            name = f"a{len(names)}"
            lines.append(f"{name} = {views(pick())}")
            names.append(name)
        elif kind < 0.4:
            name = f"a{len(names)}"
            lines.append(f"{name} = {pick()} * 0.5 + {pick()}")
            names.append(name)
        elif kind < 0.45:
            lines.append(f"{pick()} = {pick()}")
        else:
            lines.append(draw.choice(statements)())
    chosen = draw.sample(names, min(3, len(names)))
    return [*lines, f"return {', '.join(f'{name}.copy()' for name in names)}, {', '.join(chosen)}"]


@pytest.mark.parametrize("seed", range(24))
def test_arrays(check: Any, seed: int) -> None:
    lines = array_program(seed)
    check(compiled(lines, "x, y"), lambda i: (some(i, 2, 3), some(i + 50, 2, 3)), calls=7, replays=0)


def state_program(seed: int, length: int = 10) -> list[str]:
    """Lines over objects s and t with attributes u, v, w, a list l and a dict d of arrays."""
    draw = random.Random(1000 + seed)

    def place() -> str:
        return draw.choice("s.u s.v t.u t.v s.l[0] s.l[1] t.d['a'] t.d['b'] s.w x t.n.u".split())

    def name() -> str:
        return draw.choice("st")

    statements = [
        lambda: f"{place()} = {place()}",
        lambda: f"{place()}, {place()} = {place()}, {place()}",
        lambda: f"{place()} += {place()} * 0.1",
        lambda: f"{place()}[1:] = {place()}[0]",
        lambda: f"{place()} = {place()} * 0.5 + 0.25",
        lambda: f"{place()} = {place()}[::-1]",
        lambda: f"{place()}[0] *= 0.5",
        lambda: f"{name()}.k = {name()}.k + 1",
        lambda: f"{name()}.k = float({place()}[1])",
        lambda: f"{name()}.new = {place()}",
        lambda: f"if hasattr({name()}, 'new'): {place()} = s.u * 2",
        lambda: "if hasattr(t, 'new'): del t.new",
        lambda: f"if {name()}.k > 3: {place()} = x + 1",
        lambda: f"{name()}.n = {name()}",
        lambda: f"{name()}.pair = ({place()}, {name()}.k)",
        lambda: f"{name()}.made = [{place()}, {place()} + 1]",
        lambda: f"{place()} = np.where({place()} > 0, {place()}, 0.5)",
    ]
    lines = [draw.choice(statements)() for _ in range(length)]
    return [*lines, f"return {place()}, {place()} + 0, s.k"]


def state() -> Any:
    fields = iter([some(i, 3) for i in range(10)])
    t = SimpleNamespace(u=next(fields), v=next(fields), d={"a": next(fields), "b": next(fields)}, k=0.5)
    t.n = SimpleNamespace(u=next(fields), k=2)
    return SimpleNamespace(u=next(fields), v=next(fields), w=next(fields), l=[next(fields), next(fields)], k=1, n=t), t


@pytest.mark.parametrize("seed", range(24))
def test_state(check: Any, seed: int) -> None:
    def worlds() -> Any:
        both = state()
        return lambda i: (*both, some(i, 3))

    check(compiled(state_program(seed), "s, t, x"), worlds=worlds, calls=14, replays=0)
