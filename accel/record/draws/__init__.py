"""Draws: random numbers that a recorded call takes from a generator.

NumPy or Python itself draws them, in a replay as in the recording: a replay makes the same draws in the same order,
before its program is launched, and gives the program what they gave. So the stream of numbers is always the generator's
own. What a run draws in vain is put back.

generators  the kinds of generators, their methods, and how their states are kept and put back
draw        one draw: the call of a method, with a slot for what it gives
early       what their arguments may be: values that are known before launch
recording   writes a draw down, as one of these three:
            as it is made, where its arguments are known before launch
formulas    with parameters that the program computes: a standard draw, then NumPy's own formula
arrays      of an array's elements: a draw of indices, then a gather
twins       generators on which such a draw is tried while it is recorded
proxies     what recorded code has in the place of a generator and of its methods
"""
