"""Simulate a plate: a script as people write it, which imports its functions from a module.

python simulate.py 1500                                     # plain NumPy
accel doctor heat.py --catalogue rows.py --run simulate.py 100
accel run --catalogue rows.py simulate.py 1500    # accelerated
"""

import sys

from heat import Plate

plate = Plate(int(sys.argv[2]) if len(sys.argv) > 2 else 800)
for n in range(int(sys.argv[1])):
    plate.step()
    if n % 500 == 0:
        plate.check(50.0)
print(f"mean temperature {plate.t.mean():.6f}")
