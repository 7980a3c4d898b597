"""Recorded objects, modules, classes and functions, through which programs reach arrays.

enter             how a plain value from outside becomes a recorded one
containers/       lists, deques, dicts and sets
names/            globals, and variables of enclosing functions
library/          functions and objects of the standard library and SciPy
sinks/            streams, loggers and warnings
generators        random generators
proxy             the bases of proxies; operators and other special methods
objects           objects and classes of the program's
own_attributes    attributes of an object's own
computed          attributes that a class computes, and those of classes themselves
kinds             which classes the recorder may look into
records           arrays of records, by their fields
modules           modules, the environment, and opaque objects
functions         functions that have a rule
follow            functions of the program's, which run their own code with substituted globals
scan              code that keeps a function from being followed; `self.__class__`
builtins          stand-ins for Python's own functions
"""
