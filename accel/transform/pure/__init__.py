"""Pure JAX functions from unmodified NumPy functions: for derivatives, batches, and programs without Python.

recorded    example calls, recorded and undone, as one trace of the paths that they take
places      the leaves: arrays and numbers by where they live
ways        the calls that the function answers: recorded paths
results     the return value and the changed state of a call, as a pytree
host        Python's own numbers, computed by JAX
norms       derivatives of norms where they are 0
writes      writes whose value depends on the overwritten elements
gates       masks that keep unread elements out of derivatives
stills      elements that a selection made constant, whose derivative is 0
evaluation  the operations: branches, bounded loops, gates
program     all of these as one function of the leaves
function    `accel.to_jax`
transforms  `accel.grad`, `value_and_grad`, `jacobian` and `vmap` of NumPy functions
"""
