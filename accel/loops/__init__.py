"""Loops by data: rounds that a recording unrolled become one operation, whose number of rounds the data decide.

A recording follows `while residual > tol:` round by round, and each number of rounds would be another path. Here the
rounds become one `accel.loop` (see accel.ir.loop), if it is *proved* that any number of rounds does the same:

- The program was asked for the loop's condition (a *head*) at one instruction, in one call of its function, twice or
  more, and its whole state there was the same each time, but for recorded values (accel.record.run.loops.state). A
  Python interpreter in the same state does the same. So from then on each round does one of the things that the
  recorded rounds did, with other values, until the condition changes; and what comes after the loop is the same, too.
  This is an induction over the rounds; nothing is fitted to them.
- A round that took other branches is another *kind* of round. All kinds become one body, as paths become one trace
  (accel.merge), and each round of a replay must be of one of them.
- What the rounds assumed is checked in every round. A run in which it fails is discarded.
- What changes its place in memory must be of this call of the function: nothing outside knows it.

A Python counter, a flag, a list that grows, `i == 5`: each of them is state that changes, and there is no proof. Then
the tape stays as it is: a path for each number of rounds. Numbers are an exception: those that a loop sets, and uses in
arithmetic and comparisons alone, become recorded values at its first head, and are counted by the device from then on
(`Heads.exchange`). Rounds before the state repeats stay straight operations. So the smallest numbers of rounds have
paths of their own.

A loop is entered only if all holds that the path has assumed before it, and ends after a fixed number of rounds: rounds
that NumPy would not make may have no end.

draft    a tape that is being rewritten
rounds   what a round does with the state at its head, and of which kind it is
bodies   the body of all kinds of rounds, and what is computed before the loop
rolled   the loops of a trace, inner ones first
"""

from accel.loops.rolled import rolled

__all__ = ["rolled"]
