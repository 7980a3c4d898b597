"""Plain NumPy programs to try accel on. `python -m examples NAME` runs one; accel is not imported."""
