"""The state of one recording, and the vocabulary of what it writes down.

recording     one recording: its parts, how it breaks, how values enter
writer        the tape: operations, outcomes, versions of storages
inputs        slots: how a later call fetches each input, and the checks that must hold
environment   environment variables that must stay what they were
pinned        arrays whose elements decide which path a call takes
storages      the memory of the arrays that the call read, and the journal that undoes writes
changes       changes of the program's objects and containers; attributes and items as the call knows them
leaves        parts of a result that a replay makes or finds
draw          one draw of random numbers
shown         text that the call showed, as data, and its markers
kept          containers and tuples that the program keeps after the call
registry      which wrapper stands for which object of the program
wrapper       the bases of wrappers and of stand-ins for functions, and unwrapping
opaque        functions that are not followed, and why
on_behalf     calls whose warnings name the program's line
instructions  CPython's instructions
events        what Python reports of the frames of recorded code
flow          post-dominators and live variables of a function
joins         where branches meet again, with the program's state there
"""
