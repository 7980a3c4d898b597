"""Containers that outlive the call and grow or shrink in it, in programs as people write them."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import os
import pickle
from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import accel
from tests.helpers import some

CALLS = 30


def world(make: Any, between: Any = None) -> Any:
    """A state that lasts; between(i, state): done before call i, as the program would."""

    def worlds() -> Any:
        one = make()

        def arguments(i: int) -> Any:
            if between is not None:
                between(i, one)
            return one, some(i)

        return arguments

    return worlds


def holder(**attributes: Any) -> Any:
    return lambda: SimpleNamespace(**copy.deepcopy(attributes))


# -- programs ---------------------------------------------------------------------------------------------------------


class Particles:
    def __init__(self) -> None:
        self.x, self.v = some(100), some(101)
        self.t = 0.0
        self.times: list[float] = []
        self.energies: list[float] = []
        self.positions = [self.x.copy()]
        self.events: dict[str, list[Any]] = {"bounce": []}
        self.recent: deque[float] = deque(maxlen=5)
        self.counts: Counter[str] = Counter()
        self.by_name: defaultdict[str, list[Any]] = defaultdict(list)

    def step(self, dt: float) -> float:
        self.v = self.v - dt * self.x
        self.x = self.x + dt * self.v
        self.t += dt
        energy = 0.5 * float((self.v**2).sum() + (self.x**2).sum())
        self.times.append(self.t)
        self.energies.append(energy)
        self.positions.append(self.x)
        self.recent.append(energy)
        self.events["bounce"].append((self.t, self.x * 2))
        self.counts["steps"] += 1
        self.by_name["energy"].append(energy)
        return energy


def test_a_particle_simulation(check: Any) -> None:
    one, calls = [], 0

    def between(i: int, state: Any) -> None:
        if i % 7 == 3:
            state.times.pop()
            state.energies[-1] = 7.0
        if i == 12:
            state.events["bounce"].clear()

    def worlds() -> Any:
        state = Particles()
        one.append(state)

        def make(i: int) -> Any:
            between(i, state)
            return state, 0.1

        return make

    check(lambda self, dt: self.step(dt), worlds=worlds, calls=CALLS, replays=15)
    assert len(one[0].positions) == CALLS + 1 == len(one[1].positions)
    assert calls == 0


@dataclasses.dataclass(frozen=True)
class Frame:
    u: Any
    n: int
    parent: Any = None


def test_a_history_of_new_objects(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        last = self.frames[-1]
        new = Frame(last.u * 0.5 + x, last.n + 1, parent=last)
        self.frames.append(new)
        return new

    states = []

    def make() -> Any:
        states.append(SimpleNamespace(frames=[Frame(some(0), 0)]))
        return states[-1]

    check(step, worlds=world(make), calls=CALLS)
    frames = states[1].frames
    assert all(frame.parent is before for before, frame in itertools.pairwise(frames))
    assert copy.deepcopy(frames[-1]).n == CALLS
    assert pickle.loads(pickle.dumps(frames))[3].n == 3


def push_and_pop(self: Any, x: Any) -> Any:
    self.queue.append(x * 2)
    self.queue.append(x * 3)
    first = self.queue.popleft()
    self.queue.appendleft(first + 1)
    self.queue.appendleft(first + 2)
    last = self.queue.pop()
    return first, last, self.queue[0], self.queue[-1], len(self.queue)


def bounded(self: Any, x: Any) -> Any:
    if len(self.hist) >= 10:
        self.hist.pop(0)
    self.hist.append(float(x.sum()))
    return self.hist[-1] + x


def trimmed(self: Any, x: Any) -> Any:
    self.hist.append(x * 2)
    while len(self.hist) > 8:
        del self.hist[0]
    return x


def last_three(self: Any, x: Any) -> Any:
    self.hist += [x, x * 2]
    self.hist.extend((x + 1, x.mean()))
    a, b, c = self.hist[-3:]
    self.hist[-1] = c + 1
    return a + b + c + self.hist[-1], self.hist[-2]


def by_key(self: Any, x: Any) -> Any:
    self.groups["a"].append(x.sum())
    self.groups["b"].append(x)
    self.counts["n"] += 2
    self.seen.add("x")
    self.seen.add(3)
    self.log.setdefault("u", []).append(x * 2)
    self.log.update(last=x, mean=float(x.mean()))
    return len(self.groups["a"]), self.counts["n"], "x" in self.seen, "y" in self.seen, self.log["last"]


def renewed(self: Any, x: Any) -> Any:
    value = self.log.pop("a", None)
    self.log["b"] = x
    self.log["a"] = x * 2 if value is None else value + x
    del self.log["b"]
    self.log["b"] = 1.0
    self.seen.discard("gone")
    self.seen.add("gone")
    return value


def cleared(self: Any, x: Any) -> Any:
    self.hist.clear()
    self.hist.append(x)
    self.log.clear()
    self.log["x"] = x.sum()
    self.hist.insert(0, 5.0)
    self.seen.clear()
    self.seen.add(1)
    self.queue.clear()
    self.queue.extend([x, 2])
    return self.hist[0], self.hist[1], len(self.hist), len(self.log), list(self.log)


def in_the_middle(self: Any, x: Any) -> Any:
    self.short.insert(2, float(x[0]))
    self.short.sort()
    self.short.reverse()
    del self.short[1]
    self.short[1:2] = [2.0, 3.0]
    self.short.pop(1)
    self.queue.reverse()
    return self.short[0] + x, self.short


def both_ways(self: Any, x: Any) -> Any:
    assert self.hist is self.alias
    self.hist.append(x)
    self.alias.append(x * 2)
    return self.hist[-2] + self.alias[-1], len(self.alias)


STATE: dict[str, Any] = {
    "queue": deque([some(1), some(2), some(3)]),
    "hist": [some(4), some(5)],
    "groups": defaultdict(list),
    "counts": Counter("mm"),
    "seen": {"z", "gone"},
    "log": {"a": some(6), "z": 1},
    "short": [3.0, 1.0, 2.0],
    "full": deque([1.0, 2.0], maxlen=2),
}


def make_state() -> Any:
    state = SimpleNamespace(**copy.deepcopy(STATE))
    state.alias = state.hist
    return state


@pytest.mark.parametrize(
    ("function", "replays"),
    [
        (push_and_pop, 25),
        (bounded, 15),
        (trimmed, 15),
        (last_three, 25),
        (by_key, 20),
        (renewed, 20),
        (cleared, 25),
        (in_the_middle, 0),
        (both_ways, 25),
    ],
)
def test_changes(check: Any, function: Any, replays: int) -> None:
    check(function, worlds=world(make_state), calls=CALLS, replays=replays)


@pytest.mark.parametrize("function", [push_and_pop, bounded, trimmed, last_three, by_key, renewed, both_ways])
def test_changes_between_calls(check: Any, function: Any) -> None:
    def between(i: int, state: Any) -> None:
        if i % 5 == 1:
            state.hist.append(some(50 + i))
            state.queue.append(some(60 + i))
        if i % 6 == 2:
            state.hist = state.alias = [some(70 + i), some(71 + i)]
            state.queue = deque([some(1)])
            state.log = {"z": 1, "a": some(3)}
        if i % 11 == 10:
            state.seen = set()
            state.counts = Counter(n=1)
            state.groups.pop("a", None)

    check(function, worlds=world(make_state, between), calls=CALLS, replays=5)


MERGES = {
    "dict | defaultdict": lambda self: self.log | self.groups,
    "dict | new OrderedDict": lambda self: self.log | OrderedDict(z=1),
    "dict | Counter": lambda self: self.log | self.counts,
    "defaultdict | dict": lambda self: self.groups | self.log,
    "Counter | dict": lambda self: self.counts | self.log,
    "sums of counts": lambda self: (self.counts.update("mn"), self.counts.subtract("m"), self.counts.most_common(1)),
    "another order": lambda self: (self.queue.rotate(2), self.queue.insert(1, 5.0), self.log.popitem()),
    "copies": lambda self: (self.groups.copy(), self.counts.copy(), self.queue.copy()),
}


@pytest.mark.parametrize("merge", MERGES.values(), ids=MERGES)
def test_merged_dicts_have_pythons_type(check: Any, merge: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        try:  # the recording cannot be left here: the call goes on once the tape is broken
            return merge(self), x * 2
        finally:
            x += 1

    check(step, worlds=world(make_state), replays=0)


# -- what goes wrong half-way -----------------------------------------------------------------------------------------


def raising(self: Any, x: Any) -> Any:
    self.hist.append(x * 2)
    self.queue.appendleft(x.sum())
    self.queue.pop()
    self.log["new"] = x
    self.log.pop("a", None)
    self.groups["g"].append(1.0)
    self.seen.add("raised")
    self.counts["n"] += 1
    self.short.sort()
    if x[0] > 1.0:
        raise ValueError("too large", len(self.hist))
    self.hist.append(np.sqrt(self.table[int(self.short[0])]))
    return self.hist[-1]


def test_an_error_after_an_append_is_raised_once(check: Any) -> None:
    def make() -> Any:
        state = make_state()
        state.table = [np.ones(2) for _ in range(4)]
        return state

    def between(i: int, state: Any) -> None:
        state.short[0] = 1.0 if i % 4 else 7.0  # IndexError

    check(raising, worlds=world(make, between), calls=CALLS, replays=5)


def test_what_is_printed_ends_the_tape(check: Any, capsys: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.hist.append(x)
        self.queue.append(x)
        self.log["k"] = x * 2
        print(len(self.hist), float(x[0]))
        self.hist.append(x * 3)
        self.hist.pop(0)
        self.queue.popleft()
        self.groups["a"].append(x)
        self.counts["n"] += 1
        self.seen.add("s")
        self.log.pop("k")
        return self.hist[-1] + self.queue[-1], len(self.hist)

    check(step, worlds=world(make_state), reason="effect.print")


class Sneaky:
    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        self.hist.append("sneaked")


def test_a_change_from_outside(check: Any) -> None:
    """A callback that the recorder does not see into changes the list that the call has appended to."""

    def step(self: Any, x: Any) -> Any:
        self.hist.append(x)
        self.field = x
        self.hist.append(x * 2)
        return self.hist[-1]

    def make() -> Any:
        one = Sneaky.__new__(Sneaky)
        object.__setattr__(one, "hist", [])
        return one

    check(step, worlds=world(make), reason="call.opaque")


def test_types_of_containers_that_change(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.hist.append(x)
        self.log["n"] = x.sum()
        return len(self.hist)

    class Loud(list):  # type: ignore[type-arg]
        def append(self, value: Any) -> None:
            super().append(value)
            super().append("loud")

    def between(i: int, state: Any) -> None:
        kinds = (list, deque, Loud, list, lambda part: deque(part, maxlen=2))
        state.hist = kinds[i // 3 % 5](state.hist)
        state.log = (dict, defaultdict, Counter)[i % 3]()

    check(step, worlds=world(make_state, between), calls=CALLS, replays=2)


def test_two_lists_that_become_one(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.a.append(x)
        return len(self.b), self.b[-1]

    def make() -> Any:
        return SimpleNamespace(a=[some(1)], b=[some(2)])

    def between(i: int, state: Any) -> None:
        if i % 3 == 2:
            state.b = state.a
        elif i % 3 == 0:
            state.b = [some(i)]

    check(step, worlds=world(make, between), calls=CALLS, replays=5)


def test_lengths_are_no_guards(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.n = len(self.hist)
        self.hist.append(x)
        if len(self.hist) % 4 == 0:
            self.mean = x.mean()
        if self.log:
            self.log["c"] = len(self.log) + x
        return len(self.hist) * x, self.hist[-2]

    result = check(step, worlds=world(make_state), calls=CALLS, replays=18)
    assert len(result.function._self_target.paths) < 6


# -- keys that are computed in each call ------------------------------------------------------------------------------


def snapshots(self: Any, x: Any) -> Any:
    self.n += 1
    if self.n not in self.frames:
        self.frames[self.n] = x * 2
    self.frames[self.n] = self.frames[self.n] + 1
    self.by_time[self.n * 0.5] = x.sum()
    self.done.add(self.n)
    self.groups[self.n].append(x)
    self.groups[self.n].append(x.mean())
    self.counts[self.n] += 2
    is_there = self.n in self.frames, -1 in self.frames, self.n + 1 in self.frames, self.n in self.done
    self.frames["last"] = self.n
    return is_there, len(self.frames), self.frames.get(self.n + 1, 5.0), self.groups[self.n][-1]


def two_keys(self: Any, x: Any) -> Any:
    """They may be the same."""
    self.n += 1
    i, j = self.n % 5, self.n % 3
    self.frames[i] = x
    self.frames[j] = x * 2
    self.done.add(i)
    self.done.discard(j)
    self.frames.pop(7, None)
    return self.frames[i], self.frames[j], i in self.done, j in self.done


def oldest_goes(self: Any, x: Any) -> Any:
    self.n += 1
    self.frames[self.n] = x * 2
    if self.n - 3 in self.frames:
        del self.frames[self.n - 3]
    return len(self.frames)


def looked_at(self: Any, x: Any) -> Any:
    self.n += 1
    self.frames[self.n] = x
    return sorted(key for key in self.frames if key != "last")


def make_frames() -> Any:
    return SimpleNamespace(n=0, frames={}, by_time={}, done=set(), groups=defaultdict(list), counts=Counter())


@pytest.mark.parametrize(("function", "replays"), [(snapshots, 20), (two_keys, 0), (oldest_goes, 10), (looked_at, 0)])
def test_computed_keys(check: Any, function: Any, replays: int) -> None:
    check(function, worlds=world(make_frames), calls=CALLS, replays=replays)


@pytest.mark.parametrize("function", [snapshots, two_keys, oldest_goes])
def test_computed_keys_that_meet_others(check: Any, function: Any) -> None:
    def between(i: int, state: Any) -> None:
        if i % 4 == 2:
            state.frames[state.n + 1] = some(i)
            state.done.add(state.n + 2)
        if i % 9 == 5:
            state.n -= 3
        if i == 17:
            state.n = float(state.n)

    check(function, worlds=world(make_frames, between), calls=CALLS, replays=0)


def missed(self: Any, x: Any) -> Any:
    """What is not there is named by the error, of which Python makes numbers and text."""
    self.n += 1
    found = []
    for read in (self.frames.__getitem__, self.frames.pop, self.frames.__delitem__, self.done.remove):
        try:
            read(self.n // 2)
        except KeyError as error:
            found.append((error.args[0] / 4, error.args[0] == self.n, str(error)))
    return found, x * self.n


@pytest.mark.parametrize("between", [lambda i, state: None, lambda i, state: state.frames.update({i // 2: i})])
def test_a_missing_key_is_named_by_the_error(check: Any, between: Any) -> None:
    check(missed, worlds=world(make_frames, between), calls=CALLS, replays=0)


def asked(self: Any, x: Any) -> Any:
    self.n += 1
    try:
        return self.frames[self.n], None
    except KeyError as error:
        return x, error.args[0]


def test_a_missing_key_is_no_condition(check: Any) -> None:
    check(asked, worlds=world(make_frames), calls=CALLS, replays=20)


def test_an_error_that_is_kept_holds_a_plain_key(check: Any, capsys: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.n += 1
        print(self.n)
        try:
            return self.frames[self.n]
        except KeyError as error:
            self.kept = error
            with open(os.devnull):  # this has an effect: the call cannot be made again
                return x

    def make_frames_with_kept() -> Any:
        return SimpleNamespace(n=0, frames={}, kept=None)

    state = make_frames_with_kept()
    fast = accel.accelerate(step, name="keeps_an_error")
    for i in range(4):
        fast(state, some(i))
        assert [type(part) for part in state.kept.args] == [int]
    assert capsys.readouterr().out == "1\n2\n3\n4\n"


def test_to_look_for_an_item_makes_none(check: Any) -> None:
    """A path that reads an item of a defaultdict is tried in calls in which it is missing."""

    def step(self: Any, x: Any) -> Any:
        if x[0] > 0 or "a" in self.groups:
            self.groups["a"].append(x)
        return len(self.groups), "a" in self.groups

    def between(i: int, state: Any) -> None:
        if i % 3 == 0:
            state.groups.clear()

    check(step, worlds=world(make_frames, between), calls=CALLS, replays=5)


class Stack:
    """A container of the program's own."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def push(self, item: Any) -> Any:
        self.items.append(item)
        return self

    def __len__(self) -> int:
        return len(self.items) - self.hidden

    def __getitem__(self, index: int) -> Any:
        return self.items[index]

    hidden = 0


def test_the_length_of_an_object_is_fixed(check: Any) -> None:
    def step(self: Any, x: Any) -> Any:
        self.stack.push(x).push(x * 2)
        return len(self.stack), self.stack[-1], type(len(self.stack))

    def between(i: int, state: Any) -> None:
        state.stack.hidden = 100 if i == 20 else 0

    check(step, worlds=world(lambda: SimpleNamespace(stack=Stack()), between), calls=CALLS, replays=0)


@pytest.mark.parametrize("given", [-1, 2.5, "text", None])
def test_what_is_no_length(check: Any, given: Any) -> None:
    class Odd:
        def __len__(self) -> Any:
            return self.given

    odd = Odd()
    odd.given = given  # type: ignore[attr-defined]
    check(lambda odd, x: (len(odd), x * 2), lambda i: (odd, some(i)), reason="path.exception")
