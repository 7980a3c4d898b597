"""Ensembles: copies of a program's state, stepped as one program.

addresses     the path from a call's arguments to the place of an array or number
copies        a copy of a call's objects, in which arrays share memory as the originals do
inventory     names and addresses of the values that recorded calls read and change
working_copy  one member's step on NumPy, on a copy
batch         all members' steps as one compiled program
division      members divided among several devices, or the processors of a CPU
paths         the recorded paths of a step, and when they are compiled
values        the members' arrays and numbers by name
joining       merging compiled steps with steps on NumPy, and comparing samples of them
ensemble      `accel.ensemble`
variables     the variables of a program's own loop, and a loop body over copies of them
loops         an iteration of such a loop as an ensemble's step
perturbation  the file that says how the members of a program's ensemble differ
saving        an ensemble as a dataset, and as a file
members       an ensemble that steps beside a program's own loop
"""
