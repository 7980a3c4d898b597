"""The same six programs by NumPy, by accel without an edit, by numba and by JAX as one would write them by hand."""
