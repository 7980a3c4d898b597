"""Python's clocks, as accel found them. A program may replace them, to freeze or to simulate time.

Its replacements would stop accel's own timing, and be called without end where accel times them too.
"""

import time as _time


class time:  # libraries that freeze time replace attributes of modules alone
    """The functions of the module `time` that accel calls."""

    localtime = staticmethod(_time.localtime)
    monotonic = staticmethod(_time.monotonic)
    perf_counter = staticmethod(_time.perf_counter)
    process_time = staticmethod(_time.process_time)
    sleep = staticmethod(_time.sleep)
    strftime = staticmethod(_time.strftime)
    thread_time = staticmethod(_time.thread_time)
    time = staticmethod(_time.time)
