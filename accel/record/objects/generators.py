"""Proxies of random generators, and stand-ins of their methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.record.objects.modules import Opaque
from accel.record.objects.proxy import OWN, Proxy
from accel.record.state import inputs
from accel.record.state.draw import Draw, not_drawn
from accel.record.state.on_behalf import on_behalf
from accel.record.state.recording import Recording
from accel.record.state.wrapper import StandIn, unwrap
from accel.record.values.arrays import RecordedArray
from accel.record.values.draws.generators import KINDS
from accel.record.values.draws.recording import DrawCall, NotYetComputed, given_template, record_draw
from accel.record.values.wrapping import remember
from accel.rules.rule import Unsupported


class GeneratorProxy(Proxy):
    """A generator of a kind that replays can draw from."""

    __slots__ = ()

    def as_operand(self) -> Any:
        raise Unsupported("effect.random", f"a {type(self._plain_).__name__} is given to a function")

    def __getattribute__(self, name: str) -> Any:
        if name in OWN or name in ("as_operand", "_drawn_"):
            return object.__getattribute__(self, name)
        recording, plain = self._recording_, self._plain_
        if recording.active and name in KINDS[type(plain)].methods:
            return DrawingMethod(self, name)
        value = getattr(plain, name)
        if not callable(value):
            recording.break_("effect.random", f".{name} of a {type(plain).__name__}", touched=True)
            return PartProxy(recording, value)
        return Opaque(recording, value) if recording.active else value

    def __setattr__(self, name: str, value: object) -> None:
        self._recording_.break_("effect.random", f".{name} of a {type(self._plain_).__name__} is set", touched=True)
        setattr(self._plain_, name, unwrap(value))


class PartProxy(Proxy):
    """A generator's bit generator, in a recording that it has ended: C code is given plain values to set."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in OWN or name == "as_operand":
            return object.__getattribute__(self, name)
        return getattr(self._plain_, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._plain_, name, unwrap(value))


class NewGeneratorProxy(GeneratorProxy):
    """A generator that the recorded call makes. It has no slot of the program's, and must not leave the call.

    _drawn_: the slot that holds the one that a replay makes.
    """

    __slots__ = ("_drawn_",)

    def __init__(self, recording: Recording, value: object, slot: int) -> None:
        super().__init__(recording, value)
        object.__setattr__(self, "_drawn_", slot)


class Maker(StandIn):
    """One of MAKERS: with a seed it makes a generator, which replays make anew."""

    __slots__ = ()

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(unwrap(value), self._plain_)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = self._recording_
        seed = args[0] if args else kwargs.get("seed")
        # as it is: `default_rng(rng)` is there for functions that take either
        if self._plain_ is np.random.default_rng and issubclass(type(seed), GeneratorProxy):
            return seed
        if not _is_seed(unwrap(seed)):
            recording.break_("effect.random", "a generator is made without numbers as its seed", touched=True)
        made = self._plain_(*unwrap(args), **unwrap(kwargs))
        return recording.write_down(lambda: self._made(args, kwargs, made), made)

    def _made(self, args: tuple[Any, ...], kwargs: dict[str, Any], made: Any) -> Any:
        recording, name = self._recording_, self._plain_.__name__
        try:
            given = tuple(given_template(arg, static=False) for arg in args)
            named = {key: given_template(value, static=False) for key, value in kwargs.items()}
        except NotYetComputed:
            raise Unsupported("effect.random", "a generator is made of what the program has yet to compute") from None
        slot = recording.inputs.add(("draw", len(recording.draws)), f"{name}()", not_drawn(len(recording.draws)))
        recording.draws.append(Draw(slot, None, name, given, named, None))
        return remember(recording, NewGeneratorProxy(recording, made, slot))


def _is_seed(value: Any) -> bool:
    if type(value) in (list, tuple):
        return len(value) > 0 and all(map(_is_seed, value))
    return type(value) is int or isinstance(value, np.integer)


class DrawingMethod(StandIn):
    """A drawing method of a generator."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: GeneratorProxy, name: str) -> None:
        self._recording_ = owner._recording_
        self._plain_ = getattr(owner._plain_, name)
        self._owner, self._name = owner, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = self._recording_
        plain_args, plain_kwargs = unwrap(args), unwrap(kwargs)
        call: DrawCall | None = recording.write_down(lambda: self._begun(args, kwargs), None)
        result = on_behalf(self._plain_, plain_args, plain_kwargs)
        if call is None:
            return result
        return recording.write_down(lambda: record_draw(call, result), result)

    def _begun(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DrawCall:
        """The call, and what has to be known before it is made."""
        recording, owner = self._recording_, self._owner
        slot = owner._drawn_ if issubclass(type(owner), NewGeneratorProxy) else owner._slot_
        call = DrawCall(recording, owner._plain_, slot, self._name, args, kwargs)
        call.note_state()
        written = call.written
        if written is not None and not issubclass(type(written), RecordedArray):
            kind = type(unwrap(written)).__name__
            recording.break_("effect.random", f"{self._name}() writes to a {kind}", touched=True)
        elif written is not None:
            call.old = written._plain_.copy()
            recording.storages.before_write(written._storage, written._plain_)
        return call


def method_stand_in(recording: Recording, method: Any) -> DrawingMethod:
    """The stand-in of a method bound to a generator that the program names itself, such as `np.random.normal`."""
    owner = method.__self__
    text = "np.random" if type(owner) is np.random.RandomState else f"a {type(owner).__name__}"
    key = ("generator", id(recording.registry.keep_alive(owner)))
    return DrawingMethod(recording.enter(owner, key, text, inputs.of_constant(owner)), method.__name__)
