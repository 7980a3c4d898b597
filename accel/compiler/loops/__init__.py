"""Loops by data: iterations that a recording unrolled become one operation, whose iteration count data decide.

A recording follows `while residual > tol:` iteration by iteration, and each number of iterations
would be another path. Here the iterations become one `accel.loop` (see accel.ir.loop), if it is *proved* that any
number of them does the same:

- The program evaluated the loop's condition (a *head*) at one instruction, in one call of its function, twice or more.
  Its whole state there was the same each time, except recorded values (accel.record.run.loops.state). A Python
  interpreter in the same state does the same. So from then on each iteration does one of the things that the recorded
  iterations did, with other values, until the condition changes. The code after the loop does the same, too. This is an
  induction over the iterations; nothing is fitted to them.
- An iteration that took other branches is of another *kind*. All kinds become one body, as paths become one trace
  (accel.compiler.merge), and each iteration of a replay must be of one of them.
- The assumptions of the iterations are checked in every iteration. A run in which one fails is discarded.
- An array that changes its place in memory must be of this call of the function: nothing outside knows it.

A Python counter, a flag, a list that grows, `i == 5`: each of them is state that changes, and there is no proof. Then
the tape stays as it is: a path for each number of iterations. Numbers are an exception. If a loop sets a number, and
uses it in arithmetic and comparisons alone, it becomes a recorded value at the first head. The device counts it from
then on (`Heads.exchange`). Iterations before the state repeats stay straight operations. So the smallest iteration
counts have paths of their own.

A loop is entered only if the path's assumptions before it hold. It ends after a fixed number of iterations: those that
NumPy would not make may have no end.

draft    a tape that is being rewritten
iterations   what an iteration does with the state at its head, and of which kind it is
bodies   the body of all kinds of iterations, and what is computed before the loop
rolling  the loops of a trace, inner ones first
"""

from accel.compiler.loops.rolling import rolled

__all__ = ["rolled"]
