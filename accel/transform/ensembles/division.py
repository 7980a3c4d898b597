"""Division: members distributed over several devices of one machine, or over the processors of a CPU.

Members are independent. So each device runs the step of its own members as a separate program, and XLA partitions
nothing.

On a CPU, members that are too many to compute together are divided into groups, one for each processor. XLA divides
each operation among threads, and waits for all of them at its end. Members need no such barrier: two halves of 16
members at 121x240, a thread for each, take 0.6 of the time on 2 processors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from accel.backend import devices
from accel.backend.shards import equal_parts
from accel.platform import config, processors

MEMBERS = "members"
"""Name of the single axis of the device mesh."""


def devices_for(members: int) -> list[Any]:
    """Return the devices that the settings name, or the largest number of them that divides `members`.

    Empty if only one device is left. Raises SettingError if there are not as many devices.
    """
    chosen = config.current()
    if chosen.devices == 1:
        return []
    # of several processes, this one alone steps the members
    found = devices.own(devices.all_devices(chosen))
    number = equal_parts(members, len(found))
    return found[:number] if number > 1 else []


class Division:
    """A distribution of members over devices. own: positions of inputs with the members along their first axis.

    outputs_apart: for each output, whether it has the members along its first axis. Other outputs are equal for all
    members and on each device.
    """

    def __init__(self, used: Sequence[Any], own: Sequence[int], outputs_apart: Sequence[bool]) -> None:
        import numpy as np
        from jax.sharding import Mesh

        self._mesh = Mesh(np.array(used), (MEMBERS,))
        self._own = frozenset(own)
        self._outputs_apart = outputs_apart

    def placed(self, given: Sequence[Any]) -> list[Any]:
        """Return the values on their devices. Values that are there already are not copied."""
        import jax
        from jax.sharding import NamedSharding

        where = [NamedSharding(self._mesh, self._part(position in self._own)) for position in range(len(given))]
        placed: list[Any] = jax.device_put(list(given), where)
        return placed

    def of_each(self, function: Callable[..., Any], values: int) -> Callable[..., Any]:
        """Distribute a function of one device's members over all devices.

        values: number of inputs that may be distributed. One more input follows them, equal on all devices.
        """
        import jax

        given = tuple(self._part(position in self._own) for position in range(values))
        return jax.shard_map(
            function,
            mesh=self._mesh,
            in_specs=(*given, self._part(False)),
            out_specs=[self._part(is_apart) for is_apart in self._outputs_apart],
            check_vma=False,  # each device computes the values that are equal for all members, from equal inputs
        )

    def everywhere(self, value: Any) -> Any:
        """Return a value replicated on every device."""
        import jax
        from jax.sharding import NamedSharding

        return jax.device_put(value, NamedSharding(self._mesh, self._part(False)))

    def _part(self, is_apart: bool) -> Any:
        from jax.sharding import PartitionSpec

        return PartitionSpec(MEMBERS) if is_apart else PartitionSpec()


# -- groups, on a CPU -------------------------------------------------------------------------------------------------


def number_of_groups(members: int, chunk: int) -> int:
    """Return the number of equal groups of members. chunk: number of members computed together; 1 group if all are."""
    if chunk >= members:
        return 1
    return equal_parts(members, processors.usable())


def part(values: Sequence[Any], own: Sequence[int], members: slice) -> list[Any]:
    """Return values for these members. own: positions of values with the members along their first axis."""
    found = list(values)
    for position in own:
        found[position] = np.asarray(values[position])[members]
    return found


class InGroups:
    """A step of all members in which each group is one call, in its own thread.

    compiled: a step of one group of `size` members. own: positions of inputs with the members along their first axis.
    outputs_apart: for each output, whether it has the members along its first axis; other outputs are equal for all
    groups.
    """

    def __init__(
        self,
        compiled: Callable[[list[Any]], Sequence[Any]],
        own: Sequence[int],
        outputs_apart: Sequence[bool],
        groups: int,
        size: int,
    ) -> None:
        self._compiled, self._own, self._outputs_apart = compiled, own, outputs_apart
        self._groups = [slice(number * size, (number + 1) * size) for number in range(groups)]

    def __call__(self, given: list[Any]) -> list[Any]:
        with ThreadPoolExecutor(len(self._groups)) as pool:
            steps = list(pool.map(lambda group: self._step(group, given), self._groups))
            first = steps[0]
            whole = [
                np.empty((self._groups[-1].stop, *each.shape[1:]), each.dtype) if is_apart else each
                for each, is_apart in zip(first, self._outputs_apart, strict=True)
            ]
            list(pool.map(lambda group, step: self._put(group, step, whole), self._groups, steps))
        return whole

    def _step(self, group: slice, given: list[Any]) -> list[np.ndarray[Any, Any]]:
        import jax

        with jax.enable_x64(True):  # a setting of each thread
            return [np.asarray(each) for each in self._compiled(part(given, self._own, group))]

    def _put(self, group: slice, step: Sequence[Any], whole: Sequence[Any]) -> None:
        """Copy a group's outputs into the arrays of all members."""
        for each, target, is_apart in zip(step, whole, self._outputs_apart, strict=True):
            if is_apart:
                target[group] = each
