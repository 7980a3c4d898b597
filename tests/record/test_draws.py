"""Draws: random numbers of a generator that is passed in, held or global, against the same calls on NumPy."""

from __future__ import annotations

import copy
import functools
import random
import warnings
from collections.abc import Callable
from types import MethodType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from accel.platform.ledger import open_ledger
from accel.policy.call import Call

BITS = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)


def field(i: int, *shape: int) -> Any:
    return np.random.default_rng(1000 + i).normal(size=shape or (12,))


def world(make: Callable[[], Any] = lambda: np.random.default_rng(7), *more: Any) -> Callable[[], Any]:
    """Arguments of calls that share one generator: a field, the generator, and `more`."""

    def new() -> Any:
        generator, rest = make(), copy.deepcopy(more)
        return lambda i: (field(i), generator, *rest)

    return new


def legacy() -> Any:
    return np.random.RandomState(3)


# -- generators passed in, held, global --------------------------------------------------------------------------------


def langevin(x: Any, rng: Any) -> Any:
    return x - 0.1 * x + np.sqrt(0.1) * rng.standard_normal(x.shape)


@pytest.mark.parametrize("bits", BITS)
def test_every_bit_generator(check: Any, bits: Any) -> None:
    check(langevin, worlds=world(lambda: np.random.Generator(bits(5))))


def test_the_legacy_generator(check: Any) -> None:
    """Its normal numbers come in pairs: an odd count leaves one behind, which is part of the state."""
    check(lambda x, rng: x + rng.normal(size=3).sum() + rng.randn(5).mean() + rng.rand(), worlds=world(legacy))


def test_pythons_generator(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        return x * rng.random() + rng.gauss(0.0, 2.0), rng.randint(1, 6) * x.sum(), rng.uniform(1.0, 2.0)

    check(work, worlds=world(lambda: random.Random(4)))


def test_a_generator_jumped_ahead(check: Any) -> None:
    check(langevin, worlds=world(lambda: np.random.Generator(np.random.PCG64(5).jumped(3))))


def test_spawned_generators(check: Any) -> None:
    def new() -> Any:
        one, two = np.random.default_rng(9).spawn(2)
        return lambda i: (field(i), one, two)

    def work(x: Any, one: Any, two: Any) -> Any:
        return x + one.normal(size=12) - two.normal(size=12) * one.random()

    check(work, worlds=new)


class Particles:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(2)
        self.x = np.zeros(10)
        self.steps = 0

    def kick(self) -> Any:
        return self.rng.normal(0.0, 0.5, size=self.x.shape)

    def step(self, dt: float) -> Any:
        self.x = self.x * (1.0 - dt) + np.sqrt(dt) * self.kick()
        self.steps += 1
        if self.steps == 7:
            self.rng = np.random.default_rng(11)
        return self.x.mean()


def test_a_generator_held_in_an_attribute(check: Any) -> None:
    def new() -> Any:
        particles = Particles()
        return lambda i: (particles, 0.1)

    check(Particles.step, worlds=new, calls=6)


def test_a_generator_that_is_replaced_between_calls(check: Any) -> None:
    def new() -> Any:
        particles = Particles()

        def make(i: int) -> Any:
            if i == 5:
                particles.rng = np.random.Generator(np.random.PCG64(77))
            if i == 7:
                particles.rng = np.random.Generator(np.random.SFC64(77))
            return (particles,)

        return make

    check(lambda p: p.x + p.kick(), worlds=new)


def test_a_generator_that_becomes_another_kind(check: Any) -> None:
    def new() -> Any:
        old, young = legacy(), np.random.default_rng(3)
        return lambda i: (field(i), old if i % 3 == 2 else young)

    check(lambda x, rng: x + rng.normal(size=12), worlds=new, calls=18, replays=6)


def test_two_names_of_one_generator(check: Any) -> None:
    def new() -> Any:
        one, two = np.random.default_rng(1), np.random.default_rng(2)
        return lambda i: (field(i), one, one if i % 2 else two)

    def work(x: Any, a: Any, b: Any) -> Any:
        return x * a.random() + b.normal(size=12) - a.normal(size=12)

    check(work, worlds=new, calls=20, replays=8)


def test_two_generators_of_one_bit_generator(check: Any) -> None:
    def new() -> Any:
        bits = np.random.PCG64(4)
        one, two = np.random.Generator(bits), np.random.Generator(bits)
        return lambda i: (field(i), one, two)

    check(lambda x, a, b: x * a.random() + b.normal(size=12) - a.random(), worlds=new)


class Loud(np.random.Generator):
    def normal(self, *args: Any, **kwargs: Any) -> Any:
        return super().normal(*args, **kwargs) + 1.0


def test_a_subclass_is_left_to_numpy(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        return x + rng.normal(size=12)

    for kind in (Loud, type("Quiet", (np.random.Generator,), {})):
        checked = check(work, worlds=world(lambda kind=kind: kind(np.random.PCG64(1))), replays=0)  # type: ignore[misc]
        assert checked.ledger.compiled_calls == 0


class Own(np.random.PCG64):
    pass


def test_a_bit_generator_of_the_programs_own_is_left_to_numpy(check: Any) -> None:
    checked = check(langevin, worlds=world(lambda: np.random.Generator(Own(1))), replays=0)
    assert checked.ledger.compiled_calls == 0


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_a_generator_that_is_only_asked_about(check: Any, kind: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        y = x * 2.0 if isinstance(rng, np.random.Generator) and rng else x
        return y, rng, type(rng) is np.random.RandomState, hasattr(rng, "randn"), {rng: 1}[rng], rng == rng

    check(work, worlds=world(lambda: kind(3)))


def test_methods_go_where_functions_go(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        draw = functools.partial(rng.normal, 0.0, 2.0)
        table = {"a": rng.random, "b": lambda n: getattr(rng, "exponential")(size=n)}  # noqa: B009
        parts = list(map(rng.normal, [1.0, 2.0])), [rng.random() for _ in range(3)]
        return x * draw(size=12) + table["a"]() - table["b"](12), parts, max(rng.random(), 0.0), rng.integers(9) == 3

    check(work, worlds=world(), calls=20, replays=10)


def test_a_method_must_not_leave_the_call(check: Any) -> None:
    def new() -> Any:
        holder = SimpleNamespace(rng=np.random.default_rng(0), draw=None)
        return lambda i: (field(i), holder)

    def work(x: Any, holder: Any) -> Any:
        holder.draw = holder.rng.normal
        return x * holder.draw()

    check(work, worlds=new, reason="escape.object")


def played(function: Any, calls: int, accelerated: bool, name: str) -> Any:
    """Calls of a function that draws from the global generators, and their states after each."""
    fast = accel.accelerate(function, name=name) if accelerated else function
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    seen = []
    for i in range(calls):
        seen.append((fast(field(i)), str(np.random.get_state()), random.getstate()))  # noqa: NPY002
        np.random.rand()  # noqa: NPY002
    return seen


def modules(x: Any) -> Any:
    y = x + np.random.normal(0.0, 0.5, size=x.shape) + np.random.rand()  # noqa: NPY002
    return y * random.random() + random.gauss(0.0, 1.0) + np.random.randint(0, 9, size=12)  # noqa: NPY002


normal = np.random.normal


def named(x: Any) -> Any:
    return x + normal(size=3).sum() + LATE.draw(size=12)


LATE = SimpleNamespace(draw=random.Random(1).random)


def test_the_global_generators() -> None:
    with np.printoptions(threshold=10**6):
        plain, fast = (played(modules, 12, on, "modules") for on in (False, True))
    for (mine, *mine_states), (theirs, *theirs_states) in zip(plain, fast, strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=1e-12)
        assert theirs_states == mine_states
    assert open_ledger("modules").compiled_calls >= 8


def test_a_method_that_is_held(check: Any) -> None:
    def new() -> Any:
        draw = np.random.default_rng(8).normal
        return lambda i: (field(i), draw)

    check(lambda x, draw: x + draw(size=12) * draw(), worlds=new)


def test_a_function_bound_to_a_generator_is_none_of_its_methods(check: Any) -> None:
    def normal(rng: Any, size: int) -> Any:
        return rng.random(size) + 1.0

    def new() -> Any:
        draw = MethodType(normal, np.random.default_rng(8))
        return lambda i: (field(i), draw)

    check(lambda x, draw: x + draw(12), worlds=new)


# -- what is drawn -----------------------------------------------------------------------------------------------------


def test_types_are_those_that_numpy_gives(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        numbers = rng.random(), rng.integers(1 << 40), rng.poisson(4.0), rng.random(dtype=np.float32), rng.choice([0.5])
        arrays = rng.random(size=()), rng.integers(9, size=3, dtype=np.int8), rng.standard_normal(4, np.float32)
        return x * 2, numbers, arrays, rng.multinomial(5, [0.25, 0.75]), rng.dirichlet((1.0, 2.0), size=(2,))

    check(work, worlds=world(), exact=True)


def test_sizes_and_parameters_from_numbers_of_the_call(check: Any) -> None:
    def work(x: Any, rng: Any, n: int, scale: float) -> Any:
        return x[:n] + rng.normal(scale, 2.0 * scale, size=n), rng.exponential(scale=scale + rng.random())

    def new() -> Any:
        rng = np.random.default_rng(0)
        return lambda i: (field(i), rng, 3 + i % 2, 0.25 + i)

    check(work, worlds=new, calls=16, replays=8)


def test_arrays_of_the_call_as_parameters(check: Any) -> None:
    weights = np.arange(1.0, 13.0) / 78.0

    def work(x: Any, rng: Any, p: Any) -> Any:
        mean = rng.multivariate_normal(x[:2], np.eye(2), size=3)
        return (
            rng.poisson(p),
            rng.choice(12, 4, p=p),
            rng.permutation(x),
            rng.binomial(9, 1.0 / (1.0 + np.exp(-x))),
            mean,
        )

    check(work, worlds=world(lambda: np.random.default_rng(1), weights))


def test_little_computations_as_parameters(check: Any) -> None:
    """NumPy makes them again before the draw, and gets the very numbers that it would have."""
    matrix = field(0, 12, 12)

    def work(x: Any, rng: Any, m: Any) -> Any:
        noise = rng.normal(size=12)
        rate = np.exp(0.1 * noise)
        noise *= 5.0
        noise[:] = 1.0
        infected = rng.binomial(np.arange(12), 1.0 - np.exp(-((0.8 * np.abs(x) + 0.1 * m @ np.abs(x)) ** 2)))
        x[:] = np.abs(x)
        p = x / x.sum()
        drawn = rng.poisson(rate), rng.poisson(np.sqrt(x)), rng.poisson(x.reshape(3, 4).mean(axis=0)), infected
        return drawn, rng.choice(12, 4, p=p), rng.choice(np.cumsum(x), 3, p=p), rng.binomial(5, float((x > 0.5).mean()))

    check(work, worlds=world(lambda: np.random.default_rng(1), matrix))


def test_lists_and_elements_as_parameters(check: Any) -> None:
    def work(x: Any, rng: Any, rates: Any, pythons: Any) -> Any:
        rates[0] = x.mean() ** 2
        drawn = rng.choice(rates), rng.choice(rates, 3, p=[0.2, 0.3, 0.5]), rng.poisson(rates)
        single = rng.normal(x[0], np.abs(x[1])), rng.poisson(np.abs(x[0])), pythons.uniform(x.min(), x.max() + 1.0)
        return drawn, single, np.random.default_rng(int(np.abs(x[2]) * 100.0)).random(3) * x.sum()

    check(work, worlds=world(lambda: np.random.default_rng(1), [1.0, 2.0, 3.0], random.Random(2)))


def test_an_array_that_changes_before_it_is_a_parameter(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        x *= 0.5
        x[2] = 3.0
        return rng.normal(x, 1.0), rng.permutation(x)

    check(work, worlds=world())


COMPUTED = {
    "normal": lambda r, loc, scale: (r.normal(loc, scale), r.normal(loc.mean(), scale.max()), r.normal(scale=scale)),
    "size": lambda r, loc, scale: r.normal(loc, scale, size=(3, 12)),
    "broadcast": lambda r, loc, scale: r.normal(loc[:, None], scale),
    "narrow": lambda r, loc, scale: r.normal(loc.astype(np.float32), 1.0) + r.normal((9 * loc).astype(int), 1.0),
    "lognormal": lambda r, loc, scale: (r.lognormal(loc, 0.1 * scale), r.lognormal(loc.mean(), 0.5)),
    "uniform": lambda r, loc, scale: (r.uniform(loc, loc + scale), r.uniform(loc.min() - 1.0, loc.max())),
    "exponential": lambda r, loc, scale: (r.exponential(scale), r.exponential(scale.max()), r.rayleigh(scale)),
    "others": lambda r, loc, scale: (r.laplace(loc, scale), r.gumbel(loc, scale), r.logistic(loc, scale)),
}


@pytest.mark.parametrize("kind", [lambda: np.random.default_rng(7), legacy])
@pytest.mark.parametrize("name", COMPUTED)
def test_parameters_that_the_program_computes(check: Any, name: str, kind: Any) -> None:
    draw = COMPUTED[name]

    def work(x: Any, rng: Any) -> Any:
        cumulated = np.cumsum(x) * 0.1
        return draw(rng, cumulated, np.abs(cumulated) + 0.5), rng.random()

    check(work, worlds=world(kind))


def test_a_computed_parameter_that_numpy_does_not_take(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        return rng.normal(0.0, np.cumsum(x)[-1] + 2.0, size=3), rng.uniform(0.0, np.cumsum(x)[-1] + 3.0)

    check(work, worlds=world(), calls=30, replays=10)


def test_ranges_that_only_the_legacy_generator_takes(check: Any) -> None:
    """It takes ranges below zero, but no infinite ones, whichever it is given first."""

    def work(x: Any, rng: Any, high: Any) -> Any:
        return x + rng.uniform(0.0, high * 2.0), rng.random()

    def new() -> Any:
        rng = legacy()
        return lambda i: (field(i), rng, np.full(12, -1.0 if i < 6 else np.inf if i % 5 == 4 else 1.0))

    check(work, worlds=new, calls=30, replays=10)


def test_a_number_that_numpy_does_not_take(check: Any) -> None:
    def new() -> Any:
        rng = np.random.default_rng(0)
        return lambda i: (field(i), rng, -1.0 if i % 4 == 3 else 1.0)

    check(lambda x, rng, scale: x + rng.random() + rng.normal(0.0, scale, size=12), worlds=new, calls=20, replays=8)


def test_elements_of_what_the_program_computes(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        y = np.cumsum(x)
        table = y.reshape(3, 4)
        drawn = rng.permutation(y), rng.choice(y, 5), rng.choice(y, (2, 2), replace=False), rng.permutation(table)
        return drawn, rng.choice(table, 2), rng.random()

    check(work, worlds=world())


def test_elements_along_an_axis(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        table = np.cumsum(x).reshape(3, 4)
        rng.shuffle(table, axis=1)
        return table, rng.permutation(table, axis=1), rng.choice(table, 3, axis=1), rng.permuted(x)

    check(work, worlds=world())


@pytest.mark.parametrize("kind", [lambda: np.random.default_rng(7), legacy])
def test_shuffles_in_place(check: Any, kind: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        y = np.cumsum(x)
        rng.shuffle(y[2:9])
        rng.shuffle(y[::2])
        table = y.reshape(3, 4)
        rng.shuffle(table)
        rng.shuffle(x)
        return y, x + 1.0, rng.random()

    check(work, worlds=world(kind))


def test_draws_into_arrays(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        made = np.empty(12)
        given = rng.random(out=made)
        rng.standard_normal(out=made[:5])
        rng.standard_exponential(out=x)
        return made, given, x + 1.0

    check(work, worlds=world(), reason="effect.random")


def test_what_is_drawn_may_be_changed_kept_and_given_back(check: Any) -> None:
    def new() -> Any:
        rng, holder = np.random.default_rng(5), SimpleNamespace(noise=None)
        return lambda i: (rng, holder)

    def work(rng: Any, holder: Any) -> Any:
        noise = rng.normal(size=5)
        noise *= 2.0
        noise[1] = 9.0
        holder.noise = rng.random(3)
        return noise, noise, holder.noise, rng.normal()

    check(work, worlds=new)


def test_a_generator_made_in_the_call(check: Any) -> None:
    def work(x: Any, rng: Any, seed: int) -> Any:
        own, same = np.random.default_rng(seed=seed), np.random.default_rng(rng)
        old, pythons = np.random.RandomState(seed), random.Random(seed)
        kinds = isinstance(old, np.random.RandomState), isinstance(rng, np.random.RandomState), same is rng
        more = old.normal(size=3), pythons.gauss(0.0, 1.0), np.random.default_rng([3, seed]).random()
        return x + own.normal(size=12) * same.random(), own.integers(0, 9, size=3), kinds, more

    def new() -> Any:
        rng = np.random.default_rng(0)
        return lambda i: (field(i), rng, i)

    check(work, worlds=new)


def test_loops_masks_and_batches(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        for _ in range(12):
            x = 0.9 * x + 0.1 * rng.standard_normal(12) + rng.normal()
        x[x > 0.0] += rng.random(12)[x > 0.0]
        order, total = rng.permutation(12), 0.0
        for start in range(0, 12, 4):
            total = total - 0.1 * (total - x[order[start : start + 4]].mean())
        return x, total, x[rng.integers(0, 12, size=12)].mean()

    check(work, worlds=world())


def test_an_ensemble_kalman_filter(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        ensemble = x.reshape(3, 4)
        observed = ensemble + 0.1 * rng.standard_normal((3, 4))
        anomaly = ensemble - ensemble.mean(axis=1, keepdims=True)
        return ensemble + anomaly @ (anomaly.T @ (observed - ensemble)) / 3.0

    check(work, worlds=world())


# -- what is refused, and put back -------------------------------------------------------------------------------------


def seeding(x: Any, rng: Any) -> Any:
    np.random.seed(3)  # noqa: NPY002
    return x * np.random.rand(12)  # noqa: NPY002


def spawning(x: Any, rng: Any) -> Any:
    return x * rng.random() + rng.spawn(1)[0].random()


def looking(x: Any, rng: Any) -> Any:
    return x * rng.random() * (rng.bit_generator.state["state"]["state"] > 0)


def telling(x: Any, rng: Any) -> Any:
    return x * 2.0, f"{rng.random():.3f}"


def words(x: Any, rng: Any) -> Any:
    return x * rng.random(), rng.choice(["a", "b"])


def lists(x: Any, rng: Any) -> Any:
    cards = [1.0, 2.0, 3.0]
    rng.shuffle(cards)
    return x * cards[0]


def deep(x: Any, rng: Any) -> Any:
    for _ in range(10):
        x = np.sin(x) + np.roll(x, 1)
    return rng.poisson(np.abs(x))


def of_lists(x: Any, rng: Any) -> Any:
    return rng.normal([x.mean(), 1.0], 1.0)


def permuted_out(x: Any, rng: Any) -> Any:
    y = np.empty(12)
    rng.permuted(x, out=y)
    return y


def unseeded(x: Any, rng: Any) -> Any:
    return x * rng.random() + 0.0 * np.random.default_rng().random()


def setting(x: Any, rng: Any) -> Any:
    state = rng.bit_generator.state
    y = x * rng.random()
    rng.bit_generator.state = state
    return y * rng.random()


@pytest.mark.parametrize("says", [False, True])
def test_the_state_of_a_bit_generator_is_set_to_a_plain_dict(says: bool) -> None:
    """Its C code takes nothing else. A call with `try` goes on where its recording ends. says: it ended before."""
    rng, x = np.random.default_rng(0), np.arange(3.0)

    @accel.accelerate
    def restored(rng: Any, state: dict[str, Any], x: Any) -> Any:
        try:
            if says:
                print(end="")
            rng.bit_generator.state = state
        except ValueError:
            return None
        return x + rng.random(3)

    state = rng.bit_generator.state
    expected = x + np.random.default_rng(0).random(3)
    for _ in range(3):
        np.testing.assert_array_equal(restored(rng, state, x), expected)


@pytest.mark.parametrize("looped", [False, True])
def test_a_recording_that_has_ended_leaves_no_proxies_to_the_rest_of_a_line(looped: bool) -> None:
    """Python tells of lines. Here the generator is read anew, as it is, in the second statement of one."""
    rng, count = np.random.default_rng(0), 0

    @accel.accelerate
    def restored(x: Any, state: dict[str, Any]) -> Any:
        nonlocal count
        try:  # so that the call goes on where its recording ends
            # fmt: off
            if looped:
                for _ in x: print(end=str(x)[:0]); rng.bit_generator.state = state; count += 1  # noqa: E701, E702
            else:
                print(end=str(x)[:0]); rng.bit_generator.state = state; count += 1  # noqa: E702
            # fmt: on
        except ValueError:
            return None
        return x + rng.random(3)

    x, state = np.arange(3.0), rng.bit_generator.state
    expected = x + np.random.default_rng(0).random(3)
    for _ in range(3):
        np.testing.assert_array_equal(restored(x, state), expected)
    assert count == (9 if looped else 3)


@pytest.mark.parametrize(
    "function", [seeding, spawning, looking, telling, words, lists, of_lists, permuted_out, deep, unseeded, setting]
)
def test_what_a_replay_cannot_repeat(check: Any, function: Any) -> None:
    np.random.seed(0)  # noqa: NPY002
    checked = check(function, worlds=world(), reason="effect.random")
    (detail,) = {refusal.detail for refusal in checked.ledger.refusals if refusal.reason == "effect.random"}
    assert detail


def test_a_new_generator_must_not_leave_the_call(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        own = np.random.default_rng(3)
        return x * own.random(), own

    check(work, worlds=world(), reason="escape.object")


def test_an_exception_half_way_leaves_what_numpy_leaves(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        y = x + rng.normal(size=12)
        if y.sum() > 1.0:
            raise ValueError("too much")
        return y * rng.random()

    check(work, worlds=world(), calls=30, replays=5)


def test_a_handled_exception_leaves_what_numpy_leaves(check: Any) -> None:
    def work(x: Any, rng: Any) -> Any:
        try:
            y = rng.normal(0.0, float(np.sign(x[0])), size=12)
        except ValueError:
            y = rng.random(12)
        return x + y

    check(work, worlds=world(), calls=20, replays=0)


def test_recordings_that_are_undone_put_the_state_back() -> None:
    ran = []

    def work(x: Any, rng: Any) -> Any:
        y = rng.random(size=len(x))
        ran.append(len(ran))
        return y[np.array(list("abc")) == "a"] if y.shape == (3,) else np.vectorize(float)(y)

    fast = accel.accelerate(work, name="undone")
    mine, theirs = np.random.default_rng(0), np.random.default_rng(0)
    for i in range(6):
        expected = work(field(i), mine)
        np.testing.assert_array_equal(fast(field(i), theirs), expected)
        assert mine.bit_generator.state == theirs.bit_generator.state


def test_numpys_answer_starts_where_the_draws_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails after a run, NumPy's call finds the generator as it was."""
    fast = accel.accelerate(langevin, name="late fault")
    mine, theirs = np.random.default_rng(0), np.random.default_rng(0)
    for i in range(6):
        np.testing.assert_allclose(fast(field(i), theirs), langevin(field(i), mine), rtol=1e-12)
    assert open_ledger("late fault").compiled_calls

    def failing(*args: Any) -> None:
        raise OSError("planted")

    monkeypatch.setattr("accel.dispatch.replay.commit.Builder", failing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(fast(field(9), theirs), langevin(field(9), mine))
    assert mine.bit_generator.state == theirs.bit_generator.state
    assert Call(langevin, (), {}).put_back is None
