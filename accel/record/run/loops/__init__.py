"""While loops as a recording sees them: each test of a loop's condition, and the program's state there.

code      facts from bytecode: whether a position is in a loop, the stack there, the variables still read
state     all that recorded code can reach at a position: its fixed form, and the recorded values
heads     the tests of loops, with the states there
cells     loops over single elements, which are refused
trimming  removes an iteration from the tape if an earlier one did the same
"""
