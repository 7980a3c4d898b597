"""Kernels: fused vector loops that accel generates for the CPU, with LLVM, from the operations of a traced program.

jaxprs        the operations of a traced program in one list, and as nodes of a graph
graph         the operations, equal ones once; moves of index are maps that cost nothing
plan          which values are stored, in which order, and which are computed in one loop nest
nest          the LLVM IR of one loop nest: vectors, pieces of rows, wrapped borders
memory        where values lie, and reading them
reductions    sums in NumPy's order, extremes and their places, any and all
indexing      gathers, scatters, and blocks that start where a number says
operations    what each operation costs, and its instructions
elementary/   exponentials, logarithms, powers, trigonometric and hyperbolic functions
ir            LLVM IR as text: typed values, and the scopes of a loop nest
module        the function that runs the stages of a graph, and its memory
segments      a program: kernels, and between them what something else computes
machine_code  machine code from LLVM IR, and its place in this process

`+ - * / sqrt` round as NumPy's do by construction: nothing is contracted or reordered.
"""
