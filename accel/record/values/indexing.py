"""Indexing of recorded arrays: views for basic keys, masks, and gathers and scatters for integer arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from accel.ir.tape import Node, nodes_in
from accel.ir.views import basic_key
from accel.record.state.on_behalf import on_behalf
from accel.record.state.recording import Recording
from accel.record.state.wrapper import has_wrapper, unwrap
from accel.record.values import compressed
from accel.record.values.arrays import CompressedArray, RecordedArray, RecordedValue, as_static, as_template
from accel.record.values.operands import check_casts, refuse_shared, view
from accel.record.values.positions import position_of, steps_of, within_axis
from accel.record.values.settling import or_settled, settle
from accel.record.values.wrapping import wrap
from accel.rules import core, gathers
from accel.rules.rule import Unsupported


def get_item(array: RecordedArray, key: object) -> Any:
    """`array[key]`."""
    recording = array._recording_
    result = on_behalf(operator.getitem, (array._plain_, unwrap(key)))
    return recording.write_down(lambda: _record_get(array, basic_key(key), result), result)


def get_item_of_selection(chosen: CompressedArray, key: object) -> Any:
    """`selection[key]`."""
    result = on_behalf(operator.getitem, (chosen._plain_, unwrap(key)))

    def write() -> Any:
        if issubclass(type(chosen), CompressedArray):
            return compressed.record_get(chosen, key, result)
        return _record_get(chosen, basic_key(key), result)  # type: ignore[arg-type]  # it is an array by now

    entries = key if isinstance(key, tuple) else (key,)
    return chosen._recording_.write_down(lambda: or_settled(write, (chosen, *entries)), result)


def set_item(array: RecordedArray, key: object, value: object) -> None:
    """`array[key] = value`."""
    recording = array._recording_
    recording.storages.before_write(array._storage, array._plain_, unwrap(key))
    on_behalf(operator.setitem, (array._plain_, unwrap(key), unwrap(value)))
    recording.write_down(lambda: _record_set(array, basic_key(key), value), None)


def is_mask(entry: Any) -> bool:
    """Whether an entry of a key is a recorded array of truths."""
    return issubclass(type(entry), RecordedArray) and entry._plain_.dtype == np.bool_


def is_advanced(entry: object) -> bool:
    """Whether an entry of a key makes the indexing advanced: arrays, lists and truths do."""
    if issubclass(type(entry), (RecordedArray, CompressedArray)):
        return True
    return isinstance(entry, (list, tuple, np.ndarray, np.bool_, bool))


def _record_get(array: RecordedArray, key: tuple[Any, ...], result: object) -> Any:
    if not any(map(is_advanced, key)):
        return _view(array, key, result)
    return _by_advanced(key, lambda: _select(array, key, result), lambda: _gather(array, key, result))


def is_selection(entry: object) -> bool:
    """Whether an entry of a key is a mask, or what a mask has selected."""
    return is_mask(entry) or issubclass(type(entry), CompressedArray)


def _by_advanced(key: tuple[Any, ...], of_any_length: Callable[[], Any], at_places: Callable[[], Any]) -> Any:
    """Apply a key with arrays in it: by its selection, whose length is open; else at the places it names now."""
    if any(map(is_selection, key)):
        _settle_masks(key)
        try:
            return of_any_length()
        except Unsupported as gap:
            if gap.reason != "shape.dynamic":
                raise
    return at_places()


def _settle_masks(key: tuple[Any, ...]) -> None:
    """A mask that is itself selected by a mask: of another array it is a mask of a known length."""
    for entry in key:
        if issubclass(type(entry), CompressedArray) and entry._plain_.dtype == np.bool_:
            settle(entry)


def _select(array: RecordedArray, key: tuple[Any, ...], result: object) -> Any:
    """`array[key]` as a selection, whatever its length."""
    rows, entry, rest = split_at_selection(array, key)
    if is_mask(entry):
        return compressed.select(rows, entry, rest, result)
    return compressed.take(rows, entry, rest, result)


def _gather(array: RecordedArray, key: tuple[Any, ...], result: object) -> Any:
    template = index_template(array, key)
    node = array._recording_.writer.node(gathers.GATHER, (array.node(), template), {}, result)
    return wrap(array._recording_, result, node)


def _view(array: RecordedArray, key: tuple[Any, ...], result: Any) -> Any:
    recording = array._recording_
    chain = (*array._chain, *steps_of(array, key))
    if isinstance(result, np.ndarray):
        return view(recording, result, array._storage, chain)
    node = recording.writer.read_view(array._storage, chain)
    picked = recording.writer.node(core.SCALAR, (node,), {}, result)
    recording.writer.note_element(picked, array._storage, chain)
    return wrap(recording, result, picked)


def split_at_selection(array: RecordedArray, key: tuple[Any, ...]) -> tuple[RecordedArray, Any, tuple[Any, ...]]:
    """The rows that a selection acts on, the selection, and what follows it.

    Only integers may stand before it: then `a[i, mask]` selects along the first axis of `a[i]`.
    """
    at = next(i for i, entry in enumerate(key) if is_advanced(entry))
    before, entry, rest = key[:at], key[at], key[at + 1 :]
    if any(map(is_advanced, rest)) or not all(isinstance(part, (int, np.integer)) for part in before):
        raise Unsupported("shape.dynamic", "a mask that does not select along the first axis")
    rest = as_static(rest)
    rows = array[before] if before else array  # type: ignore[index]
    if not issubclass(type(rows), RecordedArray):
        raise Unsupported("shape.dynamic", "a mask on a single element")
    return rows, entry, rest


def index_template(array: RecordedArray, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key with nodes for its arrays, each of them checked to stay within its axis."""
    # `a[True]` adds an axis of length 1, and `a[False]` one of length 0.
    if any(isinstance(unwrap(entry), (bool, np.bool_)) for entry in key):
        raise Unsupported("shape.dynamic", "a single truth as a mask")
    recording = array._recording_
    shape = array._plain_.shape
    for entry in key:
        settle(entry)
    used = sum(_axes_of(entry) for entry in key if entry is not None and entry is not Ellipsis)
    axis = 0
    template: list[Any] = []
    for entry in key:
        if entry is None:
            template.append(None)
            continue
        if entry is Ellipsis:
            template.append(entry)
            axis += len(shape) - used
            continue
        template += _places(entry) if is_mask(entry) else [_index_entry(recording, entry, shape[axis])]
        axis += _axes_of(entry)
    return tuple(template)


def _axes_of(entry: Any) -> int:
    """Number of axes that an entry of a key indexes."""
    return int(entry._plain_.ndim) if is_mask(entry) else 1


def _places(mask: Any) -> list[Any]:
    """The indices of the true elements of a mask, by axis: as many as now."""
    recording = mask._recording_
    if not mask._plain_.ndim:
        raise Unsupported("shape.dynamic", "a single truth as a mask")
    return [index.node() for index in compressed.record_nonzero(recording, mask, np.nonzero(mask._plain_))]


def _index_entry(recording: Recording, entry: Any, size: int) -> Any:
    """One entry of a key as an operand of a gather: a node, literal indices, or a plain integer or slice."""
    if issubclass(type(entry), RecordedArray):
        recording.writer.assume_in_bounds(entry._storage, entry._chain, size)
        return entry.node()
    if isinstance(entry, (list, tuple)):
        if has_wrapper(entry) and np.asarray(unwrap(entry)).dtype.kind in "iu":
            return _stacked(recording, entry, size)
        entry = as_static(entry)
        if np.asarray(entry).dtype == np.bool_:
            raise Unsupported("shape.dynamic", "a list of booleans as an index")
        return _literal(entry)
    if isinstance(entry, (np.ndarray, bool, np.bool_)):
        raise Unsupported("array.unknown", "an index whose origin the recording did not see")
    position = position_of(entry)
    if position is None:
        return as_static(entry)
    within_axis(recording, position, size)
    return position


def _stacked(recording: Recording, entry: Any, size: int) -> Any:
    """The array that NumPy makes of a list of recorded integers."""
    plain, template = np.asarray(unwrap(entry)), as_template(list(entry))
    if not nodes_in(template):  # the path fixes all of them
        return _literal(plain)
    node = recording.writer.node(core.STACK, (template, plain.dtype, plain.shape), {}, plain)
    recording.writer.assume(core.IN_BOUNDS, (node, size))
    return node


def _literal(index: Any) -> gathers.LiteralIndex:
    return gathers.LiteralIndex(tuple(np.asarray(index, dtype=np.int64).ravel().tolist()), np.shape(index))


def _record_set(array: RecordedArray, key: tuple[Any, ...], value: object) -> None:
    if not any(map(is_advanced, key)):
        _store(array, key, value)
        return
    refuse_shared(array, (entry for entry in key if not (entry is array and is_mask(entry))))
    if is_mask(key[0]) and key[0]._plain_.ndim == array._plain_.ndim and np.size(unwrap(value)) > 1:
        refuse_shared(array, (value,))
    # `a[mask] = value` is a select on the full array, without a compressed one.
    _by_advanced(key, lambda: _set_selection(array, key, value), lambda: _scatter(array, key, value))


def _scatter(array: RecordedArray, key: tuple[Any, ...], value: object) -> None:
    template = index_template(array, key)
    # A single number is the same whichever of the repeated indices comes last.
    if issubclass(type(value), RecordedValue) and np.ndim(unwrap(value)) and not _is_one_mask(key):
        _assume_distinct(array, key, template)
    node = array._recording_.writer.node(
        gathers.SCATTER, (array.node(), template, value_node(array, value)), {}, array._plain_
    )
    array._recording_.writer.write_view(array._storage, array._chain, node)


def _set_selection(array: RecordedArray, key: tuple[Any, ...], value: object) -> None:
    """`array[key] = value` for a key with one selection, whatever its length."""
    axis = _axis_of_mask(array, key)
    if axis is not None:
        compressed.assign(array, next(filter(is_mask, key)), value, axis)
        return
    rows, entry, rest = split_at_selection(array, key)
    if rest and any(part != slice(None) and part is not Ellipsis for part in rest):
        raise Unsupported("shape.dynamic", "assignment to a part of masked rows")
    if is_mask(entry):
        compressed.assign(rows, entry, value)
    else:
        compressed.scatter(rows, entry, value)


def _axis_of_mask(array: RecordedArray, key: tuple[Any, ...]) -> int | None:
    """The first axis that a mask selects along, where the key holds whole axes and nothing else beside it."""
    places = [i for i, entry in enumerate(key) if is_mask(entry)]
    others = [entry for entry in key if not is_mask(entry)]
    if len(places) != 1 or not all(entry is Ellipsis or entry == slice(None) for entry in others):
        return None
    if not any(entry is Ellipsis for entry in key[: places[0]]):
        return places[0]
    behind = len(key) - places[0] - 1
    return int(array._plain_.ndim - behind - key[places[0]]._plain_.ndim)


def _is_one_mask(key: tuple[Any, ...]) -> bool:
    """Whether a mask alone decides which elements a key names: none of them twice."""
    return [is_mask(entry) for entry in key if is_advanced(entry)] == [True]


def _assume_distinct(array: RecordedArray, key: tuple[Any, ...], template: tuple[Any, ...]) -> None:
    """With repeated indices NumPy keeps the last value; XLA leaves open which one stays."""
    shape = array._plain_.shape
    positions = np.arange(array._plain_.size).reshape(shape)[unwrap(key)]
    array._recording_.writer.assume_distinct(gathers.DISTINCT, (shape, template), gathers.all_differ(positions))


def value_node(array: RecordedArray, value: object) -> Any:
    """The assigned value as a template, its cast to the array's dtype checked."""
    template = as_template(value)
    check_casts(array._recording_, value, array._plain_.dtype)
    if type(template) in (list, tuple):
        shape = np.shape(unwrap(value))
        return array._recording_.writer.node(
            core.STACK, (list(template), np.asarray(unwrap(value)).dtype, shape), {}, np.asarray(unwrap(value))
        )
    return template


def _store(array: RecordedArray, key: tuple[Any, ...], value: Any) -> None:
    chain = (*array._chain, *steps_of(array, key))
    if issubclass(type(value), RecordedArray) and value._storage is array._storage and value._chain == chain:
        return  # `a[key] += b` stores the view into itself
    recording = array._recording_
    node, shape = value_node(array, value), np.shape(array._plain_[unwrap(key)])
    if not isinstance(node, Node) or node.shape != shape:
        node = recording.writer.node(core.BROADCAST, (node, shape), {}, core.broadcast_to_assign(unwrap(value), shape))
    recording.writer.write_view(array._storage, chain, node)
