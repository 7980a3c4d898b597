"""Sinks: text that a recorded call shows, and that replays show after their commit.

show     `print`, and a standard stream's `write` and `flush`
log      loggers whose records only Python's own code sees, and the functions of `logging`
warn     `warnings.warn`
streams  standard streams that replays may write to, through IPython's tee too
"""
