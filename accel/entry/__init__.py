"""Entry: how calls and loops of an unmodified program come to accel.

hook/      replaces functions as modules are imported, and puts them back
lift/      outlines the bodies of the program's own loops, so that they can be called
callables  the Python function behind a callable or a name
"""
