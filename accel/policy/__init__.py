"""Policy: what accelerating a program costs and may cost.

call         one call, and whether the program's own function has run for it
account      what a target's calls take, and what is charged to it
budget       what accel may cost the program
prices       what investments take, and when they are made
parts        while an iteration of an outlined loop has no program: the targets inside it use theirs
rest         calls that go straight to NumPy
second_look  whether calls have larger arrays than those that programs were slower for
speed        whether a program is slower than NumPy
"""
