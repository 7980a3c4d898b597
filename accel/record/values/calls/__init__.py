"""Calls of NumPy's functions, written down.

call       runs the function, and then writes the call down
arguments  binds and checks the arguments, and makes operands of them
general    functions that compute from their operands and do no more
special    functions that do more: views, writes, rewritten calls
"""
