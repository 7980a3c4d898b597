"""One recording from start to end.

outputs     what the call returned and left, as a plan that a replay carries out
loops/      where loops were asked for their conditions
recorder    runs the call, and decides what becomes of it: `record`
results     what recording a call may give
tracing     tells of recorded frames up to Python 3.11
monitoring  tells of them from Python 3.12 on
frames      watches the recorded code for exceptions, and makes its variables plain once the tape breaks
stepping    watches code that writes variables outside itself, one instruction at a time
states      what recorded code can reach at a join
trace       a finished recording, as compilers read it
rebinding   gives functions and generators that recorded code has made the program's own variables
escapes     replaces recorded values that something outside still holds at the end
"""
