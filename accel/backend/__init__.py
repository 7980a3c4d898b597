"""The backend: what compiles programs, where they are kept, and on which device they run.

job         what is to be compiled, as plain data
underway/   programs on their way: the queues, and the process that compiles
compile     compiling, loading and describing a program with JAX
segmented   programs of accel's own kernels, and what computes the rest
executable  a compiled program, and running it
resident    the program's arrays whose values are on the device
disk/       what is kept for later runs: programs, and what was learnt of paths
devices     which device there is; importing JAX
machines/   several machines: the ranks that serve rank 0
shards      fields divided by rows among several devices
divided     whether a program for several devices computes what one for a single device does
options     those of XLA that programs are compiled with
lapack      functions of jaxlib's that a program from disk calls by name
"""
