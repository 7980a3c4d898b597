"""Doctor: which functions of a program are worth accelerating, what stops the others, and a catalogue to start from.

command   `accel doctor`
measure   runs it in a process of its own, times every function, and tries to record the expensive ones
advise    a verdict for each function of the program's source
write     the account as text, Markdown or JSON, and the catalogue as Python
"""
