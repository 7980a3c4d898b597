"""Pure JAX functions from unmodified NumPy functions: for derivatives, batches, and programs without Python.

recorded    example calls, recorded and undone, as one trace of the paths that they take
places      the leaves: arrays and numbers by where they live
results     the return value and the changed state of a call, as a pytree; the paths that answer calls
host        Python's own numbers, computed by JAX
norms       derivatives of norms where they are 0
gates       masks that keep unread elements, and those that a selection made constant, out of derivatives
evaluation  the operations: branches, bounded loops, gates
program     all of these as one function of the leaves
function    `accel.to_jax`
transforms  `accel.grad`, `value_and_grad`, `jacobian` and `vmap` of NumPy functions
"""
