"""Compiling ahead of time: `accel compile` runs a program until nothing new needs compiling, and ends it.

command: the command line. session: the run. watch: decides when to end it. messages: the texts about progress and
results.
"""
