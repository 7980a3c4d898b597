"""Draws: random numbers that a recorded call takes from a generator.

NumPy or Python itself draws them, in a replay as in the recording. A replay makes the same draws in the same order,
before its program is launched, and passes the numbers to the program. So the stream of numbers is always the
generator's own. A run that is discarded puts the generator's state back.

generators  the kinds of generators, their methods, and how their states are kept and put back
early       values that are known before launch, which a draw may take as arguments
recording   writes a draw down: as it is made, by a formula, or as a draw of indices
formulas    with parameters or arrays that the program computes: a standard draw, then NumPy's formula or a gather
"""
