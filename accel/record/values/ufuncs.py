"""Calls of ufuncs: the loop that NumPy chose, with `out` and `where`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from accel.ir.tape import Node, nodes_in
from accel.record.state.recording import Recording
from accel.record.state.wrapper import unwrap
from accel.record.values import compressed
from accel.record.values.arrays import CompressedArray, RecordedArray, as_template
from accel.record.values.operands import COMPARE, all_host, host_node, ufunc_kwargs
from accel.record.values.wrapping import wrap
from accel.rules import core
from accel.rules.rule import Rule, Unsupported
from accel.rules.tables import ufuncs


def record_ufunc(
    recording: Recording, ufunc: np.ufunc, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Any:
    """Write `ufunc(*args, **kwargs)` down."""
    ufunc, operands = _in_range(ufunc, args[: ufunc.nin])
    rule = ufuncs.rule_for(ufunc)
    outs, where, dtype = _options(rule, args[ufunc.nin :], kwargs)
    stores = bool(outs) or where is not True
    if any(issubclass(type(operand), CompressedArray) for operand in (*operands, where)):
        if stores:
            raise Unsupported("shape.dynamic", f"{rule.name} with out or where on a masked selection")
        return _selected(recording, ufunc, rule, operands, dtype, result)
    template = as_template(operands)
    # `np.sqrt(dt)` of an argument: NumPy itself computes it before launch, so that the program may branch on it.
    if nodes_in(template) and all_host(template) and not isinstance(result, np.ndarray):
        if dtype is not None or where is not True:
            raise Unsupported("rule.parameter", f"{rule.name} of scalars with dtype or where")
        return wrap(recording, result, host_node(recording, ufunc, template, {}, result))
    chosen = ufunc_kwargs(ufunc, operands, dtype)
    assume_defined(recording, ufunc, template, chosen["loop"])
    if ufunc.nout == 1 and not outs and getattr(result, "dtype", chosen["loop"][-1]) != chosen["loop"][-1]:
        raise Unsupported("rule.parameter", f"{rule.name}: an operator that NumPy computes by another function")
    in_out = isinstance(result, np.ndarray) and bool(outs)
    node = _ufunc_node(recording, rule, ufunc, template, chosen, result, in_out=in_out)
    if where is True and not any(out is not None for out in outs):
        return wrap(recording, result, node)
    return _masked_or_out(recording, ufunc, node, outs, where, result)


_COMPARISONS = {ufunc: compare for compare, ufunc in COMPARE.values()}


def _in_range(ufunc: np.ufunc, operands: tuple[Any, ...]) -> tuple[np.ufunc, tuple[Any, ...]]:
    """A comparison of integers with a number that their dtype cannot hold, as one of the integers with themselves.

    All integers of the dtype compare with that number as 0 does.
    """
    if ufunc in _COMPARISONS:
        for number, other in (operands, operands[::-1]):
            dtype = getattr(unwrap(other), "dtype", np.dtype(bool))
            if type(number) is int and dtype.kind in "iu" and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
                truth = _COMPARISONS[ufunc](*(0 if each is other else each for each in operands))
                return np.equal if truth else np.not_equal, (other, other)
    return ufunc, operands


def _options(rule: Rule, outs: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any, Any]:
    """The arrays to store in, the mask `where` and the dtype of a call. Raises Unsupported for other options."""
    options = dict(kwargs)
    named = options.pop("out", None)
    if named is not None:
        outs = named if type(named) is tuple else (named,)
    where, dtype = options.pop("where", True), options.pop("dtype", None)
    if options.pop("casting", None) == "unsafe" and dtype is not None:
        raise Unsupported("rule.parameter", f"{rule.name}: casting='unsafe' with a dtype")
    options.pop("order", None)  # memory order of a new array, which no result depends on
    options.pop("subok", None)
    if options:
        raise Unsupported("rule.parameter", f"{rule.name}: {', '.join(options)}")
    return outs, where, dtype


def _selected(
    recording: Recording, ufunc: np.ufunc, rule: Rule, operands: tuple[Any, ...], dtype: Any, result: Any
) -> Any:
    """A call on selections along the first axis."""
    if ufunc is np.matmul:
        return compressed.record_product(recording, operands, result)
    if ufunc.signature:
        raise Unsupported("shape.dynamic", f"{rule.name} of a masked selection")
    chosen = ufunc_kwargs(ufunc, operands, dtype)
    if ufuncs.truths_of(ufunc, chosen["loop"]) is not None:
        raise Unsupported("shape.dynamic", f"{rule.name} on a masked selection, which may raise")
    return compressed.record_elementwise(recording, rule, operands, chosen, result)


def assume_defined(recording: Recording, ufunc: np.ufunc, template: tuple[Any, ...], loop: tuple[Any, ...]) -> None:
    """Let replays check what NumPy raises without."""
    found = ufuncs.truths_of(ufunc, loop)
    if found is not None and isinstance(template[found[1]], Node):
        recording.writer.assume(found[0], (template[found[1]],))


def _ufunc_node(
    recording: Recording,
    rule: Rule,
    ufunc: np.ufunc,
    template: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: object,
    *,
    in_out: bool,
) -> Node:
    """The node of the loop's own result. in_out: `result` is an array that it is cast to, perhaps of another dtype."""
    node = recording.writer.node(rule, template, kwargs, result)
    if in_out and ufunc.nout == 1:
        node.dtype = kwargs["loop"][-1]
        if not ufunc.signature:
            shapes = [operand.shape if isinstance(operand, Node) else np.shape(operand) for operand in template]
            node.shape = np.broadcast_shapes(*shapes)
    return node


def _masked_or_out(
    recording: Recording, ufunc: np.ufunc, node: Node, outs: tuple[Any, ...], where: Any, result: Any
) -> Any:
    """Store each result of a ufunc in its array of `outs`, where the mask `where` holds."""
    results = result if ufunc.nout > 1 else (result,)
    parts = (
        [recording.writer.node(core.PICK, (node, i), {}, part) for i, part in enumerate(results)]
        if ufunc.nout > 1
        else [node]
    )
    outs = outs or (None,) * ufunc.nout
    given = [unwrap(out) for out in outs if out is not None]
    if any(np.may_share_memory(*pair) for pair in itertools.combinations(given, 2)):
        raise Unsupported("rule.parameter", f"{ufunc.__name__} with outs that share memory")
    wrapped = []
    for part, out, value, dtype in zip(parts, outs, results, node.kwargs["loop"][ufunc.nin :], strict=True):
        if ufunc.nout > 1 and value.dtype != dtype:
            raise Unsupported("rule.parameter", f"{ufunc.__name__} with an out of another dtype")
        wrapped.append(one_out(recording, part, out, where, value))
    return tuple(wrapped) if ufunc.nout > 1 else wrapped[0]


def one_out(recording: Recording, node: Node, out: Any, where: Any, value: Any) -> Any:
    """Store a result in `out`, where the mask `where` holds; without `out` the result itself."""
    if out is None:
        if where is not True:
            raise Unsupported("rule.parameter", "where without out leaves elements undefined")
        return wrap(recording, value, node)
    if not issubclass(type(out), RecordedArray):
        raise Unsupported("array.unknown", "out= names an array whose origin the recording did not see")
    if value is not out._plain_:  # as numpy.fft.ifft2 with a size, and numpy.dot of one element
        raise Unsupported("rule.parameter", "NumPy gives another array than out=")
    if node.dtype is not None and out.dtype.kind in "iu":
        if node.dtype.kind == "c":
            raise Unsupported("rule.parameter", "complex numbers in an out of integers")
        # NumPy and XLA differ in what a float that no integer can hold is cast to.
        if node.dtype.kind == "f":
            recording.writer.assume(core.FITS, (node, np.dtype(out.dtype)))
    if where is not True:
        node = recording.writer.node(core.SELECT, (as_template(where), node, out.node()), {}, out._plain_)
    recording.writer.write_view(out._storage, out._chain, node)
    return out
