"""Kernels: fused vector loops that accel generates for the CPU, with LLVM, from the operations of a traced program.

jaxprs        the operations of a traced program as one list
importing     the same as nodes of a graph
graph         the operations, with equal ones merged; index moves are maps that cost nothing
plan          the stored values, their order, and the values that share a loop nest
nest          the LLVM IR of one loop nest: vectors, pieces of rows, wrapped borders
finite        its check for NaN and infinity
memory        the memory locations of values, and loads
reductions    sums in NumPy's order, extremes and their indices, any and all
accumulators  the instructions of reductions
indexing      gathers, scatters, and blocks with a dynamic start
operations    the cost and the instructions of each operation
elementary/   exponentials, logarithms, powers, trigonometric and hyperbolic functions
ir            LLVM IR as text: typed values, and the scopes of a loop nest
module        the function that runs the stages of a graph, and its memory
sharing       several threads run one module together
helpers       these threads
segments      a program: kernels, and between them segments that something else computes
nested        segments that run other programs: branches and loops
iterating     loops of small arrays, which find their memory once
machine_code  machine code from LLVM IR, loaded into this process

`+ - * / sqrt` round as NumPy's do by construction: nothing is contracted or reordered.
"""
