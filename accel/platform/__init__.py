"""The platform: settings, figures, threads and facts of the whole process. It imports nothing above it.

config          the settings, from the environment, the project's table and the command line
variables       environment variables without effect: misspelt ones, missing folders
options         the argument parser that all commands share
reason_table    every reason for which code stays on NumPy
reasons         refusals: one of these reasons at one line of the source
entries         what ledgers hold: states, costs, differences
ledger          counts and times of each target and of the run, updated as they happen
timeline        rare events, and single calls while a profile is made
logs            the logger named "accel", and its handlers
project         the table `[tool.accel]` of the program's `pyproject.toml`
spelling        names of functions, and suggestions for misspelt words
versions        supported versions of Python and of the dependencies
distances       the difference of two arrays of numbers, as one figure
callbacks       functions of Python's that a compiled program calls in the middle of its run
alignment       memory that XLA on the CPU reads without a copy
forks           what a forked child has to do
ending          what is let go of at the end
interrupts      Ctrl-C and signal handlers that raise: when they may come in
tuning          settings of the process that accel changes
clocks          the clocks of Python, whatever the program replaces them by
freed           freed memory that the process keeps, and what that gains
underflow       whether arithmetic has flushed a subnormal number
memory          what the process may still take; arrays over memory of others
processors      how many there are, and what programs are compiled for
ranks           which process of an MPI program speaks for all
gain            what programs could have saved so far, which decides what is begun
own_code        which modules are the user's own
notebook_cells  what people call the cells of a notebook
pickling        what is written for other processes, with NumPy's own dtypes
codes           code objects, and those nested in them
bodies          which functions are bodies of lifted loops
tracebacks      tracebacks without accel's frames
files           files that are written as a whole
hidden          the program's files that have names of Python's own modules
warned          `warnings.warn`, which counts the program's frames alone
filters         what the filters of Python's warnings make of one
bars            progress bars, whose code looks at nothing of the program's
observers       who else in the process could look at the program's objects
background      accel's own threads, which run no Python while arrays are out of date
jax_internals   private interfaces of JAX, all of them
addresses       of arrays, from their objects
"""
