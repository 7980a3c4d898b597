"""Kernels: fused vector loops that accel generates for the CPU, with LLVM, from the operations of a traced program.

    graph   the operations, equal ones once; moves of index are maps that cost nothing
    plan    which values are stored, in which order, and which are computed in one loop nest
    emit    LLVM IR: vectors of the host's width, no operation that is contracted or reordered
    load    machine code from IR, and its place in this process

`+ - * / sqrt` round as NumPy's do by construction.
"""
