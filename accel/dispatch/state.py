"""State of one target: its settings, the books of its calls, its recorded paths, and whether it stays on NumPy.

All parts that answer a target's calls share one state, and ask each other nothing.
"""

from __future__ import annotations

from types import CodeType

from accel.dispatch.comparing.errors import Tolerance
from accel.dispatch.paths.known import KnownPaths
from accel.dispatch.refusals import Refusals
from accel.platform import config
from accel.platform.ledger import Ledger, State, open_ledger
from accel.policy.account import Account, is_limited
from accel.policy.call import Turn
from accel.policy.parts import Parts
from accel.policy.second_look import SecondLook


class TargetState:
    """State of the target with this name.

    final: all calls stay on NumPy. account: times of calls, and costs. parts: of calls without a program (see
    accel.policy.parts). paths: recorded ones. refusals: why calls stayed on NumPy. turn: of the call under way.
    """

    def __init__(self, name: str, rtol: float | None, mode: str | None, in_parts: CodeType | None) -> None:
        """rtol, mode: the target's own, or None for those in the settings. in_parts: see `Target`."""
        self.name = name
        self._rtol, self._mode = rtol, mode
        self.final = False
        # One call of a target at a time: paths and ledgers are not made for several threads. A call that finds another
        # under way runs on NumPy. Were it to wait, a program whose threads wait for one another could stop for good.
        self.turn = Turn()
        self.account = Account(name)
        self.parts = Parts(name, in_parts)
        self.parts.recording_s = lambda: self.account.recording_s
        self.paths = KnownPaths()
        self.refusals = Refusals(name, self)
        self._second_look: SecondLook | None = None  # if the target is `final` because its programs are slower

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.name)

    @property
    def mode(self) -> str:
        """The target's own mode, or the one in the settings; "off" if these disable accel."""
        chosen = config.current()
        return (self._mode or chosen.mode) if chosen.enabled else "off"

    @property
    def is_limited(self) -> bool:
        """Whether the budget holds."""
        return is_limited(self.mode)

    @property
    def may_rest(self) -> bool:
        """Whether calls may go to NumPy without being examined, as far as that pays."""
        if not (self.is_limited or (self.mode == "auto" and self.paths.are_full)):
            return False
        return not (self.paths.with_program and self.account.gains_by_looking)

    @property
    def tolerance(self) -> Tolerance:
        """Difference that a comparison allows."""
        chosen = config.current()
        return Tolerance(chosen.tolerance, chosen.unit) if self._rtol is None else Tolerance(self._rtol)

    # -- staying on NumPy ---------------------------------------------------------------------------------------------

    def stay_on_numpy(self) -> None:
        """Answer all further calls by NumPy, whatever they are given."""
        self.final, self._second_look = True, None

    @property
    def may_try_again(self) -> bool:
        """Whether programs that were slower than NumPy are tried again after some time of calls on NumPy."""
        return self._second_look is not None

    def stay_until_second_look(self) -> None:
        """All programs were slower than NumPy: answer calls by NumPy until it is time to try the programs again."""
        usual_s = max(path.speed.usual_s or self.account.call_s for path in self.paths)
        self._second_look = SecondLook(usual_s, self.ledger.numpy_total_s, self._second_look)
        self._rest()

    def look_again(self, spent: float) -> None:
        """Examine calls again if it is time for a second look. spent: seconds of the last call."""
        look = self._second_look
        if look is None:
            return
        if look.is_time(self.ledger.numpy_total_s):
            for path in self.paths:
                path.program.try_again()
        elif not look.opens(spent):
            return
        self.final = False
        if self.ledger.state is State.DEMOTED:
            self.ledger.state = State.NUMPY

    def note_examined(self) -> None:
        """Note a call of a path that was given up: after enough of them, a second look ends."""
        if self._second_look is not None and self._second_look.closes() and self.paths.are_given_up:
            self._rest()

    def _rest(self) -> None:
        self.final = True
        self.ledger.state = State.INLINED if self.ledger.inlined_calls else State.DEMOTED
