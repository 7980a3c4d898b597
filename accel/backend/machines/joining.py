"""Join the processes of a job. Rank 0 goes on to the program; the others serve it until it ends.

JAX finds the other processes, from the variables of the cluster's launcher or from addresses. Its key-value store then
tells the others where rank 0 listens.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pickle
import secrets
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from accel.backend import devices
from accel.backend.machines import chatter, crew, launchers
from accel.backend.machines.crew import CONNECTIONS, Crew, Rank
from accel.platform import config, jax_internals, ledger, logs
from accel.platform.config import SettingError, Settings

PATIENCE_S = 300
"""Seconds that ranks wait for each other at the start."""

_PLACE = "accel/place"
"""Key of rank 0's address in JAX's store."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def join(settings: Settings) -> Settings:
    """Join the processes that the settings name. Returns the program's settings in rank 0; other ranks end here.

    Call this before the program's first line. Raises SettingError.
    """
    given = _addresses(settings)
    with chatter.held_back(), _limited(settings), _interrupted_at_once():
        jax = devices.import_jax()
        for name, value in (("jax_enable_recoverability", True), ("jax_enable_preemption_service", False)):
            # accel reports a rank's loss in one line; SIGTERM stays the program's
            if name in jax.config.values:
                jax.config.update(name, value)
        with warnings.catch_warnings(record=True) as warned:  # the program's streams stay as they are
            try:
                jax.distributed.initialize(**given, initialization_timeout=2 * PATIENCE_S)  # `_limited` comes first
            except Exception as error:
                problem = f"{type(error).__name__}: {error}".splitlines()[0]
                words = " ".join([problem, *(str(each.message) for each in warned)]).split()
                raise _error(settings, " ".join(words)) from error
        if jax_internals.distributed_state()[0] is None:
            raise _error(settings, "this version of JAX has no store of keys and values")
        # what it starts depends on the settings
        joined = replace(settings, devices=config.ALL if settings.devices == 1 else settings.devices)
        config.set_current(joined)
        devices.start(0)
        rank, size = jax.process_index(), jax.process_count()
        try:
            lines = _serving_lines(rank) if rank else {}
            if not rank:
                crew.current = _assembled(size)
        except (OSError, EOFError, RuntimeError, multiprocessing.ProcessError) as error:
            raise _error(
                settings, f"another rank is gone, or belongs to another job: {type(error).__name__}: {error}"
            ) from error
    if rank:
        from accel.backend.machines.serving import serve

        serve(lines, rank, size)
    sys.meta_path.insert(0, _NoMPI())
    told = f"rank 0 of {size} runs the program; the others compute with it, and print and write nothing"
    ledger.current_run().note(told)
    logs.LOGGER.info("%s", told)
    # registered before the program's own handlers, and so called after them
    atexit.register(_end, os.getpid())
    # the children of the program are no ranks
    os.environ.pop(config.VARIABLES["machines"], None)
    return joined


def _addresses(settings: Settings) -> dict[str, Any]:
    """Return the processes' addresses and numbers for JAX; empty if JAX finds them itself. Raises SettingError."""
    address = None if settings.machines == config.CLUSTER else settings.machines
    told = launchers.described(os.environ, address, settings.processes, settings.process)
    if told is None:
        return {}
    given = {"processes": told["num_processes"], "process": told["process_id"]}
    unset = [config.VARIABLES[name] for name, value in given.items() if value is None]
    if unset:
        raise _error(settings, f"{' and '.join(unset)} {'are' if unset[1:] else 'is'} unset, and no launcher says it")
    if given["process"] >= given["processes"]:
        possible = f"a whole number below {given['processes']}"
        raise SettingError(config.VARIABLES["process"], given["process"], possible)
    return told


def _error(settings: Settings, problem: str) -> SettingError:
    name, number, own = (config.VARIABLES[each] for each in ("machines", "processes", "process"))
    possible = f"{config.CLUSTER} under a launcher that JAX knows, or HOST:PORT with {number} and {own}"
    return SettingError(name, settings.machines, possible, f"cannot be used: {problem}")


class _NoMPI:
    """Ends a program that uses MPI itself. It would wait for ranks that do not run it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Find nothing."""
        if name == "mpi4py.MPI":
            raise SystemExit(f"accel: {config.VARIABLES['machines']} is for programs that do not use MPI themselves")


def _end(process: int) -> None:
    if crew.current is not None and os.getpid() == process:
        crew.current.end()


# -- connections -------------------------------------------------------------------------------------------------------


def _assembled(size: int) -> Crew:
    """Wait in rank 0 until all other ranks have connected."""
    store, coordinator = jax_internals.distributed_state()
    host = coordinator.rsplit(":", 1)[0].strip("[]")
    key = secrets.token_bytes(32)
    alone = host in _LOOPBACK
    with Listener((host if alone else "", 0), backlog=3 * size, authkey=key) as listener:
        store.key_value_set_bytes(_PLACE, pickle.dumps((host, listener.address[1], key)))
        lines: dict[int, dict[str, Connection]] = {}
        about: dict[int, str] = {}
        while sum(map(len, lines.values())) < (size - 1) * len(CONNECTIONS):
            try:
                line = listener.accept()
            except (OSError, EOFError, multiprocessing.ProcessError):
                continue  # no rank, but what looks for open ports
            _keep_alive(line)
            rank, name, about[rank] = line.recv()
            lines.setdefault(rank, {})[name] = line
    return Crew([Rank(rank, about[rank], lines[rank]) for rank in sorted(lines)], size)


def _serving_lines(rank: int) -> dict[str, Connection]:
    """Connect another rank to rank 0."""
    store, _ = jax_internals.distributed_state()
    host, port, key = pickle.loads(store.blocking_key_value_get_bytes(_PLACE, PATIENCE_S * 1000))
    about = f"process {os.getpid()} on {socket.gethostname()}"
    lines = {}
    for name in CONNECTIONS:
        lines[name] = Client((host, port), authkey=key)
        _keep_alive(lines[name])
        lines[name].send((rank, name, about))
    return lines


@contextmanager
def _limited(settings: Settings) -> Iterator[None]:
    """End the process with one line if the block takes too long: JAX's waits inside it cannot be interrupted
    otherwise."""

    def give_up() -> None:
        name = config.VARIABLES["machines"]
        chatter.say(f"{name}={settings.machines!r}: the ranks have not met within {PATIENCE_S} s: the job ends")
        os._exit(1)

    timer = threading.Timer(PATIENCE_S, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _interrupted_at_once() -> Iterator[None]:
    """Let Ctrl-C end the block at once: JAX waits in it, where no Python handler runs."""
    usual = signal.getsignal(signal.SIGINT)
    own = usual is signal.default_int_handler
    if own:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if own:
            signal.signal(signal.SIGINT, usual)


_KEEP_ALIVE = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""TCP options that detect a lost machine within a minute. Such a machine closes no connection."""


def _keep_alive(line: Connection) -> None:
    with socket.socket(fileno=os.dup(line.fileno())) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):
                own.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
