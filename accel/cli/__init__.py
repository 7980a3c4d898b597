"""The command line.

run          `python -m accel.run`: installs accel, runs a program, writes the reports
commandline  its options and settings, checked
program      a program, run as Python itself would run it
commands     `python -m accel`: the other commands
options      what all commands share
"""
