"""Rows of SciPy's functions, a module for each of SciPy's."""
