"""Recorded arrays and numbers, and what can be done with them.

arrays      the classes of recorded arrays and numbers
wrapping    the recorded form of a plain value
subclasses  subclasses of Python's numbers
operators   their operators, put on the classes
methods     their attributes and methods
numbers     Python's numbers: arithmetic on the host or the device, and their types
ufuncs      calls of ufuncs
calls/      calls of NumPy's other functions
indexing    keys: views, masks, gathers and scatters
positions   recorded integers in a key
compressed  selections: `x[mask]` kept as the full array and the mask
rows        selections row by row: moved to the front, counted
settling    selections whose length the path fixes
grids       objects that are indexed instead of called: mgrid, r_ and the like
operands    operators with their ufuncs, and checks of operands
draws/      random numbers
text/       text made of recorded numbers
"""
