"""Heat in a plate whose edges are held at fixed temperatures: the module that `simulate.py` uses.

In this folder, `accel doctor heat.py --catalogue rows.py --run simulate.py 100` finds that `Plate.step` is
worth a row, and that `Plate.check` is called too seldom. `accel explain heat:Plate.check --run simulate.py
10` shows what recording it gives: it prints a whole number, which does not stop a recording.
"""

import numpy as np


class Plate:
    """Temperatures t, shape (size, size) [°C]."""

    def __init__(self, size):
        self.t = np.zeros((size, size))
        self.t[0] = 100.0
        self.conductivity = 0.2

    def step(self):
        """Advance the temperatures by one time step."""
        t = self.t
        middle = t[1:-1, 1:-1]
        around = t[:-2, 1:-1] + t[2:, 1:-1] + t[1:-1, :-2] + t[1:-1, 2:]
        new = t.copy()
        new[1:-1, 1:-1] = middle + self.conductivity * (around - 4.0 * middle)
        self.t = np.clip(new, 0.0, 100.0)

    def check(self, limit):
        """Print, and return, how many cells are hotter than `limit` [°C]."""
        hot = np.count_nonzero(self.t > limit)
        print(f"{hot} cells above {limit}")
        return hot
