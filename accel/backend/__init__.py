"""Compiling: jobs, the process that compiles them, programs on disk, devices."""
