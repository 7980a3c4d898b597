"""The rows: one for each NumPy or SciPy function, by family."""
