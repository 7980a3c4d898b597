"""Ensembles: `accel.ensemble` steps copies of a program's state as one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accel.entry.callables import PlainCall
from accel.platform.clocks import time
from accel.transform.ensembles import working_copy
from accel.transform.ensembles.addresses import Roots
from accel.transform.ensembles.batch import Batch, BatchStep
from accel.transform.ensembles.copies import copied
from accel.transform.ensembles.joining import Joined, Sampling, differing
from accel.transform.ensembles.paths import Paths
from accel.transform.ensembles.values import EnsembleState, MemberState, MemberValues, as_like
from accel.transform.ensembles.working_copy import Array, Stepped, WorkingCopy
from accel.transform.pure.recorded import plain_call, refused, skipped
from accel.transform.pure.results import filled

Perturb = Callable[[MemberState, int, np.random.Generator], object]


class Ensemble:
    """Copies of the state that a function or method reads and changes, stepped together. Made by `accel.ensemble`.

    Only `write_back` changes the program's own objects. state: the members' values by name, such as "self.u", as arrays
    with the members along their first axis; may be set. members: number of copies. steps: number of steps so far.
    alone: number of single-member steps that NumPy made because they took an unknown path.
    """

    def __init__(
        self, call: PlainCall, copy: WorkingCopy, members: int, perturb: Perturb | None = None, seed: int = 0
    ) -> None:
        self.name, self.members = copy.name, members
        self.steps = self.alone = 0
        self._call = call
        self._paths = Paths(copy, members)
        self._values = MemberValues(members)
        self._sampling = Sampling()
        self._fault: BaseException | None = None
        self._form: Any = None
        self._result: list[Array] = []
        self._prepare()
        self.state = EnsembleState(self._all, self._set, self._names)
        if perturb is not None:
            self._perturb(perturb, seed)

    def __repr__(self) -> str:
        return f"<ensemble of {self.members} members of {self.name} after {self.steps} steps>"

    # -- steps --------------------------------------------------------------------------------------------------------

    def step(self, n: int = 1) -> None:
        """Call the function n times for every member.

        Raises accel.Refused if a member's step does something that one member alone must not do, and any exception that
        a step raises. A note on the error names the member. All members are then as they were before that step, and the
        ensemble makes no more steps.
        """
        for _ in range(n):
            self._step()

    @property
    def result(self) -> Any:
        """The return value of the last step, in the function's own tuples, lists and dicts. None before the first step.

        Its arrays have the members along their first axis.
        """
        return filled(self._form, [np.array(each) for each in self._result])

    def _step(self) -> None:
        if self._fault is not None:
            raise RuntimeError(f"the ensemble has ended with step {self.steps}: {self._fault}") from self._fault
        batch, found, alone = self._all_known()
        sample = self._sampling.next(found.ok, self._paths)
        if sample is not None:
            difference = differing(found, batch.form, sample, self._by_numpy(sample))
            if difference is not None:
                self._sampling.fail(self.name, difference)
        if self._sampling.has_failed:
            alone |= {member: self._by_numpy(member) for member in range(self.members) if member not in alone}
        joined = Joined(self._values, found, batch.form, alone, self._pristine, self.name)
        for name, (array, is_apart) in joined.state.items():
            self._values.set(name, array, is_apart)
        self._form, self._result = batch.form, joined.result
        self.steps += 1
        self.alone += len(alone)

    def _all_known(self) -> tuple[Batch, BatchStep, dict[int, Stepped]]:
        """Return the program, its step of all members, and NumPy's steps of the members on unknown paths."""
        alone: dict[int, Stepped] = {}
        while True:
            batch = self._prepare()
            found = batch.run(self._values.arrays, self._values.apart)
            left = [member for member in np.flatnonzero(~found.ok).tolist() if member not in alone]
            if self._sampling.has_failed or not self._has_learned(left, alone):
                return batch, found, alone

    def _has_learned(self, left: list[int], alone: dict[int, Stepped]) -> bool:
        """Step members on NumPy. Returns True as soon as the program has learned their paths, perhaps before all are
        done."""
        for position, member in enumerate(left):
            began = time.perf_counter()
            alone[member] = self._by_numpy(member)
            took_s = time.perf_counter() - began
            if self._paths.has_learned(alone[member], took_s, len(left) - position - 1):
                return True
        return False

    def _by_numpy(self, member: int) -> Stepped:
        try:
            return self._paths.step_one(self._values.of(member))
        except BaseException as error:
            error.add_note(f"in step {self.steps + 1} of member {member}")
            self._fault = error
            raise

    def _prepare(self) -> Batch:
        batch = self._paths.batch(self._values.arrays)
        for name in batch.takes:
            if name not in self._values.arrays:
                self._values.set(name, batch.leaves[name], False)
        return batch

    # -- state --------------------------------------------------------------------------------------------------------

    def mean(self, name: str) -> Array:
        """Return the mean over the members of the value `name` in `state`, computed on its device."""
        return self._statistic(name, lambda jnp, array: jnp.mean(array, axis=0), lambda one: one * 1.0)

    def spread(self, name: str) -> Array:
        """Return the standard deviation over the members, with the divisor `members - 1`."""
        divisor = 1 if self.members > 1 else 0
        return self._statistic(name, lambda jnp, array: jnp.std(array, axis=0, ddof=divisor), lambda one: one * 0.0)

    @property
    def own(self) -> list[str]:
        """Return the names of values that steps change, and of values that differ between members."""
        changed = self._paths.inventory.changed
        return list(dict.fromkeys([*changed, *(name for name in self._values.arrays if name in self._values.apart)]))

    def write_back(self, member: int) -> None:
        """Store a member's state in the program's own objects: values that steps change, or that differ between
        members.

        Arrays that steps write to are written in place. A number that is an argument cannot be written back.
        """
        if not 0 <= member < self.members:
            raise IndexError(f"there is no member {member} among {self.members}")
        inventory = self._paths.inventory
        values = {
            name: np.asarray(np.asarray(self._values.arrays[name])[member if name in self._values.apart else ...])
            for name in self.own
            if name in self._values.arrays
            if len(inventory.addresses[name]) > 2 or inventory.kinds[name] is np.ndarray
        }
        roots = Roots(list(self._call.args), self._call.kwargs)
        working_copy.place(roots, values, inventory, self.name)

    def to_xarray(self, dims: Mapping[Any, tuple[str, ...]] | None = None, names: Any = None) -> Any:
        """Return the state as an `xarray.Dataset` with a dimension "member". xarray has to be installed.

        dims: the names of dimensions, by a name in `state` or by the shape of one member's array. names: which names of
        `state` to include; by default those that steps change and those that differ between members.
        """
        from accel.transform.ensembles.saving import dataset

        chosen = list(self._values.arrays) if names is None else list(names)
        return dataset({name: self._all(name) for name in chosen}, dims or {}, self.steps)

    def _statistic(self, name: str, of: Callable[[Any, Any], Any], of_same: Callable[[Array], Any]) -> Array:
        import jax
        from jax import numpy as jnp

        if name not in self._values.apart:
            return np.asarray(of_same(np.asarray(self._one(name))))
        with jax.enable_x64(True):
            return np.array(of(jnp, jnp.asarray(self._values.arrays[name])))

    def _names(self) -> list[str]:
        return list(dict.fromkeys([*self._values.arrays, *self._prepare().leaves]))

    def _one(self, name: str) -> Any:
        """Return a value of all members, or the single value that they share."""
        if name in self._values.arrays:
            return self._values.arrays[name]
        leaves = self._prepare().leaves
        if name not in leaves:
            raise KeyError(f"{self.name} has no state {name!r}; it has {', '.join(self._names())}")
        return leaves[name]

    def _all(self, name: str) -> Array:
        if name in self._values.arrays:
            return self._values.all(name)
        one = self._one(name)
        return np.array(np.broadcast_to(one, (self.members, *one.shape)))

    def _set(self, name: str, value: Any) -> None:
        one = np.asarray(self._one(name))
        like = one[0] if name in self._values.apart else one
        self._check_place(name)
        if np.ndim(value) == like.ndim:
            self._values.set(name, as_like(name, value, like), False)
        else:
            self._values.set_all(name, as_like(name, value, like, self.members))

    def _check_place(self, name: str) -> None:
        if name not in self._paths.inventory.addresses:
            raise refused(self.name, "ensemble.place", name)

    def _pristine(self, name: str) -> Array:
        """Return the program's value from before the first step. Raises Refused if there was none."""
        found = self._paths.before(name)
        if found is None:
            raise refused(self.name, "pure.state", f"{name} is written on some paths, and is not there before")
        return found

    def _perturb(self, perturb: Perturb, seed: int) -> None:
        like = {name: np.asarray(self._one(name)) for name in self._names()}
        touched: list[dict[str, Array]] = []
        for member in range(self.members):
            state = MemberState(like)
            perturb(state, member, np.random.default_rng([seed, member]))
            touched.append(state.touched)
        for name in dict.fromkeys(name for each in touched for name in each):
            values = [as_like(name, each.get(name, like[name]), like[name]) for each in touched]
            if any(not working_copy.is_same(value, like[name]) for value in values):
                self._set(name, np.stack(values))


def ensemble(
    step: Any, *args: Any, members: int, perturb: Perturb | None = None, seed: int = 0, **kwargs: Any
) -> Ensemble:
    """Make an ensemble of a function or method: copies of the state that it reads and changes, which step together.

    step: a NumPy function or bound method. args, kwargs: the arguments to call it with. members: number of copies.
    perturb: called once per member with its state by name, its number and its own random generator; it changes the
    state. seed: seed of those generators.

    The program's objects are copied; the originals stay as they are. Raises accel.Refused, with a reason, for a
    function whose members cannot be stepped as one program.

    >>> import accel, numpy as np
    >>> class Decay:
    ...     def __init__(self):
    ...         self.u, self.rate = np.ones(3), 0.5
    ...     def step(self):
    ...         self.u = self.u - self.rate * self.u
    >>> def slower(state, member, rng):
    ...     state["self.rate"] = 0.5 * member
    >>> ens = accel.ensemble(Decay().step, members=2, perturb=slower)
    >>> ens.step(2)
    >>> ens.state["self.u"][:, 0]
    array([1.  , 0.25])
    """
    if members < 1:
        raise ValueError(f"an ensemble has at least one member, not {members}")
    call = plain_call(step, args, kwargs)
    copy = WorkingCopy(call.function, call.name, copied(call), skipped(step, call, args))
    return Ensemble(call, copy, members, perturb, seed)
