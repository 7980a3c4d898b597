"""Paths: the recorded paths of one target, and their programs.

path        one recorded path: its guards, its tape, and figures of its calls
program     what computes one recorded path or several, from recording to executable
building    it is compiled, and what becomes of that
stages      the states of a program; when one whose runs were discarded is tried again
constants   the inputs of a path that its program may take for constant
refolding   what becomes of a program whose constants have changed
joining     which paths get one program
several     a program of several paths: made, and extended by a path that it computes as well
known       all recorded paths of a target, and which program a call may take
prediction  which of them the next call is likely to take
exits       which of them a side exit leads to
transfers   bytes that calls hand to a device and fetch from it
figures     what the report says of a program
work        estimated work inside a program, by group of operations
"""
