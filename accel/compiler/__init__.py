"""The compiler: recordings become one tape, and a tape becomes code.

merge/    several recordings become one tape, with choices where they differ
loops/    the iterations of a loop that data decide become one operation
lower/    a tape becomes a function over `jax.numpy`, after passes over its operations
kernels/  for a CPU: operations become fused loops in LLVM IR
"""
