"""Paths of a stochastic volatility model, with a generator that is passed in; the price of an option at the end."""

import os

import jax
import numpy as np
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)


def simulate(key, paths, steps, rate=0.03, kappa=2.0, theta=0.04, sigma=0.3, rho=-0.6):
    dt = 1.0 / 250

    def step(n, state):
        price, variance, highest = state
        z1, z2 = jax.random.normal(jax.random.fold_in(key, n), (2, paths))
        z2 = rho * z1 + np.sqrt(1 - rho**2) * z2
        positive = jnp.maximum(variance, 0.0)
        price = price * jnp.exp((rate - 0.5 * positive) * dt + jnp.sqrt(positive * dt) * z1)
        variance = variance + kappa * (theta - positive) * dt + sigma * jnp.sqrt(positive * dt) * z2
        return price, variance, jnp.maximum(highest, price)

    first = jnp.full(paths, 100.0)
    made = jax.jit(lambda state: jax.lax.fori_loop(0, steps, step, state))((first, jnp.full(paths, theta), first))
    return tuple(map(np.asarray, made))


if __name__ == "__main__":
    steps = int(os.environ.get("STEPS", "1500"))
    price, variance, highest = simulate(jax.random.key(7), 40_000, steps)
    payoff = np.maximum(price - 100.0, 0.0)
    print(f"call {payoff.mean():.6f} +- {payoff.std() / np.sqrt(len(payoff)):.6f}")
    print(f"lookback {(highest - price).mean():.6f}, variance {variance.mean():.6f}")
