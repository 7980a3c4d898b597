"""Generators: the kinds of them that a replay can draw from, their methods, and their states."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinMethodType, MethodType
from typing import Any, NamedTuple

import numpy as np

from accel.record.state.inputs import Check, Code


class DrawParameters(NamedTuple):
    """The parameters of a drawing method, in order. static: those that decide the shape or type of what it gives.

    many: any number of positional arguments is allowed, all of them static.
    """

    names: tuple[str, ...]
    static: frozenset[str]
    many: bool = False

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call that NumPy has accepted, by name."""
        return {**dict(zip(self.names, args, strict=False)), **kwargs}

    def is_static(self, argument: int | str) -> bool:
        """Whether an argument, by its position or its name, is static."""
        if isinstance(argument, int):
            return self.many or self.names[argument] in self.static
        return argument in self.static


class GeneratorKind(NamedTuple):
    """A kind of generator. state: gives a copy of its state, which `put_back` puts back."""

    methods: Mapping[str, DrawParameters]
    state: Callable[[Any], Any]
    put_back: Callable[[Any, Any], None]
    check: Check


def _table(text: str) -> dict[str, DrawParameters]:
    """A line for methods of the same parameters: their names, a colon, the parameters, a bar, the static ones."""
    found = {}
    for line in text.strip().splitlines():
        methods, _, parameters = line.partition(":")
        values, _, static = parameters.partition("|")
        many = static.split() == ["*"]
        names = () if many else (*values.split(), *static.split())
        entry = DrawParameters(names, frozenset(static.split()), many)
        found.update(dict.fromkeys(methods.split(), entry))
    return found


_DISTRIBUTIONS = """
normal laplace gumbel logistic: loc scale | size
lognormal: mean sigma | size
uniform: low high | size
exponential rayleigh: scale | size
poisson: lam | size
pareto power weibull zipf: a | size
geometric logseries: p | size
binomial negative_binomial: n p | size
chisquare standard_t: df | size
noncentral_chisquare: df nonc | size
f: dfnum dfden | size
noncentral_f: dfnum dfden nonc | size
gamma: shape scale | size
beta: a b | size
hypergeometric: ngood nbad nsample | size
triangular: left mode right | size
vonmises: mu kappa | size
wald: mean scale | size
multinomial: n pvals | size
dirichlet: alpha | size
standard_cauchy: | size
"""

_GENERATOR = """
random standard_normal: | size dtype out
standard_exponential: | size dtype method out
standard_gamma: shape | size dtype out
integers: low high | size dtype endpoint
multivariate_normal: mean cov | size check_valid tol method
multivariate_hypergeometric: colors nsample | size method
"""

_RANDOM_STATE = """
random random_sample standard_normal standard_exponential tomaxint: | size
rand randn: | *
standard_gamma: shape | size
randint: low high | size dtype
multivariate_normal: mean cov | size check_valid tol
"""

_RANDOM = """
random: |
uniform: a b |
gauss normalvariate lognormvariate: mu sigma |
expovariate: lambd |
triangular: low high mode |
randint betavariate: a b |
randrange: start stop step |
gammavariate weibullvariate: alpha beta |
vonmisesvariate: mu kappa |
paretovariate: alpha |
getrandbits: k |
"""

# In the order of their parameters, which `_table` puts the static ones of behind the others.
_CHOICE = {
    "choice": DrawParameters(
        ("a", "size", "replace", "p", "axis", "shuffle"), frozenset("size replace axis shuffle".split())
    ),
    "permutation": DrawParameters(("x", "axis"), frozenset({"axis"})),
    "permuted": DrawParameters(("x", "axis", "out"), frozenset({"axis", "out"})),
    "shuffle": DrawParameters(("x", "axis"), frozenset({"axis"})),
}
_LEGACY_CHOICE = {
    "choice": DrawParameters(("a", "size", "replace", "p"), frozenset({"size", "replace"})),
    "permutation": DrawParameters(("x",), frozenset()),
    "shuffle": DrawParameters(("x",), frozenset()),
}

_BIT_GENERATORS = frozenset(
    {np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64}
)
"""Bit generators whose state is all in their attribute `state`."""


def _state(generator: Any) -> Any:
    return generator.bit_generator.state


def _put_back(generator: Any, state: Any) -> None:
    generator.bit_generator.state = state


def _legacy_state(generator: Any) -> Any:
    return generator.get_state(legacy=False)


KINDS: dict[type, GeneratorKind] = {
    np.random.Generator: GeneratorKind(
        {**_table(_DISTRIBUTIONS), **_table(_GENERATOR), **_CHOICE},
        _state,
        _put_back,
        Code("type(x) is {0} and type(x.bit_generator) in {1}", (np.random.Generator, _BIT_GENERATORS)),
    ),
    np.random.RandomState: GeneratorKind(
        {**_table(_DISTRIBUTIONS), **_table(_RANDOM_STATE), **_LEGACY_CHOICE},
        _legacy_state,
        np.random.RandomState.set_state,
        Code("type(x) is {0} and type(x._bit_generator) in {1}", (np.random.RandomState, _BIT_GENERATORS)),
    ),
    random.Random: GeneratorKind(
        _table(_RANDOM), random.Random.getstate, random.Random.setstate, Code("type(x) is {0}", (random.Random,))
    ),
}
"""The kinds, by their exact types: a subclass may draw in its own way, and so may a bit generator of the program's."""


MAKERS: dict[str, Callable[..., Any]] = {
    "default_rng": np.random.default_rng,
    "RandomState": np.random.RandomState,
    "Random": random.Random,
}
"""Functions that make a generator of a seed, by name. Called with a seed, they draw on nothing else."""


def is_maker(value: object) -> bool:
    """Whether it is one of `MAKERS`."""
    return any(value is maker for maker in MAKERS.values())


def kind_of(value: object) -> GeneratorKind | None:
    """The kind of a generator; None for what is none, or none that a replay can draw from."""
    kind = KINDS.get(type(value))
    if kind is None or type(value) is random.Random:
        return kind
    bits = value._bit_generator if type(value) is np.random.RandomState else value.bit_generator  # type: ignore[attr-defined]
    return kind if type(bits) in _BIT_GENERATORS else None


def is_method(value: Any) -> bool:
    """Whether a value is a drawing method, bound to a generator: `np.random.normal` is."""
    if type(value) not in (MethodType, BuiltinMethodType):
        return False
    owner = value.__self__
    kind, name = kind_of(owner), value.__name__
    return kind is not None and name in kind.methods and bool(value == getattr(owner, name))


def is_same_state(one: Any, other: Any) -> bool:
    """Whether two states of one kind of generator are the same."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same_state(part, other[key]) for key, part in one.items())
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)
