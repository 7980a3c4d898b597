"""Comparing replays with NumPy's own calls: differential testing, while the program runs.

policy       which replays are compared, and which differences take a target back to NumPy
nonfinite    whether a replay gives NaN or infinity where compared ones gave none
snapshot     the inputs before NumPy's call, and the effects of that call that the replay does not have
changes      what both of them make of objects and containers
comparison   one comparison: every difference, and the verdict on all of them
texts        what both of them show
errors       how far values are apart, and the verdicts
first_run    the first run of a new program, in the process that has compiled it
monte_carlo  whether rounding explains a difference
"""
