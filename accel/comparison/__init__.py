"""Whole runs side by side: NumPy, accelerated, and NumPy perturbed in the last place."""
