"""One draw: the call of a generator's method in a recorded call, which replays make again."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from accel.record.state.inputs import Fetch, of_constant


class Form(NamedTuple):
    """The form of a draw's result: shape and dtype of an array, or the type of a number."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    scalar: type | None


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One draw. The draws of a trace are made in its order.

    slot: that takes what it gives. owner: the slot of the generator. method: its method. args, kwargs: a template, in
    which nodes stand for what is known before launch (see accel.record.values.draws.early). form: of what it gives.

    A generator that the call makes itself of a seed is like a draw that has no owner: `method` names what makes it (see
    MAKERS in accel.record.values.draws.generators). It has no form.
    """

    slot: int
    owner: int | None
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    form: Form | None


class NotDrawn:
    """In the place of what a draw gives, before it is made. ordinal: of the draw."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal

    def __repr__(self) -> str:
        return f"<draw {self.ordinal}>"

    def __reduce__(self) -> Any:
        return _placeholder, (self.ordinal,)


@functools.cache
def _placeholder(ordinal: int) -> NotDrawn:
    """One object for each, since equal slots of several paths are one."""
    return NotDrawn(ordinal)


def not_drawn(ordinal: int) -> Fetch:
    """Fetch a placeholder: the slot of a draw is filled when the draw is made."""
    return of_constant(_placeholder(ordinal))
