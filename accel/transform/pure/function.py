"""Pure functions: `accel.to_jax` makes one from an unmodified NumPy function and example calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from accel.transform.pure import places as places_module
from accel.transform.pure.program import PureProgram
from accel.transform.pure.recorded import RecordedFunction, recorded_calls
from accel.transform.pure.results import filled

Inputs = Mapping[str, Any]


class PureFunction:
    """A NumPy function as a pure JAX function. Made by `accel.to_jax`.

    It takes a dict of any of its leaves by name; omitted leaves keep their values from the first example. It returns a
    dict. "result": the function's return value. "state": by name, the new value of each attribute, item and argument
    that it changes. "ok": whether the call takes a recorded path. If "ok" is false, all floats and their derivatives
    are NaN.

    inputs: all leaves, as in the first example. name: of the NumPy function.
    """

    def __init__(self, recorded: RecordedFunction, wrt: Any, rounds: int | None) -> None:
        import jax

        self.name = recorded.name
        places = places_module.places_of(recorded)
        names = places_module.chosen(recorded, places, wrt)
        places_module.check_exists(recorded, names)
        self._program = PureProgram(recorded, places, names, rounds)
        if wrt is None:  # values that only some paths write exist now, too
            names = list(places.leaves)
        self.inputs: dict[str, np.ndarray[Any, Any]] = {name: places.leaves[name].value.copy() for name in names}
        self._jitted = jax.jit(self._compute)

    def __repr__(self) -> str:
        return f"<pure function of {self.name}: {', '.join(self.inputs)}>"

    def __call__(self, inputs: Inputs | None = None) -> dict[str, Any]:
        """Return the result and new state of a call with these leaves. Raises KeyError and TypeError for unusable
        leaves."""
        found: dict[str, Any] = self._jitted(self._complete(inputs or {}))
        return found

    def checked(self, inputs: Inputs | None = None) -> dict[str, Any]:
        """Call the function, with a `jax.experimental.checkify` check that the path was recorded.

        For functions under `checkify.checkify`.
        """
        from jax.experimental import checkify

        found = self(inputs)
        checkify.check(found["ok"], f"{self.name} takes a way that was not recorded")
        return found

    def next(self, inputs: Inputs, output: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs of the following call: `inputs`, with the new state in place of the old."""
        return {
            **self._complete(inputs),
            **{name: each for name, each in output["state"].items() if name in self.inputs},
        }

    def export(self, platforms: Sequence[str] | None = None, vjp_order: int = 0) -> bytes:
        """Return the function as StableHLO, for `jax.export.deserialize`. Needs neither accel nor the function's source
        there.

        It takes a dict of all leaves in `inputs`. platforms: as for `jax.export.export`. vjp_order: how often it can be
        differentiated there, in reverse mode.
        """
        import jax
        from jax import export

        with jax.enable_x64(True):
            shapes = {name: jax.ShapeDtypeStruct(each.shape, each.dtype) for name, each in self.inputs.items()}
            exported = export.export(jax.jit(self._compute), platforms=platforms)(shapes)
            return bytes(exported.serialize(vjp_order=vjp_order))

    def _compute(self, inputs: Inputs) -> dict[str, Any]:
        output = self._program(inputs)
        return {"result": filled(self._program.form, output.result), "state": output.state, "ok": output.ok}

    def _complete(self, inputs: Inputs) -> dict[str, Any]:
        unknown = [name for name in inputs if name not in self.inputs]
        if unknown:
            raise KeyError(f"{self.name} has no leaf {unknown[0]!r}; it has {', '.join(self.inputs)}")
        _check_precision()
        return {name: _as_leaf(name, inputs.get(name, each), each) for name, each in self.inputs.items()}


def _check_precision() -> None:
    from jax import numpy as jnp

    if jnp.result_type(float) != np.float64:
        raise RuntimeError(
            "accel computes as NumPy does, in 64 bits: call jax.config.update('jax_enable_x64', True) first, or call "
            "the function within jax.enable_x64(True)"
        )


def _as_leaf(name: str, value: Any, like: np.ndarray[Any, Any]) -> Any:
    """Convert a leaf's value to a JAX array. Raises TypeError for a different shape or dtype.

    NumPy would compute differently with that.
    """
    from jax import numpy as jnp

    weak = type(value) in (bool, int, float, complex)
    array = jnp.asarray(value, like.dtype if weak and np.result_type(value).kind == like.dtype.kind else None)
    if array.shape != like.shape or array.dtype != like.dtype:
        given, wanted = (f"{each.dtype}{list(each.shape)}" for each in (array, like))
        raise TypeError(f"{name} is {wanted} in the example, not {given}: record an example of these")
    return array


def to_jax(
    function: Any,
    *args: Any,
    wrt: Any = None,
    examples: Iterable[Sequence[Any]] = (),
    rounds: int | None = None,
    **kwargs: Any,
) -> PureFunction:
    """Make a pure JAX function from a NumPy function or method and example calls.

    args, kwargs: of the first example. examples: positional arguments of further ones, which take other branches. wrt:
    the leaves that the pure function takes; all others become constants. Leaves are named, such as "self.u" or
    "params", or given by position of the argument. By default they are all arrays and numbers that the function reads.
    rounds: maximum iterations of a loop whose number of iterations depends on data.

    Each example is called once, and its changes are undone. Raises accel.Refused, with a reason, for a function that
    has no pure form, and any exception of the function itself.
    """
    calls = [(args, kwargs), *((tuple(each), kwargs) for each in examples)]
    return PureFunction(recorded_calls(function, calls), wrt, rounds)
