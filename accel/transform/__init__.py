"""Transform: other functions and steps from the program's own.

pure/       pure JAX functions, derivatives and batches of NumPy functions
ensembles/  copies of a program's state, stepped as one program
"""
