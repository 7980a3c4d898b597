"""Variables outside a function, read and written by recorded code: globals of modules, cells of enclosing functions.

Python has no hook for `STORE_GLOBAL` and `STORE_DEREF`. So code that has them is watched instruction by instruction,
and what it has stored is found before its next instruction: the variable gets the plain value at once, and is noted as
an attribute is.

variables    any of them: what it holds, how it is put back, and how a write is noted
namespaces   the substituted globals of followed code
cells        the substituted cells of followed code
local_names  what `locals()` tells of them
bodies       of lifted loops, whose cells are others in each call of the function around them
steps        which instructions touch such variables
"""
