"""Doctor: which functions of a program are worth accelerating, what stops the others, and a catalogue to start from.

command   `accel doctor`
scan      analyses the program's source (syntax trees and bytecode) without importing it
measure   runs it in a process of its own, times every function, and tries to record the expensive ones
advise    puts the two together: a verdict for each function
write     the account as text, Markdown or JSON, and the catalogue as Python
"""
