"""Disk cache: files kept for later runs.

cache       programs, found by what they compute
products    where compiled programs are kept, and which ones are about to come
together    programs of several paths
experience  what earlier runs have learnt of a path
recordings  recordings that led to programs, which later runs take up
named       their pickles, with names in the place of the program's own objects
refused     what recordings took that ended at a limit
references  the names by which those find what is the program's own
"""
