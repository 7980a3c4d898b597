"""Helpers of Python's and NumPy's own libraries that hand on, keep or copy what recorded code gives them."""
