"""An ensemble of a program's own loop, whose members step beside the program's iterations."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, NoReturn

import numpy as np

from accel.dispatch import late
from accel.entry.lift.switch import Call, Switch, name_of
from accel.entry.lift.transform import GONE_ON, NOT_RUN
from accel.transform.ensembles import saving
from accel.transform.ensembles.ensemble import Ensemble
from accel.transform.ensembles.loops import LEFT, WAYS, LoopCopy, has_test, targets, way_of
from accel.transform.ensembles.perturbation import Perturbation
from accel.transform.pure.recorded import refused
from accel.transform.pure.results import is_leaf

Say = Callable[[str], object]

REFUSED = 2
"""Exit code of a program whose members were refused."""


class Members:
    """The members of one program. They run an iteration before each of the program's.

    count: number of members. path: the file to save them in. say: shows a line about something that was not done; tell:
    shows an informative line. The first refusal ends the program, and the members' state so far is saved.
    """

    def __init__(self, perturbation: Perturbation, count: int, path: Path, say: Say, tell: Say) -> None:
        self._perturbation, self._count, self._path, self._say, self._tell = perturbation, count, path, say, tell
        self._switch: Switch | None = None
        self._name = ""
        self._body: FunctionType | None = None
        self._copy: LoopCopy | None = None
        self._ensemble: Ensemble | None = None
        self._observed: dict[str, list[Any]] = {}
        self._iterations = 0
        self._last: int | None = None
        self._has_ended = False
        self._code = 0

    def join(self, switch: Switch, module: str) -> None:
        """Step beside the iterations of an outlined loop."""
        self._switch, self._name = switch, name_of(switch, module)
        switch.go_beside(self.iteration)

    # -- iterations ---------------------------------------------------------------------------------------------------

    def iteration(self, body: FunctionType, call: Call | None) -> Any:
        """Run one iteration of each member, then one of the program."""
        if self._has_ended:
            return NOT_RUN if call is None else call(body)
        variables = {} if self._ensemble is not None else _locals_of(sys._getframe(2))
        self._guarded(lambda: self._before(body, call, variables))
        assert call is not None
        self._last = None
        result = call(body)
        self._last = way_of(result)
        self._guarded(lambda: self._compare(self._last))
        return result

    def _guarded(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:
            self._stop(error)

    def _before(self, body: FunctionType, call: Call | None, variables: dict[str, Any]) -> None:
        if call is None:
            raise refused(self._name, "ensemble.place", "a name that is read inside `try` has no value yet")
        if self._body not in (None, body):
            raise refused(self._name, "ensemble.place", "the loop is run a second time")
        self._body = body
        self._iterations += 1
        if self._iterations < self._perturbation.begin:
            return
        if self._ensemble is None:
            self._begin(body, variables)
        self._follow(body)
        assert self._ensemble is not None and self._copy is not None
        self._ensemble.step()
        self._copy.check(self._ensemble.own)
        self._observe()

    def _begin(self, body: FunctionType, variables: dict[str, Any]) -> None:
        late.import_now()
        assert self._switch is not None
        self._copy = LoopCopy(self._switch, body, variables, self._name)
        plan = self._perturbation
        self._ensemble = Ensemble(self._copy.call, self._copy, self._count, plan.perturb, plan.seed)
        self._copy.check(self._ensemble.own)

    def _follow(self, body: FunctionType) -> None:
        """Copy the variables that the loop statement has assigned to the members."""
        assert self._switch is not None and self._copy is not None and self._ensemble is not None
        cells = dict(zip(body.__code__.co_freevars, body.__closure__ or (), strict=True))
        for name in targets(self._switch):
            if name not in cells and name not in body.__globals__:
                continue
            value = cells[name].cell_contents if name in cells else body.__globals__[name]
            if not is_leaf(value) and not isinstance(value, (str, bytes, type(None))):
                raise refused(
                    self._name, "ensemble.place", f"{name}, which the loop assigns, is a {type(value).__name__}"
                )
            self._copy.follow(name, value.copy() if isinstance(value, np.ndarray) else value)
            if is_leaf(value) and name in self._ensemble.state:
                self._ensemble.state[name] = value

    def _observe(self) -> None:
        if self._perturbation.observe is not None:
            for name, value in self._perturbation.observe(self._ensemble).items():
                self._observed.setdefault(name, []).append(np.array(value))

    def _compare(self, way: int | None) -> None:
        """Refuse if a member's iteration ended differently from the program's."""
        if self._ensemble is None or way is None:
            return
        for member, each in enumerate(self._ensemble.result):
            if each != way:
                left = f"member {member} {WAYS[int(each)]}, and the program {WAYS[way]}"
                raise refused(self._name, "ensemble.rounds", f"in iteration {self._iterations} {left}")

    # -- the end ------------------------------------------------------------------------------------------------------

    def _stop(self, error: Exception) -> NoReturn:
        """End the program, because it has no members."""
        self._has_ended, self._code = True, REFUSED
        self._say(f"accel: {self._failure(error)}")
        self._save()
        raise SystemExit(REFUSED)

    def _failure(self, error: Exception) -> str:
        first, *lines = [line.strip() for line in str(error).splitlines()] or [""]
        told = dict(line.split(None, 1) for line in lines if line.startswith(("where", "why")))
        text = f"{type(error).__name__}: {first}"
        if told.keys() == {"where", "why"}:
            text = f"{told['why']} ({told['where']})  [{first.rpartition('[')[2]}"
        notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
        hint = f"; a later BEGIN in {self._perturbation.path} may help" if self._ensemble is None else ""
        return f"no ensemble of {self._name} after iteration {max(0, self._iterations - 1)}: {text}{notes}{hint}"

    def finish(self) -> int:
        """Save the members after the program has ended. Returns an exit code for the program."""
        if self._has_ended:
            return self._code
        self._has_ended = True
        if self._ensemble is None:
            loop = self._name or f"the loop that {self._perturbation.path} names"
            self._say(f"accel: no ensemble: {loop} made no iteration, or fewer than BEGIN")
            return REFUSED
        self._save()
        if self._last != GONE_ON:
            return 0
        return self._check_test()

    def _check_test(self) -> int:
        """Check that the members' loops end where the program's did. Returns an exit code."""
        assert self._switch is not None and self._ensemble is not None
        if not has_test(self._switch):
            return 0
        try:
            self._ensemble.step()
            self._compare(LEFT)
        except Exception as error:
            self._say(f"accel: {self._failure(error)}")
            return REFUSED
        return 0

    def _save(self) -> None:
        if self._ensemble is None:
            return
        ensemble = self._ensemble
        try:
            state = {name: ensemble.state[name] for name in ensemble.own if name in ensemble.state}
            observed = {name: np.stack(values) for name, values in self._observed.items()}
            saving.save(self._path, state, observed, ensemble.steps)
        except Exception as error:
            self._say(f"accel: the ensemble could not be saved: {type(error).__name__}: {error}")
            return
        alone = f", {ensemble.alone} of {ensemble.steps * self._count} by NumPy" if ensemble.alone else ""
        self._tell(f"accel: {self._count} members of {self._name}, {ensemble.steps} iterations{alone}: {self._path}")


def _locals_of(frame: FrameType) -> dict[str, Any]:
    """Return the local variables of a running function; empty at the top level of a module."""
    return frame.f_locals if frame.f_locals is not frame.f_globals else {}
