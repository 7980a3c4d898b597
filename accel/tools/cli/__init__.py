"""The command line.

commands     `accel`: the list of its commands
run          `accel run`; a run that is too short to gain is left alone
running      installs accel, runs a program, writes the reports
lengths      how long earlier runs of a program took, and whether another one can gain
commandline  the options and settings of the commands that run a program, checked
starts       the ways in which Python starts a program
choices      what accel chose without a catalogue: kept on disk, and as a line
joining      the members that `--ensemble` asks for, and the loop that they step beside
program      a program, run as Python itself would run it
report       `accel report`: the report of the last run
bundle       `accel bundle`
cache        `accel cache`
minutes      progress while the program runs
enable       `accel enable`, `accel disable`
docs, info   `accel docs`, `accel info`
broken       the line where accel cannot be imported
starting     the start of Python after `accel enable`
"""
