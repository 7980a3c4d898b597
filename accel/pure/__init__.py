"""Pure functions of JAX's from unmodified NumPy functions: for derivatives, batches, and programs without Python.

recorded    example calls, recorded and undone, as one trace of the paths that they take
places      the leaves: arrays and numbers by where they live
ways        which calls the function answers: recorded paths, and crossings between them
results     what a call returns and leaves, as a pytree
host        Python's own numbers, by JAX
norms       derivatives of norms where they are 0
writes      writes of what they overwrite
gates       masks that keep what is not read out of derivatives
stills      where a selection has put a constant, which has none
evaluation  the operations: branches, bounded loops, gates
program     all of that as one function of the leaves
function    `accel.to_jax`
transforms  `accel.grad`, `value_and_grad`, `jacobian` and `vmap` of NumPy functions
"""
