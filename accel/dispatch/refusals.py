"""Refusals: why a target's calls stay on NumPy, told to the ledger, the timeline and the log.

The ledger counts the refusals that are noted, each kind with its number. The timeline and the log get each kind once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel.backend import devices
from accel.platform import logs, timeline
from accel.platform.ledger import State, open_ledger
from accel.platform.reasons import Refusal, Refused

if TYPE_CHECKING:
    from accel.dispatch.state import TargetState

_TAKEN_BACK = "was taken back to NumPy"


def why_not_run(error: Exception) -> Refusal:
    """Why a program's calls go to NumPy from now on, from what running it raised."""
    reason = "device.memory" if devices.is_out_of_memory(error) else "compile.failed"
    return Refusal(reason, "", f"{type(error).__name__}: {error}")


class Refusals:
    """The refusals of one target. name: the target's. state: has its mode. last: the latest refusal, or None."""

    def __init__(self, name: str, state: TargetState) -> None:
        self.last: Refusal | None = None
        self._name = name
        self._state = state

    def refuse(self, refusal: Refusal) -> None:
        """Note why a call stays on NumPy. Raises Refused in mode "strict"."""
        self.note(refusal)
        self.raise_if_strict()

    def raise_if_strict(self) -> None:
        """Raise Refused in mode "strict", for a call that stays on NumPy for a reason that an earlier one noted."""
        if self.last is not None and self._state.mode == "strict":
            raise Refused(self.last.message(self._name))

    def demote(self, refusal: Refusal) -> None:
        """Note that the target was taken back to NumPy; the log gets a warning. Raises Refused in mode "strict"."""
        self.note_demotion(refusal)
        if self._state.mode == "strict":
            raise Refused(refusal.message(self._name, _TAKEN_BACK))

    def note_demotion(self, refusal: Refusal) -> None:
        """As `demote`, but raises nothing: for a call whose answer is already decided."""
        self.last = refusal
        ledger = open_ledger(self._name)
        first = ledger.state is not State.DEMOTED
        ledger.demote(refusal)
        if first:
            timeline.note_event(timeline.DEMOTED, self._name, refusal.why)
            logs.LOGGER.warning("%s", refusal.message(self._name, _TAKEN_BACK))

    def note(self, refusal: Refusal) -> None:
        """Note a refusal. Raises nothing: for calls that have been answered, or will be accelerated later."""
        self.last = refusal
        if open_ledger(self._name).refuse(refusal):
            kind = timeline.DEMOTED if refusal.reason == "speed.slower" else timeline.REFUSED
            timeline.note_event(kind, self._name, f"[{refusal.reason}] {refusal.where or refusal.detail}")
            logs.LOGGER.info("%s", refusal.message(self._name))

    def note_wait(self, refusal: Refusal) -> None:
        """Note why a call is not accelerated yet. As long as the reason stays the same, one call stands for all."""
        if self.last is None or self.last.reason != refusal.reason:
            self.note(refusal)
