"""One recording from start to end.

outputs     the results and writes of the call, as a plan that a replay carries out
loops/      the tests of loops whose conditions depend on arrays
recorder    runs the call, and decides what becomes of it: `record`
tracing     events of recorded frames up to Python 3.11
monitoring  events of recorded frames from Python 3.12 on
frames      watches the recorded code for exceptions, and makes its variables plain once the tape breaks
stepping    watches code that writes variables outside itself, one instruction at a time
states      the values that recorded code can reach at a join
trace       a finished recording, as compilers read it, and the results of recording a call
escapes     replaces recorded values, functions and generators that something outside still holds at the end
"""
