"""`python -m accel COMMAND ...`: see `accel.cli.commands`."""

from __future__ import annotations

import sys

from accel.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
