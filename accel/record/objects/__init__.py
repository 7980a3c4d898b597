"""Recorded objects, modules, classes and functions: what arrays are reached through.

enter             how a plain value from outside becomes a recorded one
containers/       lists, deques, dicts and sets
names/            globals, and variables of enclosing functions
library/          functions and objects of the standard library and SciPy
sinks/            streams, loggers and warnings
generators        random generators
proxy             the base of what stands for them
objects           objects and classes of the program's
own_attributes    what an object holds itself under a name
class_attributes  attributes of classes that the call assigns
class_reads       `self.__class__`, as `type(self)`
namespaces        `self.__dict__`, looked up by name
computed          what its class computes under a name
special_methods   what Python looks up in a class, for operators and the like
enumerations      members of an Enum
kinds             which classes the recorder may look into
dataclass         dataclasses.replace
records           arrays of records, by their fields
modules           modules, the environment, and what is not looked into
functions         functions that have a rule
follow            functions of the program's, which run their own code with substituted globals
scan              what a function's code must not contain for that
builtins          what stands for Python's own functions
"""
