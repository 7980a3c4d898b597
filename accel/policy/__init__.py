"""Costs of accelerating a program, and the limits on them.

account      what a target's calls take, and what is charged to it
budget       what accel may cost the program
parts        while an iteration of an outlined loop has no program: the targets inside it use theirs
rest         calls that go straight to NumPy
second_look  whether calls have larger arrays than those that programs were slower for
speed        whether a program is slower than NumPy
transfers    bytes that calls hand to a device and fetch from it
"""
