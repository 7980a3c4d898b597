"""Build graph nodes for the operations of a flat program, by the names of `jax.lax`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from accel.compiler.kernels import indexing, reductions
from accel.compiler.kernels.graph import CONSTANT, IOTA, Axis, Graph, KernelNode, Shape
from accel.compiler.kernels.ir import REGISTERS
from accel.compiler.kernels.jaxprs import Atom, Equation, Literal, Variable
from accel.compiler.kernels.operations import OPERATIONS


class Importer:
    """Builds the nodes of a graph for steps of a flat program."""

    def __init__(self, producers: Mapping[Variable, Equation]) -> None:
        """Create an empty graph.

        producers: by value, the step that computes it. Steps of other kernels are repeated here if they cost nothing:
        moves, and operations on numbers.
        """
        self.graph = Graph()
        self.inputs: list[Variable] = []
        self._nodes: dict[Variable, KernelNode] = {}
        self._producers = producers
        self._depth = 0

    def node(self, atom: Atom) -> KernelNode:
        """Return the node of a value. It is an input unless a translated step computes it."""
        if isinstance(atom, Literal):
            return self.graph.constant(atom.value, (), atom.value.dtype)
        if atom in self._nodes:
            return self._nodes[atom]
        producer = self._producers.get(atom)
        if producer is not None and _is_free(producer) and self._repeat(producer):
            return self._nodes[atom]
        self._nodes[atom] = self.graph.input(len(self.inputs), atom.shape, atom.dtype)
        self.inputs.append(atom)
        return self._nodes[atom]

    def _repeat(self, step: Equation) -> bool:
        if self._depth >= _MOST_REPEATED:
            return False
        self._depth += 1
        try:
            return self.take(step)
        finally:
            self._depth -= 1

    def take(self, step: Equation) -> bool:
        """Build the nodes of a step's results. Returns False if a kernel cannot compute it."""
        found = _taken(self.graph, step, self.node)
        if found is None:
            return False
        self._nodes.update(zip(step.results, found, strict=True))
        return True


def _is_free(step: Equation) -> bool:
    """Whether to repeat a step in another kernel costs less than to hand its results over."""
    return step.name in MOVED or (step.name in OPERATIONS and not step.results[0].shape)


def _taken(graph: Graph, step: Equation, node: Callable[[Atom], KernelNode]) -> list[KernelNode] | None:
    atoms = [*step.operands, *step.results]
    dtypes = {np.dtype(each.value.dtype) if isinstance(each, Literal) else each.dtype for each in atoms}
    if not dtypes <= REGISTERS.keys():
        return None
    if step.name in SAME:
        return [node(each) for each in step.operands]
    if step.name == "unstack":
        return _unstack(graph, step, node(step.operands[0]))
    take = TAKEN.get(step.name)
    if take is None and step.name not in OPERATIONS:
        return None
    if len(step.results) == 1 and 0 in step.results[0].shape:
        return [graph.constant(0, step.results[0].shape, step.results[0].dtype)]
    made = (take or _elementwise)(graph, step, [node(each) for each in step.operands])
    return None if made is None else [made]


def _elementwise(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode | None:
    result, params = step.results[0], step.params
    if step.name == "bitcast_convert_type" and given[0].dtype.itemsize != result.dtype.itemsize:
        return None
    if step.name == "pow" and given[1].dtype.kind != "f":
        return None
    if step.name == "integer_pow" and given[0].dtype.kind != "f" and params["y"] < 0:
        return None
    folded = _folded(step, given)
    if folded is not None:
        return graph.constant(folded, result.shape, result.dtype)
    about = {"integer_pow": params.get("y"), "round": params.get("rounding_method")}.get(step.name)
    spread = [_spread(graph, each, result.shape) for each in given]
    return graph.make(step.name, spread, result.shape, result.dtype, None if about is None else int(about))


def _spread(graph: Graph, node: KernelNode, shape: Shape, dims: Sequence[int] | None = None) -> KernelNode:
    """Broadcast an array to a larger shape. dims: the axes there that are its own; by default the last, as in NumPy."""
    if node.shape == shape:
        return node
    own = range(len(shape) - len(node.shape), len(shape)) if dims is None else dims
    lengths = zip(own, node.shape, strict=True)
    return graph.view(node, shape, [Axis(dim, 1, 0) if n == shape[dim] else Axis(None, 0, 0) for dim, n in lengths])


_FOLDED: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "neg": np.negative,
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "not": np.invert,
        "sign": np.sign,
        "select_n": lambda which, *cases: cases[min(max(int(which), 0), len(cases) - 1)],
        "copy": lambda x: x,
        "div": lambda x, y: x / y if x.dtype.kind == "f" else None,
        "rem": lambda x, y: np.fmod(x, y) if y else None,
    }
)
"""Operations that are folded for literals."""


def _folded(step: Equation, given: Sequence[KernelNode]) -> Any:
    if any(each.op != CONSTANT for each in given):
        return None
    values = [np.frombuffer(each.about, each.dtype)[0] for each in given]
    with np.errstate(all="ignore"):
        if step.name == "convert_element_type" and (values[0].dtype.kind != "f" or step.results[0].dtype.kind == "f"):
            return values[0].astype(step.results[0].dtype)
        return _FOLDED[step.name](*values) if step.name in _FOLDED else None


def _reshape(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode:
    order = step.params.get("dimensions") if step.name == "reshape" else None
    source = given[0] if order is None else graph.transposed(given[0], order)
    return graph.reshape(source, step.results[0].shape)


def _slice(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode:
    params = step.params
    steps = params["strides"] or (1,) * len(params["start_indices"])
    axes = [Axis(dim, by, start) for dim, (start, by) in enumerate(zip(params["start_indices"], steps, strict=True))]
    return graph.view(given[0], step.results[0].shape, axes)


def _reverse(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode:
    turned, shape = step.params["dimensions"], given[0].shape
    axes = [Axis(dim, -1, length - 1) if dim in turned else Axis(dim, 1, 0) for dim, length in enumerate(shape)]
    return graph.view(given[0], shape, axes)


def _stack(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode:
    axis, shape = step.params["axis"], step.results[0].shape
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    return graph.pieces([graph.reshape(each, one) for each in given], axis)


def _unstack(graph: Graph, step: Equation, given: KernelNode) -> list[KernelNode]:
    at = step.params["axis"]
    axes = [Axis(dim - (dim > at), 1, 0) for dim in range(len(given.shape))]
    return [
        graph.view(given, each.shape, [*axes[:at], Axis(None, 0, place), *axes[at + 1 :]])
        for place, each in enumerate(step.results)
    ]


def _pad(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode | None:
    source, filling = given
    config = step.params["padding_config"]
    if any(inner for _, _, inner in config):
        return None
    starts, lengths = [max(-low, 0) for low, _, _ in config], []
    for (low, high, _), length in zip(config, source.shape, strict=True):
        lengths.append(length + min(low, 0) + min(high, 0))
    around = graph.view(filling, step.results[0].shape, ())
    if min(lengths, default=1) <= 0:
        return around
    return graph.placed(graph.box(source, starts, tuple(lengths)), around, [max(low, 0) for low, _, _ in config])


def _starts(given: Sequence[KernelNode], lengths: Sequence[int], whole: Sequence[int]) -> list[int] | None:
    """Return the start of a block of these lengths, if it is known, shifted so that the block lies inside; else
    None."""
    if any(each.op != CONSTANT for each in given):
        return None
    places = [int(np.frombuffer(each.about, each.dtype)[0]) for each in given]
    return [min(max(at, 0), full - length) for at, length, full in zip(places, lengths, whole, strict=True)]


def _logistic(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode:
    """Return 1 / (1 + exp(-x)), as SciPy computes it."""
    (x,), one = given, graph.constant(1, given[0].shape, given[0].dtype)
    found = graph.make("exp", (graph.make("neg", (x,), x.shape, x.dtype),), x.shape, x.dtype)
    return graph.make("div", (one, graph.make("add", (one, found), x.shape, x.dtype)), x.shape, x.dtype)


def _dynamic_slice(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode | None:
    shape = step.results[0].shape
    starts = _starts(given[1:], shape, given[0].shape)
    if starts is None:
        return indexing.block_read(graph, given[0], given[1:], shape)
    return graph.box(given[0], starts, shape)


def _dynamic_update_slice(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode:
    around, inner, *places = given
    starts = _starts(places, inner.shape, around.shape)
    if starts is None:
        return indexing.block_written(graph, around, inner, places)
    return graph.placed(inner, around, starts)


def _iota(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode | None:
    result, dtype = step.results[0], np.dtype(np.int64)
    if given:
        return None
    found = graph.make(IOTA, (), result.shape, dtype, step.params["dimension"])
    if result.dtype == dtype:
        return found
    return graph.make("convert_element_type", (found,), result.shape, result.dtype)


def _place(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode | None:
    (axis,) = step.params["axes"]
    return reductions.placed(graph, step.name, given[0], axis, step.results[0].dtype)


def _tile(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode | None:
    (found,), times = given, step.params["reps"]
    if math.prod(times) > _MOST_TILES:
        return None
    for dim, count in enumerate(times):
        found = graph.pieces([found] * count, dim)
    return found


_MOST_REPEATED = 50
"""Maximum length of a chain of repeated steps: each takes some frames of Python's stack."""

_MOST_TILES = 64
"""Maximum repetitions of an array in a kernel: a loop nest is cut at each. Guess."""

_LONGEST_PRODUCT = 8
"""Maximum length of rows for which a kernel computes a matrix product. Guess: NumPy or XLA computes longer ones."""


def _dot(graph: Graph, step: Equation, given: Sequence[KernelNode]) -> KernelNode | None:
    """Return a matrix product with short rows, added from left to right to 0.0, as NumPy does: -0.0 is no result."""
    (x_sum, y_sum), (x_batch, y_batch) = step.params["dimension_numbers"]
    x, y = given
    result = step.results[0]
    is_plain = len(x_sum) == 1 and x.dtype == y.dtype == result.dtype
    if not is_plain or x.shape[x_sum[0]] > _LONGEST_PRODUCT or result.dtype.kind != "f":
        return None
    # the result's axes: those of the stacks, the others of x, and the others of y
    of_x = _axes_in_result(x, x_sum[0], x_batch, len(x_batch))
    of_y = _axes_in_result(y, y_sum[0], y_batch, len(x.shape) - 1)
    found = graph.constant(0.0, result.shape, result.dtype)
    for place in range(x.shape[x_sum[0]]):
        factors = (_at(graph, x, of_x, place, result.shape), _at(graph, y, of_y, place, result.shape))
        product = graph.make("mul", factors, result.shape, result.dtype)
        found = graph.make("add", (found, product), result.shape, result.dtype)
    return found


def _axes_in_result(node: KernelNode, summed: int, stacks: Sequence[int], first: int) -> list[int | None]:
    """Return, for each axis, the result's axis that it becomes. first: that of the first one that is in no stack."""
    free = iter(range(first, first + len(node.shape)))
    axes = range(len(node.shape))
    return [None if at == summed else list(stacks).index(at) if at in stacks else next(free) for at in axes]


def _at(graph: Graph, node: KernelNode, axes: Sequence[int | None], place: int, shape: tuple[int, ...]) -> KernelNode:
    """Return the slice at one index along the axis that is None; the others become those of the result."""
    return graph.view(node, shape, [Axis(None, 0, place) if each is None else Axis(each, 1, 0) for each in axes])


SAME = frozenset(["optimization_barrier", "stop_gradient"])
"""Operations whose results are their operands."""

TAKEN: Mapping[str, Callable[[Graph, Equation, Sequence[KernelNode]], KernelNode | None]] = MappingProxyType(
    {
        "broadcast_in_dim": lambda graph, step, given: _spread(
            graph, given[0], step.results[0].shape, step.params["broadcast_dimensions"]
        ),
        **dict.fromkeys(["reshape", "squeeze", "expand_dims"], _reshape),
        "transpose": lambda graph, step, given: graph.transposed(given[0], step.params["permutation"]),
        "slice": _slice,
        "rev": _reverse,
        "concatenate": lambda graph, step, given: graph.pieces(given, step.params["dimension"]),
        "stack": _stack,
        "pad": _pad,
        "dynamic_slice": _dynamic_slice,
        "dynamic_update_slice": _dynamic_update_slice,
        "iota": _iota,
        "tile": _tile,
        "logistic": _logistic,
        "gather": lambda graph, step, given: indexing.gathered(
            graph, given[0], given[1], step.params, step.results[0].shape
        ),
        "dot_general": _dot,
        **dict.fromkeys(
            indexing.SCATTERED,
            lambda graph, step, given: indexing.scattered(graph, step.name, given, step.params),
        ),
        **dict.fromkeys(reductions.PLACED, _place),
        **dict.fromkeys(
            reductions.REDUCED,
            lambda graph, step, given: reductions.reduced(
                graph, step.name, given[0], step.params["axes"], step.results[0].shape
            ),
        ),
        **dict.fromkeys(
            reductions.RUN,
            lambda graph, step, given: reductions.running(graph, step.name, given[0], **step.params),
        ),
    }
)
"""Translations of operations that are not elementwise, by name. A result of None: kernels do not support it."""

MOVED = SAME | {
    *("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "slice", "rev"),
    *("concatenate", "stack", "unstack", "pad", "iota", "tile"),
}
"""Operations that only move values."""


def phases(
    steps: Sequence[Equation], producers: Mapping[Variable, Equation]
) -> Iterator[tuple[Importer | None, list[Equation]]]:
    """Group steps that run together, in order. Yields for each group its graph if a kernel computes it, else None."""
    made: dict[Variable, int] = {}
    numbered: dict[int, list[Equation]] = defaultdict(list)
    # phases of kernels have even numbers
    importers: dict[int, Importer] = defaultdict(lambda: Importer(producers))
    for step in steps:
        read = [made[each] for each in step.operands if isinstance(each, Variable) and each in made]
        phase = max([0, *(each + each % 2 for each in read)])
        if not importers[phase].take(step):
            phase = max([1, *(each + 1 - each % 2 for each in read)])
        numbered[phase].append(step)
        made.update((each, phase) for each in step.results)
    for phase in sorted(numbered):
        yield None if phase % 2 else importers[phase], numbered[phase]
