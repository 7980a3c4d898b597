"""NumPy's functions that a compiled program calls as they are: see accel.rules.hosted."""

from __future__ import annotations

import numpy as np

from accel.rules.hosted import on_host

on_host(np.partition, "a")
on_host(np.argpartition, "a")
on_host(np.linalg.eig, "a")
on_host(np.linalg.eigvals, "a")
on_host(np.linalg.lstsq, "a b")
