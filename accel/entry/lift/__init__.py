"""Lifting: the body of a program's own loop becomes a function, which can be a target. The file on disk is untouched.

source      the syntax tree behind running code, if compiling it unchanged gives that code
names       what statements bind, read and delete
assigned    which variables a body may read before they have a value
checks      what keeps a body from being lifted
regions     which statements become bodies: of the outermost loops, or what stands between statements that stop one
transform   the loop, or the run of statements, with two bodies
tracebacks  of what leaves a body: as if it had been raised in the loop itself
passed      functions that a program hands on, which must have been replaced before
codes       code objects of outlined loops: their constants and names
switch      decides in each iteration which body runs
iterations  the target of an outlined loop, or of outlined statements, how it is split where it is refused, and the
            share of the time that each part takes
between     what Python runs between two iterations, and whether it could look at arrays
holding     iterations one after the other that leave state on a device with a memory of its own
lifting     `lift_function` and `lifted_module_code`: all of this together, and how to undo it
decorator   `accelerate`, for functions and for their loops

A function cannot be replaced while it runs, and a program's `main` runs once. So both bodies are in the code from the
start, and the switch is asked in each iteration.
"""
