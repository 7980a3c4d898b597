"""The rows: one for each NumPy or SciPy function, by family."""

WAITING = {
    "scipy.fft": "accel.rules.tables.scipy.fft",
    "scipy.integrate": "accel.rules.tables.scipy.integrate",
    "scipy.interpolate": "accel.rules.tables.scipy.interpolate",
    "scipy.linalg": "accel.rules.tables.scipy.linalg",
    "scipy.ndimage": "accel.rules.tables.scipy.ndimage",
    "scipy.optimize": "accel.rules.tables.scipy.optimize",
    "scipy.signal": "accel.rules.tables.scipy.signal",
    "scipy.sparse": "accel.rules.tables.scipy.sparse",
    "scipy.spatial.distance": "accel.rules.tables.scipy.distance",
    "scipy.special": "accel.rules.tables.scipy.special",
    "scipy.stats": "accel.rules.tables.scipy.stats",
}
"""Tables that are imported once the program has imported the module whose functions they are for: importing that takes
longer than importing all of accel."""
