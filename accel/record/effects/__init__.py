"""Effects after the run: text that a recorded call shows, and that replays show after their commit.

streams   standard streams that replays may write to
loggers   loggers whose whole way to the reader is Python's own
shown     what was shown, as data: the plan that a replay carries out
capture   recorded values, as they are at the moment when they are shown
texts     recorded text: markers in the place of formatted values, until a sink resolves them
flow      what the code of a function does with a text: whether it can reach anything but a sink
sinks     what recorded code calls in the place of print, write, and a logger's methods
"""
