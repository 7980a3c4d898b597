"""Models as physicists write them: their steps in a scan, derivatives through it, batches and ensembles are right."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import accel

jax = pytest.importorskip("jax")

WIND = 0.3
STEPS = 5


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@dataclass
class _State:
    u: Any = field(default_factory=lambda: np.linspace(1.0, 2.0, 5))
    q: Any = field(default_factory=lambda: np.linspace(0.5, 1.5, 5))
    t: float = 0.0


@dataclass(frozen=True)
class _Params:
    drag: float = 0.3
    dt: float = 0.1


class _Model:
    def __init__(self) -> None:
        self.state, self.params = _State(), _Params()


class Buffered(_Model):
    """A state that is replaced, of which parts are shared; a ring of two buffers, averaged once it is full."""

    def __init__(self) -> None:
        super().__init__()
        self.ring, self.n, self.total, self.wet = np.zeros((2, 5)), 0, 0.0, np.arange(5) % 2 == 0

    def step(self, wind: float) -> float:
        old = self.state
        u = old.u + self.params.dt * (wind - self.params.drag * old.u * np.abs(old.u))
        new = replace(old, u=u, t=old.t + self.params.dt)
        new.q[self.wet] += 0.1 * new.u[self.wet]
        self.ring[self.n % 2] = new.u
        self.n += 1
        if self.n >= 2:
            new.u = 0.5 * (self.ring[0] + self.ring[1])
        self.total += float(new.q.sum())
        self.state = new
        return self.total


class Leapfrog(_Model):
    """Two levels that swap, of which one is then filtered in place."""

    def __init__(self) -> None:
        super().__init__()
        self.old = np.linspace(0.9, 2.1, 5)

    def step(self, wind: float) -> float:
        tendency = wind - self.params.drag * self.state.u
        self.old, self.state.u = self.state.u, self.old + 2.0 * self.params.dt * tendency
        self.old += 0.05 * (self.state.u - self.old)
        return float(self.state.u.sum())


class Adaptive(_Model):
    """Steps within a step, as many as the fastest wind asks for."""

    def step(self, wind: float) -> float:
        left, rounds = self.params.dt, 0
        while left > 1e-12 and rounds < 50:
            h = min(left, 0.04 / max(float(np.abs(self.state.u).max()), 1e-6))
            self.state.u = self.state.u + h * (wind - self.params.drag * self.state.u**2)
            left -= h
            rounds += 1
        return float(self.state.u.sum())


MODELS: tuple[type[Any], ...] = (Buffered, Leapfrog, Adaptive)


def _after(kind: type[Any], u: Any) -> float:
    model = kind()
    model.state.u = np.array(u)
    return float([model.step(WIND) for _ in range(STEPS)][-1])


def _examples(kind: type[Any]) -> list[Any]:
    models = [kind()]
    for _ in range(3):
        models.append(copy.deepcopy(models[-1]))
        models[-1].step(WIND)
    return models


def _step(model: Any, wind: float) -> float:
    return float(model.step(wind))


@pytest.mark.parametrize("kind", MODELS)
def test_steps_in_a_scan_and_derivatives_through_them(kind: type[Any]) -> None:
    first, *others = _examples(kind)
    pure = accel.to_jax(_step, first, WIND, examples=[(each, WIND) for each in others])

    def after(u: Any) -> Any:
        def turn(leaves: Any, _: Any) -> Any:
            out = pure(leaves)
            return pure.next(leaves, out), (out["result"], out["ok"])

        leaves = {**pure.inputs, "model.state.u": u}
        results, oks = jax.lax.scan(turn, leaves, None, length=STEPS)[1]
        return results[-1], oks.all()

    u = np.linspace(1.0, 2.0, 5)
    members = np.stack([u, 1.1 * u, -0.5 * u])
    (values, oks), slopes = jax.jit(jax.vmap(jax.value_and_grad(after, has_aux=True)))(members)
    assert bool(oks.all())
    for member, value, slope in zip(members, values, slopes, strict=True):
        np.testing.assert_allclose(value, _after(kind, member), rtol=1e-12)
        steps = 1e-5 * np.eye(5)
        wanted = [(_after(kind, member + by) - _after(kind, member - by)) / 2e-5 for by in steps]
        np.testing.assert_allclose(slope, wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jax.jacfwd(lambda u: after(u)[0])(u), slopes[0], rtol=1e-10)


@pytest.mark.parametrize("kind", MODELS)
def test_an_ensemble_is_its_members_apart(kind: type[Any]) -> None:
    def perturb(state: Any, member: int, rng: Any) -> None:
        state["self.state.u"] *= 1.0 + 0.05 * member

    members = accel.ensemble(kind().step, WIND, members=4, perturb=perturb)
    members.step(STEPS)
    wanted = [_after(kind, np.linspace(1.0, 2.0, 5) * (1.0 + 0.05 * member)) for member in range(4)]
    np.testing.assert_allclose(members.result, wanted, rtol=1e-12)
