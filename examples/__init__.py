"""Plain NumPy programs to try accel on. `python -m examples NAME` runs one; accel is not imported.

`planet.py` does more: it fits the bundled planet to observations, and needs accel and optax.
"""
