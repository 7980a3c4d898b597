"""Paths: the recorded paths of one target, and their programs.

path       one recorded path, on its way from recording to compiled program: its stages
constants  the inputs of a path that its program may take for constant; what becomes of those that change
joint      several recorded paths that have one program
joining    which paths get one program
known      all recorded paths of a target, and which of them a call may take
transfers  bytes that calls hand to a device and fetch from it
work       estimated work inside a program, by group of operations
"""
