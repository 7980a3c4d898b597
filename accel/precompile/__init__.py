"""Compiling ahead of time: `python -m accel compile` runs a program until nothing new needs compiling, and ends it.

command: the command line, and what it says. child: the process that runs the program. watch: when it is enough.
words: what the next run will find.
"""
