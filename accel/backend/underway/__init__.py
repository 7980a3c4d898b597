"""Programs on their way, from a path that is to be compiled to an executable of this process.

queues      the queues of pending programs, their threads, and the end of the process
pending     one pending program, found on disk or compiled
supervisor  starts the worker, and replaces one that has crashed
worker      the process that compiles
last        the job that it finishes after the program's end
priority    its priority: which processes of the user go first
"""
