"""Effects after the run: text that a recorded call shows, and that replays show after their commit.

streams        standard streams that replays may write to
tees           what IPython puts before their `write` while a cell runs
loggers        loggers whose whole way to the reader is Python's own
shown          what was shown, as data: the plan that a replay carries out
capture        recorded values, as they are at the moment when they are shown
texts          recorded text: markers in the place of formatted values, until a sink resolves them
percent        text that `%` makes, with markers
opcodes        the instructions of each Python version, by what they do
flow           what the code of a function does with a text: what may read it
markers        whether a formatted value may stay a marker: all that may read its text are sinks
sinks          what recorded code calls in the place of print, and of a stream's write and flush
logger_sinks   the same for loggers and the functions of `logging`
warning_sinks  the same for `warnings.warn`
"""
