"""LLVM IR as text: typed values, and the scopes of a loop nest that instructions are written to.

An instruction goes to the innermost scope of its operands, so a value that depends only on a row is computed once per
row. Equal instructions are written once per scope. In the innermost scope, values are vectors of several lanes.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

REGISTERS = {
    np.dtype(bool): "i1",
    **{np.dtype(f"{sign}int{bits}"): f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}
"""LLVM's register type of a value, by its dtype."""

MEMORY = {**REGISTERS, np.dtype(bool): "i8"}
"""LLVM's memory type of an element, by its dtype."""


_MOST_INSTRUCTIONS = 50_000
"""Maximum instructions of one loop nest, for which LLVM takes about 5 s. PyGCM's largest has 2,000."""


class TooLarge(Exception):
    """A loop nest with too many instructions."""

    def __str__(self) -> str:
        return f"a loop nest has more than {_MOST_INSTRUCTIONS} instructions"


_Operator = Callable[["Value", "Value | float"], "Value"]


def _arithmetic(of_floats: str, of_others: str) -> _Operator:
    """An operator that is an instruction for two operands of floats, and one for others."""

    def operator_(x: Value, y: Value | float) -> Value:
        return x.emitter.binary(of_floats if x.dtype.kind == "f" else of_others, x, x._like(y))

    return operator_


def _reflected(of: Callable[[Any, Any], Any]) -> _Operator:
    def operator_(y: Value, x: Value | float) -> Value:
        found: Value = of(y._like(x), y)
        return found

    return operator_


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a register, or a literal.

    text: its name in instructions. dtype: of an element. level: of the scope that it belongs to; 0 for literals.
    """

    emitter: Emitter
    text: str
    dtype: np.dtype[Any]
    level: int = 0
    is_literal: bool = False

    def _like(self, other: Value | float) -> Value:
        return other if isinstance(other, Value) else self.emitter.literal(other, self.dtype)

    __add__ = _arithmetic("fadd", "add")
    __sub__ = _arithmetic("fsub", "sub")
    __mul__ = _arithmetic("fmul", "mul")
    __truediv__ = _arithmetic("fdiv", "")
    __radd__ = _reflected(operator.add)
    __rsub__ = _reflected(operator.sub)
    __rmul__ = _reflected(operator.mul)
    __rtruediv__ = _reflected(operator.truediv)
    __and__ = _arithmetic("", "and")
    __or__ = _arithmetic("", "or")
    __xor__ = _arithmetic("", "xor")
    __lshift__ = _arithmetic("", "shl")

    def __neg__(self) -> Value:
        if self.dtype.kind != "f":
            return self._like(0) - self
        return self.emitter.instruction("fneg {T0} {0}", self.dtype, self)

    def __invert__(self) -> Value:
        return self ^ (1 if self.dtype.kind == "b" else -1)

    def __rshift__(self, count: Value | int) -> Value:
        """Shift right: arithmetic for signed integers, logical for unsigned ones."""
        return self.emitter.binary("lshr" if self.dtype.kind == "u" else "ashr", self, self._like(count))

    def compare(self, how: str, other: Value | float) -> Value:
        """Compare by `how`: eq, ne, lt, le, gt, ge. Comparisons with NaN are false, except ne."""
        if self.dtype.kind == "f":
            name = f"fcmp {'u' if how == 'ne' else 'o'}{how}"
        else:
            sign = "" if how in ("eq", "ne") else "s" if self.dtype.kind == "i" else "u"
            name = f"icmp {sign}{how}"
        return self.emitter.instruction(f"{name} {{T0}} {{0}}, {{1}}", np.dtype(bool), self, self._like(other))

    def is_nan(self) -> Value:
        return self.emitter.instruction("fcmp uno {T0} {0}, {0}", np.dtype(bool), self)

    def where(self, yes: Value | float, no: Value | float) -> Value:
        """Select `yes` where this truth holds, else `no`. At least one of both is a Value."""
        given = yes if isinstance(yes, Value) else no
        assert isinstance(given, Value)
        return self.emitter.instruction(
            "select {T0} {0}, {T1} {1}, {T2} {2}", given.dtype, self, given._like(yes), given._like(no)
        )

    def bits(self, dtype: Any = None) -> Value:
        """Reinterpret the bits as another dtype of the same size: by default, floats as signed integers."""
        dtype = np.dtype(f"i{self.dtype.itemsize}") if dtype is None else np.dtype(dtype)
        if REGISTERS[dtype] == REGISTERS[self.dtype]:
            return Value(self.emitter, self.text, dtype, self.level, self.is_literal)
        return self.emitter.instruction("bitcast {T0} {0} to {R}", dtype, self)

    def cast(self, instruction: str, dtype: Any) -> Value:
        """Convert to another dtype by an LLVM instruction, such as `sitofp`."""
        return self.emitter.instruction(f"{instruction} {{T0}} {{0}} to {{R}}", np.dtype(dtype), self)

    def sqrt(self) -> Value:
        return self.emitter.intrinsic("sqrt", self)

    def abs(self) -> Value:
        return self.emitter.intrinsic("fabs", self)

    def floor(self) -> Value:
        return self.emitter.intrinsic("floor", self)

    def rint(self) -> Value:
        """Round to the nearest integer, ties to even."""
        return self.emitter.intrinsic("rint", self)

    def copysign(self, sign: Value | float) -> Value:
        return self.emitter.intrinsic("copysign", self, self._like(sign))

    def fma(self, factor: Value | float, addend: Value | float) -> Value:
        """Return `self * factor + addend`, rounded once."""
        return self.emitter.intrinsic("fma", self, self._like(factor), self._like(addend))


@dataclass(slots=True)
class Scope:
    """The straight-line instructions of one level, and their results."""

    lines: list[str] = field(default_factory=list)
    known: dict[Any, Value] = field(default_factory=dict)


@dataclass(slots=True)
class Emitter:
    """Writes instructions.

    lanes: of the innermost scope's vectors; 1 for scalars. innermost: level of that scope. declared: declarations that
    the module needs. functions: by name, definitions of called functions.
    """

    innermost: int = 0
    lanes: int = 1
    scopes: list[Scope] = field(default_factory=lambda: [Scope()])
    declared: set[str] = field(default_factory=set)
    functions: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def name(self) -> str:
        self._count += 1
        if self._count > _MOST_INSTRUCTIONS:
            raise TooLarge
        return f"%v{self._count}"

    def is_vector(self, level: int) -> bool:
        return level == self.innermost and self.lanes > 1

    def type_of(self, dtype: np.dtype[Any], level: int, *, in_memory: bool = False) -> str:
        found = (MEMORY if in_memory else REGISTERS)[dtype]
        return f"<{self.lanes} x {found}>" if self.is_vector(level) else found

    def literal(self, value: Any, dtype: Any) -> Value:
        dtype = np.dtype(dtype)
        return Value(self, literal_text(value, dtype), dtype, 0, True)

    def instruction(self, text: str, dtype: np.dtype[Any], *operands: Value) -> Value:
        """Write an instruction whose result depends on its operands alone.

        text: with `{0}`, `{1}`, ... for the operands, `{T0}`, ... for their types, `{R}` for the type of the result.
        """
        level = max((each.level for each in operands), default=0)
        scope = self.scopes[level]
        key = text, dtype, *(each.text for each in operands)
        if key not in scope.known:
            names = [self.widened(each, level) for each in operands]
            types = {f"T{at}": self.type_of(each.dtype, level) for at, each in enumerate(operands)}
            scope.known[key] = self._written(text.format(*names, R=self.type_of(dtype, level), **types), dtype, level)
        return scope.known[key]

    def written(self, text: str, level: int) -> str:
        """Write an instruction that is not shared. Returns the name of its result."""
        name = self.name()
        self.scopes[level].lines.append(f"{name} = {text}")
        return name

    def shared(self, text: str, level: int) -> str:
        """Return the name of an integer or address that is computed once in its scope."""
        known = self.scopes[level].known
        if text not in known:
            known[text] = Value(self, self.written(text, level), np.dtype(np.int64), level)
        return known[text].text

    def _written(self, text: str, dtype: np.dtype[Any], level: int) -> Value:
        return Value(self, self.written(text, level), dtype, level)

    def load(self, address: str, dtype: np.dtype[Any], level: int) -> Value:
        """Load the element at an address. Loads are not shared: the caller caches them."""
        stored = self.type_of(dtype, level, in_memory=True)
        found = self._written(f"load {stored}, ptr {address}, align {dtype.itemsize}", dtype, level)
        if dtype.kind != "b":
            return found
        # any byte but 0 is true in NumPy
        zero = "zeroinitializer" if self.is_vector(level) else "0"
        return self._written(f"icmp ne {stored} {found.text}, {zero}", dtype, level)

    def store(self, value: Value, address: str, level: int) -> None:
        text, stored = self.widened(value, level), self.type_of(value.dtype, level, in_memory=True)
        if value.dtype.kind == "b":
            text = self._written(f"zext {self.type_of(value.dtype, level)} {text} to {stored}", value.dtype, level).text
        self.scopes[level].lines.append(f"store {stored} {text}, ptr {address}, align {value.dtype.itemsize}")

    def widened(self, value: Value, level: int) -> str:
        """Return a value's text as an operand in this level. A value of an outer level is broadcast to all lanes."""
        if not self.is_vector(level) or value.level == level:
            return value.text
        element = REGISTERS[value.dtype]
        if value.is_literal:
            return f"splat ({element} {value.text})"
        # where the value is, so that it is done once outside of the loop
        return self.repeated(value.text, element, value.level)

    def repeated(self, text: str, element: str, level: int) -> str:
        """Broadcast a scalar to all lanes of a level, and return the vector's name. element: LLVM type of the
        scalar."""
        kind = f"<{self.lanes} x {element}>"
        first = self.shared(f"insertelement {kind} poison, {element} {text}, i64 0", level)
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.shared(f"shufflevector {kind} {first}, {kind} poison, {mask}", level)

    def binary(self, name: str, x: Value, y: Value) -> Value:
        return self.instruction(f"{name} {{T0}} {{0}}, {{1}}", x.dtype, x, y)

    def intrinsic(self, name: str, *operands: Value, dtype: Any = None, suffixes: Sequence[Any] = ()) -> Value:
        """Call `llvm.NAME`. dtype: of the result, by default the first operand's. suffixes: dtypes in the intrinsic's
        name."""
        dtype = operands[0].dtype if dtype is None else np.dtype(dtype)
        level = max(each.level for each in operands)
        width = f"v{self.lanes}" if self.is_vector(level) else ""
        kinds = [np.dtype(each) for each in suffixes] or [dtype]
        full = ".".join([f"llvm.{name}", *(width + _suffix(each) for each in kinds)])
        types = [self.type_of(each.dtype, level) for each in operands]
        self.declared.add(f"declare {self.type_of(dtype, level)} @{full}({', '.join(types)})")
        given = ", ".join(f"{{T{at}}} {{{at}}}" for at in range(len(operands)))
        return self.instruction(f"call {{R}} @{full}({given})", dtype, *operands)


def _suffix(dtype: np.dtype[Any]) -> str:
    found = REGISTERS[dtype]
    return {"float": "f32", "double": "f64"}.get(found, found)


def literal_text(value: Any, dtype: np.dtype[Any]) -> str:
    """Return a number as LLVM writes it. Floats are written by the bits of a double."""
    if dtype.kind == "f":
        rounded = float(np.asarray(value, dtype))  # LLVM refuses a float literal that is no exact float32
        return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    if dtype.kind == "b":
        return "true" if value else "false"
    return str(int(value))
