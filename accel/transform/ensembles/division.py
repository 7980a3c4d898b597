"""Division: members distributed over several devices of one machine.

Members are independent. So each device runs the step of its own members as a separate program, and XLA partitions
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accel.backend import devices
from accel.backend.shards import equal_parts
from accel.platform import config

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
