"""Passes over a program: each one a transformation, in a file of its own."""
