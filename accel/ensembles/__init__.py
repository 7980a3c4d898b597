"""Ensembles: copies of a program's state, stepped as one program.

addresses     the way from a call's arguments to where an array or number lives
copies        a copy of a call's objects, with the arrays in it that share memory
inventory     what recorded calls read and change, by name
working_copy  one member's step by NumPy itself, on a copy
batch         all members' steps as one compiled program
groups        members divided among the processors of a CPU
division      members divided among several devices
unseen        flags and objects that some steps store, and that others would read
paths         what is recorded of the step, and when it is compiled
values        the members' arrays and numbers by name
joining       steps of the program's and steps of NumPy's as one
agreement     comparing the program's steps with NumPy's, now and then
dataset       an ensemble's state for xarray
ensemble      `accel.ensemble`
variables     the variables of a program's own loop, and a body over copies of them
loops         a round of such a loop as a step of an ensemble's
perturbation  the file that says how the members of a program's ensemble differ
saving        an ensemble as a file
members       an ensemble that steps beside a program's own loop
"""
