"""Text made of recorded numbers, and which code may read it.

capture  recorded values at the moment when they are shown
flow     where the text of a value can go in the code of a function
opcodes  stack effects of CPython's instructions
markers  whether a formatted value may stay a marker, because only sinks can read the text
"""
