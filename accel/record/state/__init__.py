"""The state of one recording, and the vocabulary of what it writes down.

recording     one recording: its parts, how it breaks, how values enter
writer        the tape: operations, outcomes, versions of storages
inputs        slots: how a later call fetches each input, and the checks that must hold
bits          bitwise equality of arrays and numbers
pinned        arrays whose elements decide which path a call takes
storages      the memory of the arrays that the call read
attributes    an attribute or item as the recording knows it
changes       changes of the program's objects and containers
leaves        parts of a result that a replay makes or finds
draw          one draw of random numbers
shown         text that the call showed, as data
texts         markers in recorded text
journal       what undoes the writes of the call
kept          containers and tuples that the program keeps after the call
registry      which wrapper stands for which object of the program
wrapper       the base of wrappers, and unwrapping
standin       the base of stand-ins for functions and types
opaque        functions that are not followed, and why
on_behalf     calls whose warnings name the program's line
instructions  CPython's instructions
events        what Python reports of the frames of recorded code
flow          post-dominators and live variables of a function
joins         where branches meet again, with the program's state there
"""
