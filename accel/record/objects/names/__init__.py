"""Variables outside a function, read and written by recorded code: globals of modules, cells of enclosing functions.

Python has no hook for `STORE_GLOBAL` and `STORE_DEREF`. So code that has them is watched instruction by instruction,
and what it has stored is found before its next instruction: the variable gets the plain value at once, and is noted as
an attribute is.

variables    one variable: its value, how it is restored, and how a write is noted
namespaces   the substituted globals of followed code
cells        the substituted cells of followed code, those of outlined loops, and `locals()`
steps        which instructions touch such variables
"""
