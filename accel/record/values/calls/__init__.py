"""Calls of NumPy's functions, written down.

call     runs the function, then writes the call down
general  binds and checks arguments; functions that only compute from their operands
special  functions that do more: views, writes, rewritten calls
"""
