"""Division: among several devices of one machine, each computes members of its own.

Members need nothing of each other. So each device runs the step of so many members as a program of its own would, and
XLA has nothing to divide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accel import config
from accel.backend import devices
from accel.backend.shards import equal_parts

MEMBERS = "members"
"""The name of the one axis of devices."""


def devices_for(members: int) -> list[Any]:
    """The devices that the settings ask for, or as many of them as divide the members; none where one is left.

    Raises SettingError if there are not as many.
    """
    chosen = config.current()
    if chosen.devices == 1:
        return []
    # of several processes, this one alone steps the members
    found = devices.own(devices.all_devices(chosen))
    number = equal_parts(members, len(found))
    return found[:number] if number > 1 else []


class Division:
    """Members among devices. own: the positions of a step's values with the members along their first axis.

    outputs_apart: which outputs have them so; the others are the same for all members, and on each device.
    """

    def __init__(self, used: Sequence[Any], own: Sequence[int], outputs_apart: Sequence[bool]) -> None:
        import numpy as np
        from jax.sharding import Mesh

        self._mesh = Mesh(np.array(used), (MEMBERS,))
        self._own = frozenset(own)
        self._outputs_apart = outputs_apart

    def placed(self, given: Sequence[Any]) -> list[Any]:
        """Values where they belong: nothing is copied that is there already."""
        import jax
        from jax.sharding import NamedSharding

        where = [NamedSharding(self._mesh, self._part(position in self._own)) for position in range(len(given))]
        placed: list[Any] = jax.device_put(list(given), where)
        return placed

    def of_each(self, function: Callable[..., Any], values: int) -> Callable[..., Any]:
        """A function of one device's members as one of all. values: how many it takes, and what is the same after."""
        import jax

        given = tuple(self._part(position in self._own) for position in range(values))
        return jax.shard_map(
            function,
            mesh=self._mesh,
            in_specs=(*given, self._part(False)),
            out_specs=[self._part(is_apart) for is_apart in self._outputs_apart],
            check_vma=False,  # what is the same for all members is computed by each device, of the same
        )

    def everywhere(self, value: Any) -> Any:
        """A value that each device has whole."""
        import jax
        from jax.sharding import NamedSharding

        return jax.device_put(value, NamedSharding(self._mesh, self._part(False)))

    def _part(self, is_apart: bool) -> Any:
        from jax.sharding import PartitionSpec

        return PartitionSpec(MEMBERS) if is_apart else PartitionSpec()
