"""`python -m accel COMMAND ...`: see `accel.tools.cli.commands`."""

from __future__ import annotations

import sys

from accel.tools.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
