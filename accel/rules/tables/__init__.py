"""The rows: one for each NumPy or SciPy function, by family."""

WAITING = {"scipy.ndimage": "accel.rules.tables.ndimage"}
"""Tables by the module whose functions they are for, which takes longer to import than all of accel."""
