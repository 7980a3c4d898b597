"""Functions of the generated module: one definition for any number of calls.

Ten uses of a long formula cost one compile. A call costs a few nanoseconds per vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from accel.compiler.kernels.ir import Emitter, Scope, Value


@dataclass(frozen=True, slots=True)
class Except:
    """A formula's result. In lanes in which `rare` holds, the C library's function of x replaces it."""

    found: Value
    rare: Value
    function: str
    x: Value


Formula = Callable[..., Value | Except]


def call(name: str, formula: Formula, *operands: Value) -> Value:
    """Return a call of `formula`, which is defined once per module, dtype and number of lanes."""
    emitter, dtype = operands[0].emitter, operands[0].dtype
    lanes = emitter.lanes if emitter.is_vector(max(each.level for each in operands)) else 1
    full = f"{name}.{dtype.name}.{lanes}"
    if full not in emitter.functions:
        emitter.functions[full] = _definition(full, formula, operands, lanes)
    given = ", ".join(f"{{T{at}}} {{{at}}}" for at in range(len(operands)))
    return emitter.instruction(f"call {{R}} @{full}({given})", dtype, *operands)


def _definition(full: str, formula: Formula, operands: tuple[Value, ...], lanes: int) -> str:
    module, dtype = operands[0].emitter, operands[0].dtype
    emitter = Emitter(
        innermost=1, lanes=lanes, scopes=[Scope(), Scope()], declared=module.declared, functions=module.functions
    )
    arguments = [Value(emitter, f"%x{at}", dtype, 1) for at in range(len(operands))]
    # float32 is computed in float64 and rounded once
    found = formula(*(each if dtype.itemsize == 8 else each.cast("fpext", "float64") for each in arguments))
    kind, ending = emitter.type_of(dtype, 1), []
    if isinstance(found, Except):
        ending, found = _ending(found), Value(emitter, "%found", found.found.dtype, 1)
    result = emitter.widened(found, 1)
    if found.dtype != dtype:
        ending.append(f"%rounded = fptrunc {emitter.type_of(found.dtype, 1)} {result} to {kind}")
        result = "%rounded"
    given = ", ".join(f"{kind} {each.text}" for each in arguments)
    lines = [*emitter.scopes[0].lines, *emitter.scopes[1].lines, *ending, f"ret {kind} {result}"]
    return "\n".join([f"define internal {kind} @{full}({given}) noinline nounwind {{", "start:", *lines, "}\n"])


def _ending(result: Except) -> list[str]:
    """Return the instructions that compute `%found`. The C library is called lane by lane, if any lane needs it."""
    emitter, lanes = result.found.emitter, result.found.emitter.lanes
    fast, x, rare, kind = result.found.text, result.x.text, result.rare.text, emitter.type_of(result.x.dtype, 1)
    emitter.declared.add(f"declare double @{result.function}(double)")
    done = ["done:", f"%found = phi {kind} [{fast}, %start], [%mixed, %slow]"]
    if lanes == 1:
        slow = ["slow:", f"%mixed = call double @{result.function}(double {x})", "br label %done"]
        return [f"br i1 {rare}, label %slow, label %done", *slow, *done]
    emitter.declared.add(f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)")
    return [
        f"%any = call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {rare})",
        "br i1 %any, label %lane, label %done",
        "lane:",
        "%at = phi i64 [0, %start], [%next, %lane]",
        f"%before = phi {kind} [{fast}, %start], [%after, %lane]",
        f"%element = extractelement {kind} {x}, i64 %at",
        f"%exact = call double @{result.function}(double %element)",
        f"%after = insertelement {kind} %before, double %exact, i64 %at",
        "%next = add i64 %at, 1",
        f"%more = icmp ult i64 %next, {lanes}",
        "br i1 %more, label %lane, label %slow",
        "slow:",
        f"%mixed = select <{lanes} x i1> {rare}, {kind} %after, {kind} {fast}",
        "br label %done",
        *done,
    ]
