"""Paths: the recorded paths of one target, and their programs.

path       one recorded path, on its way from recording to compiled program: its stages
constants  the inputs of a path that its program may take for constant
joint      several recorded paths that have one program
joining    which paths get one program
kinds      what the parts of a call show of the path that it takes
known      all recorded paths of a target, and which of them a call may take
refolds    what becomes of constants that change, and what that takes
work       estimated work inside a program, by group of operations
"""
