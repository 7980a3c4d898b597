"""The command line: options, running a program, the other commands."""
