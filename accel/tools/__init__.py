"""Tools: what a user starts or loads.

cli/         the command line, and the start of Python after `accel enable`
inspect/     explain, doctor
comparison/  `accel compare`
precompile/  `accel compile`
plugins/     pytest, IPython and its notebooks, the line profile
"""
