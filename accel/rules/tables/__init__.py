"""The rows: one for each NumPy or SciPy function, by family."""

WAITING = {"scipy.ndimage": "accel.rules.tables.ndimage"}
"""Tables that are imported once the program has imported the module whose functions they are for: importing that takes
longer than importing all of accel."""
