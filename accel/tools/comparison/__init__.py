"""Comparison of whole runs: on NumPy, accelerated, and on NumPy perturbed in the last place."""
