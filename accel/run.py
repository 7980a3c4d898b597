"""`python -m accel.run`, equivalent to `accel run`: see `accel.tools.cli.run`."""

from __future__ import annotations

import sys

from accel.tools.cli.run import main

if __name__ == "__main__":
    sys.exit(main())
