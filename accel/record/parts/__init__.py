"""The parts of a recording.

writer    the tape: operations, outcomes, versions of storages
registry  which recorded value or stand-in stands for which of the program's objects
journal   what puts back all that the call wrote
kept      containers and tuples that the program keeps after the call
"""
