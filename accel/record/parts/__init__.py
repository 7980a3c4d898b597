"""The parts of a recording.

writer      the tape: operations, outcomes, versions of storages
registry    which recorded value or stand-in stands for which of the program's objects
storages    the memory of the arrays that the call read
attributes  what the recording knows of an attribute or item
journal     what puts back all that the call wrote
kept        containers and tuples that the program keeps after the call
events      what Python tells of the frames of recorded code
joins       where the sides of branches come together, and what the program holds there
flow        what the code of a function may still read from there on
"""
