"""Cut arrays for the devices of one rank, and put the pieces together again.

A *region* is a part of an array: the start and the end along each axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Region = tuple[tuple[int, int], ...]
Piece = tuple[Region, NDArray[Any]]


def region_of(index: Sequence[slice], shape: Sequence[int]) -> Region:
    """Convert JAX's index of a part of an array of this shape to a region."""
    return tuple(each.indices(length)[:2] for each, length in zip(index, shape, strict=True))


def slices(region: Region) -> tuple[slice, ...]:
    """Convert a region to NumPy's index."""
    return tuple(slice(start, stop) for start, stop in region)


class Layout:
    """The regions of arrays of one shape on the devices of one rank.

    sharding: of the whole array. regions: those that the rank holds, each once.
    """

    def __init__(self, shape: tuple[int, ...], sharding: Any, rank: int) -> None:
        places = sharding.devices_indices_map(shape)
        found = [(device, region_of(index, shape)) for device, index in places.items() if device.process_index == rank]
        self.regions = list(dict.fromkeys(region for _, region in found))
        self._shape = shape
        self._sharding = sharding
        self._devices = [(device, self.regions.index(region)) for device, region in found]

    def cut(self, array: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the array's parts, one for each region."""
        return [np.asarray(array[slices(region)], order="C") for region in self.regions]

    def placed(self, parts: Sequence[NDArray[Any]]) -> Any:
        """Return a JAX array of which this process holds these parts."""
        import jax

        own = [jax.device_put(parts[position], device) for device, position in self._devices]
        return jax.make_array_from_single_device_arrays(self._shape, self._sharding, own)


def first_copies(array: Any) -> list[Piece]:
    """Return this process's pieces of a JAX array, without copies of pieces that an earlier device holds."""
    return [
        (region_of(shard.index, array.shape), np.asarray(shard.data))
        for shard in array.addressable_shards
        if shard.replica_id == 0
    ]


def whole(shape: tuple[int, ...], dtype: Any, pieces: Iterable[Piece]) -> NDArray[Any]:
    """Assemble the array that these pieces cover."""
    array = np.empty(shape, dtype)
    for region, part in pieces:
        array[slices(region)] = part
    return array
