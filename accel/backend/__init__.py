"""The backend: what compiles programs, where they are kept, and on which device they run.

job         what is to be compiled, as plain data
pending     one program on its way, from disk or from the compiler, to an executable of this process
background  the queues of pending programs, their threads, and the end of the process
worker      the process that compiles
supervisor  starts the worker, and replaces one that has crashed
compile     compiling, loading and describing a program with JAX
cache       programs on disk, found by what they compute
together    programs of several paths on disk
experience  what earlier runs have learnt of a path
devices     which device there is; importing JAX
shards      fields divided by rows among several devices
trial       whether a program for several devices computes what one for a single device does
spans       arrays that a program on the CPU reads where they lie
lapack      functions of jaxlib's that a program from disk calls by name
"""
