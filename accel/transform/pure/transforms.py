"""Transforms: derivatives and batches of NumPy functions, with NumPy arrays in and out.

The function is recorded at its first call with arguments of certain shapes and types, and again whenever a call takes
an unknown path. Each recorded call is undone, so a derivative changes nothing that the function itself would change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from accel.compiler.lower.rounding import rounded_as_numpy
from accel.dispatch.replay.guards import Guards
from accel.entry.callables import PlainCall
from accel.ir.bits import same_number
from accel.record import Trace
from accel.record.state.inputs import Inputs
from accel.record.state.leaves import FixedValue, FromSlot, Leaf, Number
from accel.transform.pure import places as places_module
from accel.transform.pure.program import Output, PureProgram
from accel.transform.pure.recorded import assembled, call_by_value, recorded_call, refused
from accel.transform.pure.results import filled

MOST_PATHS = 32
"""Maximum recordings of a function for arguments of the same shapes and types."""

Wrt = str | int | Sequence[str | int]


class _Family:
    """The recorded paths of one function for arguments of one kind, as one program, with its compiled transforms."""

    def __init__(self, call: PlainCall, skipped: int, derives: bool) -> None:
        self._skipped, self._derives = skipped, derives
        self._traces: list[Trace] = []
        self.compiled: dict[Any, Any] = {}
        self.learn(call)

    def learn(self, call: PlainCall) -> None:
        """Record another call and rebuild the program. Raises Refused."""
        if len(self._traces) >= MOST_PATHS:
            raise refused(call.name, "pure.unrecorded", f"{MOST_PATHS} paths are known")
        self._traces.append(recorded_call(call))
        self.recorded = assembled(call.name, self._traces, [call], self._skipped)
        self.places = places_module.places_of(self.recorded)
        self.program = PureProgram(self.recorded, self.places, list(self.places.leaves), derives=self._derives)
        members = self.recorded.trace.members
        self._guards = [Guards(member.trace, member.placement.slots) for member in members]
        self._everybody = (1 << len(members)) - 1
        self.compiled.clear()

    def learned(self, call: PlainCall) -> dict[str, np.ndarray[Any, Any]]:
        """Record a call on an unknown path, and return its leaves. Raises Refused if the path stays unknown."""
        before = len(self.program.ways)
        self.learn(call)
        found = self.inputs(call)
        if found is None or len(self.program.ways) == before:
            raise refused(call.name, "pure.unrecorded")
        return found

    def inputs(self, call: PlainCall) -> dict[str, np.ndarray[Any, Any]] | None:
        """Return the leaves of a call; None if its arguments are of another kind."""
        values, alive = self.recorded.trace.inputs.fetch(call.args, call.kwargs)
        if alive != self._everybody or not all(guards.hold(values) for guards in self._guards):
            return None
        for slot in range(Inputs.ROOTS, len(values)):
            if self.places.leaf_of(slot) is None and not is_same_constant(values[slot], self.recorded.values[slot]):
                return None
        return {
            name: np.array(leaf.value if leaf.slot is None else values[leaf.slot])
            for name, leaf in self.places.leaves.items()
        }


def is_same_constant(value: object, known: object) -> bool:
    """Return whether a number or array that is a constant of the program is unchanged. Guards check all other
    inputs."""
    if type(known) in (float, complex, int):
        return type(value) is type(known) and same_number(value, known)
    if type(known) is np.ndarray:
        return isinstance(value, np.ndarray) and np.array_equal(value, known, equal_nan=known.dtype.kind in "fc")
    return True


class _Transformed:
    """One transform of a function. Each call finds the family for its arguments, or creates one.

    derives: True if the transform differentiates.
    """

    def __init__(self, function: Any, derives: bool = True) -> None:
        self._function, self._derives = function, derives
        self._families: list[_Family] = []

    def family(self, call: PlainCall, given: Sequence[Any]) -> tuple[_Family, dict[str, Any]]:
        for family in self._families:
            found = family.inputs(call)
            if found is not None:
                return family, found
        family = _Family(call, len(call.args) - len(given), self._derives)
        self._families.append(family)
        found = family.inputs(call)
        if found is None:
            raise refused(call.name, "pure.example", "its arguments are not read as they were recorded")
        return family, found

    def run(
        self, key: Any, make: Callable[[_Family], Callable[..., Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, _Family]:
        """Run a compiled transform for a call. The last of its results says whether the call's path was known."""
        import jax

        call = call_by_value(self._function, args, kwargs)
        family, inputs = self.family(call, args)
        while True:
            with jax.enable_x64(True):
                if key not in family.compiled:
                    family.compiled[key] = jax.jit(make(family))
                *found, ok = family.compiled[key](inputs)
                if bool(ok):
                    return jax.tree.map(np.asarray, found), family
            inputs = family.learned(call)


def _scalar(output: Output, program: PureProgram) -> Any:
    if len(output.result) != 1 or output.result[0].shape or output.result[0].dtype.kind != "f":
        raise TypeError(f"{program.recorded.name} has to return one float, to have a gradient; use accel.jacobian")
    return output.result[0]


def _names(family: _Family, wrt: Wrt) -> list[str]:
    names = places_module.chosen(family.recorded, family.places, wrt)
    for name in names:
        dtype = family.places.leaves[name].value.dtype
        if dtype.kind not in "f":
            raise TypeError(f"{name} is of dtype {dtype}: only floats have derivatives")
    return names


def _arranged(family: _Family, wrt: Wrt, found: Mapping[str, Any]) -> Any:
    """Arrange values by leaf in the form of `wrt`: one value, a dict if it names a place with several leaves, or a
    tuple."""
    if isinstance(wrt, (str, int)):
        names = places_module.under(family.recorded, family.places, wrt)
        return found[names[0]] if len(names) == 1 else {name: found[name] for name in names}
    return tuple(_arranged(family, each, found) for each in wrt)


def value_and_grad(function: Any, wrt: Wrt = 0) -> Callable[..., tuple[Any, Any]]:
    """Return a function that computes a NumPy function's value, one float, and its gradient.

    wrt: the inputs to differentiate by: the position of an argument or the name of a leaf, such as "self.u" or "params"
    (all below it), or several. The gradient has the form of `wrt`: an array, a dict by name if a name has several
    leaves below it, or a tuple. Raises accel.Refused, with a reason, if the function has no pure form. Raises TypeError
    if it does not return one float, or if `wrt` names no floats.

    >>> import accel, numpy as np
    >>> value, slope = accel.value_and_grad(lambda x: float(np.sum(x**2)))(np.array([1.0, 3.0]))
    >>> value, slope
    (10.0, array([2., 6.]))
    """
    transformed = _Transformed(function)

    def make(family: _Family) -> Callable[..., Any]:
        import jax

        names, program = _names(family, wrt), family.program

        def value(chosen: dict[str, Any], inputs: dict[str, Any]) -> Any:
            output = program({**inputs, **chosen})
            return _scalar(output, program), output.ok

        def both(inputs: dict[str, Any]) -> Any:
            (found, ok), slope = jax.value_and_grad(value, has_aux=True)({name: inputs[name] for name in names}, inputs)
            return found, slope, ok

        return both

    def call(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        (found, slope), family = transformed.run("value_and_grad", make, args, kwargs)
        return _as_returned(family.program, [found]), _arranged(family, wrt, slope)

    return _named(call, function, "value_and_grad")


def grad(function: Any, wrt: Wrt = 0) -> Callable[..., Any]:
    """Return a function that computes the gradient of a NumPy function that returns one float; see `value_and_grad`.

    >>> import accel, numpy as np
    >>> accel.grad(lambda x: np.where(x > 0, np.log(x), 0.0).sum())(np.array([0.0, 2.0]))
    array([0. , 0.5])
    """
    both = value_and_grad(function, wrt)
    return _named(lambda *args, **kwargs: both(*args, **kwargs)[1], function, "grad")


def jacobian(function: Any, wrt: Wrt = 0) -> Callable[..., Any]:
    """Return a function that computes the derivatives of all results of a NumPy function by all elements of some
    inputs.

    wrt: as in `value_and_grad`. The derivatives have the form of the function's result. In place of each array or
    number stands the form of `wrt`: arrays with the result's axes first, then the input's.
    """
    transformed = _Transformed(function)

    def make(family: _Family) -> Callable[..., Any]:
        import jax

        names, program = _names(family, wrt), family.program

        def result(chosen: dict[str, Any], inputs: dict[str, Any]) -> Any:
            output = program({**inputs, **chosen})
            if any(each.dtype.kind != "f" for each in output.result):
                raise TypeError(f"{program.recorded.name} returns something that is no float")
            return output.result, output.ok

        def slopes(inputs: dict[str, Any]) -> Any:
            chosen = {name: inputs[name] for name in names}
            shapes = jax.eval_shape(result, chosen, inputs)[0]
            wide = sum(each.size for each in chosen.values()) <= sum(each.size for each in shapes)
            way = jax.jacfwd if wide else jax.jacrev
            return way(result, has_aux=True)(chosen, inputs)

        return slopes

    def call(*args: Any, **kwargs: Any) -> Any:
        (found,), family = transformed.run("jacobian", make, args, kwargs)
        return filled(family.program.form, [_arranged(family, wrt, each) for each in found])

    return _named(call, function, "jacobian")


def vmap(function: Any, in_axes: int | Sequence[int | None] | None = 0) -> Callable[..., Any]:
    """Return a function that calls a NumPy function for each element along an axis of its arguments, as one program.

    in_axes: the axis along which an array's elements lie, or None for an argument that is the same for all. It holds
    for all positional arguments, or is a sequence with one entry for each. Results are arrays with the members along
    their first axis. The function must change nothing. Members may take different branches: unknown ones are recorded.

    >>> import accel, numpy as np
    >>> accel.vmap(lambda x, k: float((k * x).sum()), in_axes=(0, None))(np.ones((3, 4)), 2.0)
    array([8., 8., 8.])
    """
    transformed = _Transformed(function, derives=False)

    def call(*args: Any, **kwargs: Any) -> Any:
        return _Batch(transformed, args, kwargs, _axes(in_axes, len(args))).run()

    return _named(call, function, "vmap")


def _axes(in_axes: int | Sequence[int | None] | None, count: int) -> list[int | None]:
    axes = [in_axes] * count if in_axes is None or isinstance(in_axes, int) else list(in_axes)
    if len(axes) != count or all(axis is None for axis in axes):
        raise ValueError(f"in_axes {in_axes} does not fit {count} arguments, of which some must have an axis")
    return axes


class _Batch:
    """One call for several members."""

    def __init__(
        self, transformed: _Transformed, args: tuple[Any, ...], kwargs: dict[str, Any], axes: list[int | None]
    ) -> None:
        self._transformed, self._kwargs, self._axes = transformed, kwargs, axes
        self._args = [
            value if axis is None else np.moveaxis(np.asarray(value), axis, 0)
            for value, axis in zip(args, axes, strict=True)
        ]
        sizes = {len(value) for value, axis in zip(self._args, axes, strict=True) if axis is not None}
        if len(sizes) != 1 or 0 in sizes:
            raise ValueError(f"the arguments have {sorted(sizes)} members")
        self._size = sizes.pop()

    def run(self) -> Any:
        """Compute members with the same flags and texts together: a program has one value of them."""
        groups, parts = self._alike(), []
        if len(groups) == 1:
            return filled(*self._run())
        axes = [axis if axis is None else 0 for axis in self._axes]
        for group in groups:
            args = tuple(each if axis is None else each[group] for each, axis in zip(self._args, axes, strict=True))
            parts.append(_Batch(self._transformed, args, self._kwargs, axes)._run())
        if len({(repr(form), *((each.shape[1:], each.dtype) for each in found)) for form, found in parts}) > 1:
            raise refused(self._member(0).name, "pure.result", "other flags or texts give another form")
        order = np.argsort(np.concatenate(groups))
        found = zip(*(found for _, found in parts), strict=True)
        return filled(parts[0][0], [np.concatenate(each)[order] for each in found])

    def _alike(self) -> list[list[int]]:
        """Return the numbers of members in groups with the same flags, texts and other constants of a program."""
        given = [each for each, axis in zip(self._args, self._axes, strict=True) if axis is not None]
        fixed = [each for each in given if each.dtype.kind not in "biufc"[each.ndim == 1 :]]
        groups: dict[tuple[bytes, ...], list[int]] = {}
        for number in range(self._size):
            groups.setdefault(tuple(each[number].tobytes() for each in fixed), []).append(number)
        return list(groups.values())

    def _run(self) -> tuple[Any, list[np.ndarray[Any, Any]]]:
        import jax

        call = self._member(0)
        family, inputs = self._transformed.family(call, self._args)
        while True:
            self._check(family)
            stacked = self._stacked(family, inputs)
            with jax.enable_x64(True):
                key = frozenset(stacked)
                if key not in family.compiled:
                    family.compiled[key] = jax.jit(self._made(family, stacked))
                found, ok = family.compiled[key]({**inputs, **stacked}, np.True_)
                found, ok = jax.tree.map(np.array, found), np.asarray(ok)
            if ok.all():
                return family.program.form, found
            inputs = family.learned(self._member(int(np.argmin(ok))))

    def _member(self, number: int) -> PlainCall:
        args = [
            value if axis is None else _one(value, number) for value, axis in zip(self._args, self._axes, strict=True)
        ]
        return call_by_value(self._transformed._function, tuple(args), self._kwargs)

    def _check(self, family: _Family) -> None:
        if any(each.state or each.changed for each in family.program.returned):
            raise refused(
                family.recorded.name, "pure.state", "it changes its arguments or attributes: use accel.to_jax"
            )

    def _stacked(self, family: _Family, inputs: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for position, (value, axis) in enumerate(zip(self._args, self._axes, strict=True)):
            if axis is not None:
                try:
                    (name,) = places_module.under(family.recorded, family.places, position)
                except KeyError:
                    self._check_constant(family, position)
                    continue
                found[name] = np.asarray(value, inputs[name].dtype)
                if found[name].dtype.kind == "i" and np.any((found[name] < 0) & (value >= 0)):
                    raise refused(family.recorded.name, "pure.host", "an integer of 2**63 or more")
        return found

    def _check_constant(self, family: _Family, position: int) -> None:
        """Raise Refused if the program takes an argument for a constant, and members have others."""
        value = self._args[position]
        others = (number for number in range(1, self._size) if not np.array_equal(value[number], value[0]))
        if any(family.inputs(self._member(number)) is None for number in others):
            raise refused(family.recorded.name, "pure.host", f"argument {position} decides a path by its very value")

    def _made(self, family: _Family, stacked: Mapping[str, Any]) -> Callable[..., Any]:
        import jax

        program, size = family.program, self._size
        names = list(stacked)

        def all_members(inputs: dict[str, Any], always: Any) -> Any:
            def one(own: dict[str, Any], always: Any) -> Any:
                output = program({**inputs, **own})
                return output.result, output.ok

            # before it is mapped: the condition of a mapped loop is no single truth, and cannot be traced again
            rounded = rounded_as_numpy(one, lambda own, always: always)
            own = {name: inputs[name] for name in names}
            return jax.vmap(rounded, in_axes=(0, None), axis_size=size)(own, always)

        return all_members


def _one(value: Any, number: int) -> Any:
    """Return a member's own argument. An element of an array of numbers becomes a Python number."""
    found = value[number]
    return found.item() if not isinstance(found, np.ndarray) else np.ascontiguousarray(found)


def _as_returned(program: PureProgram, values: Sequence[Any]) -> Any:
    """Convert a result to the types that the function itself returns, such as a Python float."""
    first = program.returned[0]
    given = [
        value.item() if _kind(program, part) in (float, int, bool, complex) else value[()]
        for part, value in zip(first.leaves, values, strict=True)
    ]
    return filled(first.form, given)


def _kind(program: PureProgram, part: Leaf) -> type:
    """Return the type of a number that the function returns."""
    if isinstance(part, Number):
        return part.kind
    if isinstance(part, FromSlot):
        return type(program.recorded.values[program.ways[0].slots[part.slot]])
    return type(part.value) if isinstance(part, FixedValue) else np.ndarray


def _named(made: Callable[..., Any], function: Any, name: str) -> Callable[..., Any]:
    made.__name__ = made.__qualname__ = f"{name} of {getattr(function, '__name__', 'a function')}"
    return made
