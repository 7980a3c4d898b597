"""Draws: random numbers that a recorded call takes from a generator.

NumPy or Python itself draws them, in a replay as in the recording: a replay makes the same draws in the same order,
before its program is launched, and gives the program what they gave. So the stream of numbers is always the generator's
own. What a run draws in vain is put back.

generators  the kinds of generators, their methods, and how their states are kept and put back
draw        one draw: the call of a method, with a slot for what it gives
formulas    draws whose parameters are computed by the program: a standard draw, then NumPy's own formula
arrays      draws that put an array's elements in another order: a draw of indices, then a gather
proxies     what recorded code has in the place of a generator and of its methods
"""
