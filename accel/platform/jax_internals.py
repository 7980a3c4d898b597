"""All private interfaces of JAX that accel uses. tests/platform/test_jax_internals.py fails if one of them is gone.
(For jaxlib's, see accel.backend.lapack.)

Nothing here imports JAX, and nothing raises. If a version of JAX lacks an interface, the answer is the safe one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _part(module: str, name: str) -> Any:
    """A private attribute of JAX; None if JAX is not imported, or does not have it."""
    return getattr(sys.modules.get(f"jax._src.{module}"), name, None)


def backends_are_initialized() -> bool:
    """Whether JAX's clients for its devices have been started. If JAX cannot tell, the answer is yes."""
    initialized = _part("xla_bridge", "backends_are_initialized")
    return bool(initialized()) if callable(initialized) else "jax" in sys.modules


def distributed_state() -> tuple[Any, str]:
    """JAX's store of keys and values that all processes of a job see, and the address of its coordinator."""
    state = _part("distributed", "global_state")
    return getattr(state, "client", None), str(getattr(state, "coordinator_address", ""))


def thread_pools() -> list[Any]:
    """The threads that lower programs of several functions. A forked child does not have them: to wait for their end,
    as the pool does when it is destroyed, crashes it."""
    pool = _part("interpreters.mlir", "global_thread_pool")
    return [] if pool is None else [pool]


def import_what_locks_in_forks() -> None:
    """Import the modules among those that JAX imports whose functions for forks take a lock.

    One of them is missing where JAX's cache on disk has no use for it.
    """
    for name in ("concurrent.futures.thread", "filelock"):
        with contextlib.suppress(Exception):
            importlib.import_module(name)


@contextmanager
def numpys_stream_kept() -> Iterator[None]:
    """Keep NumPy's global stream of random numbers as it is while this thread imports JAX.

    JAX's support for clusters draws from it by `np.random.rand` as it is imported (jax/_src/clusters/k8s_cluster.py),
    and the program's next numbers would be others. Other threads draw from it meanwhile as always: so its state cannot
    simply be put back.
    """
    from numpy import random

    usual, thread, own = random.rand, threading.get_ident(), random.RandomState(0)

    def rand(*shape: int) -> Any:
        return (own.rand if threading.get_ident() == thread else usual)(*shape)

    random.rand = rand
    try:
        yield
    finally:
        if random.rand is rand:
            random.rand = usual


class _Hushed(threading.local):
    depth = 0
    """The blocks of `quiet_logs` that this thread is in."""


_hushed = _Hushed()


def _is_shown(record: logging.LogRecord) -> bool:
    return not _hushed.depth or record.levelno >= logging.WARNING


_SPEAKS_ON_IMPORT = "jax._src.path"
"""The logger that logs while JAX is imported."""


@contextmanager
def quiet_logs() -> Iterator[None]:
    """A block in which JAX logs no INFO or DEBUG in this thread: the program did not ask for what accel does with JAX.

    JAX's loggers have no handlers of their own: what they log would appear wherever the program logs to. Warnings pass,
    and so does what other threads do with JAX. (The level of JAX's logger stays as it is: JAX reads it when imported.)
    """
    logging.getLogger(_SPEAKS_ON_IMPORT)
    for name, logger in tuple(logging.root.manager.loggerDict.items()):
        if name.startswith("jax") and isinstance(logger, logging.Logger):
            logger.addFilter(_is_shown)  # once: it looks whether it is there
    _hushed.depth += 1
    try:
        yield
    finally:
        _hushed.depth -= 1


COMPOSITE = "call_hi_primitive"
"""Name of JAX's composite operations (from 0.12 on)."""


def expanded(eqn: Any) -> Any:
    """Return the traced implementation of one of JAX's composite operations; None for other operations.

    `jnp.nonzero`, `jnp.searchsorted` and `jnp.einsum` are among them.
    """
    composite = eqn.params.get("_prim")
    if eqn.primitive.name != COMPOSITE or not (hasattr(composite, "expand") and hasattr(composite, "in_tree")):
        return None
    return _expanded(composite, tuple((var.aval.shape, var.aval.dtype) for var in eqn.invars))


@functools.lru_cache(maxsize=256)
def _expanded(composite: Any, forms: tuple[Any, ...]) -> Any:
    jax = sys.modules["jax"]

    def implementation(*operands: Any) -> Any:
        return jax.tree.leaves(composite.expand(*jax.tree.unflatten(composite.in_tree, operands)))

    return jax.make_jaxpr(implementation)(*(jax.ShapeDtypeStruct(*form) for form in forms))


def has_listeners() -> bool:
    """Whether JAX tells somebody of what it does, while it compiles too. If JAX cannot say, the answer is yes."""
    known = [_part("monitoring", name) for name in _LISTENERS]
    return None in known or any(known)


_LISTENERS = ("_event_listeners", "_event_duration_secs_listeners", "_scalar_listeners")


def leave_without_cleaning_up() -> None:
    """Unregister JAX's clean-up at exit.

    For a forked child: the clean-up destroys the clients, and takes locks that another thread may have held.
    """
    clean_up = _part("api", "clean_up")
    if callable(clean_up):
        atexit.unregister(clean_up)
