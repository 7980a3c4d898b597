"""For the tests of other projects: `pytest --accel` runs them accelerated, and says what that changes.

plugin   what pytest loads: its options, and nothing else until one of them is given
session  the two runs, without and with accel, and the comparison
"""
