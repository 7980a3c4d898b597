"""Compiling ahead of time: `accel compile` runs a program until nothing new needs compiling, and ends it.

command: the command line. child: the process that runs the program. watch: decides when to end the run. stops: the
signals that stop the command. messages: the texts about progress and results.
"""
