"""Loops by data: rounds that a recording unrolled become one operation, whose number of rounds the data decide.

A recording follows `while residual > tol:` round by round, and each number of rounds would be another path. Here the
rounds become one `accel.loop` (see accel.ir.loop), if it is *proved* that any number of rounds does the same:

- The program was asked for the loop's condition at the same instruction, in the same call, three times or more, and its
  whole state there was the same each time, but for recorded values (accel.record.loops.state). A Python interpreter in
  the same state does the same. So from then on every round does what these did, with other values, until the condition
  changes, and what comes after the loop is the same, too. This is an induction; nothing is fitted.
- The operations of the rounds are the same, and each operand is the same in relation to its round: made in it, handed
  on by the one before, or the same in all (`rounds`).
- What the rounds assumed is checked in every round (`Body.outcomes`). A run in which it fails is discarded.

A Python counter that is still read, a flag, a list that grows, `i == 5`: each of them is state that changes, and there
is no proof. Then the tape stays as it is: a path for each number of rounds. The rounds before the state repeats stay
straight operations, and so there are paths of their own for the smallest numbers of rounds.

draft    a tape that is being rewritten
rounds   two rounds compared: what a round does, and what it hands on to the next
rolled   the loops of a trace, inner ones first
"""

from accel.loops.rolled import rolled

__all__ = ["rolled"]
