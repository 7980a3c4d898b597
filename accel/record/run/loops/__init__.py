"""Loops by data, as a recording sees them: where a loop's condition was asked, and all that Python could know there.

code      what the bytecode says of a position: is it in a loop, what is on the stack, which variables are still read
state     all that recorded code can reach at a position: what is fixed, and which recorded values it holds
heads     the places where a loop was asked for its condition, with the states there
likeness  what two rounds must have in common for one of them to stand for the other
trimming  rounds leave the tape if an earlier one did the same
"""
