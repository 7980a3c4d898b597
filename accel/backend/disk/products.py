"""Products on disk: where one is kept, by which recorded paths later runs find it, and which ones are about to come.

A process that compiles may outlive its program by a while, to finish what it is at. A run that starts meanwhile waits
for that product in place of compiling the same.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass

from accel.backend.disk import cache, experience
from accel.backend.job import Product
from accel.platform import config
from accel.platform.clocks import time
from accel.rules.rule import Unsupported


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a product on disk. key: its own.

    program, paths: the keys of the program and of the recorded paths that have it; no paths if nobody can find it so.
    """

    key: str
    program: str = ""
    paths: tuple[str, ...] = ()

    def keep(self, product: Product) -> str:
        """Save the product, for later runs to find by its paths. Returns "", or why it could not be saved."""
        # a product without an executable would be of no use to a later process
        if product.key is None and product.payload is None:
            return product.unkept
        unkept = cache.keep(self.key, cache.TRACE, product)
        cache.discard(self.key, cache.BEGUN)
        if not unkept and self.paths:
            experience.note_together(self.program, self.paths)
        return unkept


def note_refused(key: str | None, error: object) -> None:
    """Let later runs know that the program of this key failed when it was tried, if that is what `error` says.

    A trial that was killed or took too long may have been the machine's fault: later runs try again, MOST_TRIES in all.
    """
    if key is None or not isinstance(error, Unsupported):
        return
    if error.reason == "compile.unfinished":
        note_begun(key)
    if error.reason == "compile.trial" or (error.reason == "compile.unfinished" and not is_worth_a_try(key)):
        cache.keep(key, cache.TRACE, error)


def read(key: str) -> Product | Unsupported | None:
    """The product of this key, or why there is none; None if nobody has compiled it."""
    found = cache.load(key, cache.TRACE, object)
    return found if isinstance(found, Product | Unsupported) else None


MOST_TRIES = 2
"""Maximum number of times that processes without their program begin one product, or try one that has no end there. A
product that takes longer than it may, or crashes its process, would be begun again after each run."""


def announce(keys: Iterable[str], process: int) -> bool:
    """Note that a process, by its id, goes on after its program's end until there are products under these keys.

    Returns whether that could be saved. Where it cannot, nor can the products.
    """
    until = time.time() + config.current().finish_s
    failed = [key for key in keys if cache.keep(key, cache.COMING, (platform.node(), process, until))]
    return not failed


def is_coming(key: str) -> bool:
    """Whether a process is about to finish the product of this key."""
    node, process, until = cache.load(key, cache.COMING, tuple) or ("", 0, 0.0)
    if node != platform.node():
        return False
    try:
        os.kill(process, 0)
    except OSError:
        until = 0.0
    if time.time() > until:
        have_come([key])
        return False
    return True


def have_come(keys: Iterable[str]) -> None:
    """Take back what was announced."""
    for key in keys:
        cache.discard(key, cache.COMING)


def note_begun(key: str) -> None:
    """Note that a process without its program begins the product of this key, or that a trial of it had no end."""
    cache.keep(key, cache.BEGUN, _tries(key) + 1)


def is_worth_a_try(key: str) -> bool:
    """Whether a process without its program may begin the product of this key, as far as earlier ones tell."""
    return _tries(key) < MOST_TRIES


def _tries(key: str) -> int:
    return cache.load(key, cache.BEGUN, int) or 0
