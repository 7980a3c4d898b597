"""Random programs with a loop: every way out of its body, and every way to bind and unbind a name in it."""

from __future__ import annotations

import random
from collections.abc import Callable

PREAMBLE = """
import contextlib

G = 0


class Own(Exception):
    pass


class Manager:
    def __init__(self, swallow):
        self.swallow = swallow

    def __enter__(self):
        return self.swallow + 1

    def __exit__(self, kind, error, tb):
        note("exit", kind and kind.__name__, str(error))
        return self.swallow > 1 and kind is not None and issubclass(kind, Exception)


def helper(x):
    if x == 2:
        raise Own("from helper", x)
    return x + 1


class Base:
    def say(self, x=0):
        return "base", x
"""

NAMES = ("a", "b", "c", "d")
KINDS = ("function", "method", "nested", "script")


class Writer:
    """Writes one program. kind: where its loop stands."""

    def __init__(self, rng: random.Random, kind: str) -> None:
        self.rng = rng
        self.kind = kind
        self.lines: list[str] = []
        self._serial = 0
        self._loops = 0  # around the statement, the lifted one among them
        self._in_star = False

    # -- pieces -------------------------------------------------------------------------------------------------------

    def name(self) -> str:
        extra = ["self.__p", "__m"] if self.kind == "method" else ["o"] if self.kind == "nested" else []
        return self.rng.choice([*NAMES * 2, *extra])

    def plain_name(self) -> str:
        return self.rng.choice([*NAMES * 2, *(["o"] if self.kind == "nested" else [])])

    def expression(self, depth: int = 2) -> str:
        choose = self.rng.random()
        if depth == 0 or choose < 0.35:
            return self.rng.choice(
                [self.name(), self.name(), str(self.rng.randrange(4)), str(self.rng.randrange(1, 3)), "G"]
            )
        inner = self.expression(depth - 1)
        forms = [
            f"({inner} + {self.expression(depth - 1)})",
            f"({inner} - {self.expression(depth - 1)})",
            f"({inner} // {self.expression(depth - 1)})",
            f"helper({inner})",
            f"[1, 2, 3][{inner}]",
            f"({self.plain_name()} := {inner})",
            f"({inner} if {self.expression(0)} else {self.expression(0)})",
            f"({inner} or {self.expression(0)})",
            f"sum({self.expression(0)} + k for k in range(3))",
            f"sum([({self.plain_name()} := k) for k in range(2)])",
            f"len([{self.expression(0)} for k in range(3) if k != {self.expression(0)}])",
            f"(lambda k=1: k + {self.expression(0)})()",
            f"({self._look()})",
        ]
        return self.rng.choice(forms)

    def _look(self) -> str:
        name = self.plain_name()
        if self.kind == "script":
            return "1"
        return f'{name} if "{name}" in locals() else 5' if self.rng.random() < 0.5 else f'"{name}" not in locals()'

    def condition(self) -> str:
        form = self.rng.choice(["{} == {}", "{} < {}", "{} != {}", "not ({} and {})"])
        return form.format(self.expression(1), self.expression(1))

    # -- statements ---------------------------------------------------------------------------------------------------

    def block(self, depth: int, least: int = 1) -> list[str]:
        made: list[str] = []
        for _ in range(self.rng.randint(least, 3)):
            made += self.statement(depth)
        return made

    def statement(self, depth: int) -> list[str]:
        simple = [
            self._assign,
            self._assign,
            self._augment,
            self._unpack,
            self._delete,
            self._note,
            self._note,
            self._leave,
            self._import,
            self._lambda,
            self._annotate,
            self._raise,
            self._global,
            self._expression,
        ]
        compound = [
            self._if,
            self._if,
            self._try,
            self._try,
            self._with,
            self._loop,
            self._define,
            self._match,
            self._class,
        ]
        if self.kind == "method":
            simple.append(self._super)
        chosen: Callable[[int], list[str]] = self.rng.choice(simple + (compound if depth else []))
        return chosen(depth)

    def _assign(self, depth: int) -> list[str]:
        return [f"{self.name()} = {self.expression()}"]

    def _augment(self, depth: int) -> list[str]:
        return [f"{self.name()} += {self.expression(1)}"]

    def _unpack(self, depth: int) -> list[str]:
        one, other = self.rng.sample(NAMES, 2)
        return [f"{one}, *{other} = [{self.expression(1)}, *[{self.expression(0)}] * 2]", f"{other} = len({other})"]

    def _delete(self, depth: int) -> list[str]:
        return [f"del {self.plain_name()}"] if self.rng.random() < 0.3 else self._note(depth)

    def _note(self, depth: int) -> list[str]:
        return [f"note({self.expression(1)}, {self.expression(0)})"]

    def _expression(self, depth: int) -> list[str]:
        return [self.expression()]

    def _leave(self, depth: int) -> list[str]:
        ways = ["break", "continue", f"raise Own({self.expression(0)})"]
        if self.kind != "script":
            ways += [f"return {self.expression(1)}", "return"]
        return [f"if {self.condition()}:", "    " + self.rng.choice(ways)]

    def _raise(self, depth: int) -> list[str]:
        error = self.rng.choice(
            [f"Own({self.expression(0)})", "ValueError", f"Own(1) from KeyError({self.expression(0)})"]
        )
        return [f"if {self.condition()}:", f"    raise {error}"]

    def _import(self, depth: int) -> list[str]:
        name = self.plain_name()
        return [self.rng.choice([f"from math import tau as {name}", f"import math as {name}"]), f"{name} = 1"]

    def _lambda(self, depth: int) -> list[str]:
        return [f"kept.append(lambda: {self.expression(1)})"]

    def _annotate(self, depth: int) -> list[str]:
        if self.kind == "script":
            return self._assign(depth)
        name = self.rng.choice(NAMES)
        # with a statement after it: how a loop without any is compiled is a matter of chance
        return [f"{name}: int" + self.rng.choice(["", f" = {self.expression(1)}"]), *self._note(depth)]

    def _global(self, depth: int) -> list[str]:
        return [f"G = {self.expression(1)}"]

    def _super(self, depth: int) -> list[str]:
        return [f"note(super().say({self.expression(0)}), __class__.__name__)"]

    def _if(self, depth: int) -> list[str]:
        made = [f"if {self.condition()}:", *_indent(self.block(depth - 1))]
        if self.rng.random() < 0.5:
            made += ["else:", *_indent(self.block(depth - 1))]
        return made

    def _try(self, depth: int) -> list[str]:
        made = ["try:", *_indent(self.block(depth - 1))]
        kind = self.rng.choice(["except", "except", "finally", "both"])
        if kind != "finally":
            error = self.rng.choice(
                ["Own", "NameError", "UnboundLocalError", "Exception", "(TypeError, ZeroDivisionError)"]
            )
            name = self.plain_name() if self.rng.random() < 0.3 else "e"
            handler = self.block(depth - 1)
            noted = [f"note(type({name}).__name__, str({name}))"] if self.rng.random() < 0.7 else []
            again = ["raise"] if self.rng.random() < 0.15 else []
            made += [f"except {error} as {name}:", *_indent([*noted, *handler, *again])]
            if self.rng.random() < 0.3:
                made += ["else:", *_indent(self.block(depth - 1))]
        if kind != "except":
            made += ["finally:", *_indent(self.block(depth - 1))]
        return made

    def _with(self, depth: int) -> list[str]:
        name = f" as {self.rng.choice(NAMES)}" if self.rng.random() < 0.5 else ""
        return [f"with Manager({self.rng.randrange(3)}){name}:", *_indent(self.block(depth - 1))]

    def _loop(self, depth: int) -> list[str]:
        self._serial += 1
        counter = f"n{self._serial}"
        if self.rng.random() < 0.6:
            header = [f"for {self.plain_name()} in range({self.rng.randrange(4)}):"]
        else:
            header = [f"{counter} = 0", f"while ({counter} := {counter} + 1) < {self.rng.randrange(1, 4)}:"]
        made = [*header, *_indent(self.block(depth - 1))]
        if self.rng.random() < 0.3:
            made += ["else:", *_indent(self.block(depth - 1))]
        return made

    def _define(self, depth: int) -> list[str]:
        self._serial += 1
        own, shared = f"f{self._serial}", self.rng.choice(NAMES)
        changes = [f"    {'global' if self.kind == 'script' else 'nonlocal'} {shared}", f"    {shared} = {shared} + k"]
        body = changes if self.rng.random() < 0.5 else []
        return [
            f"def {own}(k={self.expression(0)}):", *body, f"    return k + {self.expression(0)}",
            f"note({own}.__qualname__, {own}({self.expression(0)}))", f"kept.append({own})",
        ]  # fmt: skip

    def _class(self, depth: int) -> list[str]:
        self._serial += 1
        own = f"K{self._serial}"
        return [
            f"class {own}:",
            f"    q = {self.expression(0)}",
            f"    def m(self): return {self.expression(0)}",
            f"note({own}.__qualname__, {own}.m.__qualname__, {own}().m())",
        ]

    def _match(self, depth: int) -> list[str]:
        name = self.rng.choice(NAMES)
        return [
            f"match [{self.expression(0)}, {self.expression(0)}, 3]:",
            f"    case [1, *{name}]:", *_indent(_indent([f"{name} = len({name})", *self.block(depth - 1)])),
            f"    case [{name}, 2, _] if {self.condition()}:", *_indent(_indent(self.block(depth - 1))),
            "    case _:", *_indent(_indent(self.block(depth - 1))),
        ]  # fmt: skip

    # -- the program --------------------------------------------------------------------------------------------------

    def program(self, number: int) -> str:
        """A function `play<number>` of no arguments; or for a script, statements that use `kept` and `note`."""
        self._serial += 1
        body = self.block(3, least=2)
        bound = self.rng.sample(NAMES, self.rng.choice([1, 2, 3, 3, 4, 4, 4, 4]))
        before = [f"{name} = {self.rng.randrange(4)}" for name in bound]
        if self.rng.random() < 0.7:
            header = self.rng.choice(
                ["for {0} in range(4):", "for {0}, {1} in enumerate([2, 0, 1]):", "for {0} in [1, 0, 3, 2]:"]
            ).format(*self.rng.sample(NAMES, 2))
            loop = [header, *_indent(body)]
        else:
            before.append("n0 = 0")
            loop = ["while (n0 := n0 + 1) < 5:", *_indent(body)]
        if self.rng.random() < 0.4:
            loop += ["else:", '    note("else")']
        around = self.rng.random()
        if around < 0.2:
            loop = ["try:", *_indent(loop), "finally:", '    note("finally")']
        elif around < 0.3:
            loop = ["with Manager(2):", *_indent(loop)]
        elif around < 0.4:
            loop = ["try:", '    raise Own("before")', "except Own:", *_indent(loop)]
        after = [f"note({name})" for name in NAMES if name in bound and self.rng.random() < 0.6]
        lines = [*before, *loop, *after, f"note({self.expression(0)})"]
        return "\n".join(self._placed(number, lines)) + "\n"

    def _placed(self, number: int, lines: list[str]) -> list[str]:
        start = f"def play{number}("
        match self.kind:
            case "script":
                return lines
            case "function":
                return [start + "):", *_indent(["global G", "kept = kept_everywhere", *lines])]
            case "nested":
                inner = ["def inner():", *_indent(["nonlocal o", "global G", *lines])]
                outer = ["o = 3", "kept = kept_everywhere", *inner, "return inner"]
                return [start + "):", *_indent(outer)]
        method = ["def play(self):", *_indent(["global G", "kept = kept_everywhere", "__m = 1", *lines])]
        return [
            f"class C{number}(Base):",
            "    __p = 2",
            "    def say(self, x=0):",
            "        return 1",
            *_indent(method),
        ]


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def program(seed: int, number: int, kind: str) -> str:
    """The source of one program, the same for the same seed."""
    return Writer(random.Random(f"{seed}/{kind}"), kind).program(number)
